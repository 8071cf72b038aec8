//! What the ports of a lab did in each phase, from readings at its bounds.
//!
//! Between phases nothing loads the network, but others may: what is counted then is no phase's. Where this program started
//! the ranks, the process that did so keeps the record; in a job that someone else's launcher started on the hosts of a
//! lab, rank 0 does ([`EnclosingLab`]).

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::show::handed_over;
use crate::engine::PhaseId;
use crate::lab::{self, Lab, PortCounters};
use crate::result::{LabRecord, PhaseCounters, ResultFile};

/// What the ports did in the phases so far.
#[derive(Default)]
pub(crate) struct Recording {
    phases: Vec<PhaseCounters>,
    begun: Option<(PhaseId, Reading)>,
    problem: Option<String>,
}

/// All ports at some time.
struct Reading {
    at: Instant,
    ports: Vec<PortCounters>,
}

impl Reading {
    fn take(read: impl FnOnce() -> lab::Result<Vec<PortCounters>>) -> Result<Self, String> {
        let started = Instant::now();
        let ports = read().map_err(|problem| problem.to_string())?;
        // Host after host is read: the middle is as far from the first as from the last.
        Ok(Reading { at: started + started.elapsed() / 2, ports })
    }
}

impl Recording {
    /// A phase begins, and the one before ends, if nobody said so. Nothing is read any more once that has failed.
    pub(crate) fn begin(&mut self, phase: &PhaseId, read: impl FnOnce() -> lab::Result<Vec<PortCounters>>) {
        if self.problem.is_some() {
            return;
        }
        match Reading::take(read) {
            Ok(reading) => {
                self.until(&reading);
                self.begun = Some((phase.clone(), reading));
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// The phase under way ends.
    pub(crate) fn end(&mut self, read: impl FnOnce() -> lab::Result<Vec<PortCounters>>) {
        if self.problem.is_some() || self.begun.is_none() {
            return;
        }
        match Reading::take(read) {
            Ok(reading) => self.until(&reading),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// What happened in each phase, over all its blocks and placements; the one under way ends.
    pub(crate) fn phases(
        &mut self,
        read: impl FnOnce() -> lab::Result<Vec<PortCounters>>,
    ) -> Result<Vec<PhaseCounters>, String> {
        self.end(read);
        self.problem.clone().map_or_else(|| Ok(self.phases.clone()), Err)
    }

    /// Adds what happened in the phase under way until this reading.
    fn until(&mut self, after: &Reading) {
        let Some((phase, before)) = self.begun.take() else { return };
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        let ports: Vec<PortCounters> =
            after.ports.iter().zip(&before.ports).map(|(after, before)| after.since(before)).collect();
        let (phase, placement) = phase.on_any_placement();
        let known = PhaseCounters::among(&mut self.phases, &phase);
        known.add_block(placement, seconds, &ports);
        if known.ports.is_empty() {
            known.ports = ports;
        } else {
            known.ports.iter_mut().zip(&ports).for_each(|(sum, port)| sum.add(port));
        }
    }
}

/// What rank 0 finds around it.
pub(crate) enum EnclosingLab {
    /// No lab, or not for this rank to tell.
    Nothing,
    /// A lab that cannot be found from here, and why.
    Unknown(String),
    Lab(Box<Mutex<(Lab, Recording)>>),
}

impl EnclosingLab {
    /// What `root` finds; where the process that started it keeps the record, only if it needs that itself.
    pub(crate) fn find(root: bool, needed: bool) -> Self {
        if !root || (handed_over().is_some() && !needed) {
            return EnclosingLab::Nothing;
        }
        match Lab::around() {
            None => EnclosingLab::Nothing,
            Some(Ok(lab)) => EnclosingLab::Lab(Box::new(Mutex::new((lab, Recording::default())))),
            Some(Err(error)) => EnclosingLab::Unknown(error.to_string()),
        }
    }

    /// A phase is about to begin: nothing is measured yet.
    pub(crate) fn begin(&self, phase: &PhaseId) {
        if let EnclosingLab::Lab(watched) = self {
            let (lab, recording) = &mut *watched.lock().unwrap_or_else(PoisonError::into_inner);
            recording.begin(phase, || lab.counters());
        }
    }

    /// It is over, and nothing is measured any more.
    pub(crate) fn end(&self) {
        if let EnclosingLab::Lab(watched) = self {
            let (lab, recording) = &mut *watched.lock().unwrap_or_else(PoisonError::into_inner);
            recording.end(|| lab.counters());
        }
    }

    /// Adds to a result what is known, and what is not.
    pub(crate) fn complete(&self, file: &mut ResultFile) {
        match self {
            EnclosingLab::Nothing => {}
            EnclosingLab::Unknown(why) => file.notes.push(format!("it ran inside a lab that is not recorded: {why}")),
            EnclosingLab::Lab(watched) => {
                let (lab, recording) = &mut *watched.lock().unwrap_or_else(PoisonError::into_inner);
                file.notes.extend(lab.notes().iter().cloned());
                let phases = recording.phases(|| lab.counters()).unwrap_or_else(|why| {
                    file.notes.push(format!("the counters of the lab's ports could not be read by rank 0: {why}"));
                    Vec::new()
                });
                file.lab = Some(LabRecord::of(lab, phases));
            }
        }
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
        for (phase, bytes) in [("isolated lat", 10), ("loaded lat", 11), ("isolated lat", 100)] {
            recording.begin(&format!("{phase}, placement 1 of 2").into(), || reading(bytes));
        }
        recording.begin(&"isolated lat, placement 2 of 2".into(), || reading(103));
        let phases = recording.phases(|| reading(110)).unwrap();
        let seen: Vec<(String, u64)> = phases.iter().map(|of| (of.phase.key(), of.ports[0].bytes)).collect();
        assert_eq!(seen, [("isolated lat".to_owned(), 11), ("loaded lat".to_owned(), 89)]);
        let placements = |phase: usize| phases[phase].placements.iter().map(|of| of.placement).collect::<Vec<_>>();
        assert_eq!((placements(0), placements(1)), (vec![1, 2], vec![1]));
    }

    #[test]
    fn what_happens_between_phases_is_of_none() {
        let mut recording = Recording::default();
        recording.begin(&"isolated lat".into(), || reading(10));
        recording.end(|| reading(12));
        recording.end(|| panic!("nothing is under way"));
        recording.begin(&"loaded lat".into(), || reading(100));
        recording.end(|| reading(105));
        let phases = recording.phases(|| panic!("nothing is under way")).unwrap();
        assert_eq!(phases.iter().map(|of| of.ports[0].bytes).collect::<Vec<_>>(), [2, 5]);
    }

    #[test]
    fn a_reading_that_failed_is_said_and_not_passed_over() {
        let failed = || Err(lab::Error::Usage("no tc here".into()));
        let mut recording = Recording::default();
        recording.begin(&"isolated lat".into(), || reading(1));
        assert_eq!(recording.phases(failed).unwrap_err(), "no tc here");
        let mut recording = Recording::default();
        recording.begin(&"isolated lat".into(), failed);
        recording.begin(&"loaded lat".into(), || panic!("read again"));
        assert_eq!(recording.phases(|| reading(1)).unwrap_err(), "no tc here");
    }
}
