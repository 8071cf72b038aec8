//! The lab's commands, as the user who runs the tests and, where that is root, as an ordinary user too; what jobs do on its
//! hosts, which is the same for both, as the latter alone.
//!
//! A machine that forbids namespaces fails these tests with the reason: a lab that was not tried is not a lab that works.

mod application;
pub mod bench;
pub mod control;
mod degraded;
mod ends;
mod inside;
mod registry;
mod settings;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::{for_each_user, wait_until};
use rustix::process::Pid;

use crate::common::is_gone;

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
    let pid = |pid: &u32| Pid::from_raw(*pid as i32).expect("is a process");
    wait_until("the killed are gone", || pids.iter().map(pid).all(is_gone));
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

#[test]
fn any_command_is_started_as_ranks_on_its_hosts() {
    for_each_user("launch", |bench| {
        bench.ok(&["up", "--hosts", "3", "--leaves", "3"]);
        let launch = |words: &[&str], script: &str| {
            // The bench's commands are of a lab; this one is beside them.
            let mut command = bench.beside("launch");
            let output = command.args(words).args(["--", "sh", "-c", script]).output().expect("starts");
            let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
            lines.sort();
            (output.status.code(), lines, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let told = "echo $TAILBACK_RANK of $TAILBACK_SIZE $TAILBACK_HOST $(hostname) $TAILBACK_GROUP $TAILBACK_DATA_IF";
        let (code, lines, _) = launch(&["--lab"], told);
        assert_eq!((code, lines.len()), (Some(0), 3));
        assert_eq!(lines[1], "1 of 3 h1 h1 leaf1 d0");
        let (_, lines, _) = launch(&[&format!("--lab={}", bench.name), "-n", "5"], told);
        assert_eq!(lines.iter().map(|line| &line[7..9]).collect::<Vec<_>>(), ["h0", "h0", "h1", "h1", "h2"]);
        let (code, _, said) = launch(&["--lab=nowhere"], told);
        assert!(code == Some(2) && said.contains("lab nowhere is not up"), "{said}");
        // The same network test as by hand, and its result knows the lab.
        let test = format!("{} network --canaries lat --budget 200ms --format json --quiet", bench.program.display());
        let (code, lines, said) = launch(&["--lab", "-n", "2"], &test);
        assert!(code == Some(0), "{said}");
        let network = lines.iter().any(|line| line.contains(&format!("\"name\": \"{}\"", bench.name)));
        assert!(network, "the result has the lab's name: {lines:?}");
        bench.ok(&["down"]);
        bench.assert_nothing_left();
    });
}
