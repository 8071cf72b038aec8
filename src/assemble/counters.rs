//! What the devices of the job's nodes counted, added up block by block.

use std::collections::BTreeMap;

use super::entry;
use crate::engine::{LoadState, PhaseId};
use crate::result::{CountedPhase, CountersRecord, DeviceCounters, OTHERS};

/// Devices that are kept of a phase one by one; what the others counted is added up.
pub(crate) const MOST_DEVICES: usize = 4000;

impl CountersRecord {
    /// A phase, which is made where there was none.
    pub(crate) fn phase(&mut self, phase: &PhaseId) -> &mut CountedPhase {
        entry(
            &mut self.phases,
            |known| known.phase == *phase,
            || CountedPhase { phase: phase.clone(), devices: Vec::new() },
        )
    }

    /// Adds what a device counted in a block of a phase.
    pub fn add(&mut self, phase: impl Into<PhaseId>, of: DeviceCounters) {
        let devices = &mut self.phase(&phase.into()).devices;
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
    pub fn of_complete(mut self, tests: &[(LoadState, &str)]) -> Self {
        self.phases.retain(|counted| {
            let PhaseId { state, test, .. } = &counted.phase;
            let of_canary =
                matches!(state, Some(LoadState::Isolated | LoadState::Loaded)) && test != PhaseId::ALL_CANARIES;
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
}
