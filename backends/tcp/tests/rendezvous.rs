//! The rendezvous protocols over real sockets: the executable definition of the traits for each of them. Eager messages are
//! those of `conformance`.

use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Protocol, Rendezvous};
use tailback_host::WaitMode;
use tailback_testkit::conformance;
use tailback_transport::Bytes;

use crate::common::run;

fn conforms(size: usize, wait: WaitMode) {
    for (protocol, threshold) in [
        (Protocol::Put, Bytes(0)),
        (Protocol::Put, DEFAULT_THRESHOLD),
        (Protocol::Get, Bytes(0)),
        (Protocol::Get, DEFAULT_THRESHOLD),
    ] {
        let reports = run(size, wait, |mut bootstrap, raw| {
            conformance::run(&mut bootstrap, &mut Collective::new(Rendezvous::new(raw, protocol, threshold)))
        });
        for report in &reports {
            let all = report.passed() > 40 && report.skipped().next().is_none();
            assert!(all, "{protocol} above {threshold}: {report}");
        }
    }
}

#[test]
fn one_rank() {
    conforms(1, WaitMode::Block);
}

#[test]
fn two_ranks() {
    conforms(2, WaitMode::Block);
}

#[test]
fn two_ranks_that_yield() {
    conforms(2, WaitMode::Yield);
}

#[test]
fn three_ranks() {
    conforms(3, WaitMode::Block);
}

#[test]
fn eight_ranks() {
    conforms(8, WaitMode::Block);
}
