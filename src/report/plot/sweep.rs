//! A sweep: the impact on each canary over the values of a key, with its intervals as a band and the onset as an upright line;
//! over two keys as a map.

use super::{Area, LINE, Plot, WIDTH, block, cell, dot, line, lines, polyline, text};
use crate::kernel::Canary;
use crate::output::sweep::name;
use crate::plan::SweptValue;
use crate::result::{CurvePoint, ResultFile, SweepCurve, SweepRecord, distinct};
use crate::stats::Factor;
use crate::text::{Table, factor, with_interval};

const AREA: Area = Area { left: 46.0, right: WIDTH - 18.0, top: 18.0, bottom: 216.0 };
/// Values that have a label below the axis.
const MOST_LABELS: usize = 8;
/// An impact of so much is as dark as it gets.
const DARKEST: f64 = 100.0;

/// A plot for each canary and network.
pub fn sweep(file_name: &str, file: &ResultFile) -> Vec<Plot> {
    let Some(record) = &file.sweep else { return Vec::new() };
    let families = distinct(record.curves.iter().map(|curve| (curve.kernel, curve.network.clone())));
    let of = |(kernel, network): (Canary, String)| {
        let of_family = |curve: &&SweepCurve| curve.kernel == kernel && curve.network == network;
        let own: Vec<&SweepCurve> = record.curves.iter().filter(of_family).collect();
        match own[..] {
            [only] => curve(file_name, record, only),
            _ => map(file_name, &own),
        }
    };
    families.into_iter().filter_map(of).collect()
}

/// What is drawn of a point: its place, and its impact.
fn known(curve: &SweepCurve) -> Vec<(usize, &CurvePoint, Factor)> {
    let points = curve.points.iter().enumerate();
    points.filter_map(|(at, point)| Some((at, point, point.impact.filter(|of| of.factor > 0.0)?))).collect()
}

/// What the test of all points says of one.
fn said(point: &CurvePoint) -> &'static str {
    match point.p_value {
        _ if point.shows_impact => ", significant",
        Some(_) => ", not significant",
        None => ", not reportable or too few placements",
    }
}

fn curve(file_name: &str, record: &SweepRecord, curve: &SweepCurve) -> Option<Plot> {
    let points = known(curve);
    let (&(first, ..), &(last, ..)) = (points.first()?, points.last()?);
    let bounds = |of: &Factor| of.interval.map_or([of.factor; 2], |of| [of.low, of.high]);
    let (low, high) = super::extent(points.iter().flat_map(|(.., of)| bounds(of)).chain([1.0]));
    let up = AREA.up(low, high);
    let place = |at: usize| across(curve, first, last, at);
    let at = |(at, _, of): &(usize, &CurvePoint, Factor), value: fn(&Factor) -> f64| (place(*at), up.at(value(of)));
    let upper = points.iter().map(|of| at(of, |of| of.interval.map_or(of.factor, |of| of.high)));
    let lower = points.iter().rev().map(|of| at(of, |of| of.interval.map_or(of.factor, |of| of.low)));
    let band: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut body = AREA.levels(&up);
    body += &line((AREA.left, up.at(1.0)), (AREA.right, up.at(1.0)), "axis");
    body += &format!("<polygon points=\"{}\" class=\"area busy\"/>", band.join(" "));
    body += &polyline(points.iter().map(|of| at(of, |of| of.factor)), "busy");
    for (word, landmark) in [("onset", &curve.onset), ("knee", &curve.knee)] {
        let Some(of) = landmark.point() else { continue };
        let y = if word == "onset" { 12.0 } else { 24.0 };
        body += &line((place(of), AREA.top), (place(of), AREA.bottom), "mark busy");
        body += &text(place(of), y, "middle", "mark-name busy", word);
    }
    for (number, point, of) in &points {
        let title = format!("{}: {}{}", point.value, with_interval(*of), said(point));
        let class = if point.shows_impact { "busy" } else { "unsaid" };
        body += &dot((place(*number), up.at(of.factor)), 4, class, &title);
    }
    for (number, point, _) in points.iter().step_by(points.len().div_ceil(MOST_LABELS)) {
        body += &AREA.below(place(*number), &point.value.value);
    }
    body += &AREA.base();
    body += &AREA.title(30.0, &format!("{}: times worse under load, 95% interval", points[0].1.value.key));
    let told: Vec<String> =
        points.iter().map(|(_, point, of)| format!("{} {}", point.value, factor(of.factor))).collect();
    let title = format!("{} by {}, {file_name}", name(record, curve), points[0].1.value.key);
    Some(Plot::new(&["sweep", &title], title.clone(), told.join("; "), AREA.bottom + 38.0, body, data(&[curve])))
}

/// Where a point stands: by its number, by the logarithm of numbers that are far apart, or in turn.
fn across(curve: &SweepCurve, first: usize, last: usize, at: usize) -> f64 {
    const FAR: f64 = 20.0;
    let number = |at: usize| curve.points[at].value.number;
    let (low, high) = (number(first), number(last));
    let part = match (low, high, number(at)) {
        (Some(low), Some(high), Some(value)) if low > 0.0 && high / low >= FAR => {
            (value / low).ln() / (high / low).ln()
        }
        (Some(low), Some(high), Some(value)) if high > low => (value - low) / (high - low),
        _ => (at - first) as f64 / (last - first).max(1) as f64,
    };
    AREA.at(0.03 + 0.94 * part, 0.0).0
}

/// A cell for each pair of values, as dark as the impact is large.
fn map(file_name: &str, curves: &[&SweepCurve]) -> Option<Plot> {
    /// Room for the values of the second key.
    const LEFT: f64 = 110.0;
    const HEIGHT: f64 = 26.0;
    let values = distinct(curves.iter().flat_map(|curve| curve.points.iter().map(|point| &point.value)));
    let (key, under) = (&values.first()?.key, &curves.first()?.under.as_ref()?.key);
    let width = (WIDTH - LEFT - 4.0) / values.len() as f64;
    let top = 12.0 + LINE;
    let mut body = text(LEFT - 6.0, 12.0, "end", "axis-title", under);
    for (at, value) in values.iter().enumerate() {
        body += &text(LEFT + (at as f64 + 0.5) * width, 12.0, "middle", "tick", &value.value);
    }
    let mut told = Vec::new();
    for (row, curve) in curves.iter().enumerate() {
        let y = top + row as f64 * HEIGHT;
        let value = curve.under.as_ref().map_or("", |of| &of.value);
        body += &block(LEFT - 6.0, y + 17.0, "end", "tick", &lines(value, 16));
        for (_, point, of) in known(curve) {
            let at = values.iter().position(|value: &&SweptValue| **value == point.value)?;
            let share = (of.factor.max(1.0).ln() / DARKEST.ln()).clamp(0.0, 1.0);
            let title = format!("{}, {under}={value}: {}{}", point.value, with_interval(of), said(point));
            let x = LEFT + at as f64 * width;
            body +=
                &cell((x, y), (width - 2.0, HEIGHT - 2.0), "rx=\"2\" class=\"cell busy\"", 0.08 + 0.6 * share, &title);
            // Narrow cells have their values on hovering only.
            if width >= 34.0 {
                let shown = point.p_value.map_or_else(|| "-".into(), |_| factor(of.factor));
                body += &text(x + width / 2.0 - 1.0, y + 17.0, "middle", "value", &shown);
            }
            told.push(title);
        }
    }
    let bottom = top + curves.len() as f64 * HEIGHT;
    body +=
        &text((LEFT + WIDTH) / 2.0, bottom + 16.0, "middle", "axis-title", &format!("{key}: times worse under load"));
    let title = format!("{} by {key} and {under}, {}, {file_name}", curves[0].kernel, curves[0].network);
    Some(Plot::new(&["sweep", &title], title.clone(), told.join("; "), bottom + 24.0, body, data(curves)))
}

fn data(curves: &[&SweepCurve]) -> Table {
    let rows = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    Table::of(rows)
        .column("at", |(_, point)| point.value.to_string())
        .column("under", |(curve, _)| curve.under.as_ref().map(ToString::to_string))
        .column("value", |(_, point)| point.value.number)
        .column("load MiB/s", |(_, point)| point.load_mib_per_s)
        .column("impact", |(_, point)| point.impact.map(|of| of.factor))
        .column("low", |(_, point)| Some(point.impact?.interval?.low))
        .column("high", |(_, point)| Some(point.impact?.interval?.high))
        .column("p, corrected", |(_, point)| point.p_value)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::sweep::record;
    use crate::assemble::synthetic;
    use crate::plan::Swept;

    /// A sweep of intensity whose impact on lat is that of each point.
    fn file(impacts: &[f64]) -> ResultFile {
        let swept: Swept = format!("congestor.rate=10%..100%/{}", impacts.len()).parse().unwrap();
        let mut file = synthetic::file("tcp", None, 1.0);
        let run = |(value, impact): (&String, &f64)| {
            let of = |kernel: Canary| if kernel == Canary::Lat { *impact } else { 1.0 };
            let mut run = synthetic::file_of("tcp", None, of).runs.remove(0);
            run.point = vec![SweptValue { key: swept.key.clone(), value: value.clone(), number: swept.number(value) }];
            run
        };
        file.runs = swept.values.iter().zip(impacts).map(run).collect();
        file.sweep = record(&file.runs, &[swept], &[]);
        file
    }

    #[test]
    fn a_curve_has_its_band_and_its_marks() {
        let file = file(&[1.0, 1.0, 1.0, 1.5, 9.0]);
        let plots = sweep("a", &file);
        assert_eq!(plots.len(), 3, "one for each canary");
        let svg = plots[0].inline();
        assert!(svg.contains("<polygon") && svg.contains(">onset<") && svg.contains(">knee<"), "{svg}");
        assert!(!plots[1].inline().contains(">onset<") && plots[0].title.starts_with("lat by congestor.rate"));
        assert_eq!(plots[0].data.cells("").len(), 1 + 5);
    }

    #[test]
    fn two_keys_are_a_map() {
        let mut file = file(&[1.0, 2.0, 3.0, 4.0]);
        let record = file.sweep.as_mut().unwrap();
        let under = |value: &str| Some(SweptValue { key: "lat.bytes".into(), value: value.into(), number: None });
        let again: Vec<SweepCurve> =
            record.curves.iter().map(|of| SweepCurve { under: under("64"), ..of.clone() }).collect();
        record.curves.iter_mut().for_each(|of| of.under = under("8"));
        record.curves[0].points[1].p_value = None;
        record.curves.extend(again);
        let plots = sweep("a", &file);
        assert_eq!(plots.len(), 3);
        let svg = plots[0].inline();
        assert_eq!(svg.matches("class=\"cell busy\"").count(), 8);
        assert_eq!(svg.matches(">-</text>").count(), 1, "what is not reportable has no figure: {svg}");
        assert!(plots[0].title.starts_with("lat by congestor.rate and lat.bytes"), "{}", plots[0].title);
    }
}
