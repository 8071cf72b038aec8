//! A sweep: where the impact begins, and every canary over the values of the key.

use super::summary;
use crate::analysis::sweep::{first_onset, values};
use crate::result::{CurvePoint, Landmark, ResultFile, SweepCurve, SweepRecord, distinct};
use crate::stats::Factor;
use crate::text::{Cell, Table, duration, figure, plural, rate, whole_percent, with_interval, wrap};

/// So many rows leave room for the verdict on a screen of a dozen lines.
const MOST_ROWS: usize = 8;

/// What stands over the table of all curves.
pub(crate) const CURVES_TITLE: &str = "Sweep: every point of every curve, with 95% intervals of its own";
/// What a star means.
pub(crate) const STARS: &str =
    "*: an impact above 1.1, significant at 5% over all points and curves. The onset is the least load that has one";

/// The first screen.
pub(super) fn render(file: &ResultFile, record: &SweepRecord, columns: usize) -> String {
    let mut out = wrap(&verdict(file, record), columns);
    let simulated = summary::simulated(file);
    let crossings: Vec<String> = record.curves.iter().flat_map(crossings).collect();
    // One line beside verdict, table and extent has room anyway.
    let more = (crossings.len() + usize::from(simulated.is_some())).saturating_sub(1);
    simulated.iter().for_each(|line| out += &wrap(line, columns));
    out += &summary::unindented(&impacts(record, MOST_ROWS.saturating_sub(more).max(4)));
    crossings.into_iter().chain([extent(file, record)]).for_each(|line| out += &wrap(&line, columns));
    out
}

/// The first line.
pub(crate) fn verdict(file: &ResultFile, record: &SweepRecord) -> String {
    let cut_short = summary::cut_short(file);
    if let Some((curve, point)) = first_onset(record) {
        let impact = point.impact.map(with_interval).unwrap_or_default();
        let name = name(record, curve);
        // What may not be reported, or is less than was measured, may have an impact, too.
        let mut less = curve.points.iter().take_while(|of| of.value != point.value).peekable();
        let is_known = less.peek().is_some() && less.all(|of| of.p_value.is_some());
        let at = if is_known { "at" } else { "at or below" };
        return format!("ONSET {at} {}{cut_short}: {name} is {impact} worse{}", point.value, knee(curve));
    }
    let shown: Vec<String> = record.curves.iter().filter_map(|curve| shown(record, curve)).collect();
    match record.curves.first().map(|curve| &curve.onset) {
        None => format!("CANNOT SAY{cut_short}: nothing was measured idle and under load"),
        Some(_) if !shown.is_empty() => format!("IMPACT{cut_short}: {}", shown.join("; ")),
        Some(Landmark::None(why)) if why.starts_with("nothing") => format!("CANNOT SAY{cut_short}: {why}"),
        Some(_) => format!("NO ONSET{cut_short}: no value of {} shows an impact above 1.1", keys(file).join(" and ")),
    }
}

fn keys(file: &ResultFile) -> Vec<&str> {
    file.plan.sweep.iter().map(|swept| swept.key.as_str()).collect()
}

/// The values of a curve that show an impact.
fn shown(record: &SweepRecord, curve: &SweepCurve) -> Option<String> {
    let with: Vec<&str> =
        curve.points.iter().filter(|point| point.shows_impact).map(|point| point.value.value.as_str()).collect();
    let key = &curve.points.first()?.value.key;
    (!with.is_empty()).then(|| format!("{} at {key}={}", name(record, curve), with.join(",")))
}

/// The canary, with what tells its curve from others of it.
pub(crate) fn name(record: &SweepRecord, curve: &SweepCurve) -> String {
    let several = distinct(record.curves.iter().map(|of| &of.network)).len() > 1;
    let network = if several { format!(" over {}", curve.network) } else { String::new() };
    let under = curve.under.as_ref().map(|of| format!(" ({of})")).unwrap_or_default();
    format!("{}{under}{network}", curve.kernel)
}

fn knee(curve: &SweepCurve) -> String {
    curve.knee.point().map(|at| format!("; knee at {}", curve.points[at].value.value)).unwrap_or_default()
}

/// Where each condition begins to hold.
fn crossings(curve: &SweepCurve) -> Vec<String> {
    let value = |at: usize| curve.points[at].value.value.as_str();
    let of = |crossing: &crate::result::Crossing| {
        let (condition, holds) = (&crossing.condition, crossing.holds_at_last);
        match (crossing.between, crossing.at) {
            (Some([before, after]), at) => {
                let is_fraction = curve.points[after].value.value.ends_with('%');
                let shown = |at: f64| if is_fraction { whole_percent(at) } else { figure(at) };
                let near = at.map(|at| format!(", at about {}", shown(at))).unwrap_or_default();
                format!("'{condition}' from between {} and {} on{near}", value(before), value(after))
            }
            (None, _) if holds => format!("'{condition}' at all points"),
            (None, _) => format!("'{condition}' at no point"),
        }
    };
    curve.crossings.iter().map(of).collect()
}

/// A row for each value, with the impact on each canary: all of them, or those that tell most.
fn impacts(record: &SweepRecord, most: usize) -> Table {
    let values = values(record);
    let wanted = told(record, values.len(), most);
    let rows: Vec<_> =
        values.iter().enumerate().filter(|(at, _)| wanted.contains(at)).map(|(_, value)| value).collect();
    let key = values.first().map(|value| value.key.clone()).unwrap_or_default();
    let find = |curve: &SweepCurve, row: &&crate::plan::SweptValue| -> Option<CurvePoint> {
        curve.points.iter().find(|point| point.value == **row).cloned()
    };
    let load = |row: &&crate::plan::SweptValue| {
        let curve = record.curves.first()?;
        find(curve, row).map(|point| Cell::number(point.load_mib_per_s, rate))
    };
    // More curves with intervals are wider than a screen: those have them in the tables.
    let shown_impact: fn(&CurvePoint) -> Option<String> = if record.curves.len() > 2 { brief } else { impact };
    Table::of(rows)
        .column(key, |row| row.value.clone())
        .column("load, all", load)
        .columns(&record.curves, |table, curve| {
            table.column(name(record, curve), |row| shown_impact(&find(curve, row)?))
        })
        .done()
}

/// Without its interval.
fn brief(point: &CurvePoint) -> Option<String> {
    let plain = |of: Factor| Factor { interval: None, ..of };
    impact(&CurvePoint { impact: point.impact.map(plain), ..point.clone() })
}

fn impact(point: &CurvePoint) -> Option<String> {
    let star = if point.shows_impact { " *" } else { "" };
    match point.p_value {
        Some(_) => Some(format!("{}{star}", with_interval(point.impact?))),
        None => Some("not reportable".into()),
    }
}

/// Of so many rows at most: the ends, those beside onsets and knees, then the others from the first on.
fn told(record: &SweepRecord, rows: usize, most: usize) -> Vec<usize> {
    let marks = record.curves.iter().flat_map(|curve| [curve.onset.point(), curve.knee.point()]).flatten();
    let marked = marks.flat_map(|at| [at, at.saturating_sub(1)]);
    let mut wanted = distinct([0, rows.saturating_sub(1)].into_iter().chain(marked).chain(0..rows));
    wanted.truncate(most);
    wanted
}

/// Every point of every curve.
pub(crate) fn curves(record: &SweepRecord) -> Table {
    let rows = record.curves.iter().flat_map(|curve| curve.points.iter().enumerate().map(move |of| (curve, of)));
    let added = |curve: &SweepCurve, point: &CurvePoint| {
        let of = point.added_us?;
        let shown = |value: f64| summary::added_time(curve.kernel, value);
        Some(Cell::Number { shown: crate::text::within(of.value, of.interval, shown), value: of.value })
    };
    Table::of(rows)
        .column("canary", |(curve, _)| name(record, curve))
        .column("at", |(_, (_, point))| point.value.to_string())
        .column("load", |(_, (_, point))| Cell::number(point.load_mib_per_s, rate))
        .column("idle", |(curve, (_, point))| shown_figure(curve, point.idle))
        .column("loaded", |(curve, (_, point))| shown_figure(curve, point.loaded))
        .column("added [95%]", |(curve, (_, point))| added(curve, point))
        .column("impact [95%]", |(_, (_, point))| impact(point))
        .column("p, corrected", |(_, (_, point))| point.p_value.map(|of| format!("{of:.3}")))
        .column("", |(curve, (at, _))| mark(curve, *at))
        .done()
}

fn shown_figure(curve: &SweepCurve, value: f64) -> Cell {
    use crate::stats::Direction;
    let is_rate = curve.kernel.info().direction == Direction::Bandwidth;
    Cell::number(value, |value| if is_rate { rate(value) } else { duration(1e3 * value) })
}

fn mark(curve: &SweepCurve, at: usize) -> String {
    let of = |landmark: &Landmark, word: &'static str| (landmark.point() == Some(at)).then_some(word);
    [of(&curve.onset, "onset"), of(&curve.knee, "knee")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Sweeps of the same key beside each other, point by point; nothing unless all are.
pub fn sweeps(files: &[(String, &ResultFile)]) -> Option<String> {
    let all: Vec<(&str, &ResultFile, &SweepRecord)> =
        files.iter().map(|(name, file)| Some((name.as_str(), *file, file.sweep.as_ref()?))).collect::<Option<_>>()?;
    let [(_, first, _), rest @ ..] = &all[..] else { return None };
    if rest.is_empty() || rest.iter().any(|(_, file, _)| keys(file) != keys(first)) {
        return None;
    }
    let rows = distinct(all.iter().flat_map(|(.., record)| {
        let of_curve = |curve: &SweepCurve| -> Vec<(String, String)> {
            curve.points.iter().map(|point| (name(record, curve), point.value.to_string())).collect()
        };
        record.curves.iter().flat_map(of_curve).collect::<Vec<_>>()
    }));
    let find = |record: &SweepRecord, row: &(String, String)| {
        let curve = record.curves.iter().find(|curve| name(record, curve) == row.0)?;
        let at = curve.points.iter().position(|point| point.value.to_string() == row.1)?;
        let mark = mark(curve, at);
        let mark = if mark.is_empty() { mark } else { format!(" ({mark})") };
        Some(format!("{}{mark}", impact(&curve.points[at])?))
    };
    let table = Table::of(rows)
        .column("canary", |(canary, _)| canary.clone())
        .column("at", |(_, at)| at.clone())
        .columns(&all, |table, (name, _, record)| table.column(*name, |row| find(record, row)));
    let verdicts: String =
        all.iter().map(|(name, file, record)| format!("{name}: {}\n", verdict(file, record))).collect();
    Some(format!(
        "{verdicts}{}{STARS}. Intervals are over placements of each job.\n",
        summary::unindented(&table.done())
    ))
}

/// What was run.
fn extent(file: &ResultFile, record: &SweepRecord) -> String {
    let (points, took) = (file.runs.len(), duration(1e9 * file.duration_s));
    let hidden = if values(record).len() > MOST_ROWS { ", all points" } else { "" };
    let placements = plural(file.placements(), "placement");
    format!("{points} points, {placements}, {took}, seed {}. Curves{hidden}: -v", file.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::sweep::record;
    use crate::assemble::synthetic;
    use crate::kernel::Canary;
    use crate::plan::{Swept, SweptValue};

    /// A sweep of intensity whose impact on lat is that of each point.
    fn file(points: usize, impact: impl Fn(usize) -> f64, crosses: &str) -> ResultFile {
        let swept: Swept = format!("congestor.rate=10%..100%/{points}").parse().unwrap();
        let mut file = synthetic::file("tcp", None, 1.0);
        let run = |(at, value): (usize, &String)| {
            let of = |kernel: Canary| if kernel == Canary::Lat { impact(at) } else { 1.0 };
            let mut run = synthetic::file_of("tcp", None, of).runs.remove(0);
            run.point = vec![SweptValue { key: swept.key.clone(), value: value.clone(), number: swept.number(value) }];
            run
        };
        file.runs = swept.values.iter().enumerate().map(run).collect();
        file.sweep = record(&file.runs, std::slice::from_ref(&swept), &[crosses.parse().unwrap()]);
        file.plan.sweep = vec![swept];
        file
    }

    #[test]
    fn the_first_screen_has_the_onset_and_a_dozen_lines() {
        for points in [8, 20] {
            let file = file(points, |at| if 2 * at < points { 1.0 } else { 3.0 + at as f64 }, "lat.avg.impact > 2");
            let text = render(&file, file.sweep.as_ref().unwrap(), 80);
            assert!(text.starts_with("ONSET at congestor.rate=") && text.contains("lat is "), "{text}");
            assert!(text.lines().count() <= 12 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("'lat.avg.impact > 2' from between "), "{text}");
        }
    }

    #[test]
    fn an_onset_behind_values_that_may_not_be_reported_may_lie_before_it() {
        let mut file = file(4, |at| [1.0, 1.0, 3.0, 9.0][at], "lat.avg.impact > 2");
        file.runs[1].placements.truncate(2);
        let record = record(&file.runs, &file.plan.sweep, &[]).unwrap();
        assert!(verdict(&file, &record).starts_with("ONSET at or below congestor.rate=70%"), "{record:?}");
    }

    #[test]
    fn an_onset_at_the_least_value_may_lie_below_it() {
        let file = file(4, |at| 3.0 + at as f64, "lat.avg.impact > 2");
        assert!(verdict(&file, file.sweep.as_ref().unwrap()).starts_with("ONSET at or below congestor.rate=10%"));
    }

    #[test]
    fn what_has_no_impact_has_no_onset() {
        let file = file(4, |_| 1.0, "lat.avg.impact > 2");
        let text = render(&file, file.sweep.as_ref().unwrap(), 80);
        let said = "NO ONSET: no value of congestor.rate shows an impact above 1.1";
        assert!(text.starts_with(said) && text.contains("'lat.avg.impact > 2' at no point"), "{text}");
    }

    #[test]
    fn sweeps_stand_beside_each_other_point_by_point() {
        let (one, other) =
            (file(4, |at| [1.0, 1.0, 3.0, 9.0][at], "lat.avg.impact > 2"), file(4, |_| 1.0, "lat.avg.impact > 2"));
        let text = sweeps(&[("a".into(), &one), ("b".into(), &other)]).unwrap();
        assert!(text.starts_with("a: ONSET at congestor.rate=70%") && text.contains("\nb: NO ONSET"), "{text}");
        let row = text.lines().find(|line| line.starts_with("lat ") && line.contains("=70%")).unwrap();
        assert!(row.contains("* (onset"), "{row}");
        let mut unlike = other.clone();
        unlike.plan.sweep[0].key = "load-fraction".into();
        assert_eq!(sweeps(&[("a".into(), &one), ("b".into(), &unlike)]), None);
        assert_eq!(sweeps(&[("a".into(), &one)]), None);
    }

    #[test]
    fn every_point_is_in_the_table_of_curves() {
        let file = file(5, |at| [1.0, 1.0, 1.0, 1.5, 9.0][at], "lat.avg.impact > 2");
        let cells = curves(file.sweep.as_ref().unwrap()).cells("-");
        assert_eq!(cells.len(), 1 + 3 * 5);
        let marks: Vec<&str> = cells.iter().filter(|row| row[0] == "lat").map(|row| row[8].as_str()).collect();
        assert_eq!(marks, ["", "", "", "onset, knee", ""]);
    }
}
