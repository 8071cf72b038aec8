//! Studies without a launcher: on the hosts of an emulated cluster, or as plain local ranks.

use std::time::Duration;

use tailback_tcp::launch::{self, LaunchOptions, heed_signals};

use super::place::{fits_hosts, outside_lab};
use super::ranks::{exit_code, on_hosts, this_command};
use super::scratch::{self, Scratch};
use super::simulated;
use crate::commands::StudyRequest;
use crate::lab::{self, Lab, LabSpec};
use crate::result::{self, LabRecord, PhaseCounters};

/// How long ranks have to end in order after Ctrl-C: longer than steps of the default sizes take over an emulated network.
const GRACE: Duration = Duration::from_secs(30);

/// Runs a study on this machine, on as many nodes and ranks as it needs.
pub(in crate::commands) fn run_study(request: &StudyRequest) -> Result<u8, String> {
    if let Some(machine) = simulated::machine(&request.settings) {
        return simulated::study(request, machine);
    }
    let (ranks, per_node) = request.local_ranks()?;
    let ranks = request.place.ranks.unwrap_or(ranks);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    if request.place.no_lab {
        return plain(request, ranks, per_node, "");
    }
    if let Some(backend) = outside_lab(&request.settings) {
        return plain(request, ranks, per_node, &format!(" (the emulated cluster has no {backend})"));
    }
    match lab::available() {
        Ok(_) => in_lab(request, ranks, per_node),
        Err(reason) => plain(request, ranks, per_node, &format!(" (no emulated cluster: {reason})")),
    }
}

/// Ranks on virtual nodes.
fn plain(request: &StudyRequest, ranks: usize, per_node: usize, why: &str) -> Result<u8, String> {
    heed_signals();
    let mut command = this_command()?;
    if request.ranks_per_node.is_none() {
        command.extend(["--ranks-per-node".into(), per_node.to_string().into()]);
    }
    request.say(&format!(
        "no launcher: starting {ranks} ranks on this machine as {} virtual nodes{why}. They share this machine's cores, \
         so what follows is the cores' congestion as much as a network's.",
        ranks.div_ceil(per_node)
    ));
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = GRACE;
    exit_code(launch::run(&options))
}

/// A host for every node, all on one switch: the models know ports, not what lies between switches.
fn in_lab(request: &StudyRequest, ranks: usize, per_node: usize) -> Result<u8, String> {
    fits_hosts(&request.settings)?;
    let spec =
        LabSpec { hosts: ranks.div_ceil(per_node), leaves: 1, name: scratch::unique_name(), ..LabSpec::default() };
    request.say(&format!(
        "no launcher: {ranks} ranks on an emulated cluster of {} hosts on one switch ({} links, {} KiB queues) on this machine",
        spec.hosts,
        spec.link_rate,
        spec.queue_bytes >> 10
    ));
    let lab = Lab::up(&spec).map_err(|error| error.to_string())?;
    let outcome = measure(request, &lab, ranks, per_node);
    let down = lab.down().map_err(|error| error.to_string());
    let code = outcome?;
    down.map(|()| code)
}

/// Runs the ranks, adds to their result what the lab was and what its ports did, and shows it.
fn measure(request: &StudyRequest, lab: &Lab, ranks: usize, per_node: usize) -> Result<u8, String> {
    let scratch = Scratch::new()?;
    let handed_over = scratch.path("study.json");
    let hosts = (0..ranks).map(|rank| &lab.hosts()[rank / per_node]);
    let mut options = on_hosts(lab, hosts, this_command()?, &handed_over);
    options.grace = GRACE;
    let before = lab.counters().map_err(|error| error.to_string())?;
    let code = exit_code(launch::run(&options))?;
    let mut file = match result::read(&handed_over) {
        Ok(file) if code == 0 || file.interrupted => file,
        // The ranks have said why there is none.
        _ => return Ok(code.max(2)),
    };
    file.notes.extend(lab.notes().iter().cloned());
    // A lab that was lost has no counters any more; what was measured before stands.
    let phases = match lab.counters() {
        Ok(after) => {
            let ports = after.iter().zip(&before).map(|(after, before)| after.since(before)).collect();
            vec![PhaseCounters { phase: file.command.word().into(), ports, ..PhaseCounters::default() }]
        }
        Err(problem) => {
            file.notes.push(format!("the counters of the lab's ports could not be read: {problem}"));
            Vec::new()
        }
    };
    file.lab = Some(LabRecord::of(lab, phases));
    Ok(request.show(&file))
}
