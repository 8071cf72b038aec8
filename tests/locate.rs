//! `tailback locate`: suspects of a map's file, thresholds, lists of nodes, and what is no map.

use crate::common::{Folder, refused, run, succeed};
use serde_json::{Value, json};

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
