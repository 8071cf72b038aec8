//! Which addresses and which nodes a job takes on networks that are laid out unlike the lab's: what must not be taken is
//! there beside what must.

use std::process::Output;
use std::time::{Duration, Instant};

use super::bench::{Bench, as_ordinary_user};

const HOSTS: usize = 4;

/// A lab whose hosts have run a line of shell, in which `$i` is the number of the host.
fn prepared(bench: &Bench, line: &str) {
    bench.ok(&["up", "--hosts", &HOSTS.to_string()]);
    for host in 0..HOSTS {
        bench.ok(&["exec", &format!("h{host}"), "--", "sh", "-ec", &format!("i={host}; {line}")]);
    }
}

/// A rank on each host, which meet at `root`: what each of them left.
fn job(bench: &Bench, root: &str, options: &[&str]) -> Vec<Output> {
    bench.network_test(HOSTS, root, &[], options)
}

fn said(outputs: &[Output]) -> String {
    outputs.iter().map(|of| String::from_utf8_lossy(&of.stderr).into_owned()).collect()
}

/// The names of the nodes and of what the ranks took, of a job that must work.
fn taken(outputs: &[Output]) -> (Vec<String>, String) {
    assert!(outputs.iter().all(|of| of.status.success()), "{}", said(outputs));
    let result: serde_json::Value = serde_json::from_slice(&outputs[0].stdout).expect("rank 0 prints the result file");
    let names = result["system"]["nodes"].as_array().expect("a list").iter();
    let names = names.map(|node| node["name"].as_str().expect("is text").to_owned()).collect();
    let interfaces = &result["runs"][0]["transport"]["details"]["interfaces"];
    (
        names,
        interfaces.as_str().unwrap_or_else(|| panic!("no interfaces: {}", result["runs"][0]["transport"])).to_owned(),
    )
}

/// The one line of a job that must not begin.
fn refusal(outputs: &[Output]) -> String {
    assert!(outputs.iter().all(|of| of.status.code() == Some(2)), "{}", said(outputs));
    let text = said(outputs);
    let lines: Vec<&str> = text.lines().collect();
    let [line] = lines[..] else { panic!("{text}") };
    line.to_owned()
}

fn all_by(interface: &str) -> (Vec<String>, String) {
    ((0..HOSTS).map(|host| format!("h{host}")).collect(), format!("{interface}: ranks 0-3"))
}

#[test]
fn a_second_interface_of_the_network_that_leads_nowhere_is_not_taken() {
    as_ordinary_user("second", |bench| {
        prepared(
            bench,
            "ip link add d1 type veth peer name nowhere; ip addr add 10.77.0.$((100+i))/24 dev d1; ip link set d1 up; \
             ip link set nowhere up",
        );
        assert_eq!(taken(&job(bench, "10.77.0.1:4801", &[])), all_by("d0"));
        let start = Instant::now();
        let line = refusal(&job(bench, "10.77.0.1:4802", &["--data-interface", "d1"]));
        assert!(line.contains("is gone (connect to 10.77.0.10"), "{line}");
        // The kernel by itself would try for two minutes.
        assert!(start.elapsed() < Duration::from_secs(60), "named after {:?}", start.elapsed());
    });
}

/// The bytes that a host has sent by an interface.
fn sent(bench: &Bench, host: &str, interface: &str) -> u64 {
    let path = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    bench.ok(&["exec", host, "--", "cat", &path]).trim().parse().expect("a number")
}

#[test]
fn with_rails_both_interfaces_carry_what_is_long() {
    as_ordinary_user("rails", |bench| {
        prepared(bench, "true");
        let before = ["d0", "c0"].map(|interface| sent(bench, "h1", interface));
        let options = ["--rails", "2", "--canaries", "bw-sync", "--set", "bw-sync.bytes=1MiB"];
        let outputs = job(bench, "10.77.0.1:4808", &options);
        assert_eq!(taken(&outputs), all_by("d0"));
        let after = ["d0", "c0"].map(|interface| sent(bench, "h1", interface));
        let [data, control] = [0, 1].map(|at| after[at] - before[at]);
        // Beside what is short, which goes over one of them.
        assert!(data > 1 << 20 && control > 1 << 20, "d0 carried {data} bytes, c0 {control}");
        let result: serde_json::Value = serde_json::from_slice(&outputs[0].stdout).expect("the result file");
        let details = &result["runs"][0]["transport"]["details"];
        assert_eq!((&details["rails"], &details["rail_1_interfaces"]), (&"2".into(), &"c0: ranks 0-3".into()));
        let end = &result["system"]["ends"][3]["networks"][0]["rails"][1];
        assert_eq!(end, &serde_json::json!({ "device": "c0", "address": "10.78.0.4" }));

        bench.ok(&["exec", "h2", "--", "ip", "link", "set", "c0", "down"]);
        let line = refusal(&job(bench, "10.77.0.1:4809", &["--rails", "2"]));
        assert!(line.contains("--rails 2: rank 2 on h2 has too few ends for that: 10.77.0.3 on d0;"), "{line}");
        let line = refusal(&job(bench, "10.77.0.1:4810", &["--rails", "2", "--data-interface", "d0"]));
        assert!(line.contains("--data-interface d0 names 1 for 2 rails"), "{line}");
    });
}

#[test]
fn an_address_that_every_host_has_is_no_network() {
    as_ordinary_user("bridge", |bench| {
        // Before d0 in every order: by number of the interface, by name, by address.
        prepared(
            bench,
            "ip link set d0 down; ip link set d0 name x0; ip link add br0 type bridge; ip link add a1 type veth peer name a2; \
             ip link set a1 master br0; ip link set a1 up; ip link set a2 up; ip addr add 10.7.0.1/16 dev br0; \
             ip link set br0 up; ip link set x0 up",
        );
        let (_, interfaces) = taken(&job(bench, "10.78.0.1:4803", &[]));
        assert!(["x0: ranks 0-3", "c0: ranks 0-3"].contains(&interfaces.as_str()), "{interfaces}");
        let line = refusal(&job(bench, "10.78.0.1:4804", &["--data-interface", "br0"]));
        assert!(line.contains("10.7.0.1 on br0 leads to no other host") && line.contains("x0 (10.77.0."), "{line}");
    });
}

#[test]
fn a_network_per_leaf_is_reached_by_its_routes() {
    as_ordinary_user("routes", |bench| {
        prepared(
            bench,
            "ip link set c0 down; ip addr flush dev d0; leaf=$((i/2)); ip addr add 10.9.$leaf.$((i+1))/24 dev d0; \
             ip route add 10.9.$((1-leaf)).0/24 dev d0",
        );
        let outputs = job(bench, "10.9.0.1:4805", &[]);
        assert_eq!(taken(&outputs), all_by("d0"));
        let shown = String::from_utf8_lossy(&outputs[0].stdout).into_owned();
        assert!(shown.contains("the first that may reach every host; none shares a network with all"), "{shown}");
    });
}

#[test]
fn hosts_of_one_name_are_nodes_of_their_own() {
    as_ordinary_user("names", |bench| {
        prepared(bench, "hostname node");
        let names = ["node/0", "node/1", "node/2", "node/3"].map(str::to_owned).to_vec();
        assert_eq!(taken(&job(bench, "10.77.0.1:4806", &[])), (names, "d0: ranks 0-3".to_owned()));
    });
}

#[test]
fn a_network_without_ipv4_works() {
    as_ordinary_user("six", |bench| {
        prepared(bench, "ip link set c0 down; ip addr flush dev d0; ip -6 addr add fd77::$((i+1))/64 dev d0 nodad");
        assert_eq!(taken(&job(bench, "[fd77::1]:4807", &[])), all_by("d0"));
    });
}
