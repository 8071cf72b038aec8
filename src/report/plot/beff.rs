//! HPC Challenge's latencies and bandwidths as bars.

use super::axis::LogAxis;
use super::{Plot, WIDTH, bar, extent, grid_across, line, text};
use crate::models::beff::{Beff, Figure};
use crate::text::{figure, within};

const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 70.0;
const ROW: f64 = 34.0;

/// One plot of latencies, one of bandwidths.
pub fn beff(name: &str, result: &Beff) -> Vec<Plot> {
    let of_unit = |unit: &'static str| {
        let figures = result.figures().into_iter();
        figures.filter(|figure| figure.ours.ends_with(unit)).collect::<Vec<Figure>>()
    };
    [("latency", "us", "role2"), ("bandwidth", "GB/s", "role0")]
        .into_iter()
        .filter_map(|(what, unit, class)| bars((name, what, unit), &of_unit(unit), class))
        .collect()
}

fn bars((name, what, unit): (&str, &str, &str), figures: &[Figure], class: &str) -> Option<Plot> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let values = figures.iter().map(|of| of.value).filter(usable);
    let (low, high) = extent(values);
    if high <= 0.0 {
        return None;
    }
    let axis = LogAxis::new(low / 2.0, high, LEFT, RIGHT);
    let bottom = 6.0 + figures.len() as f64 * ROW;
    let mut body = grid_across(&axis, 4.0, bottom);
    let mut told = Vec::new();
    for (at, of) in figures.iter().enumerate().filter(|(_, of)| usable(&of.value)) {
        let Figure { ours, theirs, value, interval } = *of;
        let y = 6.0 + at as f64 * ROW;
        let short = ours.rsplit_once(", ").map_or(ours, |(short, _)| short);
        body += &text(LEFT, y + 11.0, "start", "name", short);
        let shown = within(value, interval, figure);
        let title = format!("{short} ({theirs}): {shown} {unit}");
        body += &bar(LEFT, y + 15.0, axis.at(value) - LEFT, 12.0, class, &title);
        let mut end = axis.at(value);
        if let Some(interval) = interval.filter(|of| usable(&of.low) && usable(&of.high)) {
            // Bounds off the axis end at its edge: the table has them.
            let [low, high] = [interval.low, interval.high].map(|bound| axis.at(bound).clamp(LEFT, RIGHT));
            body += &line((low, y + 21.0), (high, y + 21.0), "whisker");
            end = end.max(high);
        }
        body += &text(end + 5.0, y + 25.0, "start", "value", &figure(value));
        told.push(format!("{short} {shown} {unit}"));
    }
    body += &text((LEFT + RIGHT) / 2.0, bottom + 30.0, "middle", "axis-title", unit);
    let title = format!("HPC Challenge {what}, {name}");
    Some(Plot::new(&["beff", what, name], title, told.join("; "), bottom + 38.0, body))
}
