//! How long the lab takes to be made, and how long its queues take: of all, of the canaries' own, or none.

use std::time::{Duration, Instant};

use crate::lab::bench::{as_ordinary_user, for_each_user};
use crate::lab::control::{controlled, load_test, loaded};

/// Links so slow that a full queue takes 52 ms, ten times what a rank of a busy machine waits for a processor.
const SLOW: [&str; 6] = ["--link-rate", "20mbit", "--set", "incast.bytes=32KiB", "--budget", "400ms"];

#[test]
fn twenty_hosts_come_and_go() {
    for_each_user("twenty", |bench| {
        let start = Instant::now();
        let shown = bench.ok(&["up", "--hosts", "20"]);
        let mode = if bench.as_nobody || !rustix::process::geteuid().is_root() { "user namespace" } else { "root" };
        assert!(shown.contains("20 hosts on 2 leaves, links 200 Mbit/s") && shown.contains(mode), "{shown}");
        assert_eq!(bench.ok(&["status", "--name", &bench.name]), shown);
        assert!(bench.ok(&["down"]).contains("is down"));
        // Two hundred milliseconds on two idle cores.
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        bench.assert_nothing_left();
        assert!(bench.ok(&["down"]).contains("was not up"), "a second time");
        assert_eq!(bench.ok(&["status"]), "no lab is up\n");
        bench.assert_nothing_left();
    });
}

#[test]
fn canaries_that_pass_the_queues_wait_less_than_half_as_long() {
    as_ordinary_user("bypass", |bench| {
        // Not the impact: its isolated part is the machine's.
        let (kind, shaped, bypass) = controlled(bench, &SLOW);
        assert_eq!(kind, "bypass");
        assert!(bypass < shaped / 2.0, "{shaped} us with queues, {bypass} us past them");
    });
}

#[test]
fn canaries_with_a_band_of_their_own_wait_less_than_half_as_long() {
    as_ordinary_user("bands", |bench| {
        let slow = [&SLOW[..], &["--no-control", "--bands", "dscp:46"]].concat();
        let shared = load_test(bench, &slow);
        let apart = load_test(bench, &[&slow[..], &["--canary-class", "dscp:46"]].concat());
        let (shared, apart) = (loaded(&shared["runs"][0]), loaded(&apart["runs"][0]));
        assert!(apart < shared / 2.0, "{shared} us in the queue of all, {apart} us in one of their own");
    });
}
