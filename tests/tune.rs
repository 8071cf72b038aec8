//! Settings that take turns: put in force by a command, read back, ranked, and put back however the job ends.

use std::process::Command;
use std::time::Duration;

use crate::common::{Folder, Job, assert_schema, eventually, refused, succeed, tailback, words};
use rustix::process::{Signal, kill_process};

/// Ends at all.
const LIMIT: Duration = Duration::from_secs(120);
const QUICK: &str = "tune -n 6 --seed 5 --canaries lat --congestors incast --settings slow,fast";

/// A job whose settings are the text of the folder's file `setting`, with a line for each change in `log`.
fn command(folder: &Folder, line: &str) -> Command {
    let mut command = tailback(words(line));
    let (file, log) = (folder.path("setting"), folder.path("log"));
    command.args(["--set-by", &format!("echo {{setting}} >> {log}; echo {{setting}} > {file}")]);
    command.args(["--read-by", &format!("cat {file}")]);
    command
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("setting", "before\n");
    folder
}

#[test]
fn settings_take_turns_are_ranked_and_the_former_one_is_put_back() {
    let folder = folder();
    let path = folder.path("result.json");
    let outcome = Job::start(command(&folder, &format!("{QUICK} --placements 4 --budget 400ms --out {path}"))).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(folder.text("setting"), "before\n");
    // Forwards and backwards, each first as often as the other; then what was before.
    let turns = "slow fast fast slow fast slow slow fast before";
    assert_eq!(folder.text("log").split_whitespace().collect::<Vec<_>>(), words(turns));
    assert!(outcome.stderr.contains("'before' is in force on "), "{}", outcome.stderr);
    for shown in ["its place: 1", "Load delivered: ", " with fast", "Put back: before", "slow", "impact [95%]"] {
        assert!(outcome.stdout.contains(shown), "{shown}: {}", outcome.stdout);
    }

    let file = folder.json("result.json");
    assert_schema("tune", &file);
    tailback::result::read(path.as_ref()).expect("our own reader takes it");
    let tuning = &file["tuning"];
    assert_eq!((&file["command"], &tuning["put_back"]), (&"tune".into(), &true.into()));
    assert_eq!(tuning["former"][0]["setting"], "before");
    let changes = tuning["changes"].as_array().unwrap();
    let of = |at: usize| (changes[at]["placement"].as_u64().unwrap(), changes[at]["setting"].as_str().unwrap());
    assert_eq!((changes.len(), of(0), of(7)), (8, (1, "slow"), (4, "fast")));
    assert!(changes.iter().all(|of| of["read"][0]["text"] == of["setting"] && of["read"][0]["nodes"] == 1));
    let runs: Vec<_> = file["runs"].as_array().unwrap().iter().map(|run| &run["setting"]).collect();
    assert_eq!(runs, ["slow", "fast"]);
    assert_eq!(tuning["ranking"][0]["kernel"], "lat");

    // Every view of the file knows the settings apart.
    assert!(succeed(&format!("show {path}")).stdout.contains("eager protocol, set to fast: 6 ranks"));
    assert!(succeed(&format!("show {path} --format csv")).stdout.lines().next().unwrap().contains(",setting,"));
    let compared = succeed(&format!("compare {path} -v")).stdout;
    assert!(compared.contains("slow") && compared.contains("fast"), "{compared}");
    succeed(&format!("report {path} --out {}", folder.path("page.html")));
    assert!(folder.text("page.html").contains("Settings of result, ranked"));
}

#[test]
fn every_node_changes_its_own_setting_once() {
    let folder = Folder::new();
    for node in 0..4 {
        folder.write(&format!("node{node}"), format!("of{node}\n"));
    }
    let here = folder.path("");
    let set = format!("echo {{setting}} >> {here}/log-$TAILBACK_HOST; echo {{setting}} > {here}/$TAILBACK_HOST");
    let mut launch = tailback(words("launch -n 8 --ranks-per-node 2"));
    launch.arg(env!("CARGO_BIN_EXE_tailback")).args(words("tune --canaries lat --congestors incast --settings a,b"));
    launch.args(words("--placements 2 --budget 200ms --quiet --format json"));
    launch.args(["--set-by", &set, "--read-by", &format!("cat {here}/$TAILBACK_HOST")]);
    let outcome = Job::start(launch).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    for node in 0..4 {
        assert_eq!(folder.text(&format!("node{node}")), format!("of{node}\n"), "each has its own put back");
        assert_eq!(folder.text(&format!("log-node{node}")), format!("a\nb\nb\na\nof{node}\n"));
    }
    let tuning = &outcome.json()["tuning"];
    assert_eq!((tuning["former"].as_array().unwrap().len(), &tuning["changes"][0]["read"][0]["nodes"]), (4, &4.into()));
}

/// A job that goes on for minutes, once a setting is in force.
fn under_way(folder: &Folder, more: &str) -> Job {
    let mut job = Job::start(command(folder, &format!("{QUICK} --placements 3 --budget 120s {more}")));
    job.eventually("a setting is in force", || (folder.text("setting") == "slow\n").then_some(()));
    job
}

#[test]
fn the_former_setting_is_put_back_when_a_rank_is_killed() {
    // Rank 0 is the one that changes settings on this host; another ends it.
    for victim in [0, 3] {
        let folder = folder();
        let mut job = under_way(&folder, "--quiet");
        let ranks = job.ranks(6);
        kill_process(ranks[victim], Signal::KILL).expect("the rank is there");
        assert_eq!(job.end_within(LIMIT).code(), Some(2));
        eventually("it is put back", || (folder.text("setting") == "before\n").then_some(()));
    }
}

#[test]
fn the_former_setting_is_put_back_when_all_are_killed() {
    let folder = folder();
    let mut job = under_way(&folder, "--quiet");
    let ranks = job.ranks(6);
    job.signal(Signal::KILL);
    ranks.iter().for_each(|rank| _ = kill_process(*rank, Signal::KILL));
    eventually("it is put back", || (folder.text("setting") == "before\n").then_some(()));
}

#[test]
fn the_former_setting_is_put_back_after_an_interrupt_and_the_result_says_so() {
    for (signal, again) in [(Signal::INT, false), (Signal::TERM, true)] {
        let folder = folder();
        let path = folder.path("result.json");
        let job = under_way(&folder, &format!("--out {path}"));
        job.signal(signal);
        if again {
            std::thread::sleep(Duration::from_millis(20));
            job.signal(signal);
        }
        let outcome = job.end_within(LIMIT);
        assert_eq!(outcome.code(), Some(2), "{outcome:?}");
        eventually("it is put back", || (folder.text("setting") == "before\n").then_some(()));
        if !again && folder.has("result.json") {
            let file = folder.json("result.json");
            assert_eq!((&file["interrupted"], &file["tuning"]["put_back"]), (&true.into(), &true.into()));
        }
    }
}

#[test]
fn a_setting_that_is_not_in_force_ends_the_job() {
    let (file, folder) = ("setting", folder());
    let path = folder.path(file);
    let start = |set_by: &str, read_by: &str| {
        let mut command = tailback(words(&format!("{QUICK} --placements 3 --budget 200ms --quiet")));
        command.args(["--set-by", set_by, "--read-by", read_by]);
        Job::start(command).end()
    };
    let unset = start(&format!("test {{setting}} = fast || echo {{setting}} > {path}"), &format!("cat {path}"));
    assert!(unset.refusal().contains("'fast' was put in force, and --read-by prints 'slow'"), "{}", unset.stderr);
    assert_eq!(folder.text(file), "before\n", "what was changed is put back");
    let unreadable = start("true", "echo no switch >&2; exit 3");
    assert!(unreadable.refusal().contains("--read-by: it ended with exit code 3: no switch"), "{}", unreadable.stderr);
    let several = start("true", "echo 'slow [fast]'");
    assert!(several.refusal().contains("give --former SETTING"), "{}", several.stderr);
    // One that can be set and not be put back.
    let kept = start(&format!("test {{setting}} != before && echo {{setting}} > {path}"), &format!("cat {path}"));
    assert_eq!(kept.code(), Some(2), "{kept:?}");
    assert!(kept.stderr.contains("error: 'before' is not put back on "), "{}", kept.stderr);
    assert!(kept.stdout.contains("NOT PUT BACK"), "{}", kept.stdout);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    refused(&[
        ("tune", "give at least two with --settings"),
        ("tune --settings a,b", "--set-by"),
        ("tune --settings a,b --set-by true", "give --read-by CMD or --former SETTING"),
        ("tune --settings a,b --set-by true --former a --transport sim --machine small", "tailback simulate --what-if"),
        ("tune --settings a,b --set-by true --former a --protocol eager,put", "one transport with one protocol"),
        ("tune --settings a,b --set-by true --former a --congestors each", "settings are compared under one load"),
        ("tune --lab-settings mtu=1,2", "expected cc or queue"),
        ("tune --lab-settings cc=cubic,reno --settings a,b", "cannot be used with"),
    ]);
    let dry = succeed("tune --settings a,b --set-by false --former a --dry-run -n 6").stdout;
    assert!(dry.contains("Settings take turns on every placement: a, b"), "{dry}");
}
