//! A system of which only the size is known.

use std::collections::BTreeMap;

use crate::result::{HostFacts, Node, System};

/// Nodes without ranks or roles, for nobody said who was where.
pub(super) fn system(ranks: usize, nodes: usize) -> System {
    let node = |at: usize| Node { name: format!("unknown{at}"), ranks: Vec::new(), roles: Vec::new() };
    System {
        ranks,
        launcher: "unknown".into(),
        nodes: (0..nodes).map(node).collect(),
        host: HostFacts { name: "unknown".into(), ..HostFacts::default() },
        environment: BTreeMap::new(),
    }
}
