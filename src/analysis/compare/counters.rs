//! What was counted on every side, isolated and under load: counters that tell of congestion, by the names that sides share.
//!
//! A figure is a second over all devices of a kind, as in the tables of a run; how devices differ is the report's to show.
//! There is no test: the devices of one job do not count independently of each other.

use std::fmt::Write as _;

use serde::Serialize;

use super::sides::Side;
use crate::analysis::CounterRow;
use crate::engine::PhaseId;
use crate::text::{Table, factor};

/// What a table shows of them, those that differ most first.
const SHOWN: usize = 12;

/// The heading of their table.
pub const COUNTERS_TITLE: &str =
    "Counters that tell of congestion, a second over all devices, those that differ most first";

/// One counter on every side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterComparison {
    /// What was measured meanwhile.
    pub during: PhaseId,
    /// What kind of counter; `port` for those of an emulated or simulated network.
    pub source: String,
    /// Its name.
    pub counter: String,
    /// One for each side, absent where the side did not read it.
    pub cells: Vec<Option<CounterCell>>,
}

/// A counter on one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterCell {
    /// A second, without load; absent where nothing was measured so.
    pub isolated_per_s: Option<f64>,
    /// A second, under load, likewise.
    pub loaded_per_s: Option<f64>,
    /// Under load over isolated; absent where nothing was counted isolated.
    pub times_isolated: Option<f64>,
    /// Under load over the first side's; absent on the first side, and where that counted nothing.
    pub times_first: Option<f64>,
    /// Where most of it was.
    pub most_on: String,
}

impl CounterCell {
    fn of(row: &CounterRow, first: Option<&CounterRow>) -> Self {
        let base = first.and_then(|row| row.loaded_per_s).filter(|rate| *rate > 0.0);
        CounterCell {
            isolated_per_s: row.isolated_per_s,
            loaded_per_s: row.loaded_per_s,
            times_isolated: row.ratio(),
            times_first: base.zip(row.loaded_per_s).map(|(base, rate)| rate / base),
            most_on: row.most_on.clone(),
        }
    }

    /// Orders sides by what load did; one event a second more or less is none.
    fn rise(&self) -> f64 {
        match (self.isolated_per_s, self.loaded_per_s) {
            (Some(calm), Some(busy)) => (busy + 1.0) / (calm + 1.0),
            (only, None) | (None, only) => only.unwrap_or(0.0) + 1.0,
        }
    }
}

impl CounterComparison {
    /// How far the sides are apart.
    fn apart(&self) -> f64 {
        let rises = self.cells.iter().flatten().map(CounterCell::rise);
        let (low, high) = rises.fold((f64::MAX, 0.0f64), |(low, high), rise| (low.min(rise), high.max(rise)));
        high / low
    }
}

/// The counters that at least two sides read, and that moved on one of them.
pub(super) fn counters(sides: &[Side<'_>]) -> Vec<CounterComparison> {
    let read: Vec<Vec<CounterRow>> = sides.iter().map(|side| side.file.counted_over(side.run).all_rows()).collect();
    let same =
        |a: &CounterRow, b: &CounterRow| (&a.during, &a.source, &a.counter) == (&b.during, &b.source, &b.counter);
    let mut all: Vec<CounterComparison> = Vec::new();
    for row in read.iter().flatten().filter(|row| row.is_telling() && row.moved()) {
        let known =
            |of: &CounterComparison| (&of.during, &of.source, &of.counter) == (&row.during, &row.source, &row.counter);
        let twins: Vec<Option<&CounterRow>> =
            read.iter().map(|side| side.iter().find(|other| same(row, other))).collect();
        if twins.iter().flatten().count() < 2 || all.iter().any(known) {
            continue;
        }
        let cell = |(at, twin): (usize, &Option<&CounterRow>)| {
            twin.map(|twin| CounterCell::of(twin, twins[0].filter(|_| at > 0)))
        };
        let cells = twins.iter().enumerate().map(cell).collect();
        let CounterRow { during, source, counter, .. } = row.clone();
        all.push(CounterComparison { during, source, counter, cells });
    }
    all.sort_by(|a, b| b.apart().total_cmp(&a.apart()));
    all
}

/// Three figures of each side, and for all but the first how many times the first's.
pub fn counters_table(sides: &[String], rows: &[CounterComparison]) -> Table {
    let rows = Table::of(rows).column("counter", |row| format!("{} {}", row.source, row.counter));
    rows.column("during", |row| row.during.to_string())
        .columns(sides.iter().enumerate(), |table, (at, side)| {
            let of = |row: &&CounterComparison| row.cells[at].clone();
            table
                .column(format!("{side} idle"), |row| of(row)?.isolated_per_s)
                .column("loaded", |row| of(row)?.loaded_per_s)
                .column("ratio", |row| of(row)?.times_isolated.map(factor))
                .column_if(at > 0, format!("times {}", sides[0]), |row| of(row)?.times_first.map(factor))
        })
        .done()
}

/// The table, or nothing without rows.
pub(super) fn render(sides: &[String], rows: &[CounterComparison]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("{COUNTERS_TITLE}\n{}", counters_table(sides, &rows[..rows.len().min(SHOWN)]).text());
    if rows.len() > SHOWN {
        let _ = writeln!(out, "{} more: --json and the report have them", rows.len() - SHOWN);
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::sides::sides;
    use super::*;
    use crate::assemble::synthetic;
    use crate::result::{CountersRecord, ResultFile};

    /// A result whose interfaces counted so much a second, isolated and loaded.
    fn counting(counters: &[(&str, f64, f64)]) -> ResultFile {
        let mut file = synthetic::file("tcp", None, 2.0);
        let mut record = CountersRecord::default();
        for &(counter, calm, busy) in counters {
            for (phase, rate) in [("isolated all canaries", calm), ("loaded all canaries", busy)] {
                record.add(phase, synthetic::device("n0", synthetic::ETH0, 2.0, &[(counter, 2.0 * rate)]));
            }
        }
        file.counters = Some(record);
        file
    }

    fn compared(files: Vec<ResultFile>) -> (Vec<String>, Vec<CounterComparison>) {
        let files = synthetic::named(files);
        let sides = sides(&files);
        (sides.iter().map(|side| side.label.clone()).collect(), counters(&sides))
    }

    #[test]
    fn the_same_names_stand_beside_each_other_normalised_to_the_isolated_phase() {
        let one = counting(&[("rx_dropped", 10.0, 40.0), ("tx_dropped", 5.0, 5.0), ("rx_bytes", 1.0, 9e9)]);
        let two = counting(&[("rx_dropped", 10.0, 400.0), ("tx_dropped", 5.0, 6.0), ("rx_bytes", 1.0, 9e9)]);
        let (sides, rows) = compared(vec![one, two]);
        let names: Vec<&str> = rows.iter().map(|row| row.counter.as_str()).collect();
        assert_eq!(names, ["rx_dropped", "tx_dropped"], "what differs most first, and only what tells");
        let [first, second] = [0, 1].map(|side| rows[0].cells[side].clone().expect("both read it"));
        assert_eq!((first.times_isolated, first.times_first), (Some(4.0), None));
        assert_eq!((second.times_isolated, second.times_first), (Some(40.0), Some(10.0)));
        let text = render(&sides, &rows);
        assert!(text.contains("r1 idle") && text.contains("times r0") && text.contains("40.0x"), "{text}");
    }

    #[test]
    fn nothing_counted_is_a_figure_and_what_was_not_read_is_none() {
        let calm = counting(&[("rx_dropped", 0.0, 0.0), ("own_drops", 1.0, 2.0)]);
        let (sides, rows) =
            compared(vec![calm, counting(&[("rx_dropped", 0.0, 70.0)]), synthetic::file("mpi", None, 2.0)]);
        let [row] = &rows[..] else { panic!("only one name is shared: {rows:?}") };
        let quiet = row.cells[0].as_ref().expect("read, and nothing happened");
        assert_eq!((quiet.loaded_per_s, quiet.times_isolated), (Some(0.0), None));
        let busy = row.cells[1].as_ref().expect("read");
        assert_eq!((busy.loaded_per_s, busy.times_first), (Some(70.0), None), "no multiple of nothing");
        assert_eq!(row.cells[2], None);
        let shown = counters_table(&sides, &rows).text();
        assert!(
            shown.lines().nth(1).is_some_and(|line| line.split_whitespace().rev().take(4).all(|cell| cell == "-")),
            "{shown}"
        );
        assert!(render(&sides, &[]).is_empty());
    }

    #[test]
    fn long_tables_are_cut_and_say_so() {
        let names: Vec<String> = (0..15).map(|at| format!("drops{at}")).collect();
        let counted = |busy: f64| counting(&names.iter().map(|name| (name.as_str(), 1.0, busy)).collect::<Vec<_>>());
        let (sides, rows) = compared(vec![counted(1.0), counted(2.0)]);
        let text = render(&sides, &rows);
        assert_eq!((rows.len(), text.matches("net drops").count()), (15, SHOWN));
        assert!(text.contains("3 more: --json"), "{text}");
    }
}
