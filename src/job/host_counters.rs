//! Who reads a host's counters, and when: its first rank, at the bounds of every phase, while nothing is measured.
//!
//! Every rank has one of these; most read nothing. After each placement rank 0 is told what all have read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Rank, Result};

use super::reduce_json::{decode, encode, gather};
use super::request::CountersSelection;
use super::runs_on::RunsOn;
use crate::backend::RankHost;
use crate::counters::{Device, Reader, Reading, Roots, UserCommand};
use crate::engine::PhaseId;
use crate::result::{CountersRecord, DeviceCounters};

/// A rank's part in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCounters {
    /// Whether anyone reads: the same on every rank.
    is_on: bool,
    /// What this rank reads, if it is one of those.
    state: Option<Arc<Mutex<State>>>,
}

#[derive(Debug)]
struct State {
    node: String,
    reader: Reader,
    /// The phase that is being measured, and what was read before it.
    begun: Option<(PhaseId, Reading)>,
    told: Vec<Told>,
    /// Once the user's command has failed it is not run again.
    failed: bool,
}

/// What a reader tells rank 0.
#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Counted(PhaseId, DeviceCounters),
    /// A counter fell.
    Fell(String),
    /// The user's command does not work any more.
    Failed(String),
}

impl HostCounters {
    /// Chooses who reads, and takes a first reading so that a command which cannot work is known before anything is measured:
    /// the inner error says so, on every rank. `mine` are this rank's devices; without any, its network does not say. Collective
    /// over the job.
    pub(crate) fn prepare(
        bootstrap: &mut dyn Bootstrap,
        selection: &CountersSelection,
        places: &[RankHost],
        mine: &[Device],
    ) -> Result<std::result::Result<Self, String>> {
        let told = bootstrap.allgather(&encode(&mine))?;
        let me = bootstrap.rank();
        let host = &places[me.index()].host;
        let first = |host: &String| places.iter().position(|place| place.host == *host) == Some(me.index());
        let here = places.iter().zip(&told).filter(|(place, _)| place.host == *host);
        let devices: Vec<Vec<Device>> = here.map(|(_, told)| decode(told)).collect::<Result<_>>()?;
        // One rank whose network does not say what it uses may use anything.
        let devices = if devices.iter().any(Vec::is_empty) { Vec::new() } else { devices.concat() };
        let runs = match selection.counters_cmd_on {
            RunsOn::First => me == Rank(0),
            RunsOn::Every => true,
        };
        let command = selection.counters_cmd.as_deref().filter(|_| runs).map(UserCommand::new);
        let reader = first(host).then(|| Reader::new(roots(), &devices, command));
        let problem = reader
            .as_ref()
            .and_then(|reader| reader.read().err())
            .map(|why| format!("--counters-cmd on {host}: {why}"));
        let problems = bootstrap.allgather(problem.unwrap_or_default().as_bytes())?;
        if let Some(problem) = problems.into_iter().find(|text| !text.is_empty()) {
            return Ok(Err(String::from_utf8_lossy(&problem).into_owned()));
        }
        let state = |reader| State { node: host.clone(), reader, begun: None, told: Vec::new(), failed: false };
        Ok(Ok(HostCounters { is_on: true, state: reader.map(|reader| Arc::new(Mutex::new(state(reader)))) }))
    }

    /// A phase is about to begin. Which of its blocks, on which placement, is all the same to the counters.
    pub(crate) fn begin(&self, phase: &PhaseId) {
        self.with(|state| {
            let (phase, _) = phase.on_any_placement();
            let reading = state.read(&phase);
            state.begun = Some((phase, reading));
        });
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.with(|state| {
            let Some((phase, before)) = state.begun.take() else { return };
            let difference = state.read(&phase).since(&before);
            for of in difference.counted {
                let (node, source, device, counters) = (state.node.clone(), of.source, of.device, of.counters);
                let counted = DeviceCounters { node, source, device, seconds: difference.seconds, counters };
                state.told.push(Told::Counted(phase.clone(), counted));
            }
            state.told.extend(difference.fell.into_iter().map(Told::Fell));
        });
    }

    /// Adds to rank 0's record what all have read since this was last asked, and gives what went wrong. Collective over the
    /// job.
    pub(crate) fn collect(&self, bootstrap: &mut dyn Bootstrap, record: &mut CountersRecord) -> Result<Vec<String>> {
        if !self.is_on {
            return Ok(Vec::new());
        }
        let mut mine = Vec::new();
        self.with(|state| mine = std::mem::take(&mut state.told));
        // What many nodes have in common is said once.
        let (mut fell, mut failed) = (BTreeSet::new(), Vec::new());
        for told in gather(bootstrap, &mine)? {
            match told {
                Told::Counted(phase, counted) => record.add(phase, counted),
                Told::Fell(name) => _ = fell.insert(name),
                Told::Failed(problem) => failed.push(problem),
            }
        }
        let others = failed.len().saturating_sub(1);
        let more =
            if others > 0 { format!("; the same or another problem on {others} other nodes") } else { String::new() };
        let fell =
            fell.iter().map(|name| format!("counter {name} fell and is left out there: it was reset, or is none"));
        Ok(failed.into_iter().take(1).map(|problem| problem + &more).chain(fell).collect())
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        if let Some(state) = &self.state {
            act(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl State {
    /// A reading; without the user's command once that has failed.
    fn read(&mut self, phase: &PhaseId) -> Reading {
        if !self.failed {
            match self.reader.read() {
                Ok(reading) => return reading,
                Err(why) => {
                    self.failed = true;
                    let node = &self.node;
                    self.told.push(Told::Failed(format!(
                        "--counters-cmd on {node}, in '{phase}': {why}; it is not run there again"
                    )));
                }
            }
        }
        self.reader.read_devices()
    }
}

/// Where the kernel shows its counters: elsewhere in a container that has the host's mounted.
fn roots() -> Roots {
    let Roots { sys, proc } = Roots::default();
    let at = |variable: &str, usual| std::env::var_os(variable).map_or(usual, Into::into);
    Roots { sys: at("TAILBACK_SYS", sys), proc: at("TAILBACK_PROC", proc) }
}
