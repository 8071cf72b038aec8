//! The lab's commands, as the user who runs the tests and, where that is root, as an ordinary user too.
//!
//! A machine that forbids namespaces fails these tests with the reason: a lab that was not tried is not a lab that works.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const TAILBACK: &str = env!("CARGO_BIN_EXE_tailback");
/// The number of `nobody`, who owns nothing and has no home.
const NOBODY: &str = "65534";

/// One user's labs, written down in a directory of their own. Ends them all when dropped.
struct Bench {
    name: String,
    dir: PathBuf,
    program: PathBuf,
    as_nobody: bool,
}

impl Bench {
    fn new(test: &str, as_nobody: bool) -> Self {
        let name = format!("{test}-{}", if as_nobody { "nobody" } else { "self" });
        let root = std::env::temp_dir().join(format!("tailback-test-{name}-{}", std::process::id()));
        fs::create_dir(&root).expect("makes a directory");
        // The build directory may be closed to others. A copy made by this process could be inherited, open for writing,
        // by a child of another test, and then not be run.
        let program = root.join("tailback");
        let copied = Command::new("cp").arg(TAILBACK).arg(&program).status().expect("starts");
        assert!(copied.success(), "copies the program");
        let dir = root.join("labs");
        if as_nobody {
            std::os::unix::fs::chown(&root, Some(65534), Some(65534)).expect("gives the directory away");
        }
        Bench { name, dir, program, as_nobody }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = if self.as_nobody {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command.arg("lab").args(words).env("TAILBACK_LAB_DIR", &self.dir).env("TAILBACK_LAB", &self.name);
        command.current_dir("/").env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("starts")
    }

    /// Standard output of a command that must work.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?} as {}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("is text")
    }

    /// The one line that a command says when it cannot be done.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let message = String::from_utf8(output.stderr).expect("is text");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        message
    }

    /// Processes of any lab of this bench, by the mark they carry.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("TAILBACK_LAB_ID={}", self.name);
        let entries = fs::read_dir("/proc").expect("lists processes");
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
        })
        .collect()
    }

    /// The processes of a lab that was just made. One that is becoming another program has no environment for a moment.
    fn holders(&self, expected: usize) -> Vec<u32> {
        let mut found = Vec::new();
        wait_until(&format!("{expected} holders"), || {
            found = self.processes();
            found.len() == expected
        });
        found
    }

    fn assert_nothing_left(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "{}: processes {left:?} are left", self.name);
        assert!(!self.dir.exists(), "{}: {:?} is left", self.name, fs::read_dir(&self.dir).map(Iterator::count));
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("lists mounts");
        assert!(!mounts.contains(&self.name), "{}: mounts are left", self.name);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in [self.name.clone(), format!("{}-2", self.name)] {
            let _ = self.run(&["down", "--name", &name]);
        }
        let _ = fs::remove_dir_all(self.dir.parent().expect("is in a directory"));
    }
}

/// Runs a test as this user, and as `nobody` where this user is root.
fn for_each_user(test: &str, check: impl Fn(&Bench)) {
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    check(&Bench::new(test, false));
    if rustix::process::geteuid().is_root() {
        check(&Bench::new(test, true));
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

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
fn commands_run_on_the_host_they_are_sent_to() {
    for_each_user("exec", |bench| {
        bench.ok(&["up", "--hosts", "3", "--leaves", "3"]);
        assert_eq!(bench.ok(&["exec", "h2", "--", "hostname"]), "h2\n");
        assert_eq!(bench.ok(&["exec", "10.77.0.2", "--", "hostname"]), "h1\n");
        assert_eq!(
            bench.ok(&["exec", "h1", "sh", "-c", "ls /sys/class/net; pwd; echo $TAILBACK_LAB_HOST"]),
            "c0\nd0\nlo\n/\nh1\n"
        );
        assert_eq!(bench.run(&["exec", "h0", "--", "sh", "-c", "exit 37"]).status.code(), Some(37));
        assert_eq!(bench.run(&["exec", "h0", "--", "no-such-command"]).status.code(), Some(127));
        assert!(bench.ok(&["exec", "h0", "--", "getent", "hosts", "h2", "h2-data"]).contains("10.77.0.3"));
        let route = bench.ok(&["exec", "h0", "--", "ip", "route", "show", "dev", "d0"]);
        assert!(route.contains("congctl cubic"), "{route}");
        assert!(bench.refused(&["exec", "h3", "--", "true"]).contains("its hosts are h0 to h2"));
        assert!(bench.refused(&["exec", "h0"]).contains("what is to run on h0"));
        assert!(bench.refused(&["exec", "--name", "nowhere", "h0", "--", "true"]).contains("is not up"));
    });
}

/// The result of a small network test on the hosts of a lab, a rank on each of the first `ranks`, as someone else's launcher
/// would start them; `before` is put before rank 0's command.
fn network_test(bench: &Bench, ranks: usize, before: &[&str]) -> serde_json::Value {
    let rank = |number: usize| {
        let (host, program) = (format!("h{number}"), bench.program.to_str().expect("is text"));
        let mut command = bench.command(&["exec", &host, "--"]);
        command.args(if number == 0 { before } else { &[] });
        command.args([program, "network", "--canaries", "lat", "--budget", "200ms", "--format", "json", "--quiet"]);
        command.env("TAILBACK_RANK", number.to_string()).env("TAILBACK_SIZE", ranks.to_string());
        command.env("TAILBACK_ROOT", "10.77.0.1:4777").env("TAILBACK_SECRET", "ab".repeat(32));
        command.env("TAILBACK_DATA_IF", "d0").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("starts")
    };
    let ranks: Vec<_> = (0..ranks).map(rank).collect();
    let outputs: Vec<Output> = ranks.into_iter().map(|rank| rank.wait_with_output().expect("ends")).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&outputs[0].stdout).expect("rank 0 prints the result file")
}

fn notes_about<'r>(result: &'r serde_json::Value, what: &str) -> Vec<&'r str> {
    let notes = result["notes"].as_array().expect("a list").iter().filter_map(|note| note.as_str());
    notes.filter(|note| note.contains(what)).collect()
}

#[test]
fn a_job_on_its_hosts_has_the_lab_in_its_result() {
    for_each_user("inside", |bench| {
        bench.ok(&["up", "--hosts", "3", "--leaves", "1", "--link-rate", "150mbit"]);
        let result = network_test(bench, 2, &[]);
        let lab = &result["lab"];
        assert_eq!(lab["spec"]["name"], bench.name.as_str());
        assert_eq!(lab["spec"]["link_rate_bits_per_second"], 150_000_000);
        assert_eq!(lab["hosts"].as_array().map(Vec::len), Some(3));
        assert!(bench.ok(&["status"]).contains(lab["mode"].as_str().expect("is text")));
        let ports = lab["phases"][0]["ports"].as_array().unwrap_or_else(|| panic!("no counters: {}", result["notes"]));
        let sent = |host: &str| ports.iter().find(|port| port["from"] == host).and_then(|port| port["bytes"].as_u64());
        let (busy, idle) = (sent("h1").expect("has a port"), sent("h2").expect("has a port"));
        assert!(busy > 10_000 && busy > 10 * idle, "h1 sent {busy} bytes, h2 {idle}");
        assert_eq!(notes_about(&result, "counters"), [""; 0]);

        // Ranks of one host, started by this program, are in the lab all the same.
        let mut command =
            bench.command(&["exec", "h2", "--", bench.program.to_str().expect("is text"), "run", "-n", "4"]);
        command.args(["--no-lab", "--canaries", "lat", "--placements", "1", "--blocks", "1", "--budget", "200ms"]);
        let output = command.args(["--format", "json"]).output().expect("starts");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("prints the result file");
        assert_eq!(result["lab"]["spec"]["name"], bench.name.as_str());
        let phases = result["lab"]["phases"].as_array().expect("a list").iter().map(|phase| phase["phase"].as_str());
        assert_eq!(phases.flatten().count(), 2, "alone and under load: {:?}", result["lab"]["phases"]);
    });
}

#[test]
fn what_cannot_be_known_of_the_lab_is_said() {
    for_each_user("unseen", |bench| {
        bench.ok(&["up", "--hosts", "2", "--leaves", "1"]);
        // Other namespaces cannot be entered without this.
        let result = network_test(bench, 2, &["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
        assert_eq!(result["lab"]["hosts"].as_array().map(Vec::len), Some(2));
        assert_eq!(result["lab"]["phases"].as_array().map(Vec::len), Some(0));
        let notes = notes_about(&result, "counters of the lab's ports could not be read by rank 0");
        assert!(matches!(notes[..], [note] if note.contains("not permitted")), "{}", result["notes"]);

        let result = network_test(bench, 2, &["env", "TAILBACK_LAB_DIR=/nonexistent"]);
        assert!(result["lab"].is_null());
        assert_eq!(notes_about(&result, "inside a lab that is not recorded").len(), 1, "{}", result["notes"]);
    });
}

#[test]
fn it_stands_in_for_ssh() {
    for_each_user("ssh", |bench| {
        bench.ok(&["up", "--hosts", "2", "--leaves", "1"]);
        let from_outside =
            bench.ok(&["exec", "--ssh", "-x", "-o", "A=b", "me@h1", "echo $TAILBACK_LAB_HOST;", "hostname"]);
        assert_eq!(from_outside, "h1\nh1\n");
        let call = "$TAILBACK_LAB_SSH -x -p 22 h1 'hostname; exit 9'; echo $?; hostname";
        assert_eq!(
            bench.ok(&["exec", "h0", "--", "sh", "-c", call]),
            "h1\n9\nh0\n",
            "from inside, as launchers call it"
        );
        assert!(bench.refused(&["exec", "--ssh", "-x", "h1"]).contains("no command"));
    });
}

#[test]
fn two_labs_do_not_meet() {
    for_each_user("two", |bench| {
        let second = format!("{}-2", bench.name);
        bench.ok(&["up", "--hosts", "2", "--leaves", "1"]);
        bench.ok(&["up", "--hosts", "3", "--leaves", "1", "--name", &second]);
        let message = bench.refused(&["up", "--hosts", "4"]);
        assert!(message.contains("is up already (2 hosts"), "{message}");
        for (name, peers) in [(&bench.name, 1), (&second, 2)] {
            let neighbours = bench.ok(&["exec", "--name", name, "h0", "--", "ip", "neigh", "show", "dev", "d0"]);
            assert_eq!(neighbours.lines().count(), peers, "{neighbours}");
        }
        bench.ok(&["down"]);
        assert_eq!(bench.ok(&["exec", "--name", &second, "h2", "--", "hostname"]), "h2\n");
        bench.ok(&["down", "--name", &second]);
        bench.assert_nothing_left();
    });
}

#[test]
fn down_ends_what_still_runs_on_the_hosts() {
    for_each_user("strays", |bench| {
        bench.ok(&["up", "--hosts", "2"]);
        // One that hides its environment and one that left its parent.
        let mut hidden = bench.command(&["exec", "h0", "--", "env", "-i", "sh", "-c", "echo in; exec sleep 600"]);
        let mut hidden = hidden.stdout(Stdio::piped()).spawn().expect("starts");
        let mut said = [0; 3];
        hidden.stdout.as_mut().expect("is a pipe").read_exact(&mut said).expect("is on its host");
        bench.ok(&["exec", "h1", "--", "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"]);
        let inside = bench.run(&["exec", "h0", "--", bench.program.to_str().expect("is text"), "lab", "down"]);
        assert_eq!(inside.status.code(), Some(2), "a lab is not ended from inside");
        bench.ok(&["down"]);
        assert!(!hidden.wait().expect("waits").success());
        bench.assert_nothing_left();
    });
}

#[test]
fn a_killed_maker_leaves_nothing() {
    for_each_user("killed", |bench| {
        for delay in [0, 5, 10, 20, 40, 60, 80, 100, 130, 160, 200, 300] {
            let mut maker = bench.command(&["up", "--hosts", "8"]).stdout(Stdio::null()).spawn().expect("starts");
            std::thread::sleep(Duration::from_millis(delay));
            maker.kill().expect("kills");
            maker.wait().expect("waits");
            bench.ok(&["down"]);
            // Tools that were under way when their maker died end by themselves.
            wait_until("processes end", || bench.processes().is_empty());
            bench.ok(&["down"]);
            bench.assert_nothing_left();
        }
    });
}

#[test]
fn a_lab_whose_processes_were_killed_is_replaced() {
    for_each_user("stale", |bench| {
        bench.ok(&["up", "--hosts", "2"]);
        let victims = bench.holders(2 + 1);
        kill(&victims[..1]);
        assert!(bench.refused(&["exec", "h0", "--", "true"]).contains("is damaged"));
        assert!(bench.ok(&["status"]).contains("is damaged"));
        assert!(bench.refused(&["up"]).contains("is up already"));
        kill(&victims[1..]);
        wait_until("processes end", || bench.processes().is_empty());
        assert!(bench.ok(&["up", "--hosts", "1", "--leaves", "1"]).contains("1 hosts"));
        assert_eq!(bench.ok(&["exec", "h0", "--", "hostname"]), "h0\n");
        bench.ok(&["down"]);
        bench.assert_nothing_left();
    });
}

fn kill(pids: &[u32]) {
    let mut command = Command::new("kill");
    assert!(command.arg("-KILL").args(pids.iter().map(u32::to_string)).status().expect("starts").success());
    let is_gone = |pid: &u32| match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    wait_until("the killed are gone", || pids.iter().all(is_gone));
}

#[test]
fn a_name_is_taken_once() {
    for_each_user("race", |bench| {
        let start = |_| bench.command(&["up", "--hosts", "2"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
        let makers: Vec<_> = (0..4).map(start).collect();
        let codes = makers.into_iter().map(|maker| maker.expect("starts").wait().expect("waits").code());
        let (won, lost): (Vec<_>, Vec<_>) = codes.partition(|code| *code == Some(0));
        assert_eq!((won.len(), lost), (1, vec![Some(2); 3]));
        bench.holders(2 + 1);
        bench.ok(&["down"]);
        bench.assert_nothing_left();
    });
}

#[test]
fn nonsense_is_refused_before_anything_is_made() {
    for_each_user("nonsense", |bench| {
        for (words, named) in [
            (&["up", "--hosts", "0"][..], "--hosts 0"),
            (&["up", "--queue", "1KiB"], "--queue 1024"),
            (&["up", "--congestion-control", "carrier-pigeon"], "--congestion-control carrier-pigeon"),
            (&["up", "--name", "../../etc"], "--name"),
            (&["down", "--name", "a/b"], "--name"),
        ] {
            let message = bench.refused(words);
            assert!(message.contains(named), "{message}");
            bench.assert_nothing_left();
        }
    });
}

#[test]
fn a_machine_that_forbids_namespaces_is_told_so() {
    for_each_user("forbidden", |bench| {
        let forbid = "echo 0 >/proc/sys/user/max_net_namespaces; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"]).arg(&bench.program).args(["lab", "up"]);
        let output = command.env("TAILBACK_LAB_DIR", &bench.dir).output().expect("starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("no lab here: root: unshare") && message.trim_end().lines().count() == 1, "{message}");
    });
}

/// Polls with timeout zero on something that never comes, for a tenth of a second; then on something that is there.
const POLLER: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(void) {
    int ends[2], polls = 0, waits = 0, ready = 0;
    if (pipe(ends)) return 1;
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event)) return 1;
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    double start = now();
    for (; now() < start + 0.1; polls++) if (poll(&fd, 1, 0)) return 2;
    for (; now() < start + 0.2; waits++) if (epoll_wait(epoll, &event, 1, 0)) return 2;
    if (write(ends[1], "x", 1) != 1) return 1;
    for (int i = 0; i < 1000; i++) ready += poll(&fd, 1, 0) + epoll_wait(epoll, &event, 1, 0);
    printf("%d %d %d\n", polls, waits, ready);
}
"#;

#[test]
fn the_shim_is_used_when_asked_for_and_waits_instead_of_spinning() {
    for_each_user("shim", |bench| {
        let root = bench.dir.parent().expect("is in a directory");
        let (source, poller) = (root.join("poller.c"), root.join("poller"));
        fs::write(&source, POLLER).expect("writes");
        let compiled = Command::new("cc").arg("-o").args([&poller, &source]).status().expect("a C compiler is there");
        assert!(compiled.success());
        let poller = poller.to_str().expect("is text");
        bench.ok(&["up", "--hosts", "1", "--leaves", "1"]);
        let asked = "test -z \"$LD_PRELOAD$TAILBACK_IDLE_SHIM\"";
        assert!(bench.run(&["exec", "h0", "--", "sh", "-c", asked]).status.success(), "not unless asked for");
        let printed = bench.ok(&[
            "exec",
            "--idle-shim",
            "h0",
            "--",
            "sh",
            "-c",
            &format!("{poller} && echo $TAILBACK_IDLE_SHIM"),
        ]);
        let numbers: Vec<u32> = printed.split_whitespace().map(|word| word.parse().expect("is a number")).collect();
        // A wait lasts at least 200 us, so a tenth of a second holds at most 500 and the first idle ones.
        assert!(numbers[0] <= 520 && numbers[1] <= 520, "{numbers:?}");
        assert_eq!(numbers[2..], [2000, 1], "what is ready is found at once, and the shim is on record");
        bench.ok(&["down"]);
        bench.assert_nothing_left();
        bench.ok(&["up", "--hosts", "1", "--leaves", "1"]);
        let mut without = bench.command(&["exec", "--idle-shim", "h0", "--", "true"]);
        let output = without.env("CC", "/nonexistent/cc").output().expect("starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains("install a C compiler"), "{message}");
        bench.ok(&["down"]);
    });
}

#[test]
fn mpi_launchers_are_told_about_the_lab() {
    for_each_user("mpi", |bench| {
        bench.ok(&["up", "--hosts", "3"]);
        let mut command = bench.command(&[
            "exec",
            "--mpi",
            "h0",
            "--",
            "sh",
            "-c",
            "env; cat $HYDRA_HOST_FILE; $HYDRA_LAUNCHER_EXEC h1 hostname",
        ]);
        let output = command.env("OMPI_MCA_pml", "cm").output().expect("starts");
        let text = String::from_utf8(output.stdout).expect("is text");
        let lines: Vec<&str> = text.lines().collect();
        for expected in ["OMPI_MCA_btl_tcp_if_include=d0", "HYDRA_IFACE=c0", "OMPI_MCA_pml=cm", "h0", "h1", "h2"] {
            assert!(lines.contains(&expected), "{expected} is not in {text}");
        }
        assert_eq!(lines.last(), Some(&"h1"), "the stand-in for ssh works from a path alone");
        bench.ok(&["down"]);
        bench.assert_nothing_left();
    });
}
