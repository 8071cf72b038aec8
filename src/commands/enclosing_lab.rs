//! A job that someone else's launcher started on the hosts of a lab: what rank 0 can tell of the network around it.
//!
//! Where this program started the ranks itself, the process that did so keeps the record, and nothing is done here.

use std::sync::{Mutex, PoisonError};

use super::ports::Recording;
use super::show::handed_over;
use crate::engine::PhaseId;
use crate::lab::Lab;
use crate::result::{LabRecord, ResultFile};

/// What rank 0 finds around it.
pub(super) enum EnclosingLab {
    /// No lab, or not for this rank to tell.
    Nothing,
    /// A lab that cannot be found from here, and why.
    Unknown(String),
    Lab(Box<Mutex<(Lab, Recording)>>),
}

impl EnclosingLab {
    /// What `root` finds; where the process that started it keeps the record, only if it needs that itself.
    pub(super) fn find(root: bool, needed: bool) -> Self {
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
    pub(super) fn begin(&self, phase: &PhaseId) {
        if let EnclosingLab::Lab(watched) = self {
            let (lab, recording) = &mut *watched.lock().unwrap_or_else(PoisonError::into_inner);
            recording.begin(phase, || lab.counters());
        }
    }

    /// It is over, and nothing is measured any more.
    pub(super) fn end(&self) {
        if let EnclosingLab::Lab(watched) = self {
            let (lab, recording) = &mut *watched.lock().unwrap_or_else(PoisonError::into_inner);
            recording.end(|| lab.counters());
        }
    }

    /// Adds to a result what is known, and what is not.
    pub(super) fn complete(&self, file: &mut ResultFile) {
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
