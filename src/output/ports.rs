//! The ports of emulated and simulated networks that congestion did most to.

use std::cmp::Reverse;

use tailback_transport::Bytes;

use crate::engine::{Phase, PhaseId};
use crate::lab::PortCounters;
use crate::result::{LabRecord, MachineRecord, held_up};
use crate::text::{Table, figure};

/// The ports that dropped or marked most, under load: where the congestion was.
pub(super) fn busiest(lab: &LabRecord) -> Table {
    const SHOWN: usize = 4;
    let mut ports: Vec<(&PhaseId, &PortCounters, [u64; 2])> = Vec::new();
    for phase in lab.phases.iter().filter(|phase| phase.phase.is(Phase::Loaded)) {
        for port in &phase.ports {
            let of = port.queue.as_ref().map(|queue| [queue.drops, queue.marks]).filter(|of| *of != [0; 2]);
            ports.extend(of.map(|of| (&phase.phase, port, of)));
        }
    }
    ports.sort_by_key(|&(_, _, of)| Reverse(of));
    // Most labs have queues that drop and do not mark.
    let columns = 4 + usize::from(lab.spec.ecn);
    let mut table = Table::new(["port", "phase", "sent", "packets dropped", "marked"].into_iter().take(columns));
    for (phase, port, [drops, marks]) in ports.into_iter().take(SHOWN) {
        let (name, phase) = (format!("{} to {}", port.from, port.to), phase.to_string());
        let cells = [name, phase, amount(port.bytes), drops.to_string(), marks.to_string()];
        table.row(cells.into_iter().take(columns));
    }
    table
}

/// The simulated ports that waited longest for room, or dropped most.
pub(super) fn held_up_most(machine: &MachineRecord) -> Table {
    const SHOWN: usize = 6;
    let loaded = machine.phases.iter().filter(|phase| phase.phase.is(Phase::Loaded));
    let mut ports: Vec<(&PhaseId, &PortCounters)> =
        loaded.flat_map(|phase| phase.ports.iter().map(|port| (&phase.phase, port))).collect();
    ports.sort_by_key(|(_, port)| Reverse(held_up(port)));
    let mut table = Table::new(["port", "phase", "sent", "no room for ms", "longest queue", "marked", "dropped"]);
    for (phase, port) in ports.into_iter().take(SHOWN) {
        let of = port.simulated.unwrap_or_default();
        let drops = port.queue.as_ref().map_or(0, |queue| queue.drops);
        if of.stalled_ns + of.marks + drops > 0 {
            table.row([
                format!("{} to {}", port.from, port.to),
                phase.to_string(),
                amount(port.bytes),
                figure(1e-6 * of.stalled_ns as f64),
                Bytes(of.longest_queue_bytes).to_string(),
                of.marks.to_string(),
                drops.to_string(),
            ]);
        }
    }
    table
}

/// Bytes in the unit that suits them.
pub(super) fn amount(bytes: u64) -> String {
    match bytes {
        0..=1_048_575 => Bytes(bytes).to_string(),
        _ => format!("{} MiB", figure(bytes as f64 / 1_048_576.0)),
    }
}
