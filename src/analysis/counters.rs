//! What was counted, counter by counter: over all nodes, and over the devices that have it.
//!
//! Devices of the nodes and ports of an emulated or simulated network have one form here: ports are kept as such, and become
//! devices when they are asked for, of two sources: `endpoint port`, between a node and its switch, and `router port`, between
//! switches.

use std::collections::{BTreeMap, BTreeSet};

use crate::assemble::entry;
use crate::counters::is_telling;
use crate::engine::{LoadState, PhaseId};
use crate::lab::{PortCounters, PortKind};
use crate::result::{CountedPhase, CountersRecord, DeviceCounters, OTHERS, PhaseCounters, ResultFile, Run, distinct};

/// A counter of one kind of device over all nodes, isolated and under load.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterRow {
    /// What was measured meanwhile.
    pub during: PhaseId,
    /// What kind of counter.
    pub source: String,
    /// Its name.
    pub counter: String,
    /// A second, without load; absent where there is no such phase.
    pub isolated_per_s: Option<f64>,
    /// A second, under load, likewise.
    pub loaded_per_s: Option<f64>,
    /// The node and device that counted most of it.
    pub most_on: String,
}

impl CounterRow {
    /// Under load over isolated; absent where nothing was counted isolated.
    pub fn ratio(&self) -> Option<f64> {
        self.isolated_per_s.filter(|rate| *rate > 0.0).and_then(|rate| Some(self.loaded_per_s? / rate))
    }

    /// Whether it is of what congestion does, or what the user asked for.
    pub fn is_telling(&self) -> bool {
        self.source == "command" || is_telling(&self.counter)
    }

    /// Orders rows by how much more was counted under load; one event a second more or less is none.
    pub fn rise(&self) -> f64 {
        (self.loaded_per_s.unwrap_or(0.0) + 1.0) / (self.isolated_per_s.unwrap_or(0.0) + 1.0)
    }

    /// Whether anything was counted.
    pub fn moved(&self) -> bool {
        self.isolated_per_s.unwrap_or(0.0) + self.loaded_per_s.unwrap_or(0.0) > 0.0
    }
}

impl CountersRecord {
    /// Every counter that moved, over all nodes, by what was measured meanwhile.
    pub fn rows(&self) -> Vec<CounterRow> {
        let mut rows = self.all_rows();
        rows.retain(CounterRow::moved);
        rows
    }

    /// The same with those that did not, as far as they are kept.
    pub fn all_rows(&self) -> Vec<CounterRow> {
        let mut rows: Vec<CounterRow> = Vec::new();
        for phase in &self.phases {
            let isolated = match phase.phase.state {
                Some(LoadState::Isolated) => true,
                Some(LoadState::Loaded | LoadState::Congest) => false,
                Some(LoadState::Alone) | None => continue,
            };
            let during = phase.phase.in_any_state();
            for (source, counter, rate, most_on) in phase.rates() {
                let is = |row: &CounterRow| (&row.during, &*row.source, &*row.counter) == (&during, source, counter);
                let row = entry(&mut rows, is, || {
                    let (during, source, counter) = (during.clone(), source.to_owned(), counter.to_owned());
                    let (isolated_per_s, loaded_per_s, most_on) = (None, None, String::new());
                    CounterRow { during, source, counter, isolated_per_s, loaded_per_s, most_on }
                });
                *if isolated { &mut row.isolated_per_s } else { &mut row.loaded_per_s } = Some(rate);
                if !isolated || row.most_on.is_empty() {
                    row.most_on = most_on;
                }
            }
        }
        // A counter that one of two phases does not have did not move in it.
        let has = |state, during: &PhaseId| {
            let wanted = PhaseId { state: Some(state), ..during.clone() };
            self.phases.iter().any(|phase| phase.phase == wanted)
        };
        for row in &mut rows {
            let (isolated, loaded) = (has(LoadState::Isolated, &row.during), has(LoadState::Loaded, &row.during));
            row.isolated_per_s = row.isolated_per_s.or(isolated.then_some(0.0));
            row.loaded_per_s = row.loaded_per_s.or(loaded.then_some(0.0));
        }
        rows
    }

    /// Source and name of the counters that tell of congestion and moved, those that rose most first.
    pub fn telling(&self) -> Vec<(String, String)> {
        let mut rows: Vec<CounterRow> = self.rows().into_iter().filter(CounterRow::is_telling).collect();
        rows.sort_by(|a, b| b.rise().total_cmp(&a.rise()));
        distinct(rows.into_iter().map(|CounterRow { source, counter, .. }| (source, counter)))
    }

    /// One counter in every phase, over the devices that have it in any of them.
    pub fn spreads(&self, source: &str, counter: &str) -> Vec<CounterSpread> {
        // The sum of those that had no room is no device.
        let of_source = |of: &&DeviceCounters| of.source == source && of.node != OTHERS;
        let having: BTreeSet<String> = self
            .phases
            .iter()
            .flat_map(|phase| phase.devices.iter().filter(of_source))
            .filter(|of| of.counters.contains_key(counter))
            .map(DeviceCounters::name)
            .collect();
        let spread = |phase: &CountedPhase| {
            // What is not there did not move.
            let mut devices: BTreeMap<String, f64> = having.iter().map(|name| (name.clone(), 0.0)).collect();
            for of in phase.devices.iter().filter(of_source).filter(|of| of.seconds > 0.0) {
                if let (Some(rate), Some(value)) = (devices.get_mut(&of.name()), of.counters.get(counter)) {
                    *rate = value / of.seconds;
                }
            }
            CounterSpread::of(&phase.phase, devices.into_iter().collect())
        };
        let mut spreads: Vec<CounterSpread> = self.phases.iter().map(spread).collect();
        beside_isolated(&mut spreads);
        spreads
    }
}

impl CountedPhase {
    /// Counters over all devices of a kind: kind, name, a second, and where most of it was.
    fn rates(&self) -> Vec<(&str, &str, f64, String)> {
        let mut sums: BTreeMap<(&str, &str), (f64, f64, String)> = BTreeMap::new();
        for of in self.devices.iter().filter(|of| of.seconds > 0.0) {
            for (name, value) in &of.counters {
                let rate = value / of.seconds;
                let (sum, most, on) = sums.entry((&of.source, name)).or_default();
                *sum += rate;
                if rate > *most {
                    (*most, *on) = (rate, of.name());
                }
            }
        }
        sums.into_iter().map(|((source, name), (sum, _, on))| (source, name, sum, on)).collect()
    }
}

/// A counter in one phase, over all devices that have it.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSpread {
    /// What was measured, and in which state.
    pub phase: PhaseId,
    /// What each device counted a second, most first.
    pub devices: Vec<(String, f64)>,
    /// Median over devices.
    pub median: f64,
    /// Mean over devices.
    pub mean: f64,
    /// The 95th percentile over devices, between the two next to it.
    pub p95: f64,
    /// The mean over that of the isolated phase of the same canary; absent where there is none, or where nothing was
    /// counted in it.
    pub times_isolated: Option<f64>,
}

impl CounterSpread {
    fn of(phase: &PhaseId, mut devices: Vec<(String, f64)>) -> Self {
        devices.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mean = devices.iter().map(|of| of.1).sum::<f64>() / devices.len().max(1) as f64;
        let at = |index: f64| devices.get(index as usize).map_or(0.0, |of| of.1);
        let above = |share: f64| {
            let place = share * devices.len().saturating_sub(1) as f64;
            at(place.floor()) + (at(place.ceil()) - at(place.floor())) * place.fract()
        };
        let (median, p95) = (above(0.5), above(0.05));
        CounterSpread { phase: phase.clone(), devices, median, mean, p95, times_isolated: None }
    }

    /// The same in units of `one`, which are beside nothing else.
    #[must_use]
    pub(super) fn over(mut self, one: f64) -> Self {
        self.devices.iter_mut().for_each(|(_, value)| *value /= one);
        let (median, mean, p95) = (self.median / one, self.mean / one, self.p95 / one);
        CounterSpread { median, mean, p95, times_isolated: None, ..self }
    }

    /// The device that counted most.
    pub fn most(&self) -> Option<&(String, f64)> {
        self.devices.first()
    }

    /// The device that counted least.
    pub fn least(&self) -> Option<&(String, f64)> {
        self.devices.last()
    }

    /// Whether it is of a phase without load.
    pub fn is_isolated(&self) -> bool {
        self.phase.is(LoadState::Isolated)
    }
}

/// Sets every mean beside that of the isolated phase of the same canary.
pub fn beside_isolated(spreads: &mut [CounterSpread]) {
    let isolated: Vec<(PhaseId, f64)> =
        spreads.iter().filter(|of| of.is_isolated()).map(|of| (of.phase.in_any_state(), of.mean)).collect();
    for of in spreads.iter_mut().filter(|of| of.phase.state.is_some() && !of.is_isolated()) {
        let during = of.phase.in_any_state();
        let base = isolated.iter().find(|(isolated, mean)| *isolated == during && *mean > 0.0);
        of.times_isolated = base.map(|(_, mean)| of.mean / mean);
    }
}

impl ResultFile {
    /// Everything that was counted, phase by phase. Ports of phases whose length is not known, as in older files, are left
    /// out.
    pub fn all_counted(&self) -> CountersRecord {
        let mut record = self.counters.clone().unwrap_or_default();
        let of_lab = self.lab.iter().flat_map(|lab| &lab.phases);
        for phase in of_lab.chain(self.machine.iter().flat_map(|machine| &machine.phases)) {
            if let Some(seconds) = phase.seconds.filter(|seconds| *seconds > 0.0) {
                record.phase(&phase.phase).devices.extend(phase.ports.iter().map(|port| device(port, seconds)));
            }
        }
        record
    }

    /// The same of one run alone, its phases as if there were no other.
    pub fn counted_over(&self, run: &Run) -> CountersRecord {
        let mut record = self.all_counted();
        if self.runs.len() > 1 {
            let over = Some(run.label());
            record.phases.retain(|phase| phase.phase.over == over);
            record.phases.iter_mut().for_each(|phase| phase.phase.over = None);
        }
        record
    }
}

impl PhaseCounters {
    /// One figure of every port of a kind that has it; a second where the phase's length is known.
    pub fn spread(&self, of: PortKind, value: impl Fn(&PortCounters) -> Option<f64>, per_s: bool) -> CounterSpread {
        let over = self.seconds.filter(|seconds| per_s && *seconds > 0.0).unwrap_or(1.0);
        let port = |port: &PortCounters| Some((format!("{} to {}", port.from, port.to), value(port)? / over));
        let ports = self.ports.iter().filter(|port| port.kind() == of);
        CounterSpread::of(&self.phase, ports.filter_map(port).collect())
    }
}

/// A port as a device of whoever sends through it.
fn device(port: &PortCounters, seconds: f64) -> DeviceCounters {
    let mut counters: BTreeMap<String, f64> = BTreeMap::new();
    let mut count = |name: &str, value: u64| _ = counters.insert(name.to_owned(), value as f64);
    count("bytes", port.bytes);
    count("packets", port.packets);
    if let Some(queue) = &port.queue {
        count("drops", queue.drops);
        count("waits", queue.overlimits);
        count("ecn_marks", port.marks());
    }
    if let Some(of) = port.simulated {
        count("stalled_ns", of.stalled_ns);
    }
    let (node, source) = (port.from.clone(), format!("{} port", port.kind().word()));
    let device = format!("to {}", port.to);
    DeviceCounters { node, source, device, seconds, counters }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{MOST_DEVICES, synthetic};
    use crate::lab::QueueCounters;

    #[test]
    fn phases_that_were_cut_short_are_left_out() {
        let mut record = CountersRecord::default();
        let names =
            ["isolated Lat (8 B)", "loaded Lat (8 B)", "isolated Allreduce", "loaded all canaries", "alone Incast"];
        for name in names {
            record.add(name, device("n1", 1.0, &[("drops", 1.0)]));
        }
        let record = record.of_complete(&[(LoadState::Isolated, "Lat (8 B)")]);
        let kept: Vec<String> = record.phases.iter().map(|of| of.phase.key()).collect();
        assert_eq!(kept, [names[0], names[3], names[4]]);
    }

    fn device(node: &str, seconds: f64, counters: &[(&str, f64)]) -> DeviceCounters {
        synthetic::device(node, synthetic::MLX5, seconds, counters)
    }

    #[test]
    fn blocks_add_up_and_nodes_do_in_rates() {
        let mut record = CountersRecord::default();
        for node in ["a", "b"] {
            for _block in 0..2 {
                record.add("isolated all canaries", device(node, 2.0, &[("port_xmit_wait", 10.0), ("idle", 0.0)]));
            }
        }
        record.add("loaded all canaries", device("a", 1.0, &[("port_xmit_wait", 50.0), ("out_of_sequence", 3.0)]));
        record.add("loaded all canaries", device("b", 1.0, &[("port_xmit_wait", 450.0)]));
        record.add("alone a2a", device("b", 1.0, &[("port_xmit_wait", 9.0)]));
        assert_eq!(record.phases[0].devices.len(), 2);
        assert_eq!(
            (record.phases[0].devices[0].seconds, record.phases[0].devices[0].counters["port_xmit_wait"]),
            (4.0, 20.0)
        );
        let rows = record.rows();
        let [wait, order] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((wait.isolated_per_s, wait.loaded_per_s, wait.ratio()), (Some(10.0), Some(500.0), Some(50.0)));
        assert_eq!(wait.most_on, "b mlx5_0 port 1");
        assert_eq!((order.isolated_per_s, order.loaded_per_s, order.ratio()), (Some(0.0), Some(3.0), None));
        assert!(wait.is_telling() && wait.rise() > order.rise());
    }

    #[test]
    fn more_devices_than_a_file_should_hold_are_added_up() {
        let mut record = CountersRecord::default();
        let devices = (0..MOST_DEVICES + 10).map(|node| device(&format!("n{node}"), 2.0, &[("drops", 4.0)]));
        record.phases.push(CountedPhase { phase: "loaded lat".into(), devices: devices.collect() });
        let before = record.rows();
        let record = record.within_limits();
        assert_eq!(record.phases[0].devices.len(), MOST_DEVICES + 1);
        let after = record.rows();
        assert!((before[0].loaded_per_s.unwrap() - after[0].loaded_per_s.unwrap()).abs() < 1e-6, "{after:?}");
    }

    fn counted(node: &str, counter: &str, value: f64) -> DeviceCounters {
        synthetic::device(node, synthetic::ETH0, 2.0, &[(counter, value)])
    }

    #[test]
    fn devices_make_median_mean_p95_and_extremes_beside_the_isolated_phase() {
        let mut record = CountersRecord::default();
        for node in 0..21 {
            record.add("isolated lat", counted(&format!("n{node}"), "rx_dropped", 10.0));
            record.add("loaded lat", counted(&format!("n{node}"), "rx_dropped", 2.0 * f64::from(node)));
        }
        record.add("loaded lat", counted(OTHERS, "rx_dropped", 1e9));
        record.add("alone a2a", counted("n0", "rx_bytes", 1.0));
        let spreads = record.spreads("net", "rx_dropped");
        let [calm, busy, alone] = &spreads[..] else { panic!("{spreads:?}") };
        assert_eq!((calm.mean, calm.p95, calm.times_isolated), (5.0, 5.0, None));
        assert_eq!((busy.median, busy.mean, busy.p95, busy.times_isolated), (10.0, 10.0, 19.0, Some(2.0)));
        assert_eq!(busy.most(), Some(&("n20 eth0".to_owned(), 20.0)));
        assert_eq!(busy.least(), Some(&("n0 eth0".to_owned(), 0.0)));
        assert_eq!((alone.devices.len(), alone.mean, alone.times_isolated), (21, 0.0, None), "it did not move there");
    }

    #[test]
    fn ports_are_a_source_of_the_same_record() {
        let queue = Some(QueueCounters { drops: 30, overlimits: 8, ..QueueCounters::default() });
        let (from, to) = ("leaf0".to_owned(), "h1".to_owned());
        let ports = vec![PortCounters { from, to, bytes: 100, packets: 7, queue, simulated: None }];
        let phase = |phase: &str, seconds| PhaseCounters {
            phase: phase.into(),
            seconds,
            ports: ports.clone(),
            placements: Vec::new(),
        };
        let phases = vec![phase("loaded lat", Some(2.0)), phase("loaded allreduce", None)];
        let mut file = synthetic::file("tcp", None, 2.0);
        file.lab = Some(synthetic::lab(phases));
        let record = file.all_counted();
        assert_eq!(record.phases.len(), 1, "a phase of unknown length has no rates");
        let row = record.rows().into_iter().find(|row| row.counter == "drops").expect("drops");
        assert_eq!((row.source.as_str(), row.most_on.as_str()), ("endpoint port", "leaf0 to h1"));
        assert_eq!(row.loaded_per_s, Some(15.0));
        assert!(row.is_telling());
    }

    #[test]
    fn a_run_among_several_has_its_own_phases() {
        let mut file = synthetic::file("libfabric", Some("eager"), 2.0);
        file.runs.extend(synthetic::file("libfabric", Some("put"), 4.0).runs);
        let mut record = CountersRecord::default();
        for (over, drops) in [("eager", 1.0), ("put", 2.0)] {
            record.add(format!("loaded lat over libfabric, {over}"), counted("n0", "rx_dropped", drops));
        }
        file.counters = Some(record);
        let own = file.counted_over(&file.runs[1]);
        let [phase] = &own.phases[..] else { panic!("{own:?}") };
        assert_eq!((phase.phase.to_string().as_str(), phase.devices[0].counters["rx_dropped"]), ("loaded lat", 2.0));
    }
}
