//! What the ports of a lab did in each phase, from readings between phases.

use std::time::Instant;

use crate::engine::PLACEMENT;
use crate::lab::{self, PortCounters};
use crate::result::PhaseCounters;

/// Counters at the beginning of each phase.
#[derive(Default)]
pub(super) struct Recording {
    begun: Vec<(String, Instant, Vec<PortCounters>)>,
    problem: Option<String>,
}

impl Recording {
    /// A phase begins; which of its blocks, on which placement, is all the same to the ports. Nothing is read any more once
    /// that has failed.
    pub(super) fn begin(&mut self, phase: &str, read: impl FnOnce() -> lab::Result<Vec<PortCounters>>) {
        if self.problem.is_some() {
            return;
        }
        let phase = phase.split_once(PLACEMENT).map_or(phase, |(phase, _)| phase);
        match read() {
            Ok(counters) => self.begun.push((phase.to_owned(), Instant::now(), counters)),
            Err(problem) => self.problem = Some(problem.to_string()),
        }
    }

    /// What happened from each phase's beginning to the next one's, or to the last reading.
    pub(super) fn phases(
        &self,
        read: impl FnOnce() -> lab::Result<Vec<PortCounters>>,
    ) -> Result<Vec<PhaseCounters>, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let last = read().map_err(|problem| problem.to_string())?;
        let last = (Instant::now(), last);
        let ends = self.begun.iter().skip(1).map(|(_, at, counters)| (at, counters)).chain([(&last.0, &last.1)]);
        let mut phases: Vec<PhaseCounters> = Vec::new();
        for ((phase, begun, before), (ended, after)) in self.begun.iter().zip(ends) {
            let seconds = ended.duration_since(*begun).as_secs_f64();
            let ports: Vec<PortCounters> =
                after.iter().zip(before).map(|(after, before)| after.since(before)).collect();
            // A phase is measured in several blocks and placements: what matters is what it did to the ports in all.
            match phases.iter_mut().find(|known| known.phase == *phase) {
                Some(known) => {
                    *known.seconds.get_or_insert(0.0) += seconds;
                    known.ports.iter_mut().zip(&ports).for_each(|(sum, port)| sum.add(port));
                }
                None => phases.push(PhaseCounters { phase: phase.clone(), seconds: Some(seconds), ports }),
            }
        }
        Ok(phases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(bytes: u64) -> lab::Result<Vec<PortCounters>> {
        let port =
            PortCounters { from: "h0".into(), to: "leaf0".into(), bytes, packets: 0, queue: None, simulated: None };
        Ok(vec![port])
    }

    #[test]
    fn blocks_of_a_phase_are_one_phase() {
        let mut recording = Recording::default();
        for (phase, bytes) in [("isolated lat", 10), ("lat under load", 11), ("isolated lat", 100)] {
            recording.begin(&format!("{phase}{PLACEMENT}1 of 2"), || reading(bytes));
        }
        let phases = recording.phases(|| reading(103)).unwrap();
        let seen: Vec<(&str, u64)> = phases.iter().map(|of| (of.phase.as_str(), of.ports[0].bytes)).collect();
        assert_eq!(seen, [("isolated lat", 4), ("lat under load", 89)]);
    }

    #[test]
    fn a_reading_that_failed_is_said_and_not_passed_over() {
        let failed = || Err(lab::Error::Usage("no tc here".into()));
        let mut recording = Recording::default();
        assert_eq!(recording.phases(failed).unwrap_err(), "no tc here");
        recording.begin("isolated lat", failed);
        recording.begin("lat under load", || panic!("read again"));
        assert_eq!(recording.phases(|| reading(1)).unwrap_err(), "no tc here");
    }
}
