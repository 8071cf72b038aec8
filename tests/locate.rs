//! `tailback locate`: suspects of a map's file, thresholds, lists of nodes, and what is no map.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Folder, Job, refused, run, succeed, tailback, words};

/// A result with a map of 16 nodes in two groups, on which what `slow` says is half as fast. Every pair has a little noise.
fn map(folder: &Folder, name: &str, slow: impl Fn(usize, usize) -> bool) -> String {
    let log = folder.write("job.log", include_str!("data/gpcnet.log"));
    let path = folder.path(name);
    succeed(&format!("import gpcnet {log} --nth 2 --out {path}"));
    let mut file = folder.json(name);
    let noise = |from: usize, to: usize| 1.0 + 0.01 * (((from * 7 + to * 11) % 13) as f64 - 6.0) / 6.0;
    let nodes = 16;
    let pairs = (0..nodes).flat_map(|from| (0..nodes).filter(move |to| *to != from).map(move |to| (from, to)));
    let pairs: Vec<Value> = pairs
        .map(|(from, to)| {
            let rate = 1e9 * noise(from, to) * if slow(from, to) { 0.5 } else { 1.0 };
            json!({"from": from, "to": to, "one_way_bytes_per_s": {"median": rate, "worst": 0.9 * rate, "count": 5}})
        })
        .collect();
    let nodes: Vec<String> = (0..nodes).map(|node| format!("n{node:02}")).collect();
    let groups: Vec<usize> = (0..nodes.len()).map(|node| node / 8).collect();
    file["models"] = json!({"map": {
        "nodes": nodes, "groups": groups, "group_names": ["rack0", "rack1"], "bytes": 65536, "all_pairs": true,
        "rounds": 15, "complete_rounds": 15, "pairs": pairs,
    }});
    folder.write(name, file.to_string())
}

#[test]
fn a_slow_node_is_told_in_every_form() {
    let folder = Folder::new();
    let file = map(&folder, "map.json", |from, _| from == 3);
    let text = succeed(&format!("locate {file}")).stdout.replace("\n  ", " ");
    assert!(text.starts_with("1 SUSPECT: n03 is taken for: slow to send, 50% ["), "{text}");
    assert!(text.lines().count() <= 12 && text.contains("16 nodes in 2 groups, 240 pairs"), "{text}");
    let json = succeed(&format!("locate {file} --json")).json();
    let suspect = &json["suspects"][0];
    assert!(suspect["fault"] == "slow-to-send" && suspect["place"]["node"] == 3 && suspect["way"] == "out", "{json}");
    assert!(json["suspects"].as_array().unwrap().len() == 1 && json["false_alarms"] == 0.01, "{json}");
    let csv = succeed(&format!("locate {file} --format csv")).stdout;
    assert!(csv.lines().count() == 2 && csv.contains("\n\"n03\",slow-to-send,rate,out,0.49"), "{csv}");
    let all = succeed(&format!("locate {file} -v")).stdout;
    assert!(all.contains("seen by") && all.len() > text.len(), "{all}");
}

#[test]
fn thresholds_and_lists_of_nodes() {
    let folder = Folder::new();
    let broken = map(&folder, "broken.json", |from, to| from == 3 || to == 11);
    let healthy = map(&folder, "healthy.json", |_, _| false);
    let (list, junit) = (folder.path("drain"), folder.path("junit.xml"));
    let outcome = run(&format!("locate {broken} --drain-list {list} --fail-if suspects>1 --junit {junit}"));
    assert_eq!(outcome.code(), Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("FAIL: ") && outcome.stderr.contains("it is 2: n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("scontrol update NodeName=n03,n11 State=DRAIN"), "{}", outcome.stderr);
    assert_eq!(folder.text("drain"), "n03\nn11\n");
    // A file's names are a stranger's: none is made to run.
    let strange = folder.write("strange.json", folder.text("broken.json").replace("\"n03\"", "\"n03;reboot\""));
    let outcome = run(&format!("locate {strange} --drain-list {list}"));
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("expected the name of a host"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("scontrol"), "{}", outcome.stderr);
    assert!(folder.text("junit.xml").contains("failures=\"1\""));
    let outcome = run(&format!("locate {healthy} --drain-list {list} --fail-if suspects>0"));
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("NO SUSPECT: ") && !outcome.stderr.contains("scontrol"), "{}", outcome.stderr);
    assert_eq!(folder.text("drain"), "");
    // What is slower by half is no suspect for who wants to hear of more than that only.
    let text = succeed(&format!("locate {broken} --least 60%")).stdout;
    assert!(text.starts_with("NO SUSPECT: "), "{text}");
}

#[test]
fn what_a_second_map_does_not_show_was_busy() {
    let folder = Folder::new();
    let first = map(&folder, "first.json", |from, to| from == 3 || to == 11);
    let second = map(&folder, "second.json", |from, _| from == 3);
    let text = succeed(&format!("locate {first} {second}")).stdout.replace("\n  ", " ");
    assert!(text.starts_with("1 SUSPECT: n03 is taken for: slow to send"), "{text}");
    assert!(text.contains("Busy with neighbours' load, gone in another map: n11"), "{text}");
    let json = succeed(&format!("locate {second} {first} --json")).json();
    assert!(json["maps"] == 2 && json["busy"][0]["name"] == "n11" && json["suspects"][1].is_null(), "{json}");
}

#[test]
fn what_shows_nothing_is_refused() {
    let folder = Folder::new();
    let file = map(&folder, "map.json", |_, _| false);
    let log = folder.write("job.log", include_str!("data/gpcnet.log"));
    let other = folder.path("other.json");
    succeed(&format!("import gpcnet {log} --nth 2 --out {other}"));
    let mut small = folder.json("map.json");
    small["models"]["map"]["pairs"] = json!([]);
    let small = folder.write("small.json", small.to_string());
    refused(&[
        (&format!("locate {other}"), "other.json is no result of tailback map"),
        (&format!("locate {small}"), "expected at least 4 nodes"),
        (&format!("locate {file} --least 0%"), "expected a percentage above 0 and below 100"),
        (&format!("locate {file} --fail-if slow>0"), "expected 'suspects OP NUMBER'"),
        (&format!("locate {file} --drain-list {file}"), "is a map: give another file"),
        (&format!("locate {}", folder.path("none.json")), "none.json"),
    ]);
}

#[test]
fn the_report_has_the_suspects_first_and_beside_the_map() {
    let folder = Folder::new();
    let page = |name: &str, file: &str| {
        succeed(&format!("report {file} --out {}", folder.path(name)));
        folder.text(name)
    };
    let html = page("slow.html", &map(&folder, "slow.json", |from, _| from == 3));
    let verdict =
        html.find("class=\"verdict study\">1 SUSPECT: n03 is taken for: slow to send, 50% [").expect("the verdict");
    let row = html.find(">slow to send<").expect("a row of the table");
    assert!(verdict < row && row < html.find("aria-label=\"Sections\"").expect("links"), "on the first screen");
    assert!(html.contains("Bandwidth one way between nodes"), "the heat map");
    assert!(html.contains("suspects and every figure that shows them"), "and all of them among the numbers");
    let html = page("healthy.html", &map(&folder, "healthy.json", |_, _| false));
    assert!(html.contains("class=\"verdict study\">NO SUSPECT: ") && !html.contains(">slow to send<"));
}

/// Options of a quick job on a simulated machine of 16 nodes in two groups, which `broken` breaks.
fn fresh(folder: &Folder, broken: &str) -> String {
    let machine = folder.write("machine.toml", format!("{}\n{broken}", include_str!("../data/machines/small.toml")));
    format!("locate --transport sim --machine {machine} -n 16 --bytes 16KiB --messages 2 --round-trips 2 --slices 3")
}

#[test]
fn a_fresh_map_is_probed_and_its_file_says_the_same() {
    let folder = Folder::new();
    let line = fresh(&folder, "[[fault]]\nkind = \"send\"\nnode = 5\nrate = 0.5\n");
    let (kept, csv, list) = (folder.path("fresh.json"), folder.path("fresh.csv"), folder.path("drain"));
    let outcome =
        run(&format!("{line} --out {kept} --csv {csv} --drain-list {list} --fail-if suspects>0 --false-alarms 2%"));
    assert_eq!(outcome.code(), Some(1), "{}", outcome.stderr);
    let text = outcome.stdout.replace("\n  ", " ");
    assert!(text.starts_with("1 SUSPECT: n00005 is taken for: slow to send, "), "{text}");
    assert!(text.contains("Measured alone: ") && text.lines().count() <= 12, "{text}");
    assert!(outcome.stderr.contains("rounds in which suspects are measured alone"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("FAIL: locate: ") && folder.text("drain") == "n00005\n", "{}", outcome.stderr);
    assert!(folder.text("fresh.csv").contains("\n\"n00005\",slow-to-send,rate,out,0."), "{}", folder.text("fresh.csv"));
    let file = folder.json("fresh.json");
    let (map, probes) = (&file["models"]["map"], &file["models"]["map"]["probes"]);
    assert!(file["command"] == "locate" && map["pairs"].as_array().unwrap().len() == 240, "{}", file["command"]);
    assert_eq!(probes["rounds"], probes["complete_rounds"]);
    let of_5 = |probe: &&Value| probe["place"]["node"] == 5 && probe["is_control"] == false;
    let probe = probes["probes"].as_array().unwrap().iter().find(of_5).expect("a candidate");
    assert_eq!(probe["pairs"].as_array().unwrap().len(), 14, "both ways with seven others");
    // Read again, the same is said of it; and a job of the same seed is the same.
    assert_eq!(succeed(&format!("locate {kept} --false-alarms 2%")).stdout, outcome.stdout);
    let json = succeed(&format!("{line} --json --no-out")).json();
    assert!(json["suspects"][0]["name"] == "n00005" && json["probed"]["rounds"] == probes["rounds"], "{json}");
    // In other views it is a map.
    assert!(succeed(&format!("show {kept}")).stdout.contains("120 pairs of 16 nodes (all pairs)"));
    let planned = succeed(&format!("{line} --dry-run -q")).stdout;
    assert!(planned.contains("Then at most 352 rounds in which suspects are measured alone"), "{planned}");
    let alone = succeed(&format!("{line} --no-probes --json --no-out")).json();
    assert!(alone["probed"].is_null() && alone["suspects"][0]["name"] == "n00005", "{alone}");
}

#[test]
fn who_is_busy_while_the_map_is_measured_is_no_suspect() {
    let folder = Folder::new();
    let line = fresh(&folder, "");
    let map = succeed(&format!("{line} --no-probes --json --no-out")).json();
    assert_eq!(map["suspects"], json!([]), "healthy");
    // Others send to it for as long as the map takes, and no longer.
    let load = "[[load]]\nfrom = [2, 9, 14]\nto = 6\nbytes = \"64 KiB\"\nuntil = \"UNTIL\"\n";
    let always = fresh(&folder, &load.replace("UNTIL", "1 s"));
    let map = succeed(&format!("{always} --no-probes --json --no-out")).json();
    assert_eq!(map["suspects"][0]["name"], "n00006", "{map}");
    let while_mapped = fresh(&folder, &load.replace("UNTIL", "2 ms"));
    let json = succeed(&format!("{while_mapped} --json --no-out")).json();
    assert_eq!((&json["suspects"], &json["busy"][0]["name"]), (&json!([]), &json!("n00006")), "{json}");
}

#[test]
fn a_fresh_map_over_tcp_ends_in_a_verdict() {
    let folder = Folder::new();
    let kept = folder.path("fresh.json");
    let small = "--bytes 2KiB --messages 2 --round-trips 2 --slices 3 --step 1ms";
    let text = succeed(&format!("locate --no-lab -n 5 {small} -q --out {kept}")).stdout;
    assert!(text.contains("5 nodes, 20 pairs") && text.contains("Measured alone: "), "{text}");
    let map = &folder.json("fresh.json")["models"]["map"];
    assert_eq!(map["hosts"].as_array().unwrap().len(), 5);
    assert_eq!(map["probes"]["hosts"].as_array().unwrap().len(), 5, "copies again");
    assert_eq!(succeed(&format!("locate {kept}")).stdout, text);
    // Three nodes have no peers: there is a map, and nothing to say of it.
    let outcome = run(&format!("locate --no-lab -n 3 {small} -q --out {kept}"));
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("expected at least 4 nodes"), "{}", outcome.stderr);
    assert_eq!(folder.json("fresh.json")["models"]["map"]["pairs"].as_array().unwrap().len(), 6);
}

/// Killed while probes are measured: the map is whole, and its verdict is there with what was probed.
#[test]
fn a_killed_job_keeps_its_map_and_its_probes() {
    let folder = Folder::new();
    let kept = folder.path("fresh.json");
    // A step takes 150 ms: the map has three rounds, its probes twelve, and a draft is written every two seconds.
    let slow = "--bytes 64 --messages 50 --round-trips 50 --slices 1000 --step 150ms";
    let mut job = Job::start(tailback(words(&format!("locate --no-lab -n 4 {slow} -q --out {kept}"))));
    let probes = || folder.has("fresh.json").then(|| folder.json("fresh.json")["models"]["map"]["probes"].clone());
    let complete = || probes()?["complete_rounds"].as_u64().filter(|complete| *complete > 0);
    let before = job.eventually("a draft", complete);
    job.signal(Signal::KILL);
    job.end();
    let map = &folder.json("fresh.json")["models"]["map"];
    let count = |probe: &Value| probe["pairs"].as_array().unwrap().len() as u64;
    let pairs: u64 = map["probes"]["probes"].as_array().unwrap().iter().map(count).sum();
    let complete = map["probes"]["complete_rounds"].as_u64().unwrap();
    assert!(complete >= before && pairs == 2 * complete && map["complete_rounds"] == 3, "{complete} rounds, {pairs}");
    let said = succeed(&format!("locate {kept} --json")).json();
    assert_eq!(said["probed"]["rounds"], complete, "{said}");
}

#[test]
fn files_are_not_measured() {
    let folder = Folder::new();
    let file = map(&folder, "map.json", |_, _| false);
    refused(&[
        (&format!("locate {file} -n 4"), "cannot be used with"),
        (&format!("locate {file} --transport tcp"), "cannot be used with"),
        (&format!("locate {file} --out x.json"), "cannot be used with"),
        (&format!("locate {file} --rounds 3"), "cannot be used with"),
        (&format!("locate {file} --format gpcnet"), "GPCNeT has no table"),
        ("locate --no-lab -n 1 -q", "at least 2 nodes"),
        ("locate --no-lab -n 4 --least 0% -q", "expected a percentage"),
        ("locate --dry-run --out x.json -q", "--dry-run makes none"),
    ]);
}

/// What load is blamed for may be a node's own: a load test names who is slow without load too.
#[test]
fn a_load_test_names_a_node_that_is_slow_throughout() {
    let folder = Folder::new();
    let small = include_str!("../data/machines/small.toml");
    let late =
        folder.write("late.toml", format!("{small}\n[[fault]]\nkind = \"cable\"\nnode = 5\ndelay = \"600 ns\"\n"));
    let healthy = folder.write("healthy.toml", small);
    let kept = folder.path("run.json");
    let run = |machine: &str| {
        let line = "--canaries lat --budget 5ms --seed 3 --quiet --out";
        succeed(&format!("run --transport sim --machine {machine} {line} {kept}")).stdout
    };
    let shown = run(&late);
    assert!(shown.contains("\nSlow node: n00005 takes ") && shown.lines().count() <= 12, "{shown}");
    let file = folder.json("run.json");
    let slow = &file["runs"][0]["slow_nodes"];
    assert!(slow.as_array().unwrap().len() == 1 && slow[0]["name"] == "n00005" && slow[0]["kernel"] == "lat", "{slow}");
    for state in ["idle", "loaded"] {
        assert!(slow[0][state]["interval"]["low"].as_f64().unwrap() > 0.0, "{slow}");
    }
    succeed(&format!("report {kept} --out {}", folder.path("run.html")));
    assert!(folder.text("run.html").contains("n00005 takes "));
    assert!(!run(&healthy).contains("Slow node"));
}
