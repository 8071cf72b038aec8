//! The queues of a simulated network: how many bytes waited in them over time, without load and with it, and the congestion tree
//! of a phase's worst moment: the ports that were full because their own link was busy, and under each the ports that could
//! not send because of it.

use super::{Area, LINE, Plot, WIDTH, bar, block, class_of, dot, label, lines, polyline, text};
use crate::engine::{LoadState, PhaseId};
use crate::result::{CrowdedPort, MachineRecord, QueueRecord, distinct};
use crate::text::{Table, figure};

const AREA: Area = Area { left: 52.0, right: WIDTH - 20.0, top: 12.0, bottom: 150.0 };
const KIB: f64 = 1024.0;
/// Every so many looks has a dot to hover over.
const DOTS: usize = 12;

/// One plot per test: its idle and its loaded phase.
pub fn queues(name: &str, machine: &MachineRecord) -> Vec<Plot> {
    let tests = distinct(machine.queues.iter().map(|of| of.phase.in_any_state()));
    tests.iter().filter_map(|test| over_time(name, test, &machine.queues)).collect()
}

fn over_time(name: &str, of: &PhaseId, queues: &[QueueRecord]) -> Option<Plot> {
    let phases: Vec<&QueueRecord> = queues.iter().filter(|record| record.phase.in_any_state() == *of).collect();
    let looks = || phases.iter().flat_map(|record| &record.looks);
    let most = looks().map(|look| look.queued_bytes).max().filter(|&most| most > 0)? as f64;
    let longest = looks().map(|look| look.at_us).fold(0.0, f64::max).max(1e-3);
    let at = |us: f64, bytes: f64| AREA.at(us / longest, bytes / most);
    let mut body = String::new();
    for part in [0.0, 0.5, 1.0] {
        let ((x, y), class) = (at(longest * part, most * part), if part == 0.0 { "axis" } else { "grid" });
        body += &AREA.level(y, class, &label((most * part / KIB).round()));
        body += &AREA.below(x, &label((longest * part).round()));
    }
    let mut told = Vec::new();
    for record in &phases {
        let class = class_of(record.phase.state);
        body += &polyline(record.looks.iter().map(|look| at(look.at_us, look.queued_bytes as f64)), class);
        for look in record.looks.iter().step_by(record.looks.len().div_ceil(DOTS).max(1)) {
            let title = format!(
                "{}, {} us: {} KiB in all queues, {} KiB in the longest, {} ports without room",
                record.phase,
                figure(look.at_us),
                figure(look.queued_bytes as f64 / KIB),
                figure(look.longest_bytes as f64 / KIB),
                look.stalled_ports
            );
            body += &dot(at(look.at_us, look.queued_bytes as f64), 3, class, &title);
        }
        let peak = record.looks.iter().map(|look| look.queued_bytes).max().unwrap_or(0) as f64;
        let state = record.phase.state.map_or("in all", LoadState::word);
        told.push(format!("{state}: at most {} KiB", figure(peak / KIB)));
    }
    body += &AREA.title(31.0, "KiB in all queues, over microseconds of virtual time");
    let title = format!("Queues during {of}, {name}");
    let rows = phases.iter().flat_map(|record| record.looks.iter().map(move |look| (record.phase.to_string(), look)));
    let data = Table::of(rows)
        .column("phase", |(phase, _)| phase.clone())
        .column("us", |(_, look)| look.at_us)
        .column("queued bytes", |(_, look)| look.queued_bytes)
        .column("longest queue bytes", |(_, look)| look.longest_bytes)
        .column("ports without room", |(_, look)| look.stalled_ports)
        .done();
    Some(Plot::new(&["queues", &of.to_string(), name], title, told.join("; "), AREA.bottom + 38.0, body, data))
}

const ROW: f64 = 16.0;
const INDENT: f64 = 12.0;
/// Bars begin here.
const BARS: f64 = 250.0;
const RIGHT: f64 = WIDTH - 64.0;
/// Rows of a plot; a wide tree goes on in the result file.
const MOST_ROWS: usize = 28;

/// A tree for each phase that had one.
pub fn trees(name: &str, machine: &MachineRecord) -> Vec<Plot> {
    machine.queues.iter().filter_map(|record| tree(name, record)).collect()
}

fn tree(name: &str, record: &QueueRecord) -> Option<Plot> {
    let worst = record.worst.as_ref().filter(|worst| !worst.ports.is_empty())?;
    let rows = rows(&worst.ports);
    let most = worst.ports.iter().map(|port| port.queued_bytes).max()?.max(1) as f64;
    let (mut body, mut y) = (String::new(), 4.0);
    for &(depth, port) in rows.iter().take(MOST_ROWS) {
        let indent = 8.0 + INDENT * depth as f64;
        let kib = figure(port.queued_bytes as f64 / KIB);
        let feeders: Vec<String> =
            port.feeders.iter().map(|of| format!("{} ({} KiB)", of.port, figure(of.bytes as f64 / KIB))).collect();
        let waits = if port.stalled { "waits for room at the other end" } else { "its own link is busy" };
        let title = format!("{}: {kib} KiB, {waits}; fed by {}", port.port, feeders.join(", "));
        let port_name = lines(&port.port, ((BARS - 8.0 - indent).max(90.0) / 6.6) as usize);
        body += &block(indent, y + 11.0, "start", if depth == 0 { "name" } else { "tick" }, &port_name);
        let width = port.queued_bytes as f64 / most * (RIGHT - BARS);
        body += &bar(BARS, y + 2.0, width, ROW - 4.0, if port.stalled { "calm-bar" } else { "busy-bar" }, &title);
        body += &text(BARS + width.max(0.5) + 5.0, y + 11.0, "start", "value", &kib);
        y += ROW + LINE * (port_name.len().max(1) - 1) as f64;
    }
    if rows.len() > MOST_ROWS {
        let rest = format!("and {} more in the data of this plot", rows.len() - MOST_ROWS);
        body += &text(8.0, y + 11.0, "start", "tick", &rest);
        y += ROW;
    }
    let when = format!("KiB queued, {} us into the phase", figure(worst.at_us));
    body += &text((BARS + RIGHT) / 2.0, y + 14.0, "middle", "axis-title", &when);
    let stalled = worst.ports.iter().filter(|port| port.stalled).count();
    let told = format!(
        "{} KiB queued in all; {} crowded ports, {stalled} of them held back by others",
        figure(worst.queued_bytes as f64 / KIB),
        worst.ports.len()
    );
    let title = format!("Worst moment of {}, {name}", record.phase);
    let feeders = |port: &CrowdedPort| port.feeders.iter().map(|of| of.port.clone()).collect::<Vec<_>>().join("; ");
    let data = Table::of(&rows)
        .column("port", |(_, port)| port.port.clone())
        .column("depth", |(depth, _)| *depth)
        .column("queued bytes", |(_, port)| port.queued_bytes)
        .column("waits for room", |(_, port)| if port.stalled { "yes" } else { "no" })
        .column("fed by", |(_, port)| feeders(port))
        .done();
    Some(Plot::new(&["tree", &record.phase.to_string(), name], title, told, y + 22.0, body, data))
}

/// Ports with their depth: every root, and under it the crowded ports that feed it, and so on. A port stands under the
/// first that it feeds; what hangs on no root (in a circle, or under a port that was left out) comes last.
fn rows(ports: &[CrowdedPort]) -> Vec<(usize, &CrowdedPort)> {
    let mut rows = Vec::new();
    let mut placed = vec![false; ports.len()];
    let roots = (0..ports.len()).filter(|&at| !ports[at].stalled);
    for root in roots.chain(0..ports.len()) {
        let mut open = vec![(0, root)];
        while let Some((depth, at)) = open.pop() {
            if std::mem::replace(&mut placed[at], true) {
                continue;
            }
            rows.push((depth, &ports[at]));
            // Last in, first out: the one that feeds most is to come next.
            let feeders = ports[at].feeders.iter().rev();
            let crowded = feeders.filter_map(|of| ports.iter().position(|port| port.port == of.port && port.stalled));
            open.extend(crowded.map(|feeder| (depth + 1, feeder)));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Feeder;

    fn port(name: &str, stalled: bool, feeders: &[&str]) -> CrowdedPort {
        let feeder = |name: &&str| Feeder { port: (*name).to_owned(), bytes: 1 };
        CrowdedPort { port: name.into(), queued_bytes: 1, stalled, feeders: feeders.iter().map(feeder).collect() }
    }

    #[test]
    fn every_port_stands_once_under_the_first_that_it_feeds() {
        let ports = [
            port("b", true, &["c", "free"]),
            port("a", false, &["b", "d"]),
            port("c", true, &["b"]),
            port("d", true, &[]),
            // These two wait for each other, and for no root that is known.
            port("x", true, &["y"]),
            port("y", true, &["x"]),
        ];
        let found: Vec<(usize, &str)> = rows(&ports).into_iter().map(|(depth, of)| (depth, of.port.as_str())).collect();
        assert_eq!(found, [(0, "a"), (1, "b"), (2, "c"), (1, "d"), (0, "x"), (1, "y")]);
    }
}
