//! The executable definition of the traits, over real sockets.

use tailback_engine::Collective;
use tailback_host::WaitMode;
use tailback_testkit::conformance;

use crate::common::run;

fn conforms(size: usize, wait: WaitMode) {
    let reports = run(size, wait, |mut bootstrap, transport| {
        let mut transport = Collective::new(transport);
        conformance::run(&mut bootstrap, &mut transport)
    });
    for report in &reports {
        assert!(report.passed() > 0 && report.skipped().next().is_none(), "{report}");
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
fn two_ranks_that_spin() {
    conforms(2, WaitMode::Spin);
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
fn five_ranks() {
    conforms(5, WaitMode::Block);
}

#[test]
fn eight_ranks() {
    conforms(8, WaitMode::Block);
}

/// More links than are read directly.
#[test]
fn six_ranks_that_yield() {
    conforms(6, WaitMode::Yield);
}

#[test]
fn sixteen_ranks() {
    conforms(16, WaitMode::Block);
}
