//! Where a command runs: in the job this process belongs to, or on this machine as ranks of this very command.
//!
//! On this machine the ranks sit on the hosts of the emulated cluster, where there is a network to congest; where namespaces
//! are not allowed they are plain local ranks. A simulated machine needs no process but this one. The process that starts
//! them hears of their phases, reads the lab's counters in between, and shows the results that rank 0 hands over.

mod in_lab;
mod ranks;
mod repeated;
mod simulated;
mod what_if;

use std::ffi::OsString;

use tailback_bootstrap::launch::{self, LaunchOptions, heed_signals};

use crate::backend::in_job;
use crate::job::{CalibrationSelection, Heard, PHASES_VARIABLE, Request, Scratch, listen, unique_name};
use crate::lab::{self, Lab, LabSpec};
use crate::output::Progress;
use crate::plan::Preset;

use in_lab::run_in_lab;
use ranks::{exit_code, grace, local_ranks, on_hosts, outside_lab, this_command, with_options};
use repeated::repeated;

pub use what_if::what_if;

/// Runs the request in the job this process belongs to, or starts one.
pub fn start(request: &Request) -> Result<u8, String> {
    request.as_work(|work| in_job(work, || repeated(request, run)))
}

/// The same in an emulated cluster of this shape; in a rank of it, the request itself.
pub fn start_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    request.as_work(|work| in_job(work, || repeated(request, |request| run_in_lab(request, spec))))
}

/// How any command is started as ranks on the hosts of a lab that is up: one on each, or so many in all, neighbours on one host.
///
/// # Errors
/// If there is no such lab.
pub fn on_lab(name: &str, ranks: Option<usize>, command: Vec<OsString>) -> Result<LaunchOptions, String> {
    let lab = Lab::open(name).map_err(|error| error.to_string())?;
    let hosts = lab.hosts();
    let ranks = ranks.unwrap_or(hosts.len());
    let per_host = ranks.div_ceil(hosts.len()).max(1);
    Ok(on_hosts(&lab, (0..ranks).map(|rank| &hosts[rank / per_host]), command))
}

/// Runs the request on this machine.
fn run(request: &Request) -> Result<u8, String> {
    if let Some(machine) = simulated::machine(&request.settings) {
        return simulated::run(request, machine);
    }
    if request.local.no_lab {
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
    let name = unique_name();
    if request.study.is_some() {
        let (ranks, per_node) = local_ranks(request, None)?;
        return Ok(LabSpec { hosts: ranks.div_ceil(per_node), leaves: 1, name, ..LabSpec::default() });
    }
    local_ranks(request, None)?;
    let recorded = request.calibration.as_ref().and_then(CalibrationSelection::lab).unwrap_or_default();
    Ok(LabSpec { hosts: request.local.ranks.unwrap_or(recorded.hosts), name, ..recorded })
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
    listen(&scratch.path("phases"), move |heard| {
        if let Heard::Begins(phase, budget) = heard {
            progress.phase(&phase, budget);
        }
    })?;
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = grace(request);
    options.env = vec![(PHASES_VARIABLE.into(), scratch.path("phases").into())];
    exit_code(launch::run(&options))
}
