//! Traffic across a lab: that packets arrive, that rates and queues are what was asked for, and that congestion does
//! what queueing theory says. Run as the user who runs the tests and, where that is root, as an ordinary user too; what is
//! measured (ci/nextest.toml: alone, and tried again) only as an ordinary user, as queues do not know who made them.
//!
//! This binary is also the traffic: it starts itself on the lab's hosts, so it has a `main` of its own and takes a part
//! of a test's name to run only some; `--list` and `--exact` are understood.

#![allow(clippy::print_stdout, reason = "its output is read by whoever starts it")]

mod program;
mod scenario;

use std::io::BufRead;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use tailback::lab::{Lab, LabSpec, Shaping};
use tailback::units::Rate;

use scenario::{Canary, Traffic};

const TESTS: [(&str, fn()); 5] = [
    ("packets_cross_the_spine", packets_cross_the_spine),
    ("measured::rates_hold_and_shaping_comes_off", rates_hold_and_shaping_comes_off),
    ("a_lab_ends_with_its_maker", a_lab_ends_with_its_maker),
    ("measured::incast_fills_the_queue_and_nothing_else", incast_fills_the_queue_and_nothing_else),
    ("measured::a_shared_spine_delays_too", a_shared_spine_delays_too),
];
const NOBODY: &str = "65534";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((name, rest)) = words.split_first()
        && let Some(program) = program::named(name)
    {
        program(rest);
        return ExitCode::SUCCESS;
    }
    let has = |flag: &str| words.iter().any(|word| word == flag);
    if has("--list") {
        // As cargo nextest wants it. None is ignored.
        TESTS.iter().filter(|_| !has("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let is_meant = |name: &str, filter: &str| if has("--exact") { name == filter } else { name.contains(filter) };
    let chosen = TESTS.iter().filter(|(name, _)| filters.is_empty() || filters.iter().any(|part| is_meant(name, part)));
    let is_root = rustix::process::geteuid().is_root();
    for (name, test) in chosen.filter(|(name, _)| !is_root || !name.starts_with("measured::")) {
        let start = Instant::now();
        test();
        eprintln!("test {name} ... ok ({:.1} s)", start.elapsed().as_secs_f64());
    }
    if is_root {
        return as_nobody(&words);
    }
    ExitCode::SUCCESS
}

/// All of it as an ordinary user, from a copy that such a user can reach.
fn as_nobody(words: &[String]) -> ExitCode {
    let copy = std::env::temp_dir().join(format!("tailback-lab-traffic-{}", std::process::id()));
    let own = std::env::current_exe().expect("has a path");
    assert!(Command::new("cp").arg(own).arg(&copy).status().expect("starts").success(), "copies itself");
    eprintln!("as user {NOBODY}:");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(&copy).args(words);
    let status = command.current_dir("/").status();
    let _ = std::fs::remove_file(&copy);
    if status.expect("starts").success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn spec(test: &str, hosts: usize, leaves: usize) -> LabSpec {
    LabSpec { name: format!("{test}-{}", std::process::id()), hosts, leaves, ..LabSpec::default() }
}

fn up(spec: &LabSpec) -> Lab {
    Lab::up(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn packets_cross_the_spine() {
    for leaves in [1, 2, 3, 6] {
        let lab = up(&spec("spine", 6, leaves));
        let traffic = Traffic::new(&lab, &[0, 5]);
        for (from, to) in [(0, 5), (5, 0), (2, 5)] {
            assert!(traffic.ping(from, to, 0.05).count > 0, "from h{from} to h{to} with {leaves} leaves");
        }
        drop(traffic);
        let counters = lab.counters().expect("reads counters");
        let crossed = counters.iter().filter(|port| port.from.contains("leaf") && !port.to.starts_with('h'));
        assert_eq!(crossed.clone().count(), [0, 0, 2, 3, 4, 5, 6][leaves], "one or two directions per leaf");
        let used = crossed.filter(|port| port.packets > 5).count();
        assert!(used >= usize::from(leaves > 1) * 2, "{counters:?}");
        lab.down().expect("ends");
    }
}

/// A shaped link is as slow as it was asked to be; that it is no slower is read from the kernel's own settings, as a
/// timer that a busy machine serves late makes any transfer slow.
fn rates_hold_and_shaping_comes_off() {
    const BYTES: u64 = 5_000_000;
    let rate = Rate::bits_per_second(100_000_000);
    let least = rate.seconds(BYTES);
    let mut lab = up(&LabSpec { link_rate: rate, ..spec("rate", 2, 1) });
    let transfer = |lab: &Lab| Traffic::new(lab, &[1]).transfer(0, 1, BYTES);
    let shaped = transfer(&lab);
    let before = lab.counters().expect("reads counters");
    let sent = before.iter().find(|port| port.from == "h0").expect("h0 has a port");
    assert!(sent.bytes > BYTES && sent.queue.as_ref().is_some_and(|queue| queue.overlimits > 0), "{sent:?}");
    assert_eq!(configured(&lab), Some(rate));
    lab.set_shaping(Shaping::Off).expect("unshapes");
    // The first that the machine did not interrupt.
    let unshaped: Vec<f64> = (0..10)
        .scan(false, |done, _| {
            let seconds = (!*done).then(|| transfer(&lab))?;
            *done = seconds < 0.9 * least;
            Some(seconds)
        })
        .collect();
    assert!(lab.counters().expect("reads counters").iter().all(|port| port.queue.is_none()));
    assert_eq!(configured(&lab), None);
    lab.set_shaping(Shaping::On).expect("shapes");
    let again = transfer(&lab);
    assert_eq!(configured(&lab), Some(rate));
    eprintln!(
        "  5 MB at {rate}: {least:.3} s by arithmetic, {shaped:.3} s, unshaped {unshaped:.3?} s, again {again:.3} s"
    );
    // A burst may pass at once.
    for seconds in [shaped, again] {
        assert!(seconds > 0.9 * least, "{seconds} s");
    }
    assert!(unshaped.last().is_some_and(|seconds| *seconds < 0.9 * least), "{unshaped:?} s without shaping");
    lab.down().expect("ends");
}

/// The rate that the kernel holds the first host's link to, if any.
fn configured(lab: &Lab) -> Option<Rate> {
    let prefix = lab.command_on(&lab.hosts()[0]);
    let mut command = Command::new(&prefix[0]);
    command
        .args(&prefix[1..])
        .args(["tc", "-j", "qdisc", "show", "dev", "d0"])
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let output = command.output().expect("starts");
    assert!(output.status.success(), "{output:?}");
    let queues: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    queues[0]["options"]["rate"].as_u64().map(|bytes| Rate::bits_per_second(8 * bytes))
}

fn a_lab_ends_with_its_maker() {
    let spec = spec("maker", 4, 2);
    let mut command = Command::new(std::env::current_exe().expect("has a path"));
    command.arg("hold").arg(serde_json::to_string(&spec).expect("serialises"));
    let mut maker = command.stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    let stdout = maker.stdout.take().expect("is a pipe");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("reads");
    assert_eq!(line, "up\n");
    let lab = Lab::open(&spec.name).expect("is up");
    let prefix = lab.command_on(&lab.hosts()[0]);
    let mut stray = Command::new(&prefix[0]).args(&prefix[1..]).args(["sleep", "600"]).spawn().expect("starts");
    let start = Instant::now();
    let name = format!("/proc/{}/comm", stray.id());
    while std::fs::read_to_string(&name).expect("runs") != "sleep\n" {
        assert!(start.elapsed() < Duration::from_secs(60), "the command starts");
        std::thread::sleep(Duration::from_millis(2));
    }
    maker.kill().expect("kills");
    maker.wait().expect("waits");
    let start = Instant::now();
    while Lab::open(&spec.name).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "holders end when their maker is gone");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(tailback::lab::down(&spec.name).expect("ends"), "there was something to remove");
    assert!(!stray.wait().expect("waits").success(), "what ran on a host is ended too");
    assert!(!tailback::lab::down(&spec.name).expect("ends"), "once");
}

/// Five senders and one receiver behind a single switch. The canary to the receiver waits in the queue of its port, one
/// between other hosts does not.
fn incast_fills_the_queue_and_nothing_else() {
    let incast: Vec<(usize, usize)> = (1..=5).map(|from| (from, 0)).collect();
    let mut medians = Vec::new();
    for queue_bytes in [128 << 10, 256 << 10] {
        let spec = LabSpec { queue_bytes, ..spec("incast", 9, 1) };
        let lab = up(&spec);
        let before = lab.counters().expect("reads counters");
        let [shared, apart] = scenario::measure(&lab, &incast, [(6, 0), (7, 8)]);
        let after = lab.counters().expect("reads counters");
        lab.down().expect("ends");
        let full_us = spec.full_queue_seconds() * 1e6;
        report(queue_bytes, full_us, &shared, &apart);
        // The median: a machine that was busy elsewhere for a moment is in the mean, and no property of the queue.
        let of_full = shared.loaded.median_us / full_us;
        assert!((0.6..1.2).contains(&of_full), "median delay is {:.0}% of a full queue", 100.0 * of_full);
        assert!(apart.median_impact() < 3.0, "impact {:.2} on a canary that shares no link", apart.median_impact());
        for (port, earlier) in after.iter().zip(&before) {
            let drops = port.since(earlier).queue.map_or(0, |queue| queue.drops);
            let is_incast = port.to == "h0";
            assert_eq!(drops > 0, is_incast, "{drops} drops from {} to {}", port.from, port.to);
        }
        medians.push(shared.loaded.median_us);
    }
    let ratio = medians[1] / medians[0];
    assert!((1.5..2.7).contains(&ratio), "twice the queue gave {ratio:.2} times the delay");
}

/// Hosts of one leaf send to hosts of the other, each to its own: no host's port is shared, the spine is.
fn a_shared_spine_delays_too() {
    let spec = spec("shared-spine", 12, 2);
    let lab = up(&LabSpec { spine_rate: Some(spec.link_rate), ..spec });
    let flows: Vec<(usize, usize)> = (0..4).map(|host| (host, host + 6)).collect();
    let [across, within] = scenario::measure(&lab, &flows, [(4, 10), (5, 4)]);
    let full_us = lab.spec().full_queue_seconds() * 1e6;
    lab.down().expect("ends");
    report(128 << 10, full_us, &across, &within);
    let median_us = across.loaded.median_us;
    assert!((0.6..1.2).contains(&(median_us / full_us)), "{median_us} us of {full_us} us");
    assert!(
        within.median_impact() < 3.0,
        "impact {:.2} on a canary that stays within its leaf",
        within.median_impact()
    );
}

fn report(queue: u64, full_us: f64, shared: &Canary, apart: &Canary) {
    let of_full = 100.0 * shared.loaded.mean_us / full_us;
    let line = |canary: &Canary| {
        let Canary { isolated, loaded } = canary;
        let (mean, median) = (canary.impact(), canary.median_impact());
        let (before, after, count, lost) = (isolated.mean_us, loaded.mean_us, loaded.count, loaded.lost);
        format!(
            "{before:.0} -> {after:.0} us (impact {mean:.2}, by medians {median:.2}; {count} answered, {lost} lost)"
        )
    };
    eprintln!("  queue {queue} B, {full_us:.0} us when full");
    eprintln!("    sharing: {}, {of_full:.0}% of full", line(shared));
    eprintln!("    apart:   {}", line(apart));
}
