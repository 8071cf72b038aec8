//! The loopback passes the conformance suite at sizes around and off powers of two.

use tailback_engine::Collective;
use tailback_testkit::{conformance, loopback};

fn conforms(size: usize) {
    let reports = loopback::run(size, |mut bootstrap, transport| {
        conformance::run(&mut bootstrap, &mut Collective::new(transport))
    });
    let reports = reports.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(reports.len(), size);
    for report in reports {
        assert_eq!(report.size, size);
        assert_eq!(report.skipped().count(), 0, "{report}");
        assert!(report.passed() > 40, "{report}");
    }
}

macro_rules! conforms {
    ($($name:ident: $size:expr,)*) => { $(#[test] fn $name() { conforms($size); })* };
}

conforms! {
    one_rank: 1,
    two_ranks: 2,
    three_ranks: 3,
    five_ranks: 5,
    eight_ranks: 8,
    sixteen_ranks: 16,
}
