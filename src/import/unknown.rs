//! What is known of another program's result beside its figures: little.

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::result::{Build, Command, HostFacts, Node, ResultFile, Run, SCHEMA_VERSION, System, TransportFacts};

/// A run over a network that nobody named but for its library.
pub(super) fn run() -> Run {
    Run::bare(TransportFacts { backend: "mpi".into(), ..TransportFacts::default() })
}

/// A file of one run that `from` made, when and with which seed nobody knows.
pub(super) fn file(command: Command, from: String, system: System, plan: Plan, run: Run) -> ResultFile {
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
        notes: Vec::new(),
        interrupted: false,
        imported: Some(from),
    }
}

/// A system of which only the size is known: nodes without ranks or roles, for nobody said who was where.
pub(super) fn system(ranks: usize, nodes: usize) -> System {
    let node = |at: usize| Node { name: format!("unknown{at}"), ranks: Vec::new(), roles: Vec::new() };
    System {
        ranks,
        launcher: "unknown".into(),
        nodes: (0..nodes).map(node).collect(),
        host: HostFacts { name: "unknown".into(), ..HostFacts::default() },
        environment: BTreeMap::new(),
        ends: Vec::new(),
        ports: None,
        watch: None,
        memory: None,
    }
}
