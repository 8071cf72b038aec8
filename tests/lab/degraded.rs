//! Links of a lab that are broken on purpose: what the kernel has, what its counters say, and what is refused.

use super::bench::{Bench, for_each_user};

/// The queues of a device, as `tc` tells them.
fn queues(bench: &Bench, host: &str, device: &str) -> String {
    bench.ok(&["exec", host, "--", "sh", "-c", &format!("PATH=$PATH:/usr/sbin:/sbin tc qdisc show dev {device}")])
}

/// The counters of a port, by the heads of their columns.
fn counter(bench: &Bench, port: &str, head: &str) -> u64 {
    let text = bench.ok(&["status", "--counters"]);
    let words =
        |line: &str| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let heads: Vec<String> =
        text.lines().map(words).find(|heads: &Vec<String>| heads.iter().any(|of| of == "drops")).expect(&text);
    let row: Vec<String> =
        text.lines().map(words).find(|row: &Vec<String>| row.first().is_some_and(|of| of == port)).expect(&text);
    let at = heads.iter().position(|of| of == head).unwrap_or_else(|| panic!("{head} is not in {text}"));
    row[at].parse().expect("is a number")
}

#[test]
fn a_slow_link_is_slow_in_the_directions_that_were_asked_for() {
    for_each_user("slow", |bench| {
        let up = bench.ok(&["up", "--hosts", "4", "--degrade", "h1:rate=50%", "--degrade", "h2:send.rate=20mbit"]);
        assert!(up.contains("degraded: h1:rate=50%, h2:send.rate=20Mbit/s\n"), "{up}");
        assert!(bench.ok(&["status"]).contains("degraded: h1:rate=50%"));
        for (host, rate) in [("h0", "rate 200Mbit"), ("h1", "rate 100Mbit"), ("h2", "rate 20Mbit")] {
            let queues = queues(bench, host, "d0");
            assert!(queues.contains("tbf") && queues.contains(rate), "{host}: {queues}");
        }
        // Queues keep their rates when their length is changed.
        bench.ok(&["set", "queue=64KiB"]);
        assert!(queues(bench, "h1", "d0").contains("rate 100Mbit"));
        bench.ok(&["down"]);
        bench.assert_nothing_left();
    });
}

#[test]
fn a_lossy_link_loses_its_part_of_the_packets_and_counts_them() {
    for_each_user("lossy", |bench| {
        bench.ok(&["up", "--hosts", "2", "--leaves", "1", "--degrade", "h1:receive.loss=20%"]);
        // 400 datagrams, sent one by one; fewer than 20 or more than 160 are lost once in 10^16 times.
        let sender = "for i in $(seq 400); do echo x >/dev/udp/10.77.0.2/9; done";
        bench.ok(&["exec", "h0", "--", "bash", "-c", sender]);
        let lost = counter(bench, "leaf0>h1", "lost");
        assert!((20..=160).contains(&lost), "{lost} of 400 were lost");
        assert_eq!((counter(bench, "leaf0>h0", "lost"), counter(bench, "h1>leaf0", "lost")), (0, 0));
        // TCP goes on over such a link, and the result says what it was.
        let ranks = bench.network_test(2, "10.78.0.1:4777", &[], &["--data-interface", "d0"]);
        for rank in &ranks {
            assert!(rank.status.success(), "{}", String::from_utf8_lossy(&rank.stderr));
        }
        let result: serde_json::Value =
            serde_json::from_slice(&ranks[0].stdout).expect("rank 0 prints the result file");
        assert_eq!(result["lab"]["spec"]["degraded"], serde_json::json!(["h1:receive.loss=20%"]));
        bench.ok(&["down"]);
    });
}

#[test]
fn delays_need_a_queue_that_some_kernels_have() {
    for_each_user("late", |bench| {
        let output = bench.run(&["up", "--hosts", "2", "--leaves", "1", "--degrade", "h1:delay=2ms"]);
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            assert!(queues(bench, "h1", "d0").contains("netem"));
            bench.ok(&["down"]);
        } else {
            assert_eq!(output.status.code(), Some(2), "{message}");
            assert!(message.contains("no netem queue") && message.trim_end().lines().count() == 1, "{message}");
        }
        bench.assert_nothing_left();
        for (wrong, why) in [
            ("h2:rate=50%", "no link 'h2': expected a host (h0 to h1), or a link: h0-leaf0, leaf0-leaf1"),
            ("h1:speed=50%", "expected the key rate, delay or loss"),
            ("h1", "expected PLACE:KEY=VALUE"),
        ] {
            assert!(bench.refused(&["up", "--hosts", "2", "--degrade", wrong]).contains(why), "{wrong}");
        }
    });
}
