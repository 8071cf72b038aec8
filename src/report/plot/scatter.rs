//! The contention paper's figure 5: every message's measured time over its predicted one.

use super::axis::label;
use super::{Plot, WIDTH, dot, line, text};
use crate::result::ContentionResult;

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 300.0;
/// What the paper calls an acceptable error.
const ACCEPTED: f64 = 0.15;
/// More would hide each other, and fill a page.
const MOST_DOTS: usize = 2000;

/// Measured times over predicted ones in multiples of the contention-free time, of all messages; nothing when none was
/// measured.
pub fn scatter(name: &str, result: &ContentionResult) -> Option<Plot> {
    let mut dots: Vec<(f64, f64, String)> = Vec::new();
    for graph in &result.graphs {
        for edge in &graph.edges {
            let Some(measured) = edge.measured_s.map(|seconds| seconds / graph.reference_s) else { continue };
            if measured.is_finite() && edge.predicted.is_finite() {
                let who = format!("{}: {}>{}", graph.name, edge.source, edge.destination);
                dots.push((edge.predicted, measured, who));
            }
        }
    }
    let most = dots.iter().map(|(predicted, measured, _)| predicted.max(*measured)).fold(0.0, f64::max) * 1.05;
    if most <= 0.0 {
        return None;
    }
    let x = |value: f64| LEFT + value / most * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - value / most * (BOTTOM - TOP);
    let mut body = String::new();
    let step =
        [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0].into_iter().find(|step| most / step <= 7.0).unwrap_or(most / 4.0);
    for tick in (0..=7).map(|at| f64::from(at) * step).filter(|tick| *tick <= most) {
        body += &line((LEFT, y(tick)), (RIGHT, y(tick)), "grid");
        body += &text(LEFT - 5.0, y(tick) + 4.0, "end", "tick", &label(tick));
        body += &text(x(tick), BOTTOM + 14.0, "middle", "tick", &label(tick));
    }
    body += &line((x(0.0), y(0.0)), (x(most), y(most)), "axis");
    // Where the prediction is off by as much as the paper accepts: e = predicted / measured - 1.
    for error in [-ACCEPTED, ACCEPTED] {
        let reach = most * (1.0 + error).min(1.0);
        body += &line((x(0.0), y(0.0)), (x(reach), y(reach / (1.0 + error))), "mark calm");
    }
    let off = |(predicted, measured, _): &&(f64, f64, String)| (predicted / measured - 1.0).abs() > ACCEPTED;
    let outside = dots.iter().filter(off).count();
    for (predicted, measured, who) in dots.iter().step_by(dots.len().div_ceil(MOST_DOTS).max(1)) {
        let title = format!("{who}: predicted {predicted:.2} T_ref, measured {measured:.2}");
        body += &dot((x(*predicted), y(*measured)), 4, "busy", &title);
    }
    body += &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    body += &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", "predicted time in T_ref");
    let told = format!("{} of {} messages are off by more than 15%", outside, dots.len());
    let title = format!("Measured over predicted time in T_ref, with 15% to both sides, {name}");
    Some(Plot::new(&["contention", "scatter", name], title, told, BOTTOM + 38.0, body))
}
