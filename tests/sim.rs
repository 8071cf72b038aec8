//! Simulated networks, end to end: every command that measures, whatever shows figures, and what is refused.

use crate::common::{self, Folder, Job, refused, result_of as result, run, succeed, tailback, words};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A load test of a few milliseconds of virtual time.
const QUICK: &str = "--transport sim --machine small -n 16 --budget 600us --placements 3";

/// An incast that fills the switches in front of its root.
const CROWDED: &str = "--transport sim --machine small -n 64 --budget 200us --placements 1 --canaries lat --congestors incast \
                       --set incast.bytes=64KiB";

/// What may differ between two runs of the same: when, and how long they took.
fn timeless(mut file: Value) -> Value {
    for key in ["started", "duration_s"] {
        assert!(file.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    file
}

#[test]
fn the_same_seed_machine_and_plan_give_the_same_file() {
    const SHORT: &str = "--transport sim --machine small -n 10 --budget 200us --placements 2 --protocol eager,put";
    let line = |seed| format!("run {SHORT} --seed {seed}");
    let [one, again, other] = [5, 5, 6].map(|seed| timeless(result(&line(seed)).0));
    assert_eq!(one, again);
    assert_ne!(one["runs"], other["runs"]);
    assert_eq!(one["runs"].as_array().unwrap().len(), 2, "a run for each protocol");
    let machine = &one["machine"];
    assert_eq!((machine["name"].as_str(), machine["simulated"].as_bool()), (Some("small"), Some(true)));
    assert!(machine["file"].as_str().unwrap().contains("[topology]"));
    let spent: f64 = machine["virtual_s"].as_f64().unwrap();
    assert!((1e-3..1.0).contains(&spent), "{spent} s");
}

#[test]
fn a_precision_is_sought_in_virtual_time() {
    let line = "run --transport sim --machine small -n 8 --seed 2 --canaries lat --budget 100us --placements 3 \
                --precision 0.1% --longest 10ms";
    let [one, again] = [0; 2].map(|_| timeless(result(line).0));
    assert_eq!(one, again, "it stops at the same placement, however fast this machine is");
    let placements = one["runs"][0]["placements"].as_array().unwrap().len();
    assert!(placements > 3, "{placements} placements");
}

#[test]
fn load_is_felt_and_ports_tell_where() {
    // Messages that fill the buffers in front of one node.
    let (file, shown) =
        result(&format!("run {QUICK} --seed 1 --congestors incast --set incast.bytes=64KiB --format table"));
    assert_eq!(file["system"]["ranks"], 16);
    assert_eq!(file["system"]["nodes"].as_array().unwrap().len(), 16);
    assert_eq!(file["system"]["nodes"][3]["name"], "n00003");
    let figure = |at: usize| file["runs"][0]["tests"][at]["summary"]["p50"].as_f64().unwrap();
    assert!(figure(0) > 0.5 && figure(0) < 100.0, "8 B over 200 Gbit/s, in us: {}", figure(0));
    for test in file["runs"][0]["tests"].as_array().unwrap() {
        let wall = test["wall_s"].as_f64().unwrap();
        assert!(wall < 0.1, "virtual time, not real: {wall} s of {}", test["title"]);
    }
    let phases = file["machine"]["phases"].as_array().unwrap();
    let stalled = |name: &str| -> u64 {
        let phase = phases.iter().find(|phase| phase["phase"].as_str().unwrap().starts_with(name)).unwrap();
        let ports = phase["ports"].as_array().unwrap().iter();
        ports.map(|port| port["simulated"]["stalled_ns"].as_u64().unwrap()).sum()
    };
    assert!(stalled("loaded") > stalled("isolated"), "{phases:#?}");
    assert!(shown.starts_with("SIMULATED on the machine small"), "{shown}");
    assert!(shown.contains("over simulated, eager protocol: 16 ranks on 16 nodes"), "{shown}");
    assert!(shown.contains("Ports of the simulated network that were held up most"), "{shown}");
}

#[test]
fn every_view_says_that_it_is_simulated() {
    let folder = Folder::new();
    let [a, b, html, csv] = ["a.json", "b.json", "report.html", "a.csv"].map(|name| folder.path(name));
    for (seed, out) in [(1, &a), (2, &b)] {
        succeed(&format!("run {QUICK} --seed {seed} -q --out {out} --csv {csv}"));
    }
    for format in ["table", "gpcnet"] {
        let shown = succeed(&format!("show {a} --format {format}")).stdout.to_lowercase();
        assert!(shown.lines().next().unwrap().starts_with("simulated"), "{format}: {shown}");
    }
    let table = folder.text("a.csv");
    assert!(table.lines().skip(1).all(|line| line.starts_with("simulated,")), "{table}");
    let compared = succeed(&format!("compare {a} {b} -v")).stdout;
    assert!(compared.contains("Compared with a (simulated)"), "{compared}");
    assert!(compared.contains("SIMULATED: b (simulated): simulated, machine small"), "{compared}");
    let compared = succeed(&format!("compare {a} {b} --json")).json();
    assert_eq!(compared["simulated"].as_array().unwrap().len(), 2);
    succeed(&format!("report {a} {b} --out {html}"));
    let page = folder.text("report.html");
    let header = page.split("<nav").next().unwrap();
    assert!(header.contains("<strong>Simulated:</strong> a (simulated), b (simulated) are what"), "{header}");
    assert_eq!(header.matches("No such network was measured").count(), 1, "{header}");
    assert!(page.contains("Longest queue of each") && page.contains("ports of the simulated machine small"));
}

#[test]
fn every_command_that_measures_runs() {
    const SMALL: &str = "--transport sim --machine small";
    for (line, expected) in [
        (format!("network {SMALL} -n 6 --budget 50us"), "\n  bw 128 KiB "),
        (format!("congest {SMALL} -n 8 --duration 200us"), "\nCongestors\n"),
        (format!("beff {SMALL} -n 6 --rings 2 --bandwidth-bytes 100000"), "HPC Challenge latency"),
        (format!("maxrate {SMALL} --most-pairs 2 --largest 16384 --repetitions 2 --iterations 2"), "max-rate"),
        (format!("contention {SMALL} --shape in-3 --bytes 200000 --repetitions 2"), "Contention graph in-3"),
    ] {
        let (file, shown) = result(&line);
        assert_eq!(file["machine"]["name"], "small", "{line}");
        assert!(shown.contains(expected) && shown.contains("SIMULATED on the machine small"), "{line}: {shown}");
        assert_eq!(timeless(file), timeless(result(&line).0), "{line}: the same again");
    }
}

/// Pairs of a simulated node wait for each other at its port, and their latencies pass meanwhile: the paper's formula (5).
#[test]
fn a_full_port_hides_latency_and_the_data_say_so() {
    let line = "maxrate --transport sim --machine small --one-way --most-pairs 6 --repetitions 1 --thresholds 64KiB";
    let (file, shown) = result(line);
    let regimes = file["models"]["maxrate"]["regimes"].as_array().unwrap();
    let ends = regimes.iter().map(|regime| regime["largest_bytes"].as_u64().unwrap());
    assert_eq!(ends.collect::<Vec<_>>(), [1 << 16, 1 << 20], "as given");
    assert!(shown.contains("The data speak for hidden latency"), "{shown}");
    let fit = |model: &str, of: &str| {
        let fits = regimes[0]["fits"].as_array().unwrap();
        fits.iter().find(|fit| fit["model"] == model).unwrap()[of].as_f64().unwrap()
    };
    assert!(fit("hidden-latency", "error_sum") < fit("max-rate", "error_sum"));
    assert!(fit("hidden-latency", "criterion") < fit("max-rate", "criterion") - 10.0);
}

#[test]
fn a_study_over_several_networks_is_one_result_with_the_networks_side_by_side() {
    const SMALL: &str = "--transport sim --machine small --protocol eager,put";
    for (line, section, figure) in [
        (format!("maxrate {SMALL} --most-pairs 2 --largest 16384 --repetitions 3"), "maxrate", "Max-rate model"),
        (format!("contention {SMALL} --shape in-2 --bytes 200000 --repetitions 3"), "contention", "1>0, measured"),
    ] {
        let (file, shown) = result(&line);
        let runs = file["runs"].as_array().unwrap();
        assert!(runs.len() == 2 && file["models"].is_null(), "{line}");
        assert!(runs.iter().all(|run| run["models"][section].is_object()), "{line}");
        for expected in ["over simulated, eager and simulated, put", "Over simulated, put", "Networks side by side"] {
            assert!(shown.contains(expected), "{line}: {expected} in {shown}");
        }
        let folder = Folder::new();
        let path = folder.write("both.json", file.to_string());
        let compared = succeed(&format!("compare {path} --by protocol")).stdout;
        assert!(compared.contains("Compared with simulated, eager") && compared.contains(figure), "{compared}");
        let csv = succeed(&format!("show {path} --format csv")).stdout;
        assert!(csv.starts_with("network,") && csv.matches("network,").count() == 1, "{csv}");
        assert!(csv.contains("simulated, put") && csv.contains("simulated, eager"), "{csv}");
        succeed(&format!("report {path} --out {}", folder.path("report.html")));
        assert!(folder.text("report.html").contains("both (simulated) (simulated, put)"), "{line}");
    }
}

#[test]
fn numbers_of_ranks_are_compared_when_they_are_the_question() {
    let folder = Folder::new();
    let [few, many] = [4, 6].map(|ranks| {
        let path = folder.path(&format!("{ranks}.json"));
        let line = "beff --transport sim --machine small --rings 2 --bandwidth-bytes 10000 --repetitions 1 -q";
        succeed(&format!("{line} -n {ranks} --out {path}"));
        path
    });
    let refused = run(&format!("compare {few} {many}"));
    assert!(refused.refusal().contains("not comparable"), "{}", refused.stderr);
    assert!(refused.stderr.contains("ranks: 4 on the first side, 6 on this one"), "{}", refused.stderr);
    let forced = succeed(&format!("compare {few} {many} --force")).stdout;
    assert!(forced.contains("NOT COMPARABLE: 6 (simulated): ranks"), "{forced}");
    let compared = succeed(&format!("compare {few} {many} --by ranks")).stdout;
    assert!(
        compared.contains("6 ranks on 6 nodes") && compared.contains("RandomlyOrderedRingLatency_usec"),
        "{compared}"
    );
}

#[test]
fn ranks_come_from_the_machine() {
    let shown = succeed("run --transport sim --machine small --dry-run").stdout;
    for expected in ["sim preset, 64 ranks on 64 nodes", "Simulated on the machine small", "ms of virtual time"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let shown = succeed("run --transport sim --machine small --ranks-per-node 2 --dry-run").stdout;
    assert!(shown.contains("128 ranks on 64 nodes") && shown.contains("n00010"), "{shown}");
    let shown = succeed("run --transport sim --machine lab --preset lab --dry-run").stdout;
    assert!(shown.contains("lab preset, 16 ranks on 16 nodes, seed") && shown.contains("3.60 s per test"), "{shown}");
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    refused(&[
        ("run --transport sim", "--transport sim needs --machine: one of crystal, malbec"),
        ("run --transport sim --machine nowhere.toml", "unknown machine 'nowhere.toml': choose from crystal, malbec"),
        ("run --machine small", "--machine is for --transport sim"),
        ("run --transport sim,tcp --machine small", "cannot be run beside tcp"),
        ("run --transport sim --machine small -n 65", "the machine small has room for 1 to 64"),
        (
            "run --transport sim --machine small --ranks-per-node 1025",
            "invalid number of ranks per node '1025': expected 1 to 1024 (--ranks-per-node)",
        ),
        (
            "run --transport sim --machine small --ranks-per-node 9223372036854775807",
            "invalid ranks per node 9223372036854775807: expected 1 to 1000000",
        ),
        ("run --transport sim --machine small -n 9223372036854775807", "the machine small has room for 1 to 64"),
        ("run --transport sim --machine small -n 1", "a job of one rank has nobody to talk to"),
        ("run --transport sim --machine small --stall-limit 5s", "--stall-limit is for ranks in real time"),
        ("run --transport sim --machine small --budget 1us", "expected 0.01 ms to one day"),
        ("run --preset sim", "--preset sim is for --transport sim"),
        ("congest --transport sim --machine small", "needs --duration"),
        ("lab run --transport sim --machine small", "the emulated cluster has no simulated network"),
        ("beff --transport sim --machine small -n 1 -q", "at least 2 ranks"),
    ]);
}

/// Machine files that once ran with plausible figures, or were accepted and panicked in the run.
#[test]
fn absurd_machine_files_are_refused_by_check_and_by_run() {
    let folder = Folder::new();
    let shown = folder.path("absurd.toml");
    let check_and_run = [
        format!("machine check {shown}"),
        format!("run --transport sim --machine {shown} -n 4 --budget 100us --placements 1 --canaries lat"),
    ];
    for (name, changes, expected) in [
        (
            "small",
            &[("latency = \"200 ns\"", "latency = \"99999999999 s\"")][..],
            "invalid switch.latency '99999999999 s': expected 0 s to 1 s",
        ),
        (
            "lab",
            // With four ports each it is 2^64 of them, which was none.
            &[("count = 16", "count = 4611686018427387904\nnics = 4")],
            "invalid nodes.count '4611686018427387904': expected 1 to 524288",
        ),
        (
            "malbec",
            // So were as many queues in two virtual channels.
            &[("classes = 2", "classes = 9223372036854775807"), ("kind = \"adaptive\"", "kind = \"minimal\"")],
            "invalid switch.classes '9223372036854775807': expected 1 to 15",
        ),
        (
            "crystal",
            &[
                ("groups = 2", "groups = 1048576"),
                ("rows = 6", "rows = 1048576"),
                ("columns = 16", "columns = 1048576"),
            ],
            "invalid topology.groups '1048576': expected 1 to 65535",
        ),
        (
            "crystal",
            &[("groups = 2", "groups = 65535"), ("rows = 6", "rows = 65535"), ("columns = 16", "columns = 65535")],
            "invalid topology '281462092005375 switches': expected at most 262144",
        ),
    ] {
        let text = changes.iter().fold(succeed(&format!("machine show {name}")).stdout, |text, (from, to)| {
            assert!(text.contains(from), "{name}: {from}");
            text.replacen(from, to, 1)
        });
        folder.write("absurd.toml", text);
        for line in &check_and_run {
            let outcome = run(line);
            assert!(outcome.refusal().contains(expected), "tailback {line}: {}", outcome.stderr);
            assert_eq!((outcome.stdout.as_str(), outcome.stderr.lines().count()), ("", 1), "{}", outcome.stderr);
        }
    }
    folder.write("absurd.toml", " ".repeat((1 << 20) + 1));
    for line in check_and_run.iter().map(String::as_str).chain(["machine check /dev/zero"]) {
        refused(&[(line, "invalid machine file: expected at most 1 MiB of text")]);
    }
}

#[test]
fn a_launcher_is_refused_once_and_by_name() {
    let binary = env!("CARGO_BIN_EXE_tailback");
    let outcome = run(&format!("launch -n 3 -- {binary} run {QUICK}"));
    let said = outcome.refusal();
    assert!(said.contains("--transport sim needs no launcher") && said.contains("tailback launch"), "{said}");
}

#[test]
fn machines_are_listed_checked_and_changed() {
    let listed = succeed("machine list").stdout;
    for name in ["crystal", "malbec", "osprey", "lab", "small", "roce", "fat-tree-1024"] {
        let checked = succeed(&format!("machine check {name}")).stdout;
        assert!(listed.contains(name) && checked.starts_with(&format!("{name}: ")), "{listed}{checked}");
        assert!(checked.contains("topology") && checked.contains("congestion control"), "{checked}");
    }
    let folder = Folder::new();
    let text = succeed("machine show small").stdout;
    let mine = text.replace("name = \"small\"", "name = \"mine\"").replace("count = 64", "count = 8");
    let mine = folder.write("mine.toml", mine);
    let (result, _) = result(&format!("network --transport sim --machine {mine} --budget 50us --canaries lat"));
    assert_eq!((&result["machine"]["name"], &result["system"]["ranks"]), (&"mine".into(), &8.into()));
    for (from, to, expected) in [
        ("count = 64", "count = 65", "nodes.count"),
        ("\"64 KiB\"", "\"64\"", "invalid size '64': expected a number from 0 and one of the units B, KiB"),
        ("kind = \"fat-tree\"", "kind = \"torus\"", "unknown variant `torus`"),
    ] {
        let broken = folder.write("mine.toml", text.replacen(from, to, 1));
        for line in ["machine check", "run --transport sim --machine"] {
            let outcome = run(&format!("{line} {broken}"));
            assert!(outcome.refusal().contains(expected), "{to}: {}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        }
    }
}

#[test]
fn an_interrupted_simulation_ends_in_order() {
    let folder = Folder::new();
    let line = "run --transport sim --machine small --budget 10s --placements 1 --blocks 1 --out";
    let mut job = Job::start(tailback(words(&format!("{line} {}", folder.path("result.json")))));
    let pid = job.pid();
    job.eventually("it simulates", || (common::cpu_ticks(pid) > 50).then_some(()));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("Interrupted:") && outcome.errors().is_empty(), "{outcome:?}");
    assert_eq!(folder.json("result.json")["interrupted"], true);
}

#[test]
fn alternatives_are_simulated_side_by_side() {
    let folder = Folder::new();
    let line = "simulate --machine small -n 16 --budget 300us --placements 3 --canaries lat -q";
    let change = "--what-if routing.kind=minimal,ecmp --what-if topology.spines=2";
    let shown = succeed(&format!("{line} {change} --keep {}", folder.path("kept"))).stdout;
    assert!(
        shown.starts_with("SIMULATED: no such network was measured.\n") && shown.contains("small as it is"),
        "{shown}"
    );
    assert!(shown.lines().count() <= 12 && shown.lines().all(|line| line.len() <= 100), "{shown}");
    for name in ["small", "routing.kind=minimal", "routing.kind=ecmp", "topology.spines=2"] {
        assert!(shown.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {shown}");
        assert_eq!(folder.json(&format!("kept/{name}.json"))["machine"]["simulated"], true, "{name}");
    }
    let tables = succeed(&format!("{line} {change} -v")).stdout;
    assert!(tables.contains("Compared with small (simulated)") && !tables.contains("NOT COMPARABLE"), "{tables}");
    for (change, expected) in [
        ("--what-if routing.kind=luck", "--what-if: small with routing.kind=luck"),
        ("--what-if routing.kind", "invalid change 'routing.kind': expected KEY=VALUE"),
        ("--what-if routing.kind=adaptive", "the machine small is like that already"),
        ("--what-if topology.spines=4 --out x.json", "--keep DIR"),
    ] {
        refused(&[(&format!("{line} {change}"), expected)]);
    }
    refused(&[("simulate --what-if routing.kind=ecmp", "simulate needs --machine")]);
}

#[test]
fn classes_by_role_keep_canaries_out_of_the_congestors_queues() {
    let line = |classes: &str| format!("run {CROWDED} --seed 1 {classes}");
    let loaded = |classes: &str| {
        let (file, _) = result(&line(classes));
        let tests = file["runs"][0]["tests"].as_array().unwrap();
        let test = tests.iter().find(|test| test["phase"] == "loaded").unwrap();
        (test["summary"]["avg"].as_f64().unwrap(), file)
    };
    let (together, _) = loaded("");
    let (apart, file) = loaded("--canary-class 0 --congestor-class 1");
    let (alike, _) = loaded("--traffic-class 1");
    assert!(apart < 0.9 * together, "{apart} us apart, {together} us together");
    assert!(alike > 1.1 * apart, "{alike} us in one class, whichever it is");
    let details = &file["runs"][0]["transport"]["details"];
    assert_eq!((details["canary class"].as_str(), details["congestor class"].as_str()), (Some("0"), Some("1")));
    for (wrong, said) in [
        (
            "--machine small --canary-class 2",
            "traffic class 2: the machine small has the classes 0, served first, to 1",
        ),
        ("--machine small --congestor-class dscp:46", "traffic class dscp:46: the machine small has the classes 0"),
        ("--machine crystal --traffic-class 1", "the machine crystal has one class, 0 (switch.classes in its file)"),
    ] {
        refused(&[(&format!("run --transport sim {wrong}"), said)]);
    }
}

#[test]
fn a_report_shows_queues_over_time_and_the_tree_of_the_worst_moment() {
    let folder = Folder::new();
    let [out, html] = ["a.json", "a.html"].map(|name| folder.path(name));
    succeed(&format!("run {CROWDED} --seed 1 --quiet --out {out}"));
    let file = folder.json("a.json");
    let queues = file["machine"]["queues"].as_array().unwrap();
    let of = |kind: &str| queues.iter().find(|of| of["phase"].as_str().unwrap().starts_with(kind)).unwrap();
    let looks = of("loaded")["looks"].as_array().unwrap();
    assert!((10..=200).contains(&looks.len()), "{} looks", looks.len());
    let worst = &of("loaded")["worst"];
    let peak = looks.iter().map(|look| look["queued_bytes"].as_u64().unwrap()).max().unwrap();
    // A tree that is a little worse than the one before is not drawn again.
    assert!(worst["queued_bytes"].as_u64().unwrap() > peak / 2, "{worst}");
    let ports = worst["ports"].as_array().unwrap();
    let root = ports.iter().find(|port| port["stalled"] == false).expect("an incast ends at a link that is busy");
    let fed = |port: &Value| {
        port["feeders"].as_array().unwrap().iter().any(|of| ports.iter().any(|p| p["port"] == of["port"]))
    };
    assert!(fed(root), "{root}");
    succeed(&format!("report {out} --out {html}"));
    let page = folder.text("a.html");
    let section = page.split("<section id=\"queues\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("Queues during lat 8 B"), "{section}");
    assert!(section.contains("Worst moment of loaded lat 8 B"), "{section}");
    assert!(section.contains(&root["port"].as_str().unwrap().replace("->", "-&gt;")), "{section}");
}

#[test]
fn a_congestor_by_itself_has_all_congestor_nodes_or_its_share() {
    let line = "run --transport sim --machine small -n 10 --canaries lat --budget 100us --placements 1 -q";
    let roles = |each: &str| -> Vec<[usize; 3]> {
        let (result, _) = result(&format!("{line} --congestors a2a=75,incast=25,{each}"));
        let count = |run: &Value, role: Value| {
            let nodes = run["placements"][0]["roles"].as_array().unwrap();
            nodes.iter().filter(|roles| roles[0] == role).count()
        };
        let of = |run| {
            [json!({"congestor": "a2a"}), json!({"congestor": "incast"}), json!("idle")].map(|role| count(run, role))
        };
        result["runs"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(roles("each"), [[8, 0, 0], [0, 8, 0], [6, 2, 0]]);
    assert_eq!(roles("each=share"), [[6, 0, 2], [0, 2, 6], [6, 2, 0]]);
    let few = format!("{line} -n 5 --congestors a2a,incast,each=share");
    refused(&[(&few, "incast has no node among all congestors, so none of its own")]);
}

#[test]
fn parts_of_the_load_take_turns_on_the_same_canaries() {
    let line =
        "run --transport sim --machine small -n 10 --canaries lat --budget 200us --placements 2 --congestors a2a";
    let (result, said) = result(&format!("{line} --load-fraction 25%,50%,100% --seed 4"));
    let runs = result["runs"].as_array().unwrap();
    let loads: Vec<&str> = runs.iter().map(|run| run["beside"].as_str().unwrap()).collect();
    assert_eq!(loads, ["25% load", "50% load", "100% load"]);
    assert_eq!(result["plan"]["load_fractions"], json!([0.25, 0.5, 1.0]));
    let nodes = |run: &Value, role: Value| -> Vec<usize> {
        let roles = run["placements"][0]["roles"].as_array().unwrap();
        (0..roles.len()).filter(|at| roles[*at][0] == role).collect()
    };
    let load = json!({"congestor": "a2a"});
    assert_eq!(runs.iter().map(|run| nodes(run, load.clone()).len()).collect::<Vec<_>>(), [2, 4, 8], "{said}");
    let [few, some, all] = &runs[..] else { panic!("three runs") };
    assert_eq!(
        (nodes(few, json!("canary")), nodes(some, json!("canary"))),
        (nodes(all, json!("canary")), nodes(all, json!("canary")))
    );
    assert!(
        nodes(few, load.clone()).iter().all(|node| nodes(some, load.clone()).contains(node)),
        "smaller loads are part of larger"
    );
    refused(&[
        (&format!("{line} --load-fraction 50%,50%"), "load fraction 0.5 is named twice"),
        (&format!("{line},each --load-fraction 50%,100%"), "several load fractions are for all congestors together"),
    ]);
}

#[test]
fn samples_of_every_ring_are_kept_where_that_is_asked_for() {
    let line =
        "run --transport sim --machine small -n 10 --canaries lat,bw-sync --budget 300us --placements 2 --seed 3";
    let (plain, _) = result(line);
    let (kept, _) = result(&format!("{line} --ring-histograms"));
    let rings = |file: &Value| -> Vec<usize> {
        let placements = file["runs"][0]["placements"].as_array().unwrap();
        let tests = placements.iter().flat_map(|of| of["tests"].as_array().unwrap().clone());
        tests.map(|test| test["rings"].as_array().map_or(0, Vec::len)).collect()
    };
    assert_eq!(rings(&plain), [0; 8]);
    let found = rings(&kept);
    assert!(found.len() == 8 && found.iter().all(|of| [3, 6].contains(of)), "{found:?}");
    // They are a second view of the same samples.
    assert_eq!(plain["runs"][0]["tests"], kept["runs"][0]["tests"]);
}
