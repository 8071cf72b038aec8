//! Counters of several jobs on one scale: quiet, wild and loaded, over the mean of the quiet state.
//!
//! That is how the GPCNeT paper shows them (figures 8 to 10): what a congestor does to a network beside what other users do, device
//! by device, whatever the counter's unit.

use std::collections::BTreeSet;

use super::counters::CounterSpread;
use crate::analysis::compare::Side;
use crate::counters::is_telling;
use crate::engine::{LoadState, PhaseId};
use crate::result::CountersRecord;

/// Under what a network was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Canaries of a load test, while its congestors were silent.
    Quiet,
    /// A job without congestors, beside whoever else used the network.
    Wild,
    /// Canaries of a load test under its congestors.
    Loaded,
}

/// A counter under every condition.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeCounter {
    /// What kind of counter.
    pub source: String,
    /// Its name.
    pub counter: String,
    /// What is 1 on the scale: the mean over devices of the first quiet state, a second. Nothing was counted in it: none, and
    /// rows are what devices counted a second.
    pub quiet_per_s: Option<f64>,
    /// Quiet ones first, then wild, then loaded, each in the order of the files.
    pub rows: Vec<RelativeRow>,
}

/// One condition of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeRow {
    /// What plots call it.
    pub name: String,
    /// Which it is.
    pub condition: Condition,
    /// Over devices.
    pub spread: CounterSpread,
}

/// What a job counted in a state, over all canaries.
struct Counted {
    name: String,
    condition: Condition,
    phase: PhaseId,
    /// Both states of the job: a device has a counter if it has it in either.
    record: CountersRecord,
}

/// Every counter that tells of congestion or of traffic and that moved. Nothing without a quiet state to compare with, or where
/// nothing stands beside it.
pub fn relative(sides: &[Side<'_>]) -> Vec<RelativeCounter> {
    let mut counted: Vec<Counted> = sides.iter().flat_map(of_side).collect();
    counted.sort_by_key(|of| of.condition as u8);
    let has_quiet = counted.first().is_some_and(|of| of.condition == Condition::Quiet);
    if !has_quiet || counted.len() < 2 {
        return Vec::new();
    }
    let devices = counted.iter().flat_map(|of| &of.record.phases).flat_map(|phase| &phase.devices);
    let names = devices.flat_map(|of| of.counters.keys().map(|counter| (of.source.clone(), counter.clone())));
    let mut all: Vec<RelativeCounter> = names
        .collect::<BTreeSet<(String, String)>>()
        .into_iter()
        .filter(|(source, counter)| source == "command" || is_telling(counter) || is_traffic(counter))
        .filter_map(|(source, counter)| relative_to_quiet(&counted, source, counter))
        .collect();
    // Of a source, traffic before what tells of congestion.
    let order = |of: &RelativeCounter| (of.source.clone(), !is_traffic(&of.counter), of.counter.clone());
    all.sort_by_key(order);
    all
}

/// Whether a counter is of what went through.
fn is_traffic(counter: &str) -> bool {
    let name = counter.to_ascii_lowercase();
    ["bytes", "xmit_data", "rcv_data"].iter().any(|word| name.ends_with(word))
}

fn of_side(side: &Side<'_>) -> Vec<Counted> {
    let all = side.file.counted_over(side.run);
    let states = [LoadState::Isolated, LoadState::Loaded].into_iter();
    let states: Vec<LoadState> = states.filter(|state| all.phases.iter().any(|phase| phase.phase.is(*state))).collect();
    let mut record = CountersRecord::default();
    for &state in &states {
        let mut phases = all.phases.iter().filter(|phase| phase.phase.is(state));
        // Mostly there is one, of all canaries.
        let first = phases.next().map(|phase| phase.devices.clone()).unwrap_or_default();
        record.phase(&PhaseId::new(state, "")).devices = first;
        phases.flat_map(|phase| &phase.devices).for_each(|of| record.add(PhaseId::new(state, ""), of.clone()));
    }
    let condition = |state: LoadState| match state {
        LoadState::Loaded => Condition::Loaded,
        _ if side.file.is_wild() => Condition::Wild,
        _ => Condition::Quiet,
    };
    let wild = side.file.label.clone().unwrap_or_else(|| "wild".into());
    let name = |condition| match condition {
        Condition::Quiet => format!("quiet, {}", side.label),
        Condition::Wild => format!("{wild}, {}", side.label),
        Condition::Loaded => format!("loaded, {}", side.label),
    };
    states
        .into_iter()
        .map(|state| {
            let condition = condition(state);
            Counted { name: name(condition), condition, phase: PhaseId::new(state, ""), record: record.clone() }
        })
        .collect()
}

fn relative_to_quiet(counted: &[Counted], source: String, counter: String) -> Option<RelativeCounter> {
    let row = |of: &Counted| {
        let spread = of.record.spreads(&source, &counter).into_iter().find(|spread| spread.phase == of.phase)?;
        let (name, condition) = (of.name.clone(), of.condition);
        (!spread.devices.is_empty()).then_some(RelativeRow { name, condition, spread })
    };
    let rows: Vec<RelativeRow> = counted.iter().filter_map(row).collect();
    let moved = rows.iter().any(|row| row.spread.mean > 0.0);
    let several = rows.len() > 1 && rows.iter().any(|row| row.spread.devices.len() > 1);
    let quiet = rows.first().filter(|row| row.condition == Condition::Quiet)?.spread.mean;
    let quiet_per_s = (quiet > 0.0).then_some(quiet);
    let one = quiet_per_s.unwrap_or(1.0);
    let rows = rows.into_iter().map(|row| RelativeRow { spread: row.spread.over(one), ..row }).collect();
    (moved && several).then_some(RelativeCounter { source, counter, quiet_per_s, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::sides;
    use crate::assemble::synthetic;
    use crate::lab::{PortCounters, QueueCounters};
    use crate::result::{PhaseCounters, ResultFile};

    /// A job whose ports sent and dropped so much a second: of endpoints, then of routers; in each state.
    fn job(states: &[(LoadState, f64, f64)]) -> ResultFile {
        let port = |from: &str, to: &str, drops: f64| {
            let queue = Some(QueueCounters { drops: drops as u64, ..QueueCounters::default() });
            PortCounters { from: from.into(), to: to.into(), bytes: 1000, packets: 1, queue, simulated: None }
        };
        let phase = |&(state, endpoint, router): &(LoadState, f64, f64)| PhaseCounters {
            phase: PhaseId::new(state, PhaseId::ALL_CANARIES),
            seconds: Some(2.0),
            ports: vec![
                port("h0", "leaf0", 2.0 * endpoint),
                port("leaf0", "h1", 6.0 * endpoint),
                port("leaf0", "spine", 2.0 * router),
                port("spine", "leaf1", 2.0 * router),
            ],
            placements: Vec::new(),
        };
        let mut file = synthetic::file("tcp", None, 2.0);
        file.lab = Some(synthetic::lab(states.iter().map(phase).collect()));
        if !states.iter().any(|of| of.0 == LoadState::Loaded) {
            file.plan.congestors.clear();
        }
        file
    }

    #[test]
    fn conditions_stand_on_one_scale_endpoints_and_routers_apart() {
        use LoadState::{Isolated, Loaded};
        let mut wild = job(&[(Isolated, 50.0, 5.0)]);
        wild.label = Some("monday".into());
        let files = synthetic::named(vec![wild, job(&[(Isolated, 10.0, 5.0), (Loaded, 100.0, 20.0)])]);
        let all = relative(&sides(&files));
        let names: Vec<(&str, &str)> = all.iter().map(|of| (of.source.as_str(), of.counter.as_str())).collect();
        assert_eq!(
            names,
            [
                ("endpoint port", "bytes"),
                ("endpoint port", "drops"),
                ("router port", "bytes"),
                ("router port", "drops")
            ]
        );
        let rows = |at: usize| -> Vec<(&str, f64)> {
            all[at].rows.iter().map(|row| (row.name.as_str(), row.spread.mean)).collect()
        };
        // Endpoints drop 1 and 3 times as much: their quiet mean is 2 times 10.
        assert_eq!(all[1].quiet_per_s, Some(20.0));
        assert_eq!(rows(1), [("quiet, r1", 1.0), ("monday, r0", 5.0), ("loaded, r1", 10.0)]);
        let loaded = &all[1].rows[2].spread;
        assert_eq!((loaded.least().unwrap().1, loaded.median, loaded.most().unwrap().1), (5.0, 10.0, 15.0));
        assert_eq!(rows(3), [("quiet, r1", 1.0), ("monday, r0", 1.0), ("loaded, r1", 4.0)]);
    }

    #[test]
    fn without_a_quiet_state_there_is_no_scale_and_without_counts_there_no_multiple() {
        use LoadState::{Isolated, Loaded};
        assert_eq!(relative(&sides(&synthetic::named(vec![job(&[(Isolated, 1.0, 1.0)])]))), []);
        let files = synthetic::named(vec![job(&[(Isolated, 0.0, 0.0), (Loaded, 7.0, 0.0)])]);
        let all = relative(&sides(&files));
        let drops = all.iter().find(|of| of.counter == "drops").unwrap();
        assert_eq!((drops.quiet_per_s, drops.rows[1].spread.mean), (None, 14.0));
        assert!(!all.iter().any(|of| of.source == "router port" && of.counter == "drops"), "nothing moved");
    }
}
