//! Maps of pairs of nodes, end to end: on the simulator and over tcp, cut short and resumed, in every view.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Folder, Job, refused, result_of, run, succeed, tailback, words};

/// Quick over any transport.
const SMALL: &str = "--bytes 2KiB --messages 2 --round-trips 2 --slices 3";

/// The nodes' pairs with figures, one direction each.
fn directions(file: &Value) -> Vec<(u64, u64)> {
    let pairs = file["models"]["map"]["pairs"].as_array().expect("a map");
    let of = |pair: &Value| {
        let figure = |name: &str| pair[name]["median"].as_f64();
        let (from, to) = (pair["from"].as_u64().unwrap(), pair["to"].as_u64().unwrap());
        assert!(
            figure("one_way_bytes_per_s").unwrap() > 0.0 && figure("both_ways_bytes_per_s").unwrap() > 0.0,
            "{pair}"
        );
        assert_eq!(figure("latency_s").is_some(), from < to, "{pair}");
        (from, to)
    };
    pairs.iter().map(of).collect()
}

fn all_directions(nodes: u64) -> Vec<(u64, u64)> {
    (0..nodes).flat_map(|a| (0..nodes).filter(move |b| *b != a).map(move |b| (a, b))).collect()
}

#[test]
fn every_pair_of_a_simulated_machine_is_measured_and_shown() {
    let line = format!("map --transport sim --machine small -n 12 {SMALL}");
    let (file, shown) = result_of(&line);
    let map = &file["models"]["map"];
    assert_eq!(directions(&file), all_directions(12));
    assert_eq!((&map["rounds"], &map["complete_rounds"], &map["all_pairs"]), (&json!(11), &json!(11), &json!(true)));
    assert_eq!(map["groups_known_by"], "environment", "the machine knows its switches");
    assert_eq!(map["hosts"], Value::Null, "no memory is copied in virtual time");
    assert!(shown.contains("66 pairs of 12 nodes (all pairs)") && shown.contains("slowest pairs"), "{shown}");
    // The same seed, the same figures.
    let again = result_of(&line).0;
    assert_eq!(again["models"], file["models"]);
    let folder = Folder::new();
    let [kept, html, csv] = ["map.json", "map.html", "map.csv"].map(|name| folder.path(name));
    let first = succeed(&format!("{line} --out {kept} --csv {csv}"));
    assert!(first.stdout.lines().count() <= 12, "{}", first.stdout);
    assert!(first.stdout.starts_with("ALIKE: ") || first.stdout.starts_with("SLOW PAIRS: "), "{}", first.stdout);
    assert!(
        first.stderr.contains("all 66 pairs in 11 rounds of up to 6. At most about 880 ms of virtual time"),
        "{}",
        first.stderr
    );
    let table = folder.text("map.csv");
    assert!(table.lines().count() == 1 + 132 && table.contains("one_way_bytes_per_s"), "{table}");
    let again = succeed(&format!("show {kept}")).stdout;
    assert!(again.contains("66 pairs of 12 nodes (all pairs)") && again.contains("over all pairs"), "{again}");
    succeed(&format!("report {kept} --out {html}"));
    let page = folder.text("map.html");
    assert!(page.contains("Bandwidth one way between nodes") && page.contains("n00000 &gt; n00001"), "no heat map");
}

#[test]
fn a_sample_has_every_node_as_often_and_says_that_it_is_one() {
    let (file, shown) = result_of(&format!("map --transport sim --machine small -n 32 --rounds 4 {SMALL}"));
    let map = &file["models"]["map"];
    assert_eq!((&map["all_pairs"], &map["rounds"]), (&json!(false), &json!(4)));
    let directions = directions(&file);
    assert_eq!(directions.len(), 4 * 32);
    for node in 0..32 {
        assert_eq!(directions.iter().filter(|(from, _)| *from == node).count(), 4);
    }
    assert!(shown.contains("64 pairs of 32 nodes (a sample of all pairs)"), "{shown}");
    let planned = succeed("map --transport sim --machine fat-tree-1024 --dry-run -q").stdout;
    assert!(planned.contains("A map of 1024 nodes in ") && planned.contains("a sample of "), "{planned}");
    let planned = succeed("map --transport sim --machine fat-tree-1024 --dry-run --all-pairs -q").stdout;
    assert!(planned.contains("all 523776 pairs in 1023 rounds of up to 512. At most about"), "{planned}");
}

#[test]
fn maps_over_tcp_have_any_number_of_nodes() {
    for (ranks, per_node) in [(2, 1), (3, 1), (7, 1), (7, 3)] {
        let nodes = u64::div_ceil(ranks, per_node);
        let (file, shown) = result_of(&format!("map --no-lab -n {ranks} --ranks-per-node {per_node} {SMALL}"));
        assert_eq!(directions(&file), all_directions(nodes), "{ranks} ranks, {per_node} on each node");
        let hosts = file["models"]["map"]["hosts"].as_array().unwrap();
        assert!(hosts.len() as u64 == nodes && hosts.iter().all(|host| host["copy_bytes_per_s"].as_f64() > Some(0.0)));
        assert!(shown.contains(&format!("{} pairs of {nodes} nodes", nodes * (nodes - 1) / 2)), "{shown}");
    }
}

#[test]
fn groups_are_as_given() {
    let folder = Folder::new();
    let groups = folder.write("groups", "virtual0 left\nvirtual1 right\nvirtual2 left\nvirtual3 right\n");
    let (file, shown) = result_of(&format!("map --no-lab -n 4 {SMALL} --groups {groups}"));
    let map = &file["models"]["map"];
    assert_eq!((&map["groups"], &map["group_names"]), (&json!([0, 1, 0, 1]), &json!(["left", "right"])));
    assert_eq!(map["groups_known_by"], "file");
    assert!(shown.contains("Groups of nodes: 2, as given"), "{shown}");
    let (file, shown) =
        result_of(&format!("map --transport sim --machine small -n 12 {SMALL} --groups name:^n000([0-9])"));
    let map = &file["models"]["map"];
    assert_eq!((&map["group_names"], &map["groups_known_by"]), (&json!(["0", "1"]), &json!("names")));
    assert_eq!((&map["groups"][9], &map["groups"][10]), (&json!(0), &json!(1)));
    assert!(shown.contains("Groups of nodes: 2, by their names"), "{shown}");
}

/// A file of a map, as it was when so many rounds were complete; without the pairs that `lost` names.
fn cut(folder: &Folder, file: &Value, complete: u64, lost: &[(u64, u64)]) -> String {
    let mut file = file.clone();
    let map = &mut file["models"]["map"];
    map["complete_rounds"] = complete.into();
    let ends = |pair: &Value| (pair["from"].as_u64().unwrap(), pair["to"].as_u64().unwrap());
    map["pairs"].as_array_mut().unwrap().retain(|pair| !lost.contains(&ends(pair)));
    folder.write("cut.json", file.to_string())
}

#[test]
fn a_map_that_was_cut_short_goes_on_where_it_ended() {
    let folder = Folder::new();
    let machine = "map --transport sim --machine small -n 8";
    let (whole, _) = result_of(&format!("{machine} {SMALL} --seed 9"));
    let file = cut(&folder, &whole, 3, &all_directions(8));
    let resumed = result_of(&format!("{machine} --resume {file}")).0;
    let rest = directions(&resumed);
    assert_eq!(rest.len(), 4 * 8, "four rounds are left");
    assert_eq!(
        (&resumed["seed"], &resumed["models"]["map"]["settings"]),
        (&json!(9), &whole["models"]["map"]["settings"])
    );
    let file = cut(&folder, &whole, 3, &rest);
    let resumed = result_of(&format!("{machine} --resume {file}")).0;
    assert_eq!(directions(&resumed), all_directions(8), "each pair once");
    assert_eq!(resumed["models"]["map"]["complete_rounds"], 7);
    // As of a version that drew other rounds.
    let mut drawn = folder.json("cut.json");
    drawn["seed"] = 10.into();
    let drawn = folder.write("drawn.json", drawn.to_string());
    let whole = folder.write("whole.json", whole.to_string());
    refused(&[
        (&format!("{machine} --resume {drawn} -q"), "are not those that this version of tailback draws"),
        (&format!("{machine} --resume {whole} -q"), "is complete: there is nothing to resume"),
        (&format!("map --transport sim --machine small -n 6 --resume {file} -q"), "is of 8 nodes and this job has 6"),
    ]);
}

#[test]
fn a_killed_map_keeps_its_rounds_and_can_be_resumed() {
    let folder = Folder::new();
    let out = folder.path("map.json");
    // A step takes half a second, whatever the machine: no slice is long, and there are more than fit.
    let slow = "--bytes 64 --messages 50 --round-trips 50 --slices 1000 --step 500ms";
    let line = format!("map --no-lab -n 4 {slow} -q --out {out}");
    let mut job = Job::start(tailback(words(&line)));
    job.eventually("a draft", || folder.has("map.json").then_some(()));
    job.signal(Signal::KILL);
    job.end();
    let draft = folder.json("map.json");
    let complete = draft["models"]["map"]["complete_rounds"].as_u64().unwrap();
    assert!((1..=3).contains(&complete), "{complete} rounds");
    assert_eq!(directions(&draft).len() as u64, 4 * complete);
    if complete < 3 {
        let outcome = succeed(&format!("map --no-lab -n 4 --resume {out} -q --out {out}"));
        assert!(outcome.stdout.contains("6 pairs of 4 nodes (all pairs)"), "{outcome:?}");
        assert_eq!(directions(&folder.json("map.json")), all_directions(4));
    }
}

#[test]
fn an_interrupt_ends_a_map_after_a_whole_round() {
    let slow = "--bytes 64 --messages 50 --round-trips 50 --slices 200 --step 100ms";
    let folder = Folder::new();
    let out = folder.path("map.json");
    let mut job = Job::start(tailback(words(&format!("map --no-lab -n 24 {slow} -q --out {out}"))));
    let ranks = job.ranks(24);
    job.eventually("a draft", || folder.has("map.json").then_some(()));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!((outcome.code(), ranks.len()), (Some(2), 24), "{outcome:?}");
    let file = folder.json("map.json");
    let complete = file["models"]["map"]["complete_rounds"].as_u64().unwrap();
    assert_eq!(directions(&file).len() as u64, 24 * complete);
    assert!(complete >= 1 && (complete == 23 || file["interrupted"] == true), "{complete} rounds");
}

#[test]
fn mistakes_are_one_line() {
    refused(&[
        ("map --no-lab -n 1 -q", "at least 2 nodes"),
        ("map --no-lab -n 4 --ranks-per-node 4 -q", "at least 2 nodes"),
        ("map --no-lab -n 2 --resume /nowhere/map.json -q", "/nowhere/map.json"),
        ("map --resume Cargo.toml --bytes 8 -q", "cannot be used with"),
        ("map --rounds 3 --all-pairs", "cannot be used with"),
        ("map --rounds 0", "invalid count '0'"),
        ("map --no-lab -n 2 --protocol eager,put -q", "a map is of one network"),
        ("map --no-lab -n 2 --groups /nowhere/groups -q", "cannot read /nowhere/groups"),
        ("map --no-lab -n 2 --groups name:^r([0-9]) -q", "'^r([0-9])' finds no group in the name "),
        ("map --no-lab -n 2 --groups name:r -q", "'r' has 0 groups"),
    ]);
    let folder = Folder::new();
    let out = folder.path("beff.json");
    run(&format!("beff --no-lab -n 2 --rings 1 --bandwidth-bytes 1000 --repetitions 1 -q --out {out}"));
    refused(&[(&format!("map --no-lab -n 2 --resume {out} -q"), "is no result of tailback map")]);
}
