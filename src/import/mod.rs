//! Results of other programs: the tables that GPCNeT prints, found in logs of jobs, and HPC Challenge's output file.
//!
//! What a program does not say is not made up: an imported result names its source and notes what is not known.

mod gpcnet;
mod hpcc;

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::result::{Build, Command, HostFacts, Node, ResultFile, Run, SCHEMA_VERSION, System, TransportFacts};

pub use gpcnet::{ImportError, Output, gpcnet};
pub use hpcc::{HpccError, hpcc};

/// A run over a network that nobody named but for its library.
fn unknown_run() -> Run {
    Run::bare(TransportFacts { backend: "mpi".into(), ..TransportFacts::default() })
}

/// A file of one run that `from` made, when and with which seed nobody knows.
fn unknown_file(command: Command, from: String, system: System, plan: Plan, run: Run) -> ResultFile {
    ResultFile {
        schema_version: SCHEMA_VERSION,
        build: Build::this(),
        command,
        label: None,
        started: "unknown".into(),
        duration_s: 0.0,
        seed: 0,
        plan,
        system,
        runs: vec![run],
        lab: None,
        machine: None,
        counters: None,
        models: None,
        calibration: None,
        tuning: None,
        sweep: None,
        notes: Vec::new(),
        interrupted: false,
        failed: None,
        imported: Some(from),
    }
}

/// A system of which only the size is known: nodes without ranks or roles, for nobody said who was where.
fn unknown_system(ranks: usize, nodes: usize) -> System {
    let node = |at: usize| Node { name: format!("unknown{at}"), ranks: Vec::new(), roles: Vec::new() };
    System {
        hosts: None,
        ranks,
        launcher: "unknown".into(),
        nodes: (0..nodes).map(node).collect(),
        host: HostFacts { name: "unknown".into(), ..HostFacts::default() },
        environment: BTreeMap::new(),
        ends: Vec::new(),
        ports: None,
        watch: None,
        memory: None,
        activity: Vec::new(),
    }
}
