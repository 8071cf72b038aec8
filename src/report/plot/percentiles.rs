//! Percentile curves: the figure that a share of the samples is at least as good as, with an axis that counts nines.

use super::axis::LogAxis;
use super::{Plot, WIDTH, dot, extent, grid_up, line, text};
use crate::compare::Side;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::text::figure;

const TOP: f64 = 12.0;
const BOTTOM: f64 = 180.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 26.0;
/// Points on a decade of the nines axis.
const POINTS: usize = 14;

/// The curves of one canary on one side; nothing when no samples were kept.
pub fn percentiles(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    let tests = side.sampled(kernel);
    let first = tests.first()?.0;
    let most = tests.iter().map(|(_, samples)| samples.len()).max()?;
    let nines = (most as f64).log10().clamp(1.0, 6.0);
    let curves: Vec<(&str, Vec<(f64, f64)>)> = tests
        .iter()
        .map(|(test, samples)| {
            let own = (samples.len() as f64).log10().clamp(0.1, 6.0);
            let steps = (own * POINTS as f64) as usize + 1;
            let point = |step: usize| {
                let at = own * step as f64 / steps as f64;
                let ns = samples.value_at_quantile(1.0 - 10f64.powf(-at)).max(1);
                (at, test.direction.figure(ns as f64))
            };
            (if test.phase == Phase::Isolated { "calm" } else { "busy" }, (0..=steps).map(point).collect())
        })
        .collect();
    let values = curves.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let (low, high) = extent(values);
    let axis = LogAxis::new(low / 1.1, high * 1.1, BOTTOM, TOP);
    let x = |nine: f64| LEFT + nine / nines * (RIGHT - LEFT);
    let mut body = frame(&axis, nines, x);
    for (class, points) in &curves {
        let path: Vec<String> =
            points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), axis.at(value))).collect();
        body += &format!("<polyline points=\"{}\" class=\"curve {class}\"/>", path.join(" "));
        for &(at, value) in points.iter().step_by(2) {
            let name = if *class == "calm" { "isolated" } else { "loaded" };
            let title = format!("{name}, {}: {} {}", share(at), figure(value), first.unit);
            body += &dot((x(at), axis.at(value)), 3, class, &title);
        }
    }
    let title = format!("{}, {}", first.title, side.label);
    let told = curves.iter().filter_map(|(class, points)| {
        let name = if *class == "calm" { "isolated" } else { "loaded" };
        Some(format!("{name} from {} to {} {}", figure(points.first()?.1), figure(points.last()?.1), first.unit))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    body += &text(
        LEFT,
        BOTTOM + 31.0,
        "start",
        "axis-title",
        &format!("{}, by share of samples at least as good", first.unit),
    );
    Some(Plot::new(&["percentiles", kernel.info().key, &side.label], title, told, BOTTOM + 38.0, body))
}

fn share(nines: f64) -> String {
    let text = format!("{:.4}", 100.0 * (1.0 - 10f64.powf(-nines)));
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn frame(axis: &LogAxis, nines: f64, x: impl Fn(f64) -> f64) -> String {
    let mut out = grid_up(axis, LEFT, RIGHT);
    let named = [(0.0, "0%"), (0.301, "50%"), (1.0, "90%"), (2.0, "99%"), (3.0, "99.9%"), (4.0, "99.99%")];
    let more = [(5.0, "99.999%"), (6.0, "99.9999%")];
    for (at, name) in named.into_iter().chain(more).filter(|(at, _)| *at <= nines + 1e-9) {
        // With many nines the first two labels would touch.
        if at == 0.301 && nines > 4.5 {
            continue;
        }
        out += &line((x(at), TOP), (x(at), BOTTOM), "grid");
        out += &text(x(at), BOTTOM + 14.0, "middle", "tick", name);
    }
    out + &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
}
