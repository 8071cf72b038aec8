//! A request on this machine: in the emulated cluster where there can be one, else as plain ranks.

use tailback_bootstrap::launch::{self, LaunchOptions, heed_signals};

use super::in_lab::run_in_lab;
use super::place::outside_lab;
use super::ranks::{exit_code, grace, local_ranks, this_command, with_options};
use super::scratch::{self, Scratch};
use super::simulated;
use crate::commands::phase_socket::{self, Heard, PhaseListener};
use crate::commands::{CalibrationSelection, Request};
use crate::lab::{self, LabSpec};
use crate::output::Progress;
use crate::plan::Preset;

/// Runs the request on this machine.
pub(in crate::commands) fn run(request: &Request) -> Result<u8, String> {
    if let Some(machine) = simulated::machine(&request.settings) {
        return simulated::run(request, machine);
    }
    if request.place.no_lab {
        return plain(request, "");
    }
    if let Some(backend) = outside_lab(&request.settings) {
        return plain(request, &format!(" (the emulated cluster has no {backend})"));
    }
    match lab::available() {
        Ok(_) => run_in_lab(request, &own_lab(request)?),
        Err(reason) => plain(request, &format!(" (no emulated cluster: {reason})")),
    }
}

/// The emulated cluster for a request: of a recorded run its own; for a study a host for every node, all on one switch, as the
/// models know ports, not what lies between switches.
fn own_lab(request: &Request) -> Result<LabSpec, String> {
    let name = scratch::unique_name();
    if request.study.is_some() {
        let (ranks, per_node) = local_ranks(request, None)?;
        return Ok(LabSpec { hosts: ranks.div_ceil(per_node), leaves: 1, name, ..LabSpec::default() });
    }
    let recorded = request.calibration.as_ref().and_then(CalibrationSelection::lab).unwrap_or_default();
    Ok(LabSpec { hosts: request.place.ranks.unwrap_or(recorded.hosts), name, ..recorded })
}

/// Plain local ranks on virtual nodes.
fn plain(request: &Request, why: &str) -> Result<u8, String> {
    heed_signals();
    // Mistakes are said once, here, rather than by a rank.
    let plan = request.resolve(Preset::Quick)?;
    let (ranks, per_node) = local_ranks(request, plan.ranks_per_node)?;
    let mut more = request.fixed(&plan);
    if plan.ranks_per_node.is_none() {
        more.extend(["--ranks-per-node".into(), per_node.to_string().into()]);
    }
    let command = with_options(this_command()?, more);
    let of_plan = if request.study.is_some() { String::new() } else { format!(", {} plan", plan.preset) };
    request.say(&format!(
        "no launcher: starting {ranks} ranks on this machine as {} virtual nodes{of_plan}{why}. They share this machine's \
         cores, so what follows is the cores' congestion as much as a network's.",
        ranks.div_ceil(per_node)
    ));
    let progress = Progress::new(request.shows_progress());
    let scratch = Scratch::new()?;
    let _listener = PhaseListener::start(&scratch.path("phases"), move |heard| {
        if let Heard::Begins(phase, budget) = heard {
            progress.phase(&phase, budget);
        }
    })?;
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = grace(request);
    options.env = vec![(phase_socket::VARIABLE.into(), scratch.path("phases").into())];
    exit_code(launch::run(&options))
}
