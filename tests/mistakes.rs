//! Wrong input of every kind: one clear line on stderr, exit code 2, no backtrace, no half-written file.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Folder, Job, Outcome, run, tailback, words};

/// Refused in a line, before anything is said about a job.
pub fn refused(line: &str, expected: &str) {
    let outcome = run(line);
    let said = outcome.refusal();
    assert!(said.contains(expected), "tailback {line}: {said}");
    assert_eq!(outcome.stderr.lines().count(), 1, "tailback {line}: {}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "tailback {line}");
}

#[test]
fn unknown_names() {
    refused("run --canaries latency", "unknown canary 'latency'");
    refused("run --canaries lat,lat", "canary 'lat' is named twice");
    refused("network --canaries lat,bandwith", "unknown canary 'bandwith'");
    refused("run --congestors incast,jam", "unknown congestor 'jam'");
    refused("congest --congestors incast=40,incast=60", "congestor 'incast' is named twice");
    refused("run --preset fast", "invalid value 'fast' for '--preset <PRESET>'");
    refused("run --format xml", "invalid value 'xml' for '--format <FORMAT>'");
    refused("run --bugdet 2s", "unexpected argument '--bugdet' found");
    refused("congest --budget 2s", "'--budget <TIME>' found; tip: congest has no tests to budget: --duration says");
    refused("rum", "unrecognized subcommand 'rum'");
    refused("run --wait nap", "nap");
}

#[test]
fn what_would_measure_nothing_or_do_nothing() {
    for line in ["beff --pairs 0", "beff --rings 0", "beff --latency-iterations 0", "maxrate --repetitions 0"] {
        refused(line, "invalid count '0': expected 1 to 1000000");
    }
    refused("maxrate --most-pairs 0", "invalid count '0'");
    refused("contention --random 3 --count 0 --predict-only", "invalid count '0'");
    refused("contention --shape in-2 --bytes 0", "invalid message size '0': expected 1 B to 1 GiB");
    refused("beff --bandwidth-bytes 99999999999", "invalid message size '99999999999': expected 1 B");
    refused("contention --shape in-2 --predict-only --out x.json", "--out keeps measurements");
    refused("run --set congestor.a2a.window=4", "congestor a2a has no window");
    refused("run --set incast.rings=4", "congestor incast has no rings");
    refused("run --out same.json --csv ./same.json", "is given twice");
    refused("run --canary-congestion-control none-such --no-lab", "congestion control 'none-such'");
}

#[test]
fn numbers_out_of_range() {
    refused("run --path-mtu 1500", "invalid path MTU '1500': expected 256, 512");
    refused("run --rc-retries 8", "8 is not in 0..8");
    refused("run --credits 3", "3 is not in 4..=8192");
    refused("run --buffer-bytes 100", "invalid buffer size '100': expected 512 B to 1 MiB");
    refused("run --buffer-bytes 2MiB", "invalid buffer size '2MiB'");
    refused("run --no-lab --transport tcp --credits 64", "--credits is for --transport verbs");
    refused("run --device mlx5_0,auto", "auto and round-robin stand alone");
    refused("run --canary-fraction 120%", "invalid canary fraction 1.2: expected above 0");
    refused("run --canary-fraction 1.5", "invalid canary fraction 1.5: expected above 0");
    refused("run --canary-fraction 0", "invalid canary fraction 0: expected above 0");
    refused("run --congestors incast=-3", "expected above 0");
    refused("run --congestors incast=80%,a2a=60%", "140%");
    refused("run --congestors incast=lots", "invalid weight 'lots' in 'incast=lots': expected a number");
    refused("run --budget 0s", "invalid budget 0 s: expected 50 ms to one day");
    refused("run --budget soon", "invalid duration 'soon'");
    refused("run --loop closed --pace 1ms", "a pace is for open loops");
    refused("run --pace 1us", "invalid pace 0.000001 s: expected 10 us to 10 s");
    refused("run --pace 100ms --budget 1s", "a block of 100 ms has fewer than four iterations");
    refused("run --copies 9", "9");
    refused("run --rails 0", "0 is not in 1..=8");
    refused("run --rails 9", "9 is not in 1..=8");
    refused("run --rails 2 --transport sim --machine small -n 4", "--rails is for tcp and verbs: a simulated rank");
    refused("run -n 4 --rails 2 --data-interface lo", "--data-interface lo names 1 for 2 rails");
    refused("run -n 4 --data-interface lo,lo --rails 2", "--data-interface names lo twice");
    refused("run --ranks-per-node 0", "invalid ranks per node 0: expected 1 to 1000000");
    refused("run --seed=-1", "invalid seed '-1': expected a whole number, or time");
    refused("launch -n 0 -- true", "at least 1 rank");
    refused("launch -n 2 --ranks-per-node 0 -- true", "at least 1 rank");
    refused("launch -n 2", "<COMMAND>");
    refused("app --per-node 4000000000 -n 4 -- true", "invalid --per-node 4000000000: expected 1 to 10000");
    refused("contention --random 4000000000 --predict-only", "invalid count '4000000000': expected 1 to 4096");
    refused(
        "contention --random 4000 --count 1000000 --predict-only",
        "4000000000 edges in all, expected up to 262144",
    );
    refused("beff --rings 99999999999", "invalid count '99999999999': expected 1 to 1000000");
    refused("maxrate --repetitions 99999999999", "invalid count '99999999999'");
    refused("beff --ranks-per-node 0", "invalid count '0'");
    refused("hpcc --grid 4000000000x4000000000000", "expected sides of 1 to 1000000");
    refused("run --ranks-per-node 400000000000000000", "invalid ranks per node 400000000000000000: expected 1 to");
    let sim = "run --transport sim --machine small --ranks-per-node 1000000 --dry-run";
    refused(sim, "invalid number of ranks per node '1000000': expected 1 to 1024 (--ranks-per-node)");
    refused("run -n 0", "at least 1 rank");
}

/// These are found out by the job itself, which has said before what it starts.
#[test]
fn too_few_ranks_and_unknown_interfaces() {
    common::refused(&[
        ("run -n 1", "a job of one rank has nobody to talk to: start at least 2"),
        ("network -n 1", "a job of one rank has nobody to talk to"),
        ("network -n 4 --ranks-per-node 4", "at least 2 nodes are needed, and there is 1"),
        (
            concat!("launch -n 4 -- ", env!("CARGO_BIN_EXE_tailback"), " network"),
            "messages between ranks of one node are not measured (on one host, --ranks-per-node 1 makes every rank a node of its own)",
        ),
        ("run -n 2", "2 nodes, one of them with a single rank, cannot hold canaries and congestors"),
        ("run -n 3", "3 nodes, one of them with a single rank, cannot hold canaries and congestors"),
        ("run -n 4 --split slice", "--split slice needs at least 2 ranks on every node"),
        ("run -n 6 --ranks-per-node 2 --split node", "--split node needs at least 4 nodes"),
        ("run -n 4 --data-interface nosuch0", "no interface \"nosuch0\""),
        ("run -n 4 --data-address 198.51.100.77", "198.51.100.77"),
    ]);
}

#[test]
fn settings() {
    refused("run --set nonsense", "invalid setting 'nonsense': expected KERNEL.SETTING=VALUE");
    refused("run --set lat=8", "invalid setting 'lat': expected");
    refused("run --set lat.bites=8", "unknown setting 'bites'");
    refused("run --set jam.bytes=8", "the plan has no kernel 'jam'");
    refused("run --set put-bw.bytes=8", "the plan has no kernel 'put-bw'");
    refused("run --set lat.bytes=0", "at least one byte");
    refused("run --set lat.bytes=many", "invalid size 'many'");
    refused("run --set lat.rings=-1", "lat.rings: invalid count '-1'");
    refused("run --set allreduce.bytes=12", "allreduce: bytes = 12 is not a multiple of 8");
    refused("run --set lat.bytes=2GiB", "above 1 GiB");
}

#[test]
fn plan_files() {
    let folder = Folder::new();
    let line = format!("run --plan {}", folder.path("plan.toml"));
    refused(&line, "cannot read plan");
    refused(&format!("run --plan {}", folder.path("")), "it is no regular file");
    refused("run --plan /dev/null", "it is no regular file");
    for (text, expected) in [
        ("budget = ", "line 1"),
        ("budget = '2s'\nbugdet = '2s'", "line 2: unknown field `bugdet`"),
        ("canaries = ['latency']", "unknown canary 'latency'"),
        ("budget = true", "line 1"),
        ("canary_fraction = '150%'", "invalid canary fraction 1.5"),
        ("[congestors]\njam = 1", "unknown congestor 'jam'"),
        ("[set]\n'lat.bytes' = 'x'", "invalid size 'x'"),
    ] {
        folder.write("plan.toml", text);
        refused(&line, expected);
    }
    folder.write("plan.toml", [0xff, 0xfe, 0x00]);
    refused(&line, "cannot read plan");
}

#[test]
fn places_for_results() {
    let folder = Folder::new();
    let file = folder.write("file", "precious");
    for option in ["--out", "--csv"] {
        refused(&format!("run {option} {}", folder.path("missing/result")), "No such file or directory");
        refused(&format!("run {option} {}", folder.path("")), "it is a folder");
        refused(&format!("run {option} {file}/result"), "Not a directory");
    }
    // A run that cannot start leaves an older result alone.
    refused(&format!("run --canary-fraction 2 --out {file}"), "canary fraction 2");
    assert_eq!((folder.text("file").as_str(), folder.files()), ("precious", 1));
}

#[test]
fn a_full_disk_is_said_after_the_results_are_shown() {
    use std::os::unix::fs::FileTypeExt as _;
    // Through a link, so that a broken product replaces the link and not the machine's device.
    let folder = Folder::new();
    let full = folder.path("full");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    for option in ["--out", "--csv"] {
        let outcome = run(&format!("network -n 2 --canaries lat --budget 100ms {option} {full}"));
        assert!(outcome.refusal().contains("No space left on device"), "{outcome:?}");
        assert!(outcome.stdout.contains("lat 8 B"), "{outcome:?}");
        assert!(std::fs::metadata(&full).unwrap().file_type().is_char_device());
        assert_eq!(folder.files(), 1);
    }
}

#[test]
fn results_that_cannot_be_printed() {
    // The launcher's own stdout is full: the result file is kept all the same.
    let folder = Folder::new();
    let _turn = common::turn();
    let line = format!("network -n 2 --canaries lat --budget 100ms --out {}", folder.path("result.json"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = tailback(words(&line)).stdout(full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("tailback: error: cannot write to stdout: No space left on device"), "{said}");
    assert_eq!(folder.files(), 1);
}

/// A rank by hand, in a job of two on this host.
fn rank(number: usize, root: SocketAddr, secret: &str) -> Command {
    let mut command = tailback(words("network --ranks-per-node 1 --canaries lat --budget 200ms"));
    command.env("TAILBACK_RANK", number.to_string()).env("TAILBACK_SIZE", "2");
    command.env("TAILBACK_ROOT", root.to_string()).env("TAILBACK_SECRET", secret);
    command
}

#[test]
fn a_port_in_use() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = occupied.local_addr().unwrap();
    let outcome = Job::start(rank(0, root, &"ab".repeat(32))).end();
    let said = outcome.refusal();
    assert!(said.contains(&root.to_string()) && said.contains("in use"), "{said}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_wrong_secret() {
    let _turn = common::turn();
    let root_address = common::free_address();
    let root = Job::start_beside(rank(0, root_address, &"ab".repeat(32)));
    // It would try for a minute, since whoever refuses it may not be rank 0; but it says at once what looks wrong.
    let mut stranger = rank(1, root_address, &"cd".repeat(32)).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(stranger.stderr.take().unwrap()).read_line(&mut said).unwrap();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(said.contains("job secret of rank 1: check TAILBACK_SECRET is the same for all ranks"), "{said}");
    // Refused, not harmed: the job goes on once the right rank comes.
    let right = Job::start_beside(rank(1, root_address, &"ab".repeat(32)));
    let outcome: Outcome = root.end();
    assert_eq!((outcome.code(), right.end().code()), (Some(0), Some(0)), "{outcome:?}");
    assert!(outcome.stdout.contains("lat 8 B"), "{outcome:?}");
    assert!(outcome.errors().is_empty() && outcome.stderr.contains("another job secret"), "{outcome:?}");
}

#[test]
fn garbage_in_the_environment() {
    let good = || rank(0, SocketAddr::from(([127, 0, 0, 1], 1)), &"ab".repeat(32));
    for (name, value, expected) in [
        ("TAILBACK_RANK", "first", "TAILBACK_RANK=first is not a number"),
        ("TAILBACK_RANK", "7", "rank 7 is out of range"),
        ("TAILBACK_RANK", "", "TAILBACK_RANK is not set"),
        ("TAILBACK_SIZE", "0", "out of range"),
        ("TAILBACK_SIZE", "99999999999999999999", "TAILBACK_SIZE=99999999999999999999 is not a number that fits"),
        ("TAILBACK_ROOT", "nowhere", "rank 0's address nowhere"),
        ("TAILBACK_ROOT", "127.0.0.1:0", "port 0 is not a port"),
        ("TAILBACK_SECRET", "abc", "TAILBACK_SECRET"),
        ("TAILBACK_SECRET", "", "TAILBACK_SECRET is not set"),
        ("TAILBACK_SECRET_FILE", "/nonexistent", "both set"),
        ("TAILBACK_BOOTSTRAP_ADDR", "here", "TAILBACK_BOOTSTRAP_ADDR=here is not an IP address"),
        ("TAILBACK_WAIT", "nap", "nap"),
        ("TAILBACK_DATA_ADDR", "here", "here"),
    ] {
        let outcome = Job::start({
            let mut command = good();
            command.env(name, value);
            command
        })
        .end();
        let said = outcome.refusal();
        assert!(said.contains(expected), "{name}={value}: {said}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{name}={value}: {}", outcome.stderr);
        assert!(!said.contains(&"ab".repeat(32)), "the secret stays secret: {said}");
    }
}

#[test]
fn a_mistake_that_all_ranks_make_is_said_once() {
    let program = Path::new(env!("CARGO_BIN_EXE_tailback")).display();
    for arguments in ["run --canaries latency", "network --set lat.bites=8", "run --plan /nonexistent", "run --no-such"]
    {
        let outcome = run(&format!("launch -n 4 -- {program} {arguments}"));
        let said = outcome.refusal();
        assert_eq!(outcome.stderr.lines().count(), 1, "{said}");
    }
    let mut forgotten = tailback(words(&format!("launch -n 4 -- env -u TAILBACK_SECRET {program} network")));
    forgotten.env("TAILBACK_UNUSED", "1");
    assert!(Job::start(forgotten).end().refusal().contains("TAILBACK_SECRET is not set"));
}
