//! The conformance suite can fail: each transport here breaks one promise, and the suite names the case that is about it.

mod saboteur;

use std::time::Duration;

use saboteur::{Sabotage, Saboteur};
use tailback_engine::{Collective, Lane};
use tailback_testkit::conformance::{self, Failure, Report};
use tailback_testkit::loopback::{Fault, Job, Transfer};
use tailback_transport::{Operation, Rank};

/// Runs the cases that `chosen` picks over a sabotaged transport, on four ranks.
fn run(sabotage: Sabotage, chosen: impl Fn(&str) -> bool + Sync) -> Result<Vec<Report>, Failure> {
    // Only what is bound to hang is given up soon: a busy machine must not look like a fault.
    let hangs = matches!(sabotage, Sabotage::DropSends | Sabotage::AgreeFirst);
    let limit = Duration::from_secs(if hangs { 2 } else { 60 });
    Job::new(4).limit(limit).run(|mut bootstrap, transport| {
        let mut transport = Saboteur::new(Collective::new(transport), sabotage);
        conformance::run_only(&mut bootstrap, &mut transport, &chosen)
    })
}

/// The case about the broken promise fails, and so does the suite as a whole.
fn caught(sabotage: Sabotage, case: &'static str) -> Failure {
    let failure = run(sabotage, |name| name == case).expect_err("the case about it passed");
    assert_eq!(failure.case, case);
    run(sabotage, |_| true).expect_err("the suite passed");
    failure
}

#[test]
fn a_faithful_wrapper_passes() {
    let reports = run(Sabotage::Nothing, |_| true).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(reports.iter().all(|report| report.skipped().count() == 0));
}

#[test]
fn tags_that_are_ignored() {
    let failure = caught(Sabotage::IgnoreTags, "send/recv: tags do not cross");
    assert!(failure.detail.contains("byte 0 of 8"), "{failure}");
}

#[test]
fn messages_of_one_tag_that_trade_places() {
    let failure = caught(Sabotage::SwapSends, "send/recv: one tag keeps its order");
    assert!(failure.detail.contains("message 0 of tag 5"), "{failure}");
    caught(Sabotage::SwapSends, "send/recv: short messages do not overtake long ones");
}

#[test]
fn a_wait_that_does_not_wait() {
    caught(Sabotage::SkipWait, "send/recv: every size around the ring");
}

#[test]
fn a_message_that_is_dropped_ends_in_a_named_wait() {
    let failure = caught(Sabotage::DropSends, "send/recv: every pair");
    assert!(failure.detail.contains("no message from rank"), "{failure}");
}

#[test]
fn a_flush_that_does_not_flush() {
    caught(Sabotage::SkipFlush, "flush: the target sees the put");
    caught(Sabotage::SkipFlush, "put: many small ones, one flush");
    caught(Sabotage::SkipFlush, "get: every pair");
}

#[test]
fn puts_that_land_elsewhere() {
    caught(Sabotage::ShiftPuts, "put: every pair");
}

#[test]
fn gets_from_the_wrong_member() {
    caught(Sabotage::MisdirectGets, "get: every pair");
}

#[test]
fn a_wait_for_a_time_that_does_not_wait() {
    caught(Sabotage::WakeEarly, "wait_until: who waits serves others");
}

#[test]
fn a_barrier_that_does_not_wait() {
    let failure = caught(Sabotage::SkipBarrier, "barrier: nobody leaves before all are in");
    assert!(failure.detail.contains("mark of rank"), "{failure}");
}

#[test]
fn a_background_barrier_that_is_over_at_once() {
    caught(Sabotage::RushBarrier, "background barrier: not before the last member");
}

#[test]
fn an_agreement_with_oneself() {
    caught(Sabotage::AgreeAlone, "agreement: the maximum of what was proposed");
    caught(Sabotage::AgreeAlone, "agreement: not before the last proposal");
}

#[test]
fn an_agreement_that_data_waits_for() {
    caught(Sabotage::AgreeFirst, "agreement: waiting on data does not wait for it");
}

#[test]
fn sums_that_differ_in_the_last_bit() {
    caught(Sabotage::RoundDifferently, "allreduce: the same bits on every member");
}

#[test]
fn sums_that_are_not_made() {
    caught(Sabotage::SkipSums, "groups: words of a segment are added");
}

#[test]
fn segments_that_are_not_fresh() {
    caught(Sabotage::DirtySegments, "groups: a fresh segment is zero");
}

#[test]
fn misuse_that_is_accepted() {
    caught(Sabotage::AcceptMisuse, "misuse: refused, and nothing changes");
}

#[test]
fn missing_operations_that_do_nothing_when_called() {
    caught(Sabotage::LackGetSilently, "capabilities: what is missing is refused as such");
}

#[test]
fn missing_operations_are_skipped_with_their_reason() {
    let reports = run(Sabotage::LackGet, |_| true).unwrap_or_else(|failure| panic!("{failure}"));
    let skipped: Vec<_> = reports[0].skipped().collect();
    assert!(skipped.contains(&("get: every pair", "no get: sold separately")), "{skipped:?}");
    assert!(skipped.iter().all(|(_, reason)| reason.contains("sold separately")));
    assert!(!skipped.iter().any(|(name, _)| name.starts_with("send/recv")));
    assert!(reports[0].to_string().contains("skipped  get: every pair: no get: sold separately"));
}

/// Flips one bit of byte 17 of what rank 1 sends, puts, or has read.
struct Flip(Operation);

impl Fault for Flip {
    fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
        let data = transfer.label.is_none_or(|(lane, _)| lane == Lane::Data);
        if transfer.operation == self.0 && transfer.from == Rank(1) && data && payload.len() == 4096 {
            payload[17] ^= 0x20;
        }
    }
}

#[test]
fn a_flipped_bit_is_found_and_its_byte_named() {
    for operation in [Operation::TwoSided, Operation::Put, Operation::Get] {
        let outcome = Job::new(3)
            .fault(Flip(operation))
            .run(|mut bootstrap, transport| conformance::run(&mut bootstrap, &mut Collective::new(transport)));
        let failure = outcome.expect_err("a flipped bit went unnoticed");
        assert!(failure.detail.contains("byte 17 of 4096"), "{operation}: {failure}");
        assert!(failure.case.starts_with(&operation.to_string()), "{operation}: {failure}");
    }
}

/// One rank is slow at everything.
struct Slow(Rank);

impl Fault for Slow {
    fn delay(&self, rank: Rank, operation: &'static str) -> Duration {
        let slow = rank == self.0 && matches!(operation, "wait" | "flush" | "group");
        if slow { Duration::from_micros(300) } else { Duration::ZERO }
    }
}

#[test]
fn a_slow_rank_is_no_fault() {
    let outcome = Job::new(3)
        .fault(Slow(Rank(2)))
        .run(|mut bootstrap, transport| conformance::run(&mut bootstrap, &mut Collective::new(transport)));
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
