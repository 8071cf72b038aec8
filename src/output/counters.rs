//! What the nodes' own devices counted under load, beside what they counted without.

use crate::result::{CounterRow, CountersRecord};
use crate::text::{Table, factor, figure};

/// The counters that tell of congestion, those that rose most first.
pub(super) fn risen(counters: &CountersRecord) -> Table {
    const SHOWN: usize = 12;
    let mut rows: Vec<CounterRow> = counters.rows().into_iter().filter(CounterRow::is_telling).collect();
    rows.sort_by(|a, b| b.rise().total_cmp(&a.rise()));
    let mut table = Table::new(["counter", "while", "isolated /s", "loaded /s", "ratio", "most on"]);
    for row in rows.into_iter().take(SHOWN) {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), figure);
        table.row([
            format!("{} {}", row.source, row.counter),
            row.during.to_string(),
            rate(row.isolated_per_s),
            rate(row.loaded_per_s),
            row.ratio().map_or_else(|| "-".into(), factor),
            row.most_on.clone(),
        ]);
    }
    table
}
