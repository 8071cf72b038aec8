//! A figure night after night: a dot for each night, the median of every level as a line, changes as upright lines.

use super::{Area, Plot, WIDTH, dot, line, text};
use crate::analysis::history::{History, Series};
use crate::text::{Table, figure};

const AREA: Area = Area { left: 56.0, right: WIDTH - 14.0, top: 30.0, bottom: 216.0 };
/// Nights that have a label below the axis, where labels are days; where they have times, there is room for fewer.
const MOST_LABELS: usize = 3;
/// A day's letters.
const DAY: usize = 10;
/// Noise is not to look like a mountain: the axis has at least so much of the largest value.
const NARROWEST: f64 = 0.2;

/// The plot of a figure; nothing where no night has it.
pub fn history(of: &History, series: &Series) -> Option<Plot> {
    let values = series.values.iter().map(|(_, value)| *value);
    let (low, high) = (values.clone().reduce(f64::min)?, values.reduce(f64::max)?);
    let axis = Axis::new(low, high);
    let across = |night: usize| AREA.at(0.02 + 0.96 * night as f64 / (of.nights.len() - 1).max(1) as f64, 0.0).0;
    let mut body: String = axis.ticks().map(|tick| AREA.level(axis.at(tick), "grid", &axis.label(tick))).collect();
    for change in &series.changes {
        let (x, class) = (across(change.night), if change.is_worse { "busy" } else { "calm" });
        body += &line((x, AREA.top - 4.0), (x, AREA.bottom), &format!("mark {class}"));
        let (anchor, x) = if x > (AREA.left + AREA.right) / 2.0 { ("end", x - 3.0) } else { ("start", x + 3.0) };
        body += &text(x, AREA.top - 8.0, anchor, &format!("mark-name {class}"), &change.since);
    }
    for level in series.levels() {
        let (Some((first, _)), Some((last, _))) = (series.values.get(level.start), series.values.get(level.end - 1))
        else {
            continue;
        };
        let y = axis.at(series.median_of(level));
        body += &line((across(*first) - 4.0, y), (across(*last) + 4.0, y), "mean calm");
    }
    for (night, value) in &series.values {
        let title = format!("{}: {} {}", of.nights[*night], figure(*value), series.name.unit);
        body += &dot((across(*night), axis.at(*value)), 3, "calm", &title);
    }
    for night in &series.left_out {
        let title = format!("{}: left out, it may not be reported", of.nights[*night]);
        body += &dot((across(*night), AREA.bottom), 3, "unsaid", &title);
    }
    let is_short = of.nights.iter().all(|name| name.chars().count() <= DAY);
    let step = of.nights.len().div_ceil(if is_short { MOST_LABELS } else { MOST_LABELS - 1 });
    for (night, name) in of.nights.iter().enumerate().step_by(step) {
        let anchor = match night {
            0 => "start",
            // No label is cut.
            last if last + 1 == of.nights.len() => "end",
            _ => "middle",
        };
        body += &text(across(night), AREA.bottom + 14.0, anchor, "tick", name);
    }
    body += &AREA.base();
    body += &AREA.title(32.0, &format!("{}; lines: median of a level", series.name.unit));
    let title = format!("{}, {}", series.name.key, of.title);
    Some(Plot::new(&["history", &title], title.clone(), told(series), AREA.bottom + 40.0, body, data(of, series)))
}

/// What is read to those who cannot see it.
fn told(series: &Series) -> String {
    let (unit, changes) = (&series.name.unit, series.changes.iter());
    let changed = changes.map(|of| format!("{} to {} {unit} since {}", figure(of.before), figure(of.after), of.since));
    let changed: Vec<String> = changed.collect();
    match changed.is_empty() {
        true => format!("{} nights, median {} {unit}, no change shown", series.values.len(), figure(series.level())),
        false => changed.join("; "),
    }
}

fn data(of: &History, series: &Series) -> Table {
    let levels = series.levels();
    let level =
        |place: usize| levels.iter().find(|level| level.contains(&place)).map(|of| series.median_of(of.clone()));
    Table::of(series.values.iter().enumerate())
        .column("night", |(_, (night, _))| of.nights[*night].clone())
        .column("file", |(_, (night, _))| of.files[*night].clone())
        .column(series.name.key.clone(), |(_, (_, value))| *value)
        .column("level", |(place, _)| level(*place))
        .done()
}

/// Linear, from below the least value to above the most; figures may be below 0.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    fn new(low: f64, high: f64) -> Self {
        let largest = low.abs().max(high.abs());
        let widest = if largest > 0.0 { NARROWEST * largest } else { 1.0 };
        let spare = (widest - (high - low)).max(0.1 * (high - low)) / 2.0;
        let (low, high) = (low - spare, high + spare);
        let decade = 10f64.powf(((high - low) / 4.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * decade).into_iter().find(|step| (high - low) / step <= 5.0);
        Axis { low, high, step: step.unwrap_or(high - low) }
    }

    fn at(&self, value: f64) -> f64 {
        AREA.at(0.0, (value - self.low) / (self.high - self.low)).1
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (first, last) = ((self.low / self.step).ceil() as i64, (self.high / self.step).floor() as i64);
        (first..=last).map(|number| number as f64 * self.step)
    }

    /// With as many digits as steps have.
    fn label(&self, tick: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let (tick, unit) = if self.step >= 1e4 { (tick / 1e3, "k") } else { (tick, "") };
        format!("{tick:.digits$}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::history::{Name, Night, Value};

    fn history_of(values: &[(f64, bool)]) -> History {
        let night = |(at, (value, is_sound)): (usize, &(f64, bool))| {
            let name = Name { key: "lat.avg.added".into(), unit: "us".into(), more_is_worse: true, primary: true };
            let started = format!("2026-01-{:02}T02:00:00Z", at + 1);
            let value = Value { value: *value, whole: Some(20.0), is_sound: *is_sound };
            Night { file: format!("n{at}.json"), started, figures: vec![(name, value)] }
        };
        History::of("run".into(), &values.iter().enumerate().map(night).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn a_change_has_its_mark_and_each_level_its_line() {
        let level = |at: usize| if at < 12 { -1.0 } else { 4.0 };
        let mut values: Vec<(f64, bool)> = (0..24).map(|at| (level(at) + 0.1 * (at * 7 % 5) as f64, true)).collect();
        values[20].1 = false;
        let of = history_of(&values);
        let plot = history(&of, &of.series[0]).unwrap();
        let svg = plot.inline();
        let count = |text: &str| svg.matches(text).count();
        assert_eq!(
            (count("dot calm"), count("dot unsaid"), count("mean calm"), count("mark busy")),
            (23, 1, 2, 1),
            "{svg}"
        );
        assert!(svg.contains(">2026-01-13</text>") && svg.contains("since 2026-01-13"), "{svg}");
        assert_eq!(plot.data.cells("").len(), 1 + 23);
    }

    #[test]
    fn axes_fit_any_values() {
        for (low, high) in [(0.0, 0.0), (-3.0, 1.0), (1e-7, 1.1e-7), (9e8, 1e9), (100.0, 100.0), (0.0, 7.0)] {
            let axis = Axis::new(low, high);
            let ticks: Vec<f64> = axis.ticks().collect();
            assert!((2..=6).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            let labels: std::collections::BTreeSet<String> = ticks.iter().map(|of| axis.label(*of)).collect();
            assert_eq!(labels.len(), ticks.len(), "{low}..{high}: {labels:?}");
            for value in [low, high] {
                assert!((AREA.top..=AREA.bottom).contains(&axis.at(value)), "{low}..{high}");
            }
        }
        let of = history_of(&[(1.0, true)]);
        assert!(history(&of, &of.series[0]).unwrap().inline().contains("no change shown"));
        let of = history_of(&[(1.0, false)]);
        assert!(history(&of, &of.series[0]).is_none());
    }
}
