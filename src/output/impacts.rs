//! The impact of load: what is claimed first, how far to trust it, and the same by other figures.

use std::fmt::Write as _;

use crate::engine::Phase;
use crate::result::{CongestorLoad, ResultFile, Run, Test, TestImpact};
use crate::stats::Statistic;
use crate::text::{Table, factor, with_interval};

/// Figures by time, then by message.
pub(super) const COLUMNS: [Statistic; 8] = [
    Statistic::TimeP50,
    Statistic::TimeP75,
    Statistic::TimeP90,
    Statistic::Avg,
    Statistic::P50,
    Statistic::P90,
    Statistic::P99,
    Statistic::P999,
];

/// A table under its title, unless it has no rows.
pub(super) fn section(out: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let _ = writeln!(out, "{title}\n{}", table.render());
    }
}

/// All impacts of a run.
pub(super) fn impacts(out: &mut String, result: &ResultFile, run: &Run) {
    headlines(out, result, run);
    let mut table = Table::new(["test", "time-p50", "time-p90", "avg", "p50", "p90", "p99", "p99.9"]);
    for test in run.tests.iter().filter(|test| test.phase == Phase::Loaded) {
        if test.kernel.is_application() {
            // It has one figure, which stands above.
            continue;
        }
        let shown = COLUMNS.into_iter().filter(|&of| of != Statistic::HEADLINE || run.headline(test.kernel).is_none());
        let of: Vec<_> = shown.map(|statistic| run.impact(test.kernel, statistic)).collect();
        if of.iter().any(Option::is_some) {
            let cells = of.into_iter().map(|factor| factor.map_or_else(|| "-".into(), with_interval));
            table.row([test.title.clone()].into_iter().chain(cells));
        }
    }
    section(out, "The same by other figures: of time, then of messages (-: too few iterations to tell)", &table);
    if run.tests.iter().any(|test| test.printed.is_some()) {
        *out += "No intervals: these figures are another program's, rounded as it printed them.\n\n";
    }
}

/// What is claimed first, of applications and of kernels.
fn headlines(out: &mut String, result: &ResultFile, run: &Run) {
    let of_kind = |applications: bool| -> Vec<&TestImpact> {
        run.impacts.iter().filter(|of| of.kernel.is_application() == applications).collect()
    };
    let times = "Congestion impact: times worse under load";
    headline(out, result, run, &of_kind(true), &format!("{times}, by the mean of an application's repetitions"));
    let moment = "for a message that comes at a random moment (75th percentile by time)";
    headline(out, result, run, &of_kind(false), &format!("{times}, {moment}"));
}

/// Impacts, and all that tells how far to trust them.
fn headline(out: &mut String, result: &ResultFile, run: &Run, of: &[&TestImpact], title: &str) {
    let mut table = Table::new(["test", "impact", "placements from - to", "one more", "time held up", "alone"]);
    let mut remarks: Vec<String> = Vec::new();
    let mut placements = 0;
    for test in of {
        let Some(headline) = &test.headline else { continue };
        let spread = headline.spread;
        placements = placements.max(spread.placements);
        let percent = |part: f64| format!("{:.0}%", 100.0 * part);
        let bounds = |low: f64, high: f64| format!("{} - {}", factor(low), factor(high));
        let impact = match headline.not_reportable {
            Some(why) => {
                remarks.push(format!("{}: not reportable: {why}.", test.title));
                "not reportable".to_owned()
            }
            None => {
                // With one placement only, an application still has its repetitions to tell by.
                let repeated = test.impact.get(headline.statistic).filter(|_| test.kernel.is_application());
                with_interval(repeated.unwrap_or_else(|| spread.into()))
            }
        };
        table.row([
            test.title.clone(),
            impact,
            if spread.placements > 1 { bounds(spread.lowest, spread.highest) } else { "this one only".into() },
            spread.prediction.map_or_else(|| "-".into(), |of| bounds(of.low, of.high)),
            headline.congested.map_or_else(|| "-".into(), |of| percent(of.loaded)),
            headline.congested.map_or_else(|| "-".into(), |of| percent(of.isolated)),
        ]);
        for kind in &headline.kinds {
            let (name, of) = (&kind.kind, kind.spread);
            let times = if of.placements == 1 { "1 placement".into() } else { format!("{} placements", of.placements) };
            remarks.push(format!("{}, {name} ({times}): {}.", test.title, with_interval(of.into())));
        }
        if let Some(moved) = headline.baseline_moved.filter(|moved| (moved.ln()).abs() > 0.1) {
            remarks.push(format!("{}: isolated, the last block was {moved:.2}x the first.", test.title));
        }
    }
    let over = match placements {
        0 => return,
        1 => "this placement only: another may lie far outside".to_owned(),
        2 => "2 placements, too few for an interval".to_owned(),
        count => format!("95% interval over {count} placements"),
    };
    let _ =
        writeln!(out, "{title}\n{over}; {} placement, seed {}\n{}", result.plan.placement, result.seed, table.render());
    let shown = |test: &&Test| of.iter().any(|impact| impact.kernel == test.kernel);
    for test in run.tests.iter().filter(|test| test.phase == Phase::Loaded).filter(shown) {
        remarks.extend(test.load.iter().filter_map(|load| weak(test, load)));
    }
    for remark in &remarks {
        let _ = writeln!(out, "  {remark}");
    }
    *out += "one more: where the impact of one more placement would lie.";
    if of.iter().any(|test| test.headline.as_ref().is_some_and(|of| of.congested.is_some())) {
        *out += " time held up: the share of time in which the canary took\n\
                 more than twice its isolated median; alone: the same without load.";
    }
    *out += "\n\n";
}

/// What is to be said of a load that was not there all along.
fn weak(test: &Test, load: &CongestorLoad) -> Option<String> {
    let (title, key) = (&load.title, test.kernel.info().key);
    if load.least_mib_per_s.is_some_and(|least| least < 0.01 * load.delivered_mib_per_s) {
        let ms = 1e3 * load.slice_s.unwrap_or_default();
        return Some(format!(
            "{title} stopped for {ms:.0} ms or more while {key} measured: its load was not there all along."
        ));
    }
    (load.steady == Some(false)).then(|| format!("{title} had not come up yet when {key} began to measure."))
}
