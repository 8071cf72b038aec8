//! Settings of a lab that is up: changed, read back from the kernel, compared by a job on its hosts and put back.

use std::process::{Child, Stdio};

use super::bench::{Bench, as_ordinary_user, for_each_user, wait_until};

#[test]
fn settings_are_changed_everywhere_and_read_back() {
    for_each_user("set", |bench| {
        bench.ok(&["up", "--hosts", "3", "--leaves", "3"]);
        assert_eq!(bench.ok(&["set", "queue"]), "128KiB\n");
        assert_eq!(bench.ok(&["set", "queue=65536"]), "64KiB\n");
        assert_eq!(bench.ok(&["set", "cc=reno"]), "reno\n");
        let status = bench.ok(&["status"]);
        assert!(status.contains("queues 64 KiB") && status.contains("reno"), "{status}");
        let tc =
            |line: &str| bench.ok(&["exec", "h2", "--", "sh", "-c", &format!("PATH=$PATH:/usr/sbin:/sbin tc {line}")]);
        let queue = tc("-raw qdisc show dev d0");
        assert!(queue.contains("limit 64Kb"), "{queue}");
        let route = bench.ok(&["exec", "h1", "--", "ip", "route", "show", "dev", "d0"]);
        assert!(route.contains("congctl reno") && route.contains("rto_min lock 50ms"), "{route}");
        for (wrong, why) in [("queue=1KiB", "--queue 1024"), ("cc=pigeon", "pigeon"), ("mtu", "expected cc or queue")] {
            assert!(bench.refused(&["set", wrong]).contains(why), "{wrong}");
        }
        // From inside, and one that someone changed by hand.
        let program = bench.program.to_str().expect("is text");
        assert_eq!(bench.ok(&["exec", "h1", "--", program, "lab", "set", "queue=128KiB"]), "128KiB\n");
        tc("qdisc del dev d0 root");
        tc("qdisc add dev d0 root bfifo limit 70000");
        assert!(bench.refused(&["set", "queue"]).contains("differ in queue: 128KiB, 70000B"));
    });
}

/// A job that compares queues of a lab that is up, with a rank on each of its four hosts.
fn tune(bench: &Bench) -> Vec<Child> {
    let rank = |number: usize| {
        let mut command = bench.command(&["exec", &format!("h{number}"), "--"]);
        command.arg(&bench.program).args([
            "tune",
            "--lab-settings",
            "queue=64KiB,256KiB",
            "--budget",
            "60s",
            "--quiet",
        ]);
        command.args(["--no-out", "--canaries", "lat", "--data-interface", "d0"]);
        command.env("TAILBACK_RANK", number.to_string()).env("TAILBACK_SIZE", "4");
        command.env("TAILBACK_ROOT", "10.78.0.1:4777").env("TAILBACK_SECRET", "ab".repeat(32));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
    };
    (0..4).map(rank).collect()
}

#[test]
fn a_queue_is_as_before_when_the_rank_that_changed_it_is_killed() {
    as_ordinary_user("put-back", |bench| {
        bench.ok(&["up", "--hosts", "4", "--leaves", "2", "--queue", "96KiB"]);
        let mut ranks = tune(bench);
        // While it is changed, ports differ.
        let is = |queue: &str| bench.run(&["set", "queue"]).stdout == format!("{queue}\n").into_bytes();
        wait_until("a setting is in force", || is("64KiB"));
        ranks[0].kill().expect("it runs");
        wait_until("it is put back", || is("96KiB"));
        for rank in &mut ranks {
            assert!(!rank.wait().expect("ends").success());
        }
    });
}
