//! A canary's figures over message sizes.

use tailback_transport::Bytes;

use super::{Area, Plot, WIDTH, dot, extent, polyline, stacked, text};
use crate::output::by_size::BySize;
use crate::result::Test;
use crate::stats::Statistic;
use crate::text::figure;

const AREA: Area = Area { left: 46.0, right: WIDTH - 48.0, top: 12.0, bottom: 236.0 };
/// The best of it, and its tail.
const LINES: [Statistic; 3] = [Statistic::P50, Statistic::Avg, Statistic::P99];
/// Labels that have room below the axis.
const MOST_LABELS: usize = 6;

/// Median, mean and 99th percentile over the size, on logarithmic axes; nothing where there are no two sizes.
pub fn sizes(name: &str, of: &BySize<'_>) -> Option<Plot> {
    let value = |test: &Test, line: Statistic| test.figure(line).filter(|value| value.is_finite() && *value > 0.0);
    let all = || of.tests.iter().flat_map(|test| LINES.into_iter().filter_map(|line| value(test, line)));
    let (low, high) = extent(all());
    let (first, last) = (of.tests.first()?, of.tests.last()?);
    if high <= 0.0 || first.bytes == last.bytes {
        return None;
    }
    let (across, up) = (AREA.across(first.bytes as f64, last.bytes as f64), AREA.up(low / 1.3, high * 1.3));
    let mut body = AREA.levels(&up);
    for test in of.tests.iter().step_by(of.tests.len().div_ceil(MOST_LABELS)) {
        body += &AREA.below(across.at(test.bytes as f64), &Bytes(test.bytes as u64).to_string());
    }
    body += &AREA.base();
    let (mut told, mut labels) = (Vec::new(), Vec::new());
    for (at, line) in LINES.into_iter().enumerate() {
        let points: Vec<(&Test, f64)> = of.tests.iter().filter_map(|test| Some((*test, value(test, line)?))).collect();
        let place = |(test, value): &(&Test, f64)| (across.at(test.bytes as f64), up.at(*value));
        body += &polyline(points.iter().map(place), &format!("line{at}"));
        for point in &points {
            let title =
                format!("{}, {}: {} {}", line.title(), Bytes(point.0.bytes as u64), figure(point.1), point.0.unit);
            body += &dot(place(point), 3, &format!("role{at}"), &title);
        }
        if let Some(end @ (test, value)) = points.last() {
            labels.push((place(end).1, format!("value text{at}"), line.title().to_owned()));
            told.push(format!("{} {} {} at {}", line.title(), figure(*value), test.unit, Bytes(test.bytes as u64)));
        }
    }
    body += &stacked(labels, AREA.right + 6.0, AREA.top);
    body += &text((AREA.left + AREA.right) / 2.0, AREA.bottom + 31.0, "middle", "axis-title", "message size");
    let over = of.over.clone().unwrap_or_default();
    let title = format!("{}, {name}", of.title());
    let parts = ["sizes", of.kernel.info().key, &over, name];
    Some(Plot::new(&parts, title, told.join("; "), AREA.bottom + 38.0, body, of.table()))
}
