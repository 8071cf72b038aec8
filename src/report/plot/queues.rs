//! How many bytes waited in the queues of a simulated network over time, without load and with it.

use super::axis::label;
use super::{Plot, WIDTH, dot, line, text};
use crate::engine::{Phase, PhaseId};
use crate::result::{MachineRecord, QueueRecord};
use crate::text::figure;

const TOP: f64 = 12.0;
const BOTTOM: f64 = 150.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 20.0;
const KIB: f64 = 1024.0;
/// Every so many looks has a dot to hover over.
const DOTS: usize = 12;

/// One plot per test: its isolated and its loaded phase.
pub fn queues(name: &str, machine: &MachineRecord) -> Vec<Plot> {
    let mut tests: Vec<PhaseId> = Vec::new();
    for test in machine.queues.iter().map(|of| of.phase.in_any_state()) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    tests.iter().filter_map(|test| draw(name, test, &machine.queues)).collect()
}

fn draw(name: &str, of: &PhaseId, queues: &[QueueRecord]) -> Option<Plot> {
    let phases: Vec<&QueueRecord> = queues.iter().filter(|record| record.phase.in_any_state() == *of).collect();
    let looks = || phases.iter().flat_map(|record| &record.looks);
    let most = looks().map(|look| look.queued_bytes).max().filter(|&most| most > 0)? as f64;
    let longest = looks().map(|look| look.at_us).fold(0.0, f64::max).max(1e-3);
    let x = |at: f64| LEFT + at / longest * (RIGHT - LEFT);
    let y = |bytes: f64| BOTTOM - bytes / most * (BOTTOM - TOP);
    let mut body = String::new();
    for part in [0.0, 0.5, 1.0] {
        body += &line((LEFT, y(most * part)), (RIGHT, y(most * part)), if part == 0.0 { "axis" } else { "grid" });
        body += &text(LEFT - 5.0, y(most * part) + 4.0, "end", "tick", &label((most * part / KIB).round()));
        body += &text(x(longest * part), BOTTOM + 14.0, "middle", "tick", &figure(longest * part));
    }
    let mut told = Vec::new();
    for record in &phases {
        let class = if record.phase.is(Phase::Isolated) { "calm" } else { "busy" };
        let path = record.looks.iter().map(|look| format!("{:.1},{:.1}", x(look.at_us), y(look.queued_bytes as f64)));
        body += &format!("<polyline points=\"{}\" class=\"curve {class}\"/>", path.collect::<Vec<_>>().join(" "));
        for look in record.looks.iter().step_by(record.looks.len().div_ceil(DOTS).max(1)) {
            let title = format!(
                "{}, {} us: {} KiB in all queues, {} KiB in the longest, {} ports without room",
                record.phase,
                figure(look.at_us),
                figure(look.queued_bytes as f64 / KIB),
                figure(look.longest_bytes as f64 / KIB),
                look.stalled_ports
            );
            body += &dot((x(look.at_us), y(look.queued_bytes as f64)), 3, class, &title);
        }
        let peak = record.looks.iter().map(|look| look.queued_bytes).max().unwrap_or(0) as f64;
        let state = record.phase.state.map_or("in all", Phase::word);
        told.push(format!("{state}: at most {} KiB", figure(peak / KIB)));
    }
    let axes = "KiB in all queues, over microseconds of virtual time";
    body += &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", axes);
    let title = format!("Queues during {of}, {name}");
    Some(Plot::new(&["queues", &of.to_string(), name], title, told.join("; "), BOTTOM + 38.0, body))
}
