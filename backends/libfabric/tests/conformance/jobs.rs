//! The jobs that the tests start, and what is expected of them.

use std::panic::UnwindSafe;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No healthy job takes this long, however loaded the machine.
const LIMIT: Duration = Duration::from_secs(300);

type Test = (String, Box<dyn FnOnce() + UnwindSafe>);

/// What is run of the suite with each provider: what, ranks, protocol, wait, and which cases if not all. What is written once for
/// all backends (collectives, protocols, waiting) is tested over tcp in every combination, so here all cases are run once with
/// one peer, with receives that are not directed, and with many peers.
const SUITES: [(&str, usize, &str, &str, &str); 6] = [
    ("suite", 2, "eager", "yield", ""),
    ("suite", 5, "eager", "block", ""),
    ("undirected", 3, "eager", "block", ""),
    ("suite", 2, "eager", "spin", "put"),
    ("suite", 3, "put", "block", "send/recv"),
    ("suite", 3, "get", "block", "send/recv"),
];

/// All tests: every provider with each of [`SUITES`], then what happens when things go wrong.
pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for provider in ["tcp;ofi_rxm", "shm"] {
        for (what, size, protocol, wait, cases) in SUITES {
            let name = format!("conformance_{}_{what}_{protocol}_{wait}_{size}", provider.replace(';', "_"));
            tests.push((name, Box::new(move || conforms(size, &[what, provider, protocol, wait, "", cases]))));
        }
    }
    let others: [(&str, fn()); 5] = [
        ("a_wrong_length_names_the_peer", wrong_length_names_the_peer),
        ("no_shared_memory_is_left_by_killed_ranks", nothing_left_in_shared_memory),
        ("a_lost_peer_is_an_error", a_lost_peer_is_an_error),
        ("memory_follows_the_peers", memory_follows_the_peers),
        ("unknown_providers_and_domains_are_explained", choices_are_explained),
    ];
    tests.extend(others.map(|(name, test)| (name.to_owned(), Box::new(test) as Box<_>)));
    tests
}

/// Starts `size` ranks, each this program, and waits for their end.
fn job(size: usize, arguments: &[&str]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["as-rank", "launch", &size.to_string()]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a launcher");
    let start = Instant::now();
    while child.try_wait().expect("its state").is_none() {
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let output = child.wait_with_output().expect("its output");
            panic!("{arguments:?}, {size} ranks: no end after {} s\n{}", LIMIT.as_secs(), shown(&output));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("its output")
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn conforms(size: usize, arguments: &[&str]) {
    let output = job(size, arguments);
    let text = shown(&output);
    assert!(
        output.status.success() && text.contains(&format!("{size} ranks: ")) && text.contains(" 0 skipped"),
        "{text}"
    );
}

fn wrong_length_names_the_peer() {
    for provider in ["tcp;ofi_rxm", "shm"] {
        let output = job(2, &["truncate", provider, "eager"]);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("rank 1 (host ") && text.contains(" with rank 0: "), "{text}");
    }
}

/// Files of killed ranks are gone after the next run.
fn nothing_left_in_shared_memory() {
    let left = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir("/dev/shm").expect("/dev/shm").flatten().map(|entry| entry.path());
        entries.filter(|path| path.to_string_lossy().contains("tailback-")).collect()
    };
    let output = job(2, &["kill", "shm", "eager"]);
    assert!(!output.status.success(), "{}", shown(&output));
    let output = job(2, &["describe", "shm", "eager"]);
    assert!(output.status.success(), "{}", shown(&output));
    // Other runs on this machine have files of live processes.
    let dead: Vec<PathBuf> = left().into_iter().filter(|path| !owner_lives(&path.to_string_lossy())).collect();
    assert!(dead.is_empty(), "{dead:?}");
}

fn owner_lives(path: &str) -> bool {
    let process = path.rsplit('-').nth(1).unwrap_or_default();
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

fn a_lost_peer_is_an_error() {
    let start = Instant::now();
    let output = job(2, &["vanish", "tcp;ofi_rxm", "eager"]);
    let text = shown(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("rank 1"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(60), "{text}");
}

fn choices_are_explained() {
    for (provider, domain, expected) in [
        ("nonesuch", "", "libfabric has no usable endpoint of provider nonesuch; it has these providers: "),
        ("tcp;ofi_rxm", "ib9", "on domain ib9; without that, there are: tcp;ofi_rxm on "),
    ] {
        let output = job(1, &["describe", provider, "eager", "block", domain]);
        let text = shown(&output);
        assert!(!output.status.success() && text.contains(expected), "{text}");
    }
}

/// What a rank of many has and a rank of few has not is little, as long as each talks to two others.
fn memory_follows_the_peers() {
    let anonymous = |provider: &str, size: usize| -> u64 {
        let output = job(size, &["ring", provider, "eager", "block"]);
        let text = shown(&output);
        let said = text.split(", ").find_map(|part| part.strip_prefix("RssAnon ")?.trim().parse().ok());
        assert!(output.status.success() && said.is_some(), "{provider}, {size} ranks: {text}");
        said.unwrap_or_default()
    };
    let (few, many) = (anonymous("tcp;ofi_rxm", 3), anonymous("tcp;ofi_rxm", 24));
    eprintln!("KiB of a rank of 3: {few}, of 24: {many}");
    assert!(many < few + 2048, "{few} KiB of a rank of 3, {many} KiB of one of 24");
}
