//! What is written down about labs, when others write there or numbers of processes have changed their meaning.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::{Value, json};

use super::bench::{Bench, for_each_user, wait_until};

/// The number of `nobody`, who owns nothing.
const OTHER: u32 = 65534;

/// What is written down about a lab, changed.
fn rewrite(from: &Path, to: &Path, change: impl FnOnce(&mut Value)) {
    let mut state = serde_json::from_slice(&fs::read(from).expect("reads")).expect("is JSON");
    change(&mut state);
    fs::write(to, state.to_string()).expect("writes");
}

/// A process that has nothing to do with any lab; ends with the test, however that ends.
struct Stranger(Child);

impl Stranger {
    fn start(user: u32) -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").uid(user).gid(user).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Stranger(command.spawn().expect("starts"))
    }

    /// As a lab's process is written down.
    fn record(&self) -> Value {
        let pid = self.0.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields = stat.rsplit_once(')').expect("has a name").1;
        let started: u64 = fields.split_whitespace().nth(19).expect("is there").parse().expect("is a number");
        json!({ "pid": pid, "started": started })
    }

    fn assert_runs(&mut self) {
        assert!(self.0.try_wait().expect("looks").is_none(), "what is named by number alone is not ended");
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Another user moves a directory in and out of the place of root's registry. It names processes of that user: whoever
/// believed it would run commands as root where that user decides what a command is.
#[test]
fn another_user_does_not_get_a_command_of_root() {
    const TRIES: usize = 100;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    let bench = Bench::new("attack", false);
    let place = bench.dir.parent().expect("is in a directory");
    let (written, planted) = (format!("{}.json", bench.name), place.join("planted"));
    let mut trap = Stranger::start(OTHER);
    bench.ok(&["up", "--hosts", "1", "--leaves", "1"]);
    fs::create_dir(&planted).expect("makes");
    rewrite(&bench.dir.join(&written), &planted.join(&written), |state| {
        state["holders"] = json!([trap.record(), trap.record()]);
    });
    bench.ok(&["down"]);
    for path in [planted.clone(), planted.join(&written)] {
        std::os::unix::fs::chown(path, Some(OTHER), Some(OTHER)).expect("gives it away");
    }
    // As /tmp is.
    fs::set_permissions(place, fs::Permissions::from_mode(0o1777)).expect("opens");

    let stop = AtomicBool::new(false);
    let attack = || {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        set_thread_groups(&[]).expect("leaves its groups");
        set_thread_res_gid(group, group, group).expect("changes its group");
        set_thread_res_uid(user, user, user).expect("changes its user");
        while !stop.load(Ordering::Relaxed) {
            fs::rename(&planted, &bench.dir).expect("moves in");
            fs::rename(&bench.dir, &planted).expect("moves out");
        }
    };
    let codes: Vec<Option<i32>> = thread::scope(|scope| {
        let attacker = scope.spawn(attack);
        let codes = (0..TRIES).map(|_| bench.run(&["exec", "h0", "--", "true"]).status.code()).collect();
        stop.store(true, Ordering::Relaxed);
        attacker.join().expect("attacks to the end");
        codes
    });
    assert_eq!(codes, [Some(2); TRIES], "no command was run");
    fs::rename(&planted, &bench.dir).expect("moves in");
    for words in [&["exec", "h0", "--", "true"][..], &["down"], &["status"], &["up"]] {
        let message = bench.refused(words);
        assert!(message.contains("labs is not a directory that is yours alone"), "{message}");
    }
    trap.assert_runs();
}

#[test]
fn a_process_that_started_at_another_time_is_neither_entered_nor_ended() {
    for_each_user("reused", |bench| {
        bench.ok(&["up", "--hosts", "1", "--leaves", "1"]);
        let mut stranger = Stranger::start(rustix::process::geteuid().as_raw());
        let path = bench.dir.join(format!("{}.json", bench.name));
        rewrite(&path, &path, |state| {
            state["holders"][1] = stranger.record();
            state["holders"][1]["started"] = json!(1);
        });
        let message = bench.refused(&["exec", "h0", "--", "true"]);
        assert!(message.contains("1 of its 2 processes are gone"), "{message}");
        bench.ok(&["down"]);
        stranger.assert_runs();
        // The holder that was not named any more carries the lab's identity.
        wait_until("processes end", || bench.processes().is_empty());
        bench.assert_nothing_left();
    });
}
