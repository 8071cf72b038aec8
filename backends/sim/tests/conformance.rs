//! The simulator passes the conformance suite, bare and under every protocol for messages, on networks that reorder, pause
//! and drop.

use crate::common::machine;
use tailback_engine::{Collective, Protocol, Rendezvous};
use tailback_sim::Simulation;
use tailback_sim::machine::Machine;
use tailback_testkit::conformance;
use tailback_transport::Bytes;

fn conforms(machine: &Machine, size: usize, per_node: usize, protocol: Protocol) {
    let job = Simulation::new(machine.clone()).ranks_per_node(per_node).ranks(size);
    let finished = job.run(|mut bootstrap, transport| {
        let rendezvous = Rendezvous::new(transport, protocol, Bytes(1024));
        conformance::run(&mut bootstrap, &mut Collective::new(rendezvous))
    });
    let finished = finished.unwrap_or_else(|failure| panic!("{} {protocol}: {failure}", machine.name));
    assert_eq!(finished.results.len(), size);
    for report in finished.results {
        assert_eq!(report.size, size);
        assert_eq!(report.skipped().count(), 0, "{report}");
        assert!(report.passed() > 40, "{report}");
    }
    assert!(finished.audit.is_clean(), "{:#?}", finished.audit.faults);
}

macro_rules! conforms {
    ($($name:ident: $machine:expr, $size:expr, $per_node:expr, $protocol:ident;)*) => {
        $(#[test] fn $name() { conforms(&machine($machine), $size, $per_node, Protocol::$protocol); })*
    };
}

conforms! {
    one_rank: "small", 1, 1, Eager;
    two_ranks: "small", 2, 1, Eager;
    three_ranks: "small", 3, 1, Eager;
    five_ranks_two_per_node: "malbec", 5, 2, Eager;
    four_ranks_by_put: "crystal", 4, 1, Put;
    four_ranks_by_get: "malbec", 4, 2, Get;
    eight_ranks_where_packets_drop: "lab", 8, 1, Eager;
    eight_ranks_where_links_pause: "roce", 8, 4, Eager;
}
