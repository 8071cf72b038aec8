//! Results with known answers, for the tests of every view.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use tailback_transport::{Description, Nanos};

use super::RunBuilder;
use crate::engine::{EncodedTally, Load, LoadState, Measured, Slices, Tally};
use crate::kernel::Canary;
use crate::lab::LabSpec;
use crate::plan::{BURST_OFF, BURST_ON, Burst, Plan, Preset, SweptValue};
use crate::result::{
    Build, BurstEffect, BurstFigure, BurstLoad, BurstPoint, BurstRecord, Command, DeviceCounters, HostFacts, LabRecord,
    Node, NodeRole, PhaseCounters, PlacementRecord, ResultFile, SCHEMA_VERSION, System, TransportFacts,
};
use crate::stats::{Direction, Interval, MAX_BATCHES, Samples};

/// How many placements every file has.
const PLACEMENTS: u32 = 5;

/// Samples of 15 passes around `base_ns`: a fixed, skewed pattern, passes a little uneven.
pub fn samples(base_ns: f64, direction: Direction) -> Samples {
    let mut samples = Samples::growing(MAX_BATCHES);
    for pass in 0..15u32 {
        let scale = base_ns * (1.0 + 0.02 * (f64::from(pass * 7 % 5) - 2.0));
        let values: Vec<f64> = (0..200).map(|i| scale * (1.0 + (f64::from(i) / 150.0).powi(4))).collect();
        values.iter().for_each(|&ns| samples.record(ns as u64));
        samples.close_pass(Some(direction.figure(values.iter().sum::<f64>() / values.len() as f64)));
    }
    samples
}

/// A load test of GPCNeT's three canaries whose every figure is `impact` times worse under load.
pub fn file(backend: &str, protocol: Option<&str>, impact: f64) -> ResultFile {
    file_of(backend, protocol, |_| impact)
}

/// A job whose load came in such bursts (on, off): from each onset on lat is 40 times as slow, until 3 ms after the burst.
pub fn bursts(points: &[(&str, &str)]) -> ResultFile {
    let ms = |text: &str| text.trim_end_matches("ms").parse::<f64>().expect("ms") * 1e-3;
    let mut file = file_of("tcp", None, |_| 4.0);
    let plain = file.runs.remove(0);
    for (on, off) in points {
        let burst = Burst { on_s: ms(on), off_s: ms(off) };
        let value = |key: &str, text: &str| SweptValue { key: key.into(), value: text.into(), number: Some(ms(text)) };
        let mut run = plain.clone();
        if points.len() > 1 {
            run.point = vec![value(BURST_ON, on), value(BURST_OFF, off)];
        }
        let part = |at: u32| {
            let since_us = 1e6 * burst.period_s() * (f64::from(at) + 0.5) / 100.0;
            let us = if since_us < 1e6 * burst.on_s + 3_000.0 { 80.0 } else { 2.0 };
            BurstPoint { since_us, samples: 400, p50_us: Some(us), p99_us: Some(1.5 * us) }
        };
        let figure =
            |value: f64| Some(BurstFigure { value, interval: Some(Interval { low: 0.9 * value, high: 1.1 * value }) });
        let effect = |idle_us: f64| BurstEffect {
            idle_us,
            peak_us: figure(40.0 * idle_us),
            is_felt: true,
            felt_us: figure(100.0),
            recovery_us: figure(3_000.0).filter(|_| burst.off_s > 3e-3),
        };
        let kernel = file.plan.congestors[0].kernel;
        let record = BurstRecord {
            burst,
            bursts: 360,
            clock_error_us: 1.5,
            loads: vec![BurstLoad { kernel, iterations_per_burst: 12.0, mib_per_burst: 3.0 }],
            curve: (0..100).map(part).collect(),
            p50: effect(2.0),
            p99: effect(3.0),
        };
        run.tests.retain(|test| test.kernel == Canary::Lat);
        run.tests
            .iter_mut()
            .filter(|test| test.phase == LoadState::Loaded)
            .for_each(|test| test.burst = Some(record.clone()));
        file.runs.push(run);
    }
    file.command = Command::Burst;
    file
}

/// The same, with an impact for each kernel.
pub fn file_of(backend: &str, protocol: Option<&str>, impact: impl Fn(Canary) -> f64) -> ResultFile {
    let plan = Plan { placements: PLACEMENTS, blocks: 2, ..Preset::Gpcnet.plan() };
    let mut details = BTreeMap::new();
    protocol.map(|name| details.insert("protocol".to_owned(), name.to_owned()));
    let description = Description { backend: backend.into(), library: "synthetic 1.0".into(), details };
    let mut builder = RunBuilder::new(&plan, TransportFacts::of(description, None), None);
    for place in 0..PLACEMENTS {
        let mut phases = Vec::new();
        // Placements differ a little, evenly around the impact, and never quite alike on two backends.
        let apart = f64::from(place) - f64::from(PLACEMENTS - 1) / 2.0;
        let own = f64::from((place * 7 + backend.len() as u32 + protocol.map_or(0, str::len) as u32) % 5) - 2.0;
        let effect = (0.04 * apart + 0.005 * own).exp();
        for (at, test) in plan.canaries.iter().enumerate() {
            let loaded = tally(test.kernel, impact(test.kernel) * effect, plan.congestors.len());
            let isolated = tally(test.kernel, 1.0, 0);
            let order = [(LoadState::Isolated, &isolated), (LoadState::Loaded, &loaded)];
            for (block, (phase, tally)) in order.into_iter().chain([order[1], order[0]]).enumerate() {
                phases.push(Measured {
                    phase,
                    canary: Some(at),
                    congestor: None,
                    block,
                    clock_error_ns: 0,
                    tally: tally.clone(),
                });
            }
        }
        let roles = system(&plan).nodes.into_iter().map(|node| node.roles).collect();
        let kind = "canaries anywhere".to_owned();
        builder.add_phases(PlacementRecord { seed: u64::from(place), kind, roles, tests: Vec::new() }, &phases);
    }
    let run = builder.finish();
    ResultFile {
        schema_version: SCHEMA_VERSION,
        build: Build::this(),
        command: Command::Run,
        label: None,
        started: "2026-01-02T03:04:05Z".into(),
        duration_s: 60.0,
        seed: 1,
        system: system(&plan),
        plan,
        runs: vec![run],
        lab: None,
        machine: None,
        counters: None,
        models: None,
        calibration: None,
        tuning: None,
        sweep: None,
        notes: vec!["a note with <angle> & ampersand".into()],
        interrupted: false,
        failed: None,
        imported: None,
    }
}

/// Results as files: `r0.json` and so on.
pub fn named(files: impl IntoIterator<Item = ResultFile>) -> Vec<(PathBuf, ResultFile)> {
    files.into_iter().enumerate().map(|(at, file)| (PathBuf::from(format!("dir/r{at}.json")), file)).collect()
}

/// A lab whose ports did this.
pub fn lab(phases: Vec<PhaseCounters>) -> LabRecord {
    LabRecord { spec: LabSpec::default(), mode: "root".into(), hosts: Vec::new(), phases, control: None }
}

/// What a device of a node counted; its kind and its name.
pub fn device(node: &str, (source, device): (&str, &str), seconds: f64, counters: &[(&str, f64)]) -> DeviceCounters {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    DeviceCounters { node: node.into(), source: source.into(), device: device.into(), seconds, counters }
}

/// An interface.
pub const ETH0: (&str, &str) = ("net", "eth0");
/// An adapter.
pub const MLX5: (&str, &str) = ("infiniband", "mlx5_0 port 1");

/// A block of a canary that is `times` slower than it could be, beside so many congestors.
fn tally(kernel: Canary, times: f64, congestors: usize) -> EncodedTally {
    let direction = kernel.info().direction;
    let base = if direction == Direction::Latency { 2000.0 } else { 1_000_000.0 };
    let canary = Some(samples(base * times, direction));
    let loads = vec![Some(load(times)); congestors];
    (&Tally { canary, wall_ns: 100_000_000, loads, ..Tally::default() }).into()
}

fn load(times: f64) -> Load {
    // Its iterations are the same in every load, and making them is most of the work.
    static ITERATIONS: LazyLock<Samples> = LazyLock::new(|| samples(2e6, Direction::Bandwidth).flatten());
    let mut slices = Slices::new(Nanos(100_000_000));
    slices.add(Nanos(1_000_000_000), 1e9 / times);
    let samples = ITERATIONS.clone();
    Load { ranks: 2, bytes: (1e9 / times) as u64, seconds: 2.0, samples, slices, steady: true }
}

fn system(plan: &Plan) -> System {
    let role = |node: usize| match node {
        0 | 1 => NodeRole::Canary,
        _ => NodeRole::Congestor(plan.congestors[(node - 2) % plan.congestors.len()].kernel),
    };
    let nodes =
        (0..10).map(|node| Node { name: format!("node{node}"), ranks: vec![node as u32], roles: vec![role(node)] });
    let host = HostFacts { name: "node0".into(), kernel: "Linux".into(), cpu: None, cores: 4, memory_mib: None };
    System {
        hosts: None,
        ranks: 10,
        launcher: "test".into(),
        nodes: nodes.collect(),
        host,
        environment: BTreeMap::new(),
        ends: Vec::new(),
        ports: None,
        watch: None,
        memory: None,
        activity: Vec::new(),
    }
}
