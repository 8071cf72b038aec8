//! What a run shows: the canaries' distributions, and what the network counted meanwhile.
//!
//! A canary is the quantiles of its samples by time, on a logarithmic scale. A counter is a rate over all of its kind, and of ports
//! how that lies on them: which port or node counted is different in every placement, and other people's load is not placed by
//! our seed.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::assemble::{DROPS, by_kind};
use crate::engine::LoadState;
use crate::result::{CountersRecord, PhaseCounters, PlacementRates, ResultFile, Run, Test};
use crate::stats::{TimeView, Weight, variance};

/// The quantiles of a canary that are compared: the middle and both ends of what it usually meets.
const LEVELS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];
/// Packets are dropped many at a time, where a window meets a full queue: placements of one mix differ in their drops as counts of
/// bursts of 9 to 36 do (emulated cluster).
const BURST: f64 = 30.0;

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

/// What ports counted on one placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// How much a second, in the order of that.
    pub per_s: Vec<f64>,
    /// What comes at once, spread over the time that was counted: less than that is chance. None of what flows.
    pub burst: f64,
}

/// What one run shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// For each canary by name, the logarithms of its quantiles, each with its standard error over placements.
    pub canaries: BTreeMap<String, Vec<(f64, f64)>>,
    /// For each counter by name, how much a second.
    pub counters: BTreeMap<String, f64>,
    /// For each counter of ports, what it was on each placement; nothing in files before this was kept.
    pub ports: BTreeMap<String, Vec<Ports>>,
    /// Whether its load was dealt with its placements, so that their mean is what it does anywhere. Other people's lies where
    /// it lies.
    pub is_dealt: bool,
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
        let loaded = run.tests.iter().any(|test| test.phase == LoadState::Loaded);
        let state = if loaded { LoadState::Loaded } else { LoadState::Isolated };
        let tests: Vec<&Test> =
            run.tests.iter().filter(|test| test.phase == state && !test.kernel.is_application()).collect();
        let mut observed = Observed { is_dealt: loaded, ..Observed::default() };
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
            observed.ports = ports(&phases(file, state));
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
    variance(values).map_or(0.0, |variance| (variance / values.len() as f64).sqrt())
}

/// The phases of a state, emulated or simulated.
fn phases(file: &ResultFile, state: LoadState) -> Vec<&PhaseCounters> {
    let of_lab = file.lab.iter().flat_map(|lab| &lab.phases);
    let of_machine = file.machine.iter().flat_map(|machine| &machine.phases);
    let during = |phase: &&PhaseCounters| phase.phase.is(state);
    of_lab.chain(of_machine).filter(during).collect()
}

/// What ports did on each placement, over all phases.
fn ports(phases: &[&PhaseCounters]) -> BTreeMap<String, Vec<Ports>> {
    let mut placements: BTreeMap<u32, PlacementRates> = BTreeMap::new();
    for rates in phases.iter().flat_map(|phase| &phase.placements) {
        placements.entry(rates.placement).and_modify(|known| known.add(rates)).or_insert_with(|| rates.clone());
    }
    let mut ports: BTreeMap<String, Vec<Ports>> = BTreeMap::new();
    for PlacementRates { seconds, per_s, .. } in placements.into_values() {
        for (name, per_s) in per_s {
            let burst = if name.ends_with(DROPS) { BURST / seconds } else { 0.0 };
            ports.entry(name).or_default().push(Ports { per_s, burst });
        }
    }
    ports
}

fn counters(file: &ResultFile, run: &Run, state: LoadState, by: By) -> BTreeMap<String, f64> {
    let wall_s: f64 = run.tests.iter().filter(|test| test.phase == state).map(|test| test.wall_s).sum();
    let phases = phases(file, state);
    // Ports count from reading to reading; an older file says only how long its canaries measured.
    let seconds = phases.iter().map(|phase| phase.seconds).sum::<Option<f64>>().unwrap_or(wall_s);
    let mut rates = BTreeMap::new();
    for (name, amounts) in phases.iter().filter(|_| seconds > 0.0).flat_map(|phase| by_kind(&phase.ports)) {
        *rates.entry(name).or_insert(0.0) += amounts.iter().sum::<f64>() / seconds;
    }
    for row in file.counters.iter().flat_map(CountersRecord::rows) {
        let amount = ["bytes", "data", "octets"].iter().any(|word| row.counter.to_ascii_lowercase().contains(word));
        let wanted = row.source == "command" || by == By::Counters && (row.is_telling() || amount);
        let rate = if state == LoadState::Loaded { row.loaded_per_s } else { row.isolated_per_s };
        if let Some(rate) = rate.filter(|_| wanted) {
            *rates.entry(format!("{} {}", row.source, row.counter)).or_insert(0.0) += rate;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::lab::PortCounters;

    #[test]
    fn a_run_shows_its_load_where_it_has_one() {
        let file = synthetic::file("tcp", None, 8.0);
        let loaded = Observed::of(&file, By::Canaries).unwrap();
        let mut wild = file.clone();
        wild.runs[0].tests.retain(|test| test.phase == LoadState::Isolated);
        let calm = Observed::of(&wild, By::Canaries).unwrap();
        assert_eq!(loaded.canaries.keys().collect::<Vec<_>>(), calm.canaries.keys().collect::<Vec<_>>());
        for (name, quantiles) in &loaded.canaries {
            let (busy, quiet) = (quantiles[2].0, calm.canaries[name][2].0);
            assert!((busy - quiet - 8f64.ln()).abs() < 0.1, "{name}: {busy} and {quiet}");
            assert!(quantiles.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }
        assert!(loaded.counters.is_empty() && loaded.is_dealt && !calm.is_dealt);
        wild.runs[0].tests.clear();
        assert!(Observed::of(&wild, By::Network).unwrap_err().contains("no samples"));
        wild.runs.push(file.runs[0].clone());
        assert!(Observed::of(&wild, By::Network).unwrap_err().contains("2 runs"));
    }

    #[test]
    fn ports_are_seen_placement_by_placement() {
        let mut file = synthetic::file("tcp", None, 8.0);
        let ports = |bytes: [u64; 2]| {
            let port = |(from, bytes): (&str, u64)| PortCounters {
                from: from.into(),
                to: "leaf0".into(),
                bytes,
                packets: 0,
                queue: None,
                simulated: None,
            };
            ["h0", "h1"].into_iter().zip(bytes).map(port).collect::<Vec<_>>()
        };
        let phase = |name: &str, blocks: &[(u32, [u64; 2])]| {
            let mut phase = PhaseCounters { phase: name.into(), ports: ports([6, 6]), ..PhaseCounters::default() };
            blocks.iter().for_each(|(placement, bytes)| phase.add_block(*placement, 1.0, &ports(*bytes)));
            PhaseCounters { seconds: Some(2.0), ..phase }
        };
        let phases =
            vec![phase("isolated lat", &[(1, [7, 7])]), phase("loaded lat", &[(1, [5, 1]), (2, [0, 4]), (2, [6, 2])])];
        file.lab = Some(synthetic::lab(phases));
        let seen = Observed::of(&file, By::Network).unwrap();
        let bytes = Ports { per_s: vec![1.0, 5.0], burst: 0.0 };
        assert_eq!(seen.ports["ports of nodes, bytes"], [bytes.clone(), bytes]);
        assert_eq!(seen.counters["ports of nodes, bytes"], 6.0);
        file.lab.iter_mut().flat_map(|lab| &mut lab.phases).for_each(|phase| phase.placements.clear());
        let older = Observed::of(&file, By::Network).unwrap();
        assert!(older.ports.is_empty() && older.counters == seen.counters);
    }

    #[test]
    fn the_error_of_a_mean_needs_two() {
        assert_eq!(standard_error(&[3.0]), 0.0);
        assert!((standard_error(&[1.0, 3.0]) - 1.0).abs() < 1e-12);
    }
}
