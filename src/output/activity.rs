//! What the machine did while it measured, by phase: why a baseline may have been disturbed.

use crate::result::HostActivity;
use crate::text::{Cell, Table, figure};

/// A row for each phase, over all its blocks and placements.
pub(super) fn table(all: &[HostActivity]) -> Table {
    let mut rows: Vec<HostActivity> = Vec::new();
    for of in all {
        let (phase, _) = of.phase.on_any_placement();
        match rows.iter().position(|known| known.phase == phase) {
            Some(at) => {
                let both = rows[at].clone().with(of.clone());
                rows[at] = HostActivity { seconds: rows[at].seconds + of.seconds, ..both };
            }
            None => rows.push(HostActivity { phase, ..of.clone() }),
        }
    }
    let number = |value: Option<f64>| value.map_or(Cell::Unknown, |value| Cell::number(value, figure));
    let rate = |count: Option<u64>, seconds: f64| number(count.map(|count| count as f64 / seconds));
    Table::of(rows)
        .column("phase", |of| of.phase.to_string())
        .column("MHz", |of| of.mhz.map(|[low, high]| format!("{low:.0}-{high:.0}")))
        .column("governor", |of| Some(of.governors.join(",")).filter(|text| !text.is_empty()))
        .column("steal %", |of| number(of.steal.map(|part| 100.0 * part)))
        .column("waits/s", |of| rate(of.voluntary_switches, of.seconds))
        .column("preempted/s", |of| rate(of.involuntary_switches, of.seconds))
        .done()
}
