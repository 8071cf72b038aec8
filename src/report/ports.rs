//! What the ports of an emulated or simulated network did, as tables.

use std::cmp::Reverse;

use super::html::HtmlTable;
use crate::engine::PhaseId;
use crate::lab::{PortCounters, QueueCounters};
use crate::result::{LabRecord, MachineRecord, PhaseCounters, held_up};
use crate::text::figure;

/// Ports by phase; the `most` that were held up most when there are more, which the caption then says.
fn rows<'a>(caption: &mut String, phases: &'a [PhaseCounters], most: usize) -> Vec<(&'a PhaseId, &'a PortCounters)> {
    let ports = |phase: &'a PhaseCounters| phase.ports.iter().map(|port| (&phase.phase, port));
    let mut rows: Vec<(&PhaseId, &PortCounters)> = phases.iter().flat_map(ports).collect();
    if rows.len() > most {
        *caption += &format!(", the {most} of {} that were held up most (the result file has more)", rows.len());
        rows.sort_by_key(|(_, port)| Reverse(held_up(port)));
        rows.truncate(most);
    }
    rows
}

/// The ports of a lab.
pub(super) fn emulated(name: &str, lab: &LabRecord, most: usize) -> HtmlTable {
    let mut caption = format!("{name}: ports of the emulated network");
    let rows = rows(&mut caption, &lab.phases, most);
    let header =
        ["port", "phase", "sent MiB", "packets", "dropped", "marked", "waits for its rate", "bytes left in its queue"];
    let mut table = HtmlTable::new(&caption, header);
    for (phase, port) in rows {
        let of = |value: fn(&QueueCounters) -> u64| {
            port.queue.as_ref().map_or_else(|| "–".into(), |queue| value(queue).to_string())
        };
        table.row([
            format!("{} to {}", port.from, port.to),
            phase.to_string(),
            figure(port.bytes as f64 / 1_048_576.0),
            port.packets.to_string(),
            of(|queue| queue.drops),
            of(|queue| queue.marks),
            of(|queue| queue.overlimits),
            of(|queue| queue.backlog_bytes),
        ]);
    }
    table
}

/// The ports of a simulated machine.
pub(super) fn simulated(name: &str, machine: &MachineRecord, most: usize) -> HtmlTable {
    let mut caption = format!("{name}: ports of the simulated machine {}", machine.name);
    let rows = rows(&mut caption, &machine.phases, most);
    let header = ["port", "phase", "sent MiB", "packets", "no room for ms", "longest queue B", "marked", "dropped"];
    let mut table = HtmlTable::new(&caption, header);
    for (phase, port) in rows {
        let of = port.simulated.unwrap_or_default();
        table.row([
            format!("{} to {}", port.from, port.to),
            phase.to_string(),
            figure(port.bytes as f64 / 1_048_576.0),
            port.packets.to_string(),
            figure(1e-6 * of.stalled_ns as f64),
            of.longest_queue_bytes.to_string(),
            of.marks.to_string(),
            port.queue.as_ref().map_or(0, |queue| queue.drops).to_string(),
        ]);
    }
    table
}
