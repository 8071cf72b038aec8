//! Bursts of load: when a canary feels one, how bad it gets, and when it is over; over several bursts and pauses as a map.

use super::summary;
use crate::plan::{BURST_OFF, BURST_ON};
use crate::result::{BurstEffect, BurstFigure, BurstOutcome, BurstRecord, ResultFile, Run, Test, distinct};
use crate::text::{Cell, Table, duration, plural, within, wrap};

/// What stands over the table of all bursts.
pub(crate) const EFFECTS_TITLE: &str =
    "Bursts: latency by the time since the onset, and until it is back after the end; 95% intervals over bursts";
/// What the words of the table mean.
pub(crate) const WORDS: &str = "Felt: from the onset until latency is more than 10% above idle. Recovery: from the end of the burst until it is \
                                back within 10% of idle";

/// A canary in bursts.
#[derive(Clone, Copy)]
pub(crate) struct Bursts<'a> {
    pub run: &'a Run,
    pub test: &'a Test,
    pub record: &'a BurstRecord,
}

/// Whatever a file has of bursts.
pub(crate) fn all<'a>(file: &'a ResultFile) -> Vec<Bursts<'a>> {
    let of_run = |run: &'a Run| {
        let of = move |test: &'a Test| Some(Bursts { run, test, record: test.burst.as_ref()? });
        run.tests.iter().filter_map(of)
    };
    file.runs.iter().flat_map(of_run).collect()
}

/// The first screen.
pub(super) fn render(file: &ResultFile, columns: usize) -> String {
    let all = all(file);
    let mut out = wrap(&verdict(file), columns);
    summary::simulated(file).iter().for_each(|line| out += &wrap(line, columns));
    let maps = maps(&all);
    if maps.is_empty() {
        out += &summary::unindented(&brief(&all));
    }
    for map in maps {
        out += &format!("{}:\n", map.title());
        out += &summary::unindented(&map.table());
    }
    for line in clocks(&all).into_iter().chain([extent(file)]) {
        out += &wrap(&line, columns);
    }
    out
}

/// The first line: of the canary that is back last.
pub(crate) fn verdict(file: &ResultFile) -> String {
    let all = all(file);
    let cut_short = summary::cut_short(file);
    let rank = |of: &&Bursts<'_>| match told(of.record).1.outcome() {
        BurstOutcome::NotBack => f64::INFINITY,
        BurstOutcome::Back(recovery) => recovery.value,
        BurstOutcome::NotShown => -1.0,
        BurstOutcome::NotFelt => -2.0,
        BurstOutcome::Unknown => -3.0,
    };
    let Some(worst) = all.iter().rev().max_by(|one, other| rank(one).total_cmp(&rank(other))) else {
        return format!("CANNOT SAY{cut_short}: nothing was measured idle and in bursts");
    };
    let burst = worst.record.burst;
    let (statistic, effect) = told(worst.record);
    let [on, off] = [burst.on_s, burst.off_s].map(|seconds| duration(1e9 * seconds));
    let name = if all.len() > 1 { named(worst) } else { worst.test.kernel.to_string() };
    let peak = effect.peak_us.map(|of| shown(of.value)).unwrap_or_default();
    let felt = effect.felt_us.map(|of| format!(", felt after {}", shown(of.value))).unwrap_or_default();
    let idle = shown(effect.idle_us);
    match effect.outcome() {
        BurstOutcome::Back(recovery) => format!(
            "RECOVERY{cut_short} in {} after a burst of {on}: {name} peaks at {peak}, idle {idle} ({statistic}{felt})",
            with_interval(recovery)
        ),
        BurstOutcome::NotBack => format!(
            "NO RECOVERY{cut_short} in a pause of {off} after a burst of {on}: {name} peaks at {peak}, idle {idle} ({statistic})"
        ),
        BurstOutcome::NotShown => format!(
            "CANNOT SAY{cut_short}: {name} peaks at {peak}, idle {idle} ({statistic}), as it may by chance: a longer --budget is needed"
        ),
        BurstOutcome::NotFelt => {
            format!("NOT FELT{cut_short}: bursts of {on} leave {name} within 10% of idle, {idle} ({statistic})")
        }
        BurstOutcome::Unknown => {
            let samples = worst.record.curve.iter().map(|part| part.samples).min().unwrap_or(0);
            format!(
                "CANNOT SAY{cut_short}: {name} has {samples} samples in some part of the time between bursts, fewer than 100: a \
                 longer --budget or a shorter --pace is needed"
            )
        }
    }
}

/// The percentile that the verdict is about: the 99th, unless only the median is shown to be felt.
fn told(record: &BurstRecord) -> (&'static str, &BurstEffect) {
    match (record.p99.is_felt, record.p50.is_felt) {
        (false, true) => ("p50", &record.p50),
        _ => ("p99", &record.p99),
    }
}

/// The canary, with what tells its bursts from others.
pub(crate) fn named(of: &Bursts<'_>) -> String {
    format!("{}{}", of.test.kernel, crate::result::at_point(&of.run.point))
}

fn shown(us: f64) -> String {
    duration(1e3 * us)
}

fn with_interval(of: BurstFigure) -> String {
    within(of.value, of.interval, shown)
}

/// The median's row and the 99th percentile's of every canary.
fn rows<'a>(all: &'a [Bursts<'a>]) -> impl Iterator<Item = (&'a Bursts<'a>, &'static str, &'a BurstEffect)> {
    all.iter().flat_map(|of| [(of, "p50", &of.record.p50), (of, "p99", &of.record.p99)])
}

fn cell(of: Option<BurstFigure>) -> Option<Cell> {
    of.map(|of| Cell::Number { shown: with_interval(of), value: of.value })
}

fn recovery(effect: &BurstEffect) -> Cell {
    match effect.outcome() {
        BurstOutcome::Back(of) => Cell::Number { shown: with_interval(of), value: of.value },
        other => word(other).into(),
    }
}

fn word(outcome: BurstOutcome) -> &'static str {
    match outcome {
        BurstOutcome::Back(_) => "",
        BurstOutcome::NotBack => "not in the pause",
        BurstOutcome::NotShown => "not shown",
        BurstOutcome::NotFelt => "not felt",
        BurstOutcome::Unknown => "too few samples",
    }
}

/// What fits a screen.
fn brief(all: &[Bursts<'_>]) -> Table {
    Table::of(rows(all))
        .column("canary", |(of, ..)| named(of))
        .column("", |(_, statistic, _)| *statistic)
        .column("idle", |(.., effect)| Cell::number(effect.idle_us, shown))
        .column("felt after", |(.., effect)| effect.felt_us.map(|of| Cell::number(of.value, shown)))
        .column("peak", |(.., effect)| effect.peak_us.map(|of| Cell::number(of.value, shown)))
        .column("recovery [95%]", |(.., effect)| recovery(effect))
        .done()
}

/// Every burst with every interval.
pub(crate) fn effects(all: &[Bursts<'_>]) -> Table {
    Table::of(rows(all))
        .column("canary", |(of, ..)| of.test.kernel.to_string())
        .column("network", |(of, ..)| of.run.network())
        .column("on", |(of, ..)| Cell::number(1e6 * of.record.burst.on_s, shown))
        .column("off", |(of, ..)| Cell::number(1e6 * of.record.burst.off_s, shown))
        .column("bursts", |(of, ..)| of.record.bursts)
        .column("", |(_, statistic, _)| *statistic)
        .column("idle", |(.., effect)| Cell::number(effect.idle_us, shown))
        .column("felt after [95%]", |(.., effect)| cell(effect.felt_us))
        .column("peak [95%]", |(.., effect)| cell(effect.peak_us))
        .column("recovery [95%]", |(.., effect)| recovery(effect))
        .column("clocks within", |(of, ..)| Cell::number(of.record.clock_error_us, shown))
        .done()
}

/// The folded curve of a canary.
pub(crate) fn curve(record: &BurstRecord) -> Table {
    Table::of(&record.curve)
        .column("since onset", |part| Cell::number(part.since_us, shown))
        .column("load", |part| if part.since_us < 1e6 * record.burst.on_s { "on" } else { "off" })
        .column("samples", |part| part.samples)
        .column("p50", |part| part.p50_us.map(|us| Cell::number(us, shown)))
        .column("p99", |part| part.p99_us.map(|us| Cell::number(us, shown)))
        .done()
}

/// What the congestors did in a burst.
pub(crate) fn loads(all: &[Bursts<'_>]) -> Table {
    let rows = all.iter().flat_map(|of| of.record.loads.iter().map(move |load| (of, load)));
    Table::of(rows)
        .column("canary", |(of, _)| named(of))
        .column("congestor", |(_, load)| load.kernel.to_string())
        .column("iterations a burst", |(_, load)| load.iterations_per_burst)
        .column("MiB a burst", |(_, load)| load.mib_per_burst)
        .done()
}

/// The p99's recovery of a canary over bursts and pauses.
pub(crate) struct Map<'a> {
    own: Vec<Bursts<'a>>,
}

/// One for each canary and network, where bursts and pauses of several lengths took turns.
pub(crate) fn maps<'a>(all: &[Bursts<'a>]) -> Vec<Map<'a>> {
    let is_of_map = |of: &&Bursts<'_>| [BURST_ON, BURST_OFF].iter().all(|key| value(of, key).is_some());
    let family = |of: &Bursts<'_>| (of.run.network(), of.test.kernel);
    let families = distinct(all.iter().filter(is_of_map).map(family));
    let of_family =
        |known| Map { own: all.iter().filter(is_of_map).filter(|of| family(of) == known).copied().collect() };
    families.into_iter().map(of_family).collect()
}

fn value<'a>(of: &Bursts<'a>, key: &str) -> Option<&'a str> {
    Some(&of.run.point.iter().find(|value| value.key == key)?.value)
}

impl<'a> Map<'a> {
    pub fn title(&self) -> String {
        let kernel = self.own.first().map(|of| of.test.kernel.to_string()).unwrap_or_default();
        format!("{kernel}, p99: recovery (peak), by burst and pause")
    }

    /// The canary and its network.
    pub fn name(&self) -> String {
        self.own.first().map(|of| format!("{}, {}", of.test.kernel, of.run.network())).unwrap_or_default()
    }

    /// Lengths of bursts, and of pauses.
    pub fn axes(&self) -> [Vec<&'a str>; 2] {
        [BURST_ON, BURST_OFF].map(|key| distinct(self.own.iter().filter_map(|of| value(of, key))))
    }

    /// What was measured with this burst and this pause.
    pub fn at(&self, on: &str, off: &str) -> Option<&'a BurstRecord> {
        let of = |of: &&Bursts<'_>| value(of, BURST_ON) == Some(on) && value(of, BURST_OFF) == Some(off);
        self.own.iter().find(of).map(|of| of.record)
    }

    /// For other programs.
    pub fn data(&self) -> Table {
        effects(&self.own)
    }

    fn table(&self) -> Table {
        let [ons, offs] = self.axes();
        let show = |record: &BurstRecord| {
            let peak = record.p99.peak_us.map(|of| format!(" ({})", shown(of.value))).unwrap_or_default();
            match record.p99.outcome() {
                BurstOutcome::Back(of) => format!("{}{peak}", shown(of.value)),
                other => format!("{}{peak}", word(other)),
            }
        };
        Table::of(ons)
            .column("on", |on| (*on).to_owned())
            .columns(offs, |table, off| table.column(format!("off {off}"), |on| self.at(on, off).map(show)))
            .done()
    }
}

/// How well clocks were known.
fn clocks(all: &[Bursts<'_>]) -> Option<String> {
    let error = all.iter().map(|of| of.record.clock_error_us).reduce(f64::max)?;
    let bursts: u64 = all.iter().map(|of| of.record.bursts).sum();
    Some(format!("{bursts} bursts; the ranks' clocks agree within {}", shown(error)))
}

/// What was run.
fn extent(file: &ResultFile) -> String {
    let placements = plural(file.placements(), "placement");
    format!("{placements}, {}, seed {}. Folded curves: -v", duration(1e9 * file.duration_s), file.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn the_first_screen_has_the_recovery_and_a_dozen_lines() {
        let text = render(&synthetic::bursts(&[("2ms", "8ms")]), 80);
        assert!(
            text.starts_with("RECOVERY in 3.00 ms [2.70 ms, 3.30 ms] after a burst of 2.00 ms: lat peaks at"),
            "{text}"
        );
        assert!(text.lines().count() <= 12 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("360 bursts; the ranks' clocks agree within 1.50 us"), "{text}");
    }

    #[test]
    fn lists_are_a_map_and_the_worst_is_told() {
        let file = synthetic::bursts(&[("2ms", "8ms"), ("2ms", "2ms"), ("4ms", "8ms"), ("4ms", "2ms")]);
        let text = render(&file, 80);
        assert!(text.starts_with("NO RECOVERY in a pause of 2.00 ms after a burst of"), "{text}");
        assert!(text.contains("lat, p99: recovery (peak), by burst and pause:"), "{text}");
        let row = text.lines().find(|line| line.starts_with("4ms ")).expect("a row");
        assert!(row.contains("3.00 ms (120 us)") && row.contains("not in the pause (120 us)"), "{text}");
        assert_eq!(effects(&all(&file)).cells("-").len(), 1 + 8);
    }

    #[test]
    fn what_is_not_felt_and_what_cannot_be_said_are_told_apart() {
        let mut file = synthetic::bursts(&[("2ms", "8ms")]);
        let of = |file: &mut ResultFile, change: fn(&mut BurstEffect)| {
            let tests = file.runs[0].tests.iter_mut();
            tests
                .filter_map(|test| test.burst.as_mut())
                .for_each(|of| [&mut of.p50, &mut of.p99].into_iter().for_each(change));
            render(file, 80)
        };
        let noisy = of(&mut file, |of| (of.is_felt, of.felt_us, of.recovery_us) = (false, None, None));
        assert!(
            noisy.starts_with("CANNOT SAY: lat peaks at 120 us, idle 3.00 us (p99), as it may by chance"),
            "{noisy}"
        );
        assert!(noisy.contains("not shown"), "{noisy}");
        let quiet = of(&mut file, |of| of.peak_us = Some(BurstFigure { value: of.idle_us, interval: None }));
        assert!(quiet.starts_with("NOT FELT: bursts of 2.00 ms leave lat within 10% of idle"), "{quiet}");
        let few = of(&mut file, |of| of.peak_us = None);
        assert!(few.starts_with("CANNOT SAY: lat has 400 samples in some part"), "{few}");
    }
}
