//! What a result keeps of what the hosts' own devices counted, phase by phase; and what views make of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::is_telling;
use crate::engine::{Phase, PhaseId};

/// Devices that are kept of a phase one by one; what the others counted is added up.
const MOST_DEVICES: usize = 4000;
/// Whose the sum of these is.
pub(super) const OTHERS: &str = "the others";
/// The source that ports of an emulated or simulated network are, when they are looked at beside devices.
pub const PORT: &str = "port";

/// What the devices of the job's nodes counted: adapters, interfaces, TCP, and a command of the user's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountersRecord {
    /// In the order in which phases first ran; a phase is the sum of its blocks and placements.
    pub phases: Vec<CountedPhase>,
}

/// What was counted in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct CountedPhase {
    pub phase: PhaseId,
    pub devices: Vec<DeviceCounters>,
}

/// What one device counted in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCounters {
    /// Its host.
    pub node: String,
    /// What kind of counters: `infiniband`, `net`, `cxi`, `tcp` or `command`.
    pub source: String,
    /// Its name; empty for what a host has once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Time between the readings, which stand around each block.
    pub seconds: f64,
    /// By the names they have there, in the units they have there. What did not move is left out, unless it would tell of
    /// congestion.
    pub counters: BTreeMap<String, f64>,
}

impl DeviceCounters {
    /// Its node and its own name.
    pub fn name(&self) -> String {
        format!("{} {}", self.node, self.device).trim_end().to_owned()
    }
}

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
    /// A phase, which is made where there was none.
    pub(super) fn phase(&mut self, phase: PhaseId) -> &mut CountedPhase {
        let at = self.phases.iter().position(|known| known.phase == phase).unwrap_or_else(|| {
            self.phases.push(CountedPhase { phase, devices: Vec::new() });
            self.phases.len() - 1
        });
        &mut self.phases[at]
    }

    /// Adds what a device counted in a block of a phase.
    pub fn add(&mut self, phase: impl Into<PhaseId>, of: DeviceCounters) {
        let devices = &mut self.phase(phase.into()).devices;
        let same = |known: &&mut DeviceCounters| {
            (&known.node, &known.source, &known.device) == (&of.node, &of.source, &of.device)
        };
        match devices.iter_mut().find(same) {
            Some(sum) => {
                sum.seconds += of.seconds;
                of.counters.into_iter().for_each(|(name, value)| *sum.counters.entry(name).or_insert(0.0) += value);
            }
            None => devices.push(of),
        }
    }

    /// The same without the phases of a single canary that are not among the `tests`, by state and title: they were cut
    /// short.
    #[must_use]
    pub fn of_complete(mut self, tests: &[(Phase, &str)]) -> Self {
        self.phases.retain(|counted| {
            let PhaseId { state, test, .. } = &counted.phase;
            let of_canary = matches!(state, Some(Phase::Isolated | Phase::Loaded)) && test != PhaseId::ALL_CANARIES;
            !of_canary || tests.iter().any(|(state, title)| counted.phase.is(*state) && test == title)
        });
        self
    }

    /// The same with no more devices than a file should hold.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        for phase in self.phases.iter_mut().filter(|phase| phase.devices.len() > MOST_DEVICES) {
            let rest = phase.devices.split_off(MOST_DEVICES);
            let mut sums: BTreeMap<String, (u32, DeviceCounters)> = BTreeMap::new();
            for of in rest {
                let node = OTHERS.to_owned();
                let empty = DeviceCounters {
                    node,
                    device: String::new(),
                    seconds: 0.0,
                    counters: BTreeMap::new(),
                    ..of.clone()
                };
                let (count, sum) = sums.entry(of.source.clone()).or_insert((0, empty));
                *count += 1;
                // Time goes by once for all: the mean is what their rate is over.
                sum.seconds += (of.seconds - sum.seconds) / f64::from(*count);
                of.counters.into_iter().for_each(|(name, value)| *sum.counters.entry(name).or_insert(0.0) += value);
            }
            phase.devices.extend(sums.into_values().map(|(_, sum)| sum));
        }
        self
    }

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
                Some(Phase::Isolated) => true,
                Some(Phase::Loaded | Phase::Congest) => false,
                Some(Phase::Alone) | None => continue,
            };
            let during = phase.phase.in_any_state();
            for (source, counter, rate, most_on) in phase.rates() {
                let known = rows.iter().position(|row| {
                    (&row.during, row.source.as_str(), row.counter.as_str()) == (&during, source, counter)
                });
                let at = known.unwrap_or_else(|| {
                    let (during, source, counter) = (during.clone(), source.to_owned(), counter.to_owned());
                    let (isolated_per_s, loaded_per_s, most_on) = (None, None, String::new());
                    rows.push(CounterRow { during, source, counter, isolated_per_s, loaded_per_s, most_on });
                    rows.len() - 1
                });
                if isolated {
                    rows[at].isolated_per_s = Some(rate);
                } else {
                    rows[at].loaded_per_s = Some(rate);
                }
                if !isolated || rows[at].most_on.is_empty() {
                    rows[at].most_on = most_on;
                }
            }
        }
        // A counter that one of two phases does not have did not move in it.
        let has = |state, during: &PhaseId| {
            let wanted = PhaseId { state: Some(state), ..during.clone() };
            self.phases.iter().any(|phase| phase.phase == wanted)
        };
        for row in &mut rows {
            let (isolated, loaded) = (has(Phase::Isolated, &row.during), has(Phase::Loaded, &row.during));
            row.isolated_per_s = row.isolated_per_s.or(isolated.then_some(0.0));
            row.loaded_per_s = row.loaded_per_s.or(loaded.then_some(0.0));
        }
        rows
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_that_were_cut_short_are_left_out() {
        let mut record = CountersRecord::default();
        let names =
            ["isolated Lat (8 B)", "loaded Lat (8 B)", "isolated Allreduce", "loaded all canaries", "alone Incast"];
        for name in names {
            record.add(name, device("n1", 1.0, &[("drops", 1.0)]));
        }
        let record = record.of_complete(&[(Phase::Isolated, "Lat (8 B)")]);
        let kept: Vec<String> = record.phases.iter().map(|of| of.phase.to_string()).collect();
        assert_eq!(kept, [names[0], names[3], names[4]]);
    }

    fn device(node: &str, seconds: f64, counters: &[(&str, f64)]) -> DeviceCounters {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        DeviceCounters {
            node: node.into(),
            source: "infiniband".into(),
            device: "mlx5_0 port 1".into(),
            seconds,
            counters,
        }
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
}
