//! Studies without a launcher: on the hosts of an emulated cluster, or as plain local ranks.

use std::ffi::OsString;
use std::net::IpAddr;

use tailback_tcp::launch::{self, LaunchOptions, RankSetup};

use super::in_lab::PORT;
use super::scratch::{self, Scratch};
use super::{GRACE, RESULT_VARIABLE, exit_code, this_command};
use crate::backend::Work;
use crate::lab::{self, Lab, LabSpec};
use crate::models::study::StudyRequest;
use crate::result::{self, LabRecord, PhaseCounters};

/// Runs a study on this machine, on as many nodes and ranks as it needs.
pub fn run_study(request: &StudyRequest) -> Result<u8, String> {
    let (ranks, per_node) = request.local_ranks()?;
    let ranks = request.transport().ranks.unwrap_or(ranks);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    if request.transport().no_lab {
        return plain(request, ranks, per_node, "");
    }
    match lab::available() {
        Ok(_) => in_lab(request, ranks, per_node),
        Err(reason) => plain(request, ranks, per_node, &format!(" (no emulated cluster: {reason})")),
    }
}

/// Ranks on virtual nodes.
fn plain(request: &StudyRequest, ranks: usize, per_node: usize, why: &str) -> Result<u8, String> {
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
    let spec =
        LabSpec { hosts: ranks.div_ceil(per_node), leaves: 1, name: scratch::unique_name(), ..LabSpec::default() };
    request.say(&format!(
        "no launcher: {ranks} ranks on an emulated cluster of {} hosts on one switch ({} links, {} KiB queues) on this machine",
        spec.hosts,
        spec.link_rate,
        spec.queue_bytes >> 10
    ));
    let lab = Lab::up(&spec).map_err(|error| error.to_string())?;
    let outcome = on_hosts(request, &lab, ranks, per_node);
    let down = lab.down().map_err(|error| error.to_string());
    let code = outcome?;
    down.map(|()| code)
}

/// Runs the ranks, adds to their result what the lab was and what its ports did, and shows it.
fn on_hosts(request: &StudyRequest, lab: &Lab, ranks: usize, per_node: usize) -> Result<u8, String> {
    let setup = |rank: usize| {
        let host = &lab.hosts()[rank / per_node];
        let env: Vec<(OsString, OsString)> = vec![("TAILBACK_HOST".into(), host.name.clone().into())];
        RankSetup { prefix: lab.command_on(host), env }
    };
    let setups: Vec<RankSetup> = (0..ranks).map(setup).collect();
    let scratch = Scratch::new()?;
    let handed_over = scratch.path("study.json");
    let mut options = LaunchOptions::new(ranks, this_command()?);
    options.bind = IpAddr::V4(lab.hosts()[0].control);
    options.port = Some(PORT);
    options.grace = GRACE;
    options.env = [
        // All hosts share this machine's cores: spinning ranks would measure those.
        ("TAILBACK_WAIT", "block".into()),
        ("TAILBACK_DATA_IF", "d0".into()),
        ("TAILBACK_BOOTSTRAP_IF", "c0".into()),
        (RESULT_VARIABLE, handed_over.clone().into_os_string()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into();
    options.setup = Box::new(move |rank| setups[rank.index()].clone());
    let before = lab.counters().map_err(|error| error.to_string())?;
    let code = exit_code(launch::run(&options))?;
    let mut file = match result::read(&handed_over) {
        Ok(file) if code == 0 => file,
        // The ranks have said why there is none.
        _ => return Ok(code.max(2)),
    };
    let after = lab.counters().map_err(|error| error.to_string())?;
    let ports = after.iter().zip(&before).map(|(after, before)| after.since(before)).collect();
    file.notes.extend(lab.notes().iter().cloned());
    file.lab = Some(LabRecord {
        spec: lab.spec().clone(),
        mode: lab.mode().to_string(),
        hosts: lab.hosts().to_vec(),
        phases: vec![PhaseCounters { phase: file.command.word().to_owned(), ports }],
        control: None,
    });
    Ok(request.show(&file))
}
