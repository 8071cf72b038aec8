//! What a run shows: the canaries' distributions, and what the network counted meanwhile.
//!
//! A canary is the quantiles of its samples by time, on a logarithmic scale. A counter is a rate over all of its kind: which
//! port or node counted is different in every placement, and other people's load is not placed by our seed.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;

use crate::engine::Phase;
use crate::lab::PortCounters;
use crate::result::{CountersRecord, PhaseCounters, ResultFile, Run, Test};
use crate::stats::{TimeView, Weight};

/// The quantiles of a canary that are compared: the middle and both ends of what it usually meets.
const LEVELS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Canaries, and counters of the network itself: ports of an emulated or simulated one, and --counters-cmd
    #[default]
    Network,
    /// Canaries alone
    Canaries,
    /// Counters alone: of the network, and of the nodes, whose own load they count too
    Counters,
}

/// What one run shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// For each canary by name, the logarithms of its quantiles, each with its standard error over placements.
    pub canaries: BTreeMap<String, Vec<(f64, f64)>>,
    /// For each counter by name, how much a second.
    pub counters: BTreeMap<String, f64>,
}

impl Observed {
    /// What the only run of a file shows under load; where it has no congestors, whatever it met.
    pub fn of(file: &ResultFile, by: By) -> Result<Self, String> {
        let [run] = &file.runs[..] else {
            return Err(format!(
                "it has {} runs, over several networks or beside several loads: one is needed",
                file.runs.len()
            ));
        };
        let loaded = run.tests.iter().any(|test| test.phase == Phase::Loaded);
        let state = if loaded { Phase::Loaded } else { Phase::Isolated };
        let tests: Vec<&Test> =
            run.tests.iter().filter(|test| test.phase == state && !test.kernel.is_application()).collect();
        let mut observed = Observed::default();
        if by != By::Counters {
            let weight = |test: &Test| {
                file.plan.canaries.iter().find(|of| of.kernel == test.kernel).map(|of| file.plan.weight_of(of))
            };
            let shown = |test: &&Test| Some((test.title.clone(), quantiles(test, weight(test)?)?));
            observed.canaries = tests.iter().filter_map(shown).collect();
            if observed.canaries.is_empty() {
                return Err("it holds no samples of a canary".into());
            }
        }
        if by != By::Canaries {
            observed.counters = counters(file, run, state, by);
        }
        Ok(observed)
    }
}

fn quantiles(test: &Test, weight: Weight) -> Option<Vec<(f64, f64)>> {
    let logs = |histogram: &Histogram<u64>| -> Option<Vec<f64>> {
        let view = TimeView::of(histogram, weight)?;
        Some(LEVELS.iter().map(|&level| view.quantile_ns(level).max(1.0).ln()).collect())
    };
    let whole = logs(&test.samples()?)?;
    let batches = test.batches.iter().filter_map(|batch| logs(&batch.histogram.decode().ok()?));
    let batches: Vec<Vec<f64>> = batches.collect();
    let error = |level: usize| standard_error(&batches.iter().map(|batch| batch[level]).collect::<Vec<_>>());
    Some(whole.into_iter().enumerate().map(|(level, log)| (log, error(level))).collect())
}

/// Of a mean; nothing is known of a single value.
fn standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt()
}

fn counters(file: &ResultFile, run: &Run, state: Phase, by: By) -> BTreeMap<String, f64> {
    let wall_s: f64 = run.tests.iter().filter(|test| test.phase == state).map(|test| test.wall_s).sum();
    let of_lab = file.lab.iter().flat_map(|lab| &lab.phases);
    let of_machine = file.machine.iter().flat_map(|machine| &machine.phases);
    let during = |phase: &&PhaseCounters| phase.phase.split_once(' ').is_some_and(|(word, _)| word == state.word());
    let phases: Vec<&PhaseCounters> = of_lab.chain(of_machine).filter(during).collect();
    // Ports count from reading to reading; an older file says only how long its canaries measured.
    let seconds = phases.iter().map(|phase| phase.seconds).sum::<Option<f64>>().unwrap_or(wall_s);
    let ports: Vec<&PortCounters> = phases.iter().flat_map(|phase| &phase.ports).collect();
    let mut rates = if seconds > 0.0 { of_ports(&ports, seconds) } else { BTreeMap::new() };
    for row in file.counters.iter().flat_map(CountersRecord::rows) {
        let amount = ["bytes", "data", "octets"].iter().any(|word| row.counter.to_ascii_lowercase().contains(word));
        let wanted = row.source == "command" || by == By::Counters && (row.is_telling() || amount);
        let rate = if state == Phase::Loaded { row.loaded_per_s } else { row.isolated_per_s };
        if let Some(rate) = rate.filter(|_| wanted) {
            *rates.entry(format!("{} {}", row.source, row.counter)).or_insert(0.0) += rate;
        }
    }
    rates
}

/// What all ports of a kind did in a second: those into the network, those out of it, those between switches.
fn of_ports(ports: &[&PortCounters], seconds: f64) -> BTreeMap<String, f64> {
    let mut neighbours: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for port in ports {
        neighbours.entry(&port.from).or_default().insert(&port.to);
        neighbours.entry(&port.to).or_default().insert(&port.from);
    }
    // A switch has several neighbours, a node one.
    let is_node = |name: &str| neighbours.get(name).is_some_and(|of| of.len() == 1);
    let mut rates = BTreeMap::new();
    for port in ports {
        let kind = match (is_node(&port.from), is_node(&port.to)) {
            (true, _) => "ports of nodes",
            (_, true) => "ports to nodes",
            _ => "ports between switches",
        };
        let queue = port.queue.as_ref().map(|queue| ("drops", queue.drops as f64));
        let simulated = port.simulated.map(|of| ("stalled ns", of.stalled_ns as f64));
        for (what, amount) in [("bytes", port.bytes as f64)].into_iter().chain(queue).chain(simulated) {
            *rates.entry(format!("{kind}, {what}")).or_insert(0.0) += amount / seconds;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::QueueCounters;
    use crate::result::synthetic;

    fn port(from: &str, to: &str, bytes: u64, drops: u64) -> PortCounters {
        let queue = Some(QueueCounters { drops, ..QueueCounters::default() });
        PortCounters { from: from.into(), to: to.into(), bytes, packets: 0, queue, simulated: None }
    }

    #[test]
    fn a_run_shows_its_load_where_it_has_one() {
        let file = synthetic::file("tcp", None, 8.0);
        let loaded = Observed::of(&file, By::Canaries).unwrap();
        let mut wild = file.clone();
        wild.runs[0].tests.retain(|test| test.phase == Phase::Isolated);
        let calm = Observed::of(&wild, By::Canaries).unwrap();
        assert_eq!(loaded.canaries.keys().collect::<Vec<_>>(), calm.canaries.keys().collect::<Vec<_>>());
        for (name, quantiles) in &loaded.canaries {
            let (busy, quiet) = (quantiles[2].0, calm.canaries[name][2].0);
            assert!((busy - quiet - 8f64.ln()).abs() < 0.1, "{name}: {busy} and {quiet}");
            assert!(quantiles.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }
        assert!(loaded.counters.is_empty());
        wild.runs[0].tests.clear();
        assert!(Observed::of(&wild, By::Network).unwrap_err().contains("no samples"));
        wild.runs.push(file.runs[0].clone());
        assert!(Observed::of(&wild, By::Network).unwrap_err().contains("2 runs"));
    }

    #[test]
    fn ports_are_counted_by_where_they_are() {
        let ports = [
            port("h0", "leaf0", 100, 0),
            port("leaf0", "h0", 40, 7),
            port("h1", "leaf1", 20, 0),
            port("leaf0", "leaf1", 60, 2),
            port("leaf1", "leaf0", 1, 0),
        ];
        let rates = of_ports(&ports.iter().collect::<Vec<_>>(), 2.0);
        assert_eq!((rates["ports of nodes, bytes"], rates["ports to nodes, drops"]), (60.0, 3.5));
        assert_eq!((rates["ports between switches, bytes"], rates["ports between switches, drops"]), (30.5, 1.0));
    }

    #[test]
    fn the_error_of_a_mean_needs_two() {
        assert_eq!(standard_error(&[3.0]), 0.0);
        assert!((standard_error(&[1.0, 3.0]) - 1.0).abs() < 1e-12);
    }
}
