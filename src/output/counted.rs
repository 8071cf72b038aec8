//! What ports of emulated and simulated networks and the nodes' own devices counted: where congestion did most.

use std::cmp::Reverse;

use tailback_transport::Bytes;

use crate::analysis::CounterRow;
use crate::engine::{LoadState, PhaseId};
use crate::lab::PortCounters;
use crate::result::{CountersRecord, LabRecord, MachineRecord, PhaseCounters, held_up};
use crate::text::{Cell, Rows, Table, factor, figure};

/// A port in a phase.
pub(crate) type Port<'a> = (&'a PhaseId, &'a PortCounters);

/// Every port of these phases.
pub(crate) fn ports<'a>(phases: impl IntoIterator<Item = &'a PhaseCounters>) -> Vec<Port<'a>> {
    phases.into_iter().flat_map(|phase| phase.ports.iter().map(|port| (&phase.phase, port))).collect()
}

fn loaded(phases: &[PhaseCounters]) -> Vec<Port<'_>> {
    ports(phases.iter().filter(|phase| phase.phase.is(LoadState::Loaded)))
}

/// The ports that dropped or marked most, under load: where the congestion was.
pub(super) fn busiest(lab: &LabRecord) -> Table {
    const SHOWN: usize = 4;
    let met = |port: &PortCounters| port.queue.as_ref().map(|queue| (queue.drops, queue.marks));
    let mut ports = loaded(&lab.phases);
    ports.retain(|(_, port)| met(port).is_some_and(|met| met != (0, 0)));
    ports.sort_by_key(|(_, port)| Reverse(met(port)));
    ports.truncate(SHOWN);
    // Most labs have queues that drop and do not mark.
    emulated(ports, lab.spec.ecn, false)
}

/// What all ports have.
fn sent(ports: Vec<Port<'_>>, report: bool) -> Rows<Port<'_>> {
    Table::of(ports)
        .column("port", |(_, port)| format!("{} to {}", port.from, port.to))
        .column("phase", |(of, _)| of.to_string())
        .column("sent", |(_, port)| amount(port.bytes))
        .column_if(report, "packets", |(_, port)| port.packets)
}

/// Ports of a lab.
pub(crate) fn emulated(ports: Vec<Port<'_>>, marks: bool, report: bool) -> Table {
    let lossy = ports.iter().any(|(_, port)| port.queue.as_ref().is_some_and(|queue| queue.lost > 0));
    sent(ports, report)
        .column("packets dropped", |(_, port)| Some(port.queue.as_ref()?.drops))
        .column_if(marks, "marked", |(_, port)| Some(port.queue.as_ref()?.marks))
        .column_if(lossy, "lost on purpose", |(_, port)| Some(port.queue.as_ref()?.lost))
        .column_if(report, "waits for its rate", |(_, port)| Some(port.queue.as_ref()?.overlimits))
        .column_if(report, "bytes left in its queue", |(_, port)| Some(port.queue.as_ref()?.backlog_bytes))
        .done()
}

/// The simulated ports that waited longest for room, or dropped most.
pub(super) fn held_up_most(machine: &MachineRecord) -> Table {
    const SHOWN: usize = 6;
    let mut ports = loaded(&machine.phases);
    ports.sort_by_key(|(_, port)| Reverse(held_up(port)));
    ports.truncate(SHOWN);
    ports.retain(|(_, port)| {
        let of = port.simulated.unwrap_or_default();
        of.stalled_ns + of.marks + drops(port) > 0
    });
    simulated(ports, false)
}

/// Ports of a simulated machine.
pub(crate) fn simulated(ports: Vec<Port<'_>>, report: bool) -> Table {
    sent(ports, report)
        .column("no room for ms", |(_, port)| 1e-6 * port.simulated.unwrap_or_default().stalled_ns as f64)
        .column("longest queue", |(_, port)| amount(port.simulated.unwrap_or_default().longest_queue_bytes))
        .column("marked", |(_, port)| port.simulated.unwrap_or_default().marks)
        .column("dropped", |(_, port)| drops(port))
        .done()
}

fn drops(port: &PortCounters) -> u64 {
    port.queue.as_ref().map_or(0, |queue| queue.drops)
}

/// The counters of nodes that tell of congestion, those that rose most first.
pub(super) fn risen(counters: &CountersRecord) -> Table {
    const SHOWN: usize = 12;
    let mut rows: Vec<CounterRow> = counters.rows().into_iter().filter(CounterRow::is_telling).collect();
    rows.sort_by(|a, b| b.rise().total_cmp(&a.rise()));
    rows.truncate(SHOWN);
    rates(&rows)
}

/// Counters over all nodes, isolated and under load.
pub(crate) fn rates(rows: &[CounterRow]) -> Table {
    Table::of(rows)
        .column("counter", |row| format!("{} {}", row.source, row.counter))
        .column("during", |row| row.during.to_string())
        .column("idle /s", |row| row.isolated_per_s)
        .column("loaded /s", |row| row.loaded_per_s)
        .column("ratio", |row| row.ratio().map(|ratio| Cell::number(ratio, factor)))
        .column("most on", |row| &row.most_on)
        .done()
}

/// Bytes in the unit that suits them.
pub(super) fn amount(bytes: u64) -> Cell {
    let shown = match bytes {
        0..=1_048_575 => Bytes(bytes).to_string(),
        _ => format!("{} MiB", figure(bytes as f64 / 1_048_576.0)),
    };
    Cell::Number { shown, value: bytes as f64 }
}
