//! Sweeps: points that take turns, intensity on a simulated network and the queues that it fills, views, and what is refused.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Folder, Job, eventually, refused, result_of, succeed, tailback, words};

/// An incast that fills the port in front of its root once enough of it is under way.
const INCAST: &str = "--transport sim --machine small -n 16 --seed 3 --canaries lat --congestors incast";

/// Rates of a curve with whether each shows an impact, in order.
fn points(file: &Value) -> Vec<(f64, bool)> {
    let points = file["sweep"]["curves"][0]["points"].as_array().expect("a curve");
    points.iter().map(|of| (of["value"]["number"].as_f64().unwrap(), of["shows_impact"].as_bool().unwrap())).collect()
}

/// Phases of a simulated sweep with the rate of their point, in percent.
fn phases<'f>(file: &'f Value, of: &str) -> impl Iterator<Item = (String, &'f Value)> {
    let phases = file["machine"]["phases"].as_array().expect("phases of the machine");
    phases.iter().filter_map(move |phase| {
        let (_, rate) =
            phase["phase"].as_str()?.split_once("congestor.rate=").filter(|(name, _)| name.starts_with(of))?;
        Some((rate.split('%').next()?.to_owned(), phase))
    })
}

/// The share of the time under load for which the port that waited longest had no room behind it, by the rate of the point.
fn held_up(file: &Value) -> BTreeMap<String, f64> {
    let share = |phase: &Value| {
        let ports = phase["ports"].as_array().unwrap();
        let longest = ports.iter().filter_map(|port| port["simulated"]["stalled_ns"].as_u64()).max().unwrap_or(0);
        longest as f64 * 1e-9 / phase["seconds"].as_f64().unwrap()
    };
    phases(file, "loaded").map(|(rate, phase)| (rate, share(phase))).collect()
}

#[test]
fn the_onset_of_intensity_is_where_queues_stay_full() {
    let line =
        format!("sweep congestor.rate=12.5%..100%/8 {INCAST} -n 64 --set incast.bytes=64KiB --placements 3 --jobs 2");
    let (file, shown) = result_of(&line);
    let points = points(&file);
    assert_eq!((points.len(), points[0].0, points[7].0), (8, 0.125, 1.0));
    let onset = file["sweep"]["curves"][0]["onset"]["point"].as_u64().expect("an onset") as usize;
    assert!(onset > 1 && points[onset].1 && points[..onset].iter().all(|of| !of.1), "{points:?}");
    // Where nothing is lost a port is held up for a moment whenever two messages meet, at any rate: what counts is that it is for
    // half as much of the time as at full rate.
    let held_up = held_up(&file);
    let share = |rate: &f64| held_up[&format!("{}", 100.0 * rate)];
    let first = points.iter().position(|(rate, _)| share(rate) > 0.5 * share(&1.0)).expect("at full rate");
    assert!(onset.abs_diff(first) <= 1, "onset {onset}, first full queue {first}: {points:?} {held_up:?}\n{shown}");
    // It takes the time that is said before.
    let (took, plan) =
        (1e3 * file["machine"]["virtual_s"].as_f64().unwrap(), succeed(&format!("{line} --dry-run")).stdout);
    let said = plan.split("Expected: about ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a time");
    let said: f64 = said.parse().unwrap();
    assert!((took - said).abs() < 0.1 * said, "{took} ms of {said} ms");
    // What congestors reach is measured in the same time for every rate below it.
    let probes: Vec<f64> =
        phases(&file, "alone all congestors").map(|(_, phase)| phase["seconds"].as_f64().unwrap()).collect();
    let (least, most) = probes.iter().fold((f64::MAX, 0.0f64), |(low, high), &of| (low.min(of), high.max(of)));
    assert!(probes.len() == 7 && most < 1.1 * least, "{probes:?}");
    // The load that was delivered follows the rate.
    let curve = file["sweep"]["curves"][0]["points"].as_array().unwrap();
    let loads: Vec<f64> = curve.iter().map(|of| of["load_mib_per_s"].as_f64().unwrap()).collect();
    for (load, (rate, _)) in loads.iter().zip(&points) {
        assert!((load - rate * loads[7]).abs() < 0.2 * loads[7], "{load} MiB/s at {rate}: {loads:?}");
    }
}

#[test]
fn a_key_that_does_nothing_has_no_onset() {
    // No canary's message crosses the root's port.
    let (file, _) = result_of(&format!(
        "sweep congestor.rate=25%..100%/4 {INCAST} --set incast.bytes=16KiB --placements 4 --budget 1ms"
    ));
    assert_eq!(file["sweep"]["curves"][0]["onset"]["none"], "no value shows an impact");
}

#[test]
fn every_view_knows_the_points_apart() {
    let folder = Folder::new();
    let (path, csv, page) = (folder.path("result.json"), folder.path("table.csv"), folder.path("page.html"));
    let line = format!(
        "sweep congestor.rate=50%,100% lat.bytes=8,4KiB {INCAST} --set incast.bytes=64KiB --placements 3 --budget 300us \
         --crosses 'lat.avg.impact > 1.2' --out {path} --csv {csv}"
    );
    let words = line.replace("'lat.avg.impact > 1.2'", "lat.avg.impact>1.2");
    let outcome = succeed(&words);
    assert!(outcome.stderr.contains("4 runs take turns on every placement"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("tailback: placement 1 of 3 took "), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("lat (lat.bytes=8)") && outcome.stdout.contains("lat.avg.impact > 1.2"),
        "{outcome:?}"
    );
    let runs = folder.json("result.json")["runs"].as_array().unwrap().len();
    assert_eq!(runs, 4);
    let table = folder.text("table.csv");
    assert!(table.lines().next().unwrap().ends_with(",point"), "{table}");
    assert!(table.contains(",\"congestor.rate=50% lat.bytes=4KiB\"\n"), "{table}");
    assert!(succeed(&format!("show {path} -v")).stdout.contains("Sweep: every point of every curve"));
    assert!(succeed(&format!("compare {path}")).stdout.contains("congestor.rate=100% lat.bytes=8"));
    let beside = succeed(&format!("compare {path} {path}")).stdout;
    assert_eq!(beside.lines().filter(|line| line.contains("congestor.rate=50%")).count(), 2, "{beside}");
    succeed(&format!("report {path} --out {page}"));
    let page = folder.text("page.html");
    assert!(page.contains("lat by congestor.rate and lat.bytes") && page.contains("id=\"sweep\""));
}

/// The nodes that have a role in a run, on every placement.
fn nodes_in_use(run: &Value) -> Vec<Vec<usize>> {
    let used = |placement: &Value| {
        let roles = placement["roles"].as_array().unwrap().iter().enumerate();
        roles
            .filter(|(_, roles)| roles.as_array().unwrap().iter().any(|role| role != "idle"))
            .map(|(at, _)| at)
            .collect()
    };
    run["placements"].as_array().unwrap().iter().map(used).collect()
}

#[test]
fn points_over_protocols_are_one_curve() {
    let line = "sweep protocol=eager,put,get --placements 3 --budget 300us --set incast.bytes=64KiB";
    let (file, shown) = result_of(&format!("{line} {INCAST}"));
    let runs = file["runs"].as_array().unwrap();
    let protocols: Vec<(&Value, &Value)> =
        runs.iter().map(|run| (&run["transport"]["protocol"], &run["point"][0]["value"])).collect();
    assert!(protocols.len() == 3 && protocols.iter().all(|(over, point)| over == point), "{protocols:?}");
    let curves = file["sweep"]["curves"].as_array().unwrap();
    assert_eq!((curves.len(), &curves[0]["network"]), (1, &Value::from("simulated")));
    let values: Vec<&Value> = curves[0]["points"].as_array().unwrap().iter().map(|of| &of["value"]["value"]).collect();
    assert_eq!(values, ["eager", "put", "get"]);
    assert_eq!(curves[0]["onset"]["none"], "more of protocol is not more load");
    assert!(shown.contains("protocol=put"), "{shown}");
    // In a map, as the key of a plan file, and in short.
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[sweep]\nprotocol = [\"put\", \"get\"]\n");
    let told = succeed(&format!("sweep --plan {plan} {INCAST} --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: protocol=put, protocol=get"), "{told}");
    let told = succeed(&format!("sweep congestor.rate=50%,100% protocol=put,get {INCAST} --dry-run")).stdout;
    let short = succeed(&format!("run --set protocol=put,get {INCAST} --dry-run")).stdout;
    assert!(short.contains("2 points take turns on every placement: protocol=put, protocol=get"), "{short}");
    assert!(told.contains("4 points take turns") && told.contains("congestor.rate=100% protocol=get"), "{told}");
}

#[test]
fn points_may_name_their_transport() {
    let (file, _) = result_of(
        "sweep transport=tcp load-fraction=50%,100% --no-lab -n 6 --canaries lat --congestors incast --placements 1 \
         --budget 100ms",
    );
    let (runs, curves) = (file["runs"].as_array().unwrap(), file["sweep"]["curves"].as_array().unwrap());
    assert!(runs.len() == 2 && runs.iter().all(|run| run["transport"]["backend"] == "tcp"), "{runs:?}");
    assert_eq!((curves.len(), &curves[0]["network"], &curves[0]["under"]["value"]), (2, &"tcp".into(), &"50%".into()));
    let line = INCAST.replace("--transport sim ", "");
    let told = succeed(&format!("sweep transport=sim lat.bytes=8,64 {line} --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: transport=sim lat.bytes=8, "), "{told}");
    refused(&[
        ("sweep transport=tcp,udp", "transport=udp: unknown transport 'udp'"),
        ("sweep transport=tcp,mpi", "--transport mpi needs an MPI launcher"),
        ("sweep transport=tcp,libfabric --transport tcp", "--transport: not for a sweep over transport"),
        (
            "sweep transport=tcp,libfabric --protocol put,get",
            "a sweep over transport goes over each of its values once: --protocol names several: make it a second key",
        ),
        (
            "sweep transport=tcp,libfabric --congestor-transport tcp,libfabric",
            "goes over each of its values once: --congestor-transport names several",
        ),
        ("sweep protocol=put,get --protocol put", "--protocol: not for a sweep over protocol, whose values say it"),
        ("sweep protocol=put,push", "protocol=push: unknown protocol 'push': expected eager, put or get"),
        (
            "sweep protocol=put,get --transport tcp,mpi",
            "a sweep over protocol is of raw transports such as tcp: mpi has protocols of its own",
        ),
        ("sweep protocol=put,get transport=tcp,mpi", "mpi has protocols of its own"),
    ]);
}

#[test]
fn points_may_use_a_part_of_the_nodes() {
    let line = "sweep nodes=4,8,16 --placements 3 --budget 300us --set incast.bytes=64KiB";
    let (file, shown) = result_of(&format!("{line} {INCAST}"));
    let runs = file["runs"].as_array().unwrap();
    assert_eq!((runs.len(), file["system"]["nodes"].as_array().unwrap().len()), (3, 16));
    for (run, nodes) in runs.iter().zip([4, 8, 16]) {
        assert_eq!(nodes_in_use(run), vec![(0..nodes).collect::<Vec<_>>(); 3], "{nodes} nodes");
    }
    let numbers: Vec<&Value> =
        file["sweep"]["curves"][0]["points"].as_array().unwrap().iter().map(|of| &of["value"]["number"]).collect();
    assert_eq!(numbers, [4.0, 8.0, 16.0]);
    // A point of 8 nodes measures what a job of 8 nodes does.
    let idle = |file: &Value| file["sweep"]["curves"][0]["points"][1]["idle"].as_f64().unwrap();
    let (small, _) = result_of(&format!("{} {INCAST} -n 8", line.replace(",16", "")));
    assert!((idle(&file) / idle(&small) - 1.0).abs() < 0.01, "{} {}", idle(&file), idle(&small));
    assert!(shown.contains("nodes=16"), "{shown}");
    refused(&[
        (
            &format!("sweep nodes=8,32 {INCAST}"),
            "nodes=32: the job has 16 nodes: start it on more, or lower the number",
        ),
        (&format!("sweep nodes=2,16 {INCAST}"), "nodes=2: 2 nodes, one of them with a single rank, cannot hold"),
        (&format!("sweep nodes=few,16 {INCAST}"), "nodes=few: invalid count 'few': expected 1 or more"),
    ]);
}

#[test]
fn points_may_use_a_part_of_the_ranks_of_a_node() {
    let line = "sweep ranks-per-node=1,2,4 --placements 3 --budget 300us --set incast.bytes=64KiB";
    let job = "-n 32 --ranks-per-node 4";
    let (file, _) = result_of(&format!("{line} {INCAST} {job}"));
    let runs = file["runs"].as_array().unwrap();
    assert!(runs.len() == 3 && runs.iter().all(|run| nodes_in_use(run)[0].len() == 8), "{runs:?}");
    // Every node has roles, and ranks without one where a point does not use all.
    let idle = |run: &Value| run["placements"][0]["roles"].to_string().matches("idle").count();
    assert_eq!(runs.iter().map(idle).collect::<Vec<_>>(), [8, 8, 0]);
    refused(&[
        (
            &format!("sweep ranks-per-node=4,8 {INCAST} {job}"),
            "ranks-per-node=8: the smallest node of the job has 4: start more ranks on each node, or lower the number",
        ),
        (&format!("sweep ranks-per-node=1,2 {INCAST}"), "ranks-per-node=2: the smallest node of the job has 1: "),
    ]);
}

#[test]
fn points_use_a_part_of_a_job_over_tcp_too() {
    let more = "--no-lab --canaries lat --congestors incast --placements 1 --budget 100ms";
    let (file, _) = result_of(&format!("sweep nodes=4,6 protocol=eager,put -n 6 --ranks-per-node 1 {more}"));
    let runs = file["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let value = |at: usize| run["point"][at]["value"].as_str().unwrap();
        let nodes: usize = value(0).parse().unwrap();
        assert_eq!(nodes_in_use(run), [(0..nodes).collect::<Vec<_>>()]);
        assert_eq!(run["transport"]["protocol"], value(1));
    }
    let (file, _) = result_of(&format!("sweep ranks-per-node=1,2 -n 8 --ranks-per-node 2 {more}"));
    let idle = |run: &Value| run["placements"][0]["roles"].to_string().matches("idle").count();
    assert_eq!(file["runs"].as_array().unwrap().iter().map(idle).collect::<Vec<_>>(), [4, 0]);
}

#[test]
fn a_plan_file_may_have_the_keys() {
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[sweep]\n\"load-fraction\" = [0.5, \"100%\"]\n");
    let told = succeed(&format!("sweep --plan {plan} {INCAST} --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: load-fraction=0.5, load-fraction=100%"), "{told}");
    let told = succeed(&format!("run {INCAST} --set lat.bytes=8,64 --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: lat.bytes=8, lat.bytes=64"), "{told}");
    let told = succeed("sweep congestor.rate=25%..100%/4 --budget 1s -n 6 --dry-run").stdout;
    assert!(told.contains("Expected duration: about "), "{told}");
}

#[test]
fn what_cannot_be_swept_is_refused_before_anything_is_measured() {
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[sweep]\n\"congestor.rate\" = \"50%,100%\"\n");
    refused(&[
        ("sweep", "sweep needs a key: give KEY=VALUES"),
        ("sweep congestor.rate=0%,50%", "congestor.rate=0%: invalid rate 0 of a2a: expected 1% to 100%"),
        ("sweep congestor.rate=50%", "a sweep of 1 points: expected 2 to 64"),
        ("sweep bytes=8,16", "invalid key 'bytes': expected congestor.rate, load-fraction"),
        ("sweep load-fraction=50%,100% --congestors none", "a sweep without congestors has no load"),
        ("sweep congestor.rate=50%,100% --congestors each", "--congestors each: not for sweep"),
        ("sweep congestor.rate=50%,100% --launches 2", "--launches: not for sweep"),
        ("sweep canary-fraction=20%,100%", "canary-fraction=100%: canary fraction 100% leaves no node"),
        (
            "sweep congestor.rate=50%,100% --crosses a2a.avg.impact>2",
            "--crosses 'a2a.avg.impact > 2': the plan does not measure a2a",
        ),
        (&format!("run --plan {plan}"), "the plan has a sweep over congestor.rate: use `tailback sweep`"),
    ]);
}

/// Four points on three placements, each of which takes a moment.
fn resumable(out: &str) -> String {
    format!(
        "sweep congestor.rate=25%..100%/4 {INCAST} --set incast.bytes=64KiB --placements 3 --budget 600us -q --out {out}"
    )
}

/// A result without the times at which it was made.
fn timeless(mut file: Value) -> Value {
    for key in ["started", "duration_s"] {
        file.as_object_mut().unwrap().remove(key);
    }
    file
}

/// The journal of a sweep that was killed after some of its runs, not all: a test that was slow to look tries again.
fn killed(folder: &Folder, line: &str) -> String {
    let (result, journal) = (folder.path("part.json"), folder.path("part.json.journal"));
    for _ in 0..20 {
        let _ = (std::fs::remove_file(&result), std::fs::remove_file(&journal));
        let job = Job::start(tailback(words(line)));
        eventually("a finished run", || match std::fs::read_to_string(&journal) {
            Ok(text) => (text.lines().count() > 2).then_some(()),
            Err(_) => folder.has("part.json").then_some(()),
        });
        job.signal(Signal::KILL);
        job.end();
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        if (2..12).contains(&text.lines().count()) {
            return text;
        }
    }
    panic!("twenty sweeps came to their ends");
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_result() {
    let folder = Folder::new();
    let (whole, part) = (folder.path("whole.json"), folder.path("part.json"));
    succeed(&resumable(&whole));
    assert!(!folder.has("whole.json.journal"), "what has ended needs none");
    let line = resumable(&part);
    let journal = killed(&folder, &line);
    let (known, runs) = (journal.lines().count() - 1, 12);
    assert!((1..runs).contains(&known), "{known} runs");
    refused(&[(&line, "part.json.journal is of a sweep that did not come to its end: go on with it (--resume ")]);
    // A kill in the middle of a line: that run is measured again.
    let torn = &journal.trim_end()[..journal.trim_end().len() - 7];
    for (text, more) in [(torn, ""), (&journal, "--jobs 4")] {
        folder.write("part.json.journal", text);
        succeed(&format!("{line} --resume {part} {more}"));
        assert_eq!(timeless(folder.json("part.json")), timeless(folder.json("whole.json")));
        assert!(!folder.has("part.json.journal"));
    }
    refused(&[(&format!("{line} --resume {part}"), "part.json is complete: there is nothing to resume")]);
    let first = journal.lines().nth(1).unwrap();
    let header = journal.lines().next().unwrap();
    for (text, expected) in [
        (String::new(), "is no journal of a sweep"),
        ("garbage\n".into(), "is no journal of a sweep"),
        ("{\"sweep_journal\": 2}\n".into(), "has form 2, and this Tailback reads form 1"),
        (format!("{header}\ngarbage\n"), "line 2 of "),
        (format!("{header}\n{}\n", &first[..first.len() - 8]), "line 2 of "),
        (format!("{header}\n{first}\n{first}\n"), "is damaged: its run is there twice"),
        (header.replacen("\"seed\":", "\"seed\":1", 1) + "\n", "the sweep has another seed"),
    ] {
        folder.write("part.json.journal", &text);
        refused(&[(&format!("{line} --resume {part}"), expected)]);
        assert_eq!(folder.text("part.json.journal"), text, "nothing is lost");
    }
    folder.write("part.json.journal", &journal);
    for (more, expected) in [
        ("-n 12", "--resume: the sweep is of 16 ranks and this job has 12"),
        ("--seed 4", "--resume: the sweep has another setting, --seed: 3 there and 4 here"),
        ("--budget 700us", "--resume: the sweep has another plan, 'budget_s': 0.0006 there and 0.0007 here"),
        ("--set lat.bytes=64", "--resume: the sweep has another plan, 'canaries': "),
        ("--traffic-class 0", "--resume: the sweep has another setting, --traffic-class: "),
        ("--machine crystal --ranks-per-node 1", "--resume: the sweep is of another machine"),
    ] {
        refused(&[(&format!("{line} --resume {part} {more}"), expected)]);
    }
    refused(&[(
        &format!("{line} --resume {}", folder.path("other.json")),
        "other.json.journal: nothing of that sweep",
    )]);
}

#[test]
fn a_sweep_over_parts_of_its_job_goes_on_too() {
    let folder = Folder::new();
    let (whole, part) = (folder.path("whole.json"), folder.path("part.json"));
    let over = |out: &str, keys: &str| resumable(out).replace("congestor.rate=25%..100%/4", keys);
    let keys = "nodes=8,16 protocol=eager,put";
    succeed(&over(&whole, keys));
    let line = over(&part, keys);
    let journal = killed(&folder, &line);
    folder.write("part.json.journal", &journal);
    for (keys, expected) in [
        ("nodes=8,16 protocol=eager,get", "the sweep has another network: simulated, eager; simulated, put there and"),
        ("nodes=4,16 protocol=eager,put", "the sweep has another plan, 'sweep': "),
    ] {
        refused(&[(&format!("{} --resume {part}", over(&part, keys)), expected)]);
    }
    for more in ["", "--jobs 3"] {
        folder.write("part.json.journal", &journal);
        succeed(&format!("{line} --resume {part} {more}"));
        assert_eq!(timeless(folder.json("part.json")), timeless(folder.json("whole.json")));
    }
}

#[test]
fn points_side_by_side_are_those_one_after_the_other() {
    let folder = Folder::new();
    let [one, three] = ["one.json", "three.json"].map(|name| folder.path(name));
    let two_keys = resumable(&one).replace("congestor.rate=25%..100%/4", "congestor.rate=50%,100% lat.bytes=8,4KiB");
    succeed(&two_keys);
    succeed(&format!("{} --jobs 3", two_keys.replace(&one, &three)));
    assert_eq!(timeless(folder.json("one.json")), timeless(folder.json("three.json")));
    assert_eq!(folder.files(), 2);
    refused(&[
        (
            "sweep congestor.rate=50%,100% --jobs 2",
            "--jobs: not for sweep: only simulated points do not disturb each other",
        ),
        ("sweep congestor.rate=50%,100% --jobs 0", "invalid count '0'"),
    ]);
}

#[test]
fn an_interrupted_sweep_goes_on_over_tcp_too() {
    let folder = Folder::new();
    let out = folder.path("part.json");
    let line =
        format!("sweep lat.bytes=8,64,512 --no-lab -n 4 --canaries lat --congestors incast --placements 1 --out {out}");
    let mut job = Job::start(tailback(words(&format!("{line} --budget 1s"))));
    job.eventually("a finished run", || {
        let text = std::fs::read_to_string(folder.path("part.json.journal")).ok()?;
        (text.lines().count() > 1).then_some(())
    });
    job.signal(Signal::INT);
    let outcome = job.end();
    assert!(
        outcome.stderr.contains(&format!("to go on where it ended: the same command with --resume {out}")),
        "{outcome:?}"
    );
    let (seed, left) = (folder.json("part.json")["seed"].clone(), folder.text("part.json.journal").lines().count());
    assert!((2..4).contains(&left), "{left}");
    // Its seed is that of the journal: none was given.
    let outcome = succeed(&format!("{line} --budget 1s --resume {out}"));
    assert!(outcome.stderr.contains("of 3 runs are finished"), "{outcome:?}");
    let file = folder.json("part.json");
    assert_eq!((&file["seed"], file["runs"].as_array().unwrap().len()), (&seed, 3));
    assert_eq!((&file["interrupted"], folder.files()), (&Value::Bool(false), 1));
}
