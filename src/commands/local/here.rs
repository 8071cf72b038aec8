//! The load test on this machine: in the emulated cluster where there can be one, else as plain ranks.

use tailback_tcp::launch::{self, LaunchOptions, heed_signals};

use super::in_lab::run_in_lab;
use super::place::outside_lab;
use super::ranks::{GRACE, exit_code, this_command, with_options};
use super::scratch::{self, Scratch};
use super::simulated;
use crate::commands::phases::{self, Heard, PhaseListener};
use crate::commands::{CalibrationWish, Request};
use crate::lab::{self, LabSpec};
use crate::output::Progress;
use crate::plan::Preset;

/// Ranks that are started on this machine when there is no lab.
const LOCAL_RANKS: usize = 10;
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
        Ok(_) => {
            let recorded = request.calibration.as_ref().and_then(CalibrationWish::lab).unwrap_or_default();
            let hosts = request.place.ranks.unwrap_or(recorded.hosts);
            run_in_lab(request, &LabSpec { hosts, name: scratch::unique_name(), ..recorded })
        }
        Err(reason) => plain(request, &format!(" (no emulated cluster: {reason})")),
    }
}

/// Plain local ranks, each a virtual node.
fn plain(request: &Request, why: &str) -> Result<u8, String> {
    heed_signals();
    // Mistakes are said once, here, rather than by a rank.
    let plan = request.resolve(Preset::Quick)?;
    let ranks = request.place.ranks.unwrap_or(LOCAL_RANKS);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    let mut more = request.fixed(&plan);
    if plan.ranks_per_node.is_none() {
        more.extend(["--ranks-per-node".into(), "1".into()]);
    }
    let command = with_options(this_command()?, more);
    request.say(&format!(
        "no launcher: starting {ranks} ranks on this machine as {} virtual nodes, {} plan{why}. They share this machine's \
         cores, so what follows is the cores' congestion as much as a network's.",
        ranks.div_ceil(plan.ranks_per_node.unwrap_or(1)),
        plan.preset
    ));
    let progress = Progress::new(!request.quiet());
    let scratch = Scratch::new()?;
    let _listener = PhaseListener::start(&scratch.path("phases"), move |heard| {
        if let Heard::Begins(phase, budget) = heard {
            progress.phase(&phase, budget);
        }
    })?;
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = GRACE;
    options.env = vec![(phases::VARIABLE.into(), scratch.path("phases").into())];
    exit_code(launch::run(&options))
}
