use std::path::PathBuf;

use super::*;
use crate::assemble::synthetic;
use crate::lab::{PortCounters, QueueCounters};
use crate::models::beff::{Beff, Settings, Spread};
use crate::models::contention;
use crate::models::hpcc::{Check, Hpcc};
use crate::models::maxrate::{self, Observation, Values};
use crate::result::{
    Command, ContentionResult, CountersRecord, EdgeResult, GraphResult, KnownBy, LabRecord, MaxRateResult,
    ModelResults, NodePorts, PhaseCounters, RegimeResult, ResultFile,
};
use crate::stats::Interval;

fn files(count: usize) -> Vec<(PathBuf, ResultFile)> {
    synthetic::named((0..count).map(|at| synthetic::file("tcp", None, 1.5 + at as f64)))
}

/// Every opened element is closed, in order: enough of an HTML check to catch a lost tag.
fn check_nesting(html: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    // Signs of a script are no tags.
    let html = html.replace(include_str!("page.js"), "");
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().expect("split gives at least one part");
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().expect("likewise");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing {tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name) && !tag.starts_with('?') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn a_page_is_whole_and_asks_nothing_of_a_network() {
    let files = files(2);
    let html = Report::new(&files, true).html();
    check_nesting(&html);
    let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "@import", "url(", "src="] {
        assert!(!without_namespace.contains(word), "{word}");
    }
    assert_eq!(html.matches("<script").count(), 1);
    assert!(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"));
    for id in [
        "run",
        "why",
        "impact",
        "distributions",
        "percentiles",
        "spread",
        "load",
        "nodes",
        "comparison",
        "numbers",
        "how",
        "guide",
    ] {
        assert!(html.contains(&format!("<section id=\"{id}\"")), "{id}");
        assert!(html.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
    assert!(html.contains("a note with &lt;angle&gt; &amp; ampersand"));
    // Every plot tells what it shows to those who cannot see it.
    assert!(html.matches("<svg").count() >= 10);
    assert_eq!(html.matches("<svg").count(), html.matches("role=\"img\" aria-label=\"").count());
}

#[test]
fn plots_stand_alone_under_names_of_their_own() {
    let files = files(2);
    let plots = Report::new(&files, false).plots();
    // The overview; of three canaries: impact and distribution of both runs, percentiles of each; load and nodes of each file.
    assert_eq!(plots.len(), 1 + 3 + 3 + 6 + 2 + 2);
    let mut ids: Vec<&str> = plots.iter().map(|plot| plot.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), plots.len());
    for plot in &plots {
        let svg = plot.standalone();
        check_nesting(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", plot.id);
        assert!(svg.contains("<title>"), "{}", plot.id);
        assert!(plot.data.csv().lines().count() > 1, "{}", plot.id);
    }
}

#[test]
fn runs_share_an_axis_and_loads_of_a_job_have_a_panel_each() {
    let panels = |files: &[(PathBuf, ResultFile)]| -> Vec<String> {
        let plots = Report::new(files, false).distributions();
        assert_eq!(plots.len(), 3, "one of each canary");
        let svg = plots[0].standalone();
        assert!(svg.contains("class=\"mean line0\"") && svg.contains("class=\"mark line0\""), "mean and p99: {svg}");
        let csv = plots[0].data.csv();
        let rows = csv.lines().skip(1).map(|line| line.splitn(3, ',').take(2).collect::<Vec<_>>().join(" "));
        crate::result::distinct(rows)
    };
    let mut files = files(2);
    assert_eq!(panels(&files), ["idle r0", "idle r1", "loaded r0", "loaded r1"]);
    for ((_, file), ranks) in files.iter_mut().zip([1, 8]) {
        file.system.ports = Some(NodePorts { per_node: 1, known_by: KnownBy::User });
        file.system.ranks = 10 * ranks;
    }
    assert_eq!(panels(&files)[..2], ["idle 1 ranks per port", "idle 8 ranks per port"]);
    let mut file = synthetic::file("tcp", None, 3.0);
    file.runs.extend(synthetic::file("tcp", None, 9.0).runs);
    for (run, load) in file.runs.iter_mut().zip(["a2a", "incast"]) {
        run.beside = Some(load.to_owned());
    }
    assert_eq!(panels(&synthetic::named([file])), ["idle ", "loaded by a2a ", "loaded by incast "]);
}

#[test]
fn the_verdict_and_its_plot_come_before_all_else() {
    let page = |impacts: &[f64]| {
        let files = synthetic::named(impacts.iter().map(|impact| synthetic::file("tcp", None, *impact)));
        Report::new(&files, false).html()
    };
    let html = page(&[3.0]);
    assert!(html.contains("<p class=\"verdict strong\"><strong>STRONG CONGESTION</strong> "), "{html}");
    let order = [
        "class=\"verdict",
        "<figure id=\"overview\"",
        "Every test: idle, loaded, time added",
        "<nav",
        "id=\"run\"",
        "id=\"numbers\"",
    ];
    let places = order.map(|what| html.find(what).unwrap_or_else(|| panic!("{what}")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(page(&[1.0]).contains("<p class=\"verdict none\"><strong>NO CONGESTION</strong>"));
    // Of many, the worst is said first, and all of them are said.
    let many = page(&[1.0, 1.5, 20.0, 3.0, 1.0]);
    check_nesting(&many);
    let first = many.find("<p class=\"verdict severe\"><strong>SEVERE CONGESTION</strong> r2: ").unwrap();
    assert!(first < many.find("the worst of 5").unwrap());
    assert_eq!(many.matches("<p class=\"verdict ").count(), 1 + 5);
}

#[test]
fn what_may_not_be_reported_is_said_and_not_drawn_as_an_answer() {
    let mut files = files(1);
    for test in files[0].1.runs.iter_mut().flat_map(|run| &mut run.tests) {
        test.load.iter_mut().for_each(|load| load.delivered_bytes = 0);
    }
    let html = Report::new(&files, false).html();
    check_nesting(&html);
    assert!(html.contains("<p class=\"verdict unsaid\"><strong>CANNOT SAY</strong> load too weak: lat 8 B: "));
    assert_eq!(html.matches("class=\"dot unsaid\"").count(), 3);
    assert!(html.contains("<summary>Not reportable</summary><ul><li>lat 8 B: "));
}

#[test]
fn data_of_a_plot_is_what_the_result_says() {
    let files = files(1);
    let report = Report::new(&files, false);
    let overview = report.plots().remove(0);
    assert_eq!(overview.id, "overview");
    let csv = overview.data.csv();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("test,impact,low,high,verdict"));
    let run = &files[0].1.runs[0];
    let answer = run.answers().next().unwrap();
    let impact = answer.impact.unwrap();
    let interval = impact.interval.unwrap();
    let expected = format!("lat 8 B,{},{},{},MILD CONGESTION", impact.factor, interval.low, interval.high);
    assert_eq!(lines.next(), Some(expected.as_str()));
    // Shares of a distribution add up to one in both states.
    let distribution = report.distributions().remove(0).data.csv();
    for column in [2, 3] {
        let shares =
            distribution.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse::<f64>().unwrap());
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9, "{distribution}");
    }
    assert!(
        report
            .html()
            .contains("download=\"overview.csv\" href=\"data:text/csv;charset=utf-8,test,impact,low,high,verdict%0A")
    );
}

#[test]
fn labels_are_whole_however_long_they_are() {
    let long = "a-name-that-somebody-gave-to-a-run-of-the-fourteenth-of-november-on-the-big-machine-with-everything-on";
    let mut file = synthetic::file("tcp", None, 2.0);
    let mut other = synthetic::file("tcp", None, 6.0).runs.remove(0);
    file.runs[0].beside = Some("a2a+incast+bcast+another-one".into());
    other.beside = Some("incast".into());
    file.runs.push(other);
    let files = vec![(PathBuf::from(format!("{long}.json")), file.clone()), (PathBuf::from("b.json"), study())];
    for plot in Report::new(&files, true).plots() {
        let svg = plot.standalone();
        assert!(!svg.contains('…'), "{}", plot.id);
        let texts = svg.split("<text ").skip(1).map(|part| part.split(['>', '<']).nth(1).unwrap());
        // A letter has six units or more.
        texts.for_each(|text| assert!(text.chars().count() <= 73, "{}: {text}", plot.id));
    }
}

#[test]
fn twenty_files_stay_small() {
    let one = files(1).remove(0).1;
    let files = synthetic::named(vec![one; 20]);
    let html = Report::new(&files, true).html();
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
}

#[test]
fn results_without_samples_or_load_have_a_page_too() {
    let mut files = files(1);
    for run in &mut files[0].1.runs {
        run.impacts.clear();
        run.tests.iter_mut().for_each(|test| {
            (test.histogram, test.summary) = (None, None);
            test.batches.clear();
            test.load.clear();
        });
    }
    files[0].1.system.nodes.clear();
    check_nesting(&Report::new(&files, false).html());
}

fn lab() -> LabRecord {
    let port = |at: u64, times: u64| PortCounters {
        from: format!("h{at}"),
        to: "leaf0".into(),
        bytes: (at * times) << 20,
        packets: at,
        queue: Some(QueueCounters {
            bytes: at,
            packets: at,
            drops: at * (times - 1),
            overlimits: at,
            ..QueueCounters::default()
        }),
        simulated: None,
    };
    let phase = |name: &str, times| PhaseCounters {
        phase: name.into(),
        ports: (0..12).map(|at| port(at, times)).collect(),
        ..PhaseCounters::default()
    };
    let phases = vec![phase("isolated lat", 1), phase("loaded lat", 50)];
    synthetic::lab(phases)
}

#[test]
fn ports_of_a_lab_are_violins_with_a_table() {
    let mut files = files(1);
    files[0].1.lab = Some(lab());
    let report = Report::new(&files, false);
    let html = report.html();
    check_nesting(&html);
    assert!(html.contains("<section id=\"ports\"") && html.contains("h11 to leaf0, loaded lat: 539.0 packets"));
    assert_eq!(report.ports().len(), 3, "sent, dropped, waits");
    assert!(html.contains("<summary>r0: ports</summary>"));
    assert!(
        html.contains(
            "2 leaf switches, links 200 Mbit/s, spine 100 Mbit/s, queues 128 KiB, cubic, retransmission timeout at least 50 ms, root"
        ),
        "what it was"
    );
}

#[test]
fn counters_of_nodes_are_violins_with_median_mean_and_extremes() {
    let mut files = files(2);
    for (at, (_, file)) in files.iter_mut().enumerate() {
        let mut record = CountersRecord::default();
        for (phase, times) in [("isolated lat", 1.0), ("loaded lat", 10.0 * (at as f64 + 1.0))] {
            for node in 0..21 {
                let counted = [("rx_dropped", times * f64::from(node)), ("rx_bytes", 1e6 * times)];
                record.add(phase, synthetic::device(&format!("n{node:02}"), synthetic::ETH0, 1.0, &counted));
            }
        }
        file.counters = Some(record);
    }
    let report = Report::new(&files, false);
    assert_eq!(report.counters().len(), 2, "one of each file: bytes do not tell of congestion");
    let html = report.html();
    check_nesting(&html);
    assert!(html.contains("<section id=\"counters\"") && !html.contains("NaN"));
    let told = "loaded lat: median 100.0, mean 100.0 (10.0x idle), p95 190.0, minimum 0.000, maximum 200.0 at n20 eth0";
    assert!(html.contains(told), "what the first file's violin shows");
    assert!(html.contains("n20 eth0, loaded lat: 200.0 per second</title>"), "a dot tells whose it is");
    assert!(html.contains("counters that indicate congestion, over the devices of all nodes"), "the same as a table");
    assert!(html.contains("r1 idle</th>") && html.contains("<td>2.00x</td>"), "and side by side");
}

#[test]
fn rates_of_ports_are_beside_those_of_the_isolated_phase() {
    let mut files = files(1);
    let mut lab = lab();
    (lab.phases[0].seconds, lab.phases[1].seconds) = (Some(1.0), Some(2.0));
    files[0].1.lab = Some(lab);
    let html = Report::new(&files, false).html();
    // 0 to 11 MiB in one second, and 50 times that in two.
    assert!(html.contains(
        "loaded lat: median 137.5, mean 137.5 (25.0x idle), p95 261.2, minimum 0.000, maximum 275.0 at h11 to leaf0"
    ));
    assert!(html.contains("MiB per second"));
    // Drops are 0 idle; bytes are told in multiples of their quiet mean, 5.5 MiB a second.
    assert!(html.contains("Counters by condition") && html.contains("times the quiet mean of 5.767M per second"));
    assert!(html.contains("loaded, r0: median 25.00, mean 25.00, p95 47.50, minimum 0.000, maximum 50.00"));
}

#[test]
fn published_jobs_are_those_of_as_many_ranks_per_port() {
    let mut files = files(2);
    let page = |files: &[(PathBuf, ResultFile)]| Report::new(files, true).html();
    assert!(
        page(&files).contains("with 16 to 24 ranks per port") && page(&files).contains("Summit, 4500 nodes, 21 ranks")
    );
    for (_, file) in &mut files {
        file.system.ranks = 40;
        file.system.ports = Some(NodePorts { per_node: 1, known_by: KnownBy::User });
    }
    let html = page(&files);
    check_nesting(&html);
    assert!(html.contains("nearest to the 4 of this result") && html.contains("4, with 1 a node, as given"));
    assert!(
        html.contains("Summit, 4500 nodes, 4 ranks per port (published)") && !html.contains("4500 nodes, 21 ranks")
    );
    files[0].1.system.ports = None;
    assert!(page(&files).contains("with 16 to 24 ranks per port"), "not all of them are known");
}

fn study() -> ResultFile {
    let truth = Values { latency: 2e-5, first: 1e9, further: 1e9, node: Some(2.5e9) };
    let model = maxrate::Model::MaxRate;
    let cells = (1..=4usize).flat_map(|pairs| (8..20).map(move |power| (pairs, 1usize << power)));
    let observations: Vec<Observation> =
        cells.map(|(pairs, bytes)| Observation { pairs, bytes, seconds: truth.seconds(model, pairs, bytes) }).collect();
    let weighting = maxrate::Weighting::InverseSize;
    let sizes: Vec<usize> = (8..20).map(|power| 1 << power).collect();
    let regimes = vec![RegimeResult::fitted(&observations, &sizes, weighting).unwrap()];
    let settings = maxrate::Settings { largest: 1 << 19, repetitions: 1, one_way: true, ..Default::default() };
    let edge = |source: &str| EdgeResult {
        source: source.into(),
        destination: "d".into(),
        message: None,
        penalties: vec![2.0],
        predicted: 2.0,
        measured_s: Some(0.021),
        multiple_interval: Some(Interval { low: 1.9, high: 2.4 }),
        measured_penalty: Some(2.1),
        penalty_interval: Some(Interval { low: 1.9, high: 2.4 }),
    };
    let reference_interval = Some(Interval { low: 0.009, high: 0.011 });
    let graph = |edges| GraphResult {
        name: "in".into(),
        reference_s: 0.01,
        reference_interval,
        took: None,
        edges,
        looked_up: None,
    };
    let spread = Spread { min: 1.0, avg: 2.0, max: 3.0 };
    let mut file = synthetic::file("tcp", None, 2.0);
    file.command = Command::Maxrate;
    file.runs[0].tests.clear();
    file.runs[0].impacts.clear();
    file.models = Some(ModelResults {
        maxrate: Some(MaxRateResult {
            settings,
            observations,
            took: None,
            regimes,
            between: Vec::new(),
            thresholds: Vec::new(),
            halos: Vec::new(),
        }),
        contention: Some(ContentionResult {
            bytes: 1000,
            model: contention::Model::Text,
            learned_from: None,
            graphs: vec![graph(vec![edge("a"), edge("b")]), graph(vec![edge("a<"), edge("b"), edge("b")])],
        }),
        beff: Some(Beff {
            settings: Settings { bandwidth_bytes: 2000, ..Settings::brief() },
            pairs: 1,
            complete_repetitions: Some(3),
            random_rings: Some(1),
            latency_took: None,
            bandwidth_took: None,
            ping_pong_latency_us: spread,
            ping_pong_bandwidth_gb_per_s: spread,
            natural_ring_latency_us: 1.0,
            natural_ring_bandwidth_gb_per_s: 1.0,
            random_ring_latency_us: 1.0,
            random_ring_bandwidth_gb_per_s: 1.0,
            intervals: [("MaxPingPongLatency_usec".to_owned(), Interval { low: 2.5, high: 3.6 })].into(),
        }),
        hpcc: Some(hpcc()),
        map: Some(crate::analysis::map::tests::map(4, |_, _| 1.0, |_, _| 10.0)),
    });
    file
}

fn hpcc() -> Hpcc {
    let figures = [
        ("HPL_Tflops", 0.5),
        ("PTRANS_GBs", 3.0),
        ("StarSTREAM_Triad", 11.0),
        ("RandomlyOrderedRingBandwidth_GBytes", 2.0),
        ("RandomlyOrderedRingLatency_usec", 1.5),
    ];
    let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
    let checks = vec![Check::new("HPL", "scaled residual", 0.25, 16.0)];
    Hpcc { figures, checks, links_on_node: Some(0.5), ..Hpcc::default() }
}

#[test]
fn studies_are_plotted_and_told() {
    let files = vec![(PathBuf::from("s.json"), study()), (PathBuf::from("t.json"), study())];
    let report = Report::new(&files, false);
    let html = report.html();
    check_nesting(&html);
    for text in [
        ": 3 (R_N / R_C = 2.50)",
        "R_N MB/s",
        "MaxPingPongLatency_usec",
        "Max-rate model, large",
        "2.100 [1.900, 2.400]",
        "-4.8 [-16.7, +5.3]",
        "0.010000 [0.009000, 0.011000] s",
        "3.000 [2.500, 3.600]",
        "random rings between nodes / HPL",
        "2.50e-1",
        "HPL 100%, PTRANS 100%",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(html.contains("<h1>Congestion report: 2 studies</h1>"));
    let mixed = vec![files[0].clone(), (PathBuf::from("r.json"), synthetic::file("tcp", None, 1.5))];
    assert!(Report::new(&mixed, false).html().contains("<h1>Congestion report: 1 run, 1 study</h1>"));
    // For each file: rates by size and by pairs, six maps, two graphs with their times, a scatter, errors by size, two of HPCC's,
    // three maps of nodes; of both, the last three.
    assert_eq!(report.studies().len(), 2 * (2 + 6 + 4 + 1 + 1 + 2 + 3) + 3);
    assert!(report.plots().iter().all(|plot| !plot.standalone().contains("NaN")));
}

#[test]
fn studies_stand_beside_what_the_papers_print() {
    let mut file = study();
    let contention = file.models.as_mut().unwrap().contention.as_mut().unwrap();
    contention.graphs[0].name = "graph-a".into();
    (contention.graphs[0].edges[0].source, contention.graphs[0].edges[0].destination) = ("0".into(), "1".into());
    let files = vec![(PathBuf::from("s.json"), file)];
    let html = Report::new(&files, true).html();
    check_nesting(&html);
    for text in ["Blue Waters (Cray XE6) (published)", "5500", "graph-a, 0&gt;1", "-0.5"] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!Report::new(&files, false).html().contains("Blue Waters"));
}

#[test]
fn studies_with_senseless_numbers_have_a_page_too() {
    let mut file = study();
    let models = file.models.as_mut().unwrap();
    let maxrate = models.maxrate.as_mut().unwrap();
    maxrate.observations.iter_mut().step_by(2).for_each(|seen| seen.seconds = 0.0);
    maxrate.observations[1] = Observation { pairs: usize::MAX, bytes: usize::MAX, seconds: 1e300 };
    maxrate.observations[2] = Observation { pairs: 0, bytes: 0, seconds: 0.0 };
    maxrate.regimes[0].fits.iter_mut().for_each(|fit| fit.pair_bytes_per_s.value = 0.0);
    models.contention.as_mut().unwrap().graphs[0].reference_s = 0.0;
    models.beff.as_mut().unwrap().ping_pong_bandwidth_gb_per_s.min = 0.0;
    models.hpcc.as_mut().unwrap().figures.insert("HPL_Tflops".into(), 0.0);
    models.hpcc.as_mut().unwrap().checks[0].value = None;
    let files = vec![(PathBuf::from("s.json"), file.clone()), (PathBuf::from("t.json"), file)];
    let html = Report::new(&files, false).html();
    check_nesting(&html);
    assert!(!html.contains("NaN"));
    assert!(!crate::output::study(&files[0].1).contains("NaN"));
}
