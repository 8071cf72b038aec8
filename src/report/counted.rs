//! What ports and the nodes' own devices counted, as tables: over all nodes, and node by node.

use std::cmp::Reverse;

use crate::counters::is_telling;
use crate::output::counted::{self, Port};
use crate::result::{CountersRecord, LabRecord, MachineRecord, held_up};
use crate::text::{Table, factor, figure};

/// The `most` rows in their order, and what the caption then says of the others.
fn limited<R>(rows: &mut Vec<R>, most: usize, which: &str) -> String {
    let all = rows.len();
    rows.truncate(most);
    if all > most { format!(", the {most} of {all} that {which} (the result file has more)") } else { String::new() }
}

fn most_held_up(ports: &mut Vec<Port<'_>>, most: usize) -> String {
    if ports.len() > most {
        ports.sort_by_key(|(_, port)| Reverse(held_up(port)));
    }
    limited(ports, most, "were held up most")
}

/// The ports of a lab.
pub(super) fn emulated(name: &str, lab: &LabRecord, most: usize) -> String {
    let mut ports = counted::ports(&lab.phases);
    let limit = most_held_up(&mut ports, most);
    counted::emulated(ports, true, true).html(&format!("{name}: ports of the emulated network{limit}"))
}

/// The ports of a simulated machine.
pub(super) fn simulated(name: &str, machine: &MachineRecord, most: usize) -> String {
    let mut ports = counted::ports(&machine.phases);
    let limit = most_held_up(&mut ports, most);
    counted::simulated(ports, true).html(&format!("{name}: ports of the simulated machine {}{limit}", machine.name))
}

/// Every counter that moved, those that tell of congestion first, with its ratio to the isolated phase.
pub(super) fn ratios(name: &str, counters: &CountersRecord, most: usize) -> String {
    let mut rows = counters.rows();
    rows.sort_by(|a, b| b.is_telling().cmp(&a.is_telling()).then(b.rise().total_cmp(&a.rise())));
    let limit = limited(&mut rows, most, "rose most");
    counted::rates(&rows).html(&format!("{name}: what the nodes counted, a second over all nodes{limit}"))
}

/// Counters that tell of congestion, phase by phase over the devices that have them: what the violins show.
pub(super) fn spreads(name: &str, counters: &CountersRecord, most: usize) -> String {
    let all = counters.telling().into_iter().flat_map(|(source, counter)| {
        let spreads = counters.spreads(&source, &counter).into_iter();
        spreads.map(move |of| (format!("{source} {counter}"), of))
    });
    Table::of(all.take(most).filter(|(_, of)| !of.devices.is_empty()))
        .column("counter", |(counter, _)| counter.clone())
        .column("phase", |(_, of)| of.phase.to_string())
        .column("devices", |(_, of)| of.devices.len())
        .column("mean /s", |(_, of)| of.mean)
        .column("over isolated", |(_, of)| of.times_isolated.map(factor))
        .column("p95 /s", |(_, of)| of.p95)
        .column("least /s", |(_, of)| of.least().map(|device| device.1))
        .column("most /s", |(_, of)| of.most().map(|device| device.1))
        .column("most on", |(_, of)| of.most().map(|device| device.0.clone()))
        .done()
        .html(&format!("{name}: counters that tell of congestion, over the devices of all nodes"))
}

/// Counters that tell of congestion, node by node and phase by phase.
pub(super) fn by_node(name: &str, counters: &CountersRecord, most: usize) -> String {
    let devices = counters.phases.iter().flat_map(|phase| phase.devices.iter().map(move |of| (&phase.phase, of)));
    let mut rows: Vec<_> = devices
        .flat_map(|(phase, of)| of.counters.iter().map(move |(counter, value)| (phase, of, counter, *value)))
        .filter(|(_, _, counter, value)| *value > 0.0 && is_telling(counter))
        .collect();
    let left_out = rows.len().saturating_sub(most);
    let more = if left_out > 0 { format!(", {left_out} more in the result file") } else { String::new() };
    rows.truncate(most);
    Table::of(rows)
        .column("node", |(_, of, _, _)| of.name())
        .column("phase", |(phase, ..)| phase.to_string())
        .column("counter", |(_, of, counter, _)| format!("{} {counter}", of.source))
        .column("counted", |(.., value)| *value)
        .column("a second", |(_, of, _, value)| figure(value / of.seconds))
        .done()
        .html(&format!("{name}: counters that tell of congestion, node by node{more}"))
}
