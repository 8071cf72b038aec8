//! Plots of a max-rate study: aggregate rate by number of pairs, measured and modelled, and where each model errs.

use tailback_transport::Bytes;

use super::axis::LogAxis;
use super::{Plot, WIDTH, dot, escape, extent, grid_up, line, stacked, text};
use crate::models::maxrate::{Observation, medians};
use crate::result::{FitResult, MaxRateResult, RegimeResult};
use crate::text::figure;

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 62.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 236.0;
/// Curves that can be told apart.
const MOST_SIZES: usize = 5;
/// An error of this much has the full colour.
const FULL: f64 = 0.5;
/// Wider maps show every second k, and so on.
const MOST_COLUMNS: usize = 48;

/// Aggregate rate over the number of pairs; dots are measured, lines modelled.
pub fn rates(name: &str, result: &MaxRateResult) -> Option<Plot> {
    let (seen, pairs) = (medians(&result.observations), result.pairs());
    let (&fewest, &most) = (pairs.first()?, pairs.last()?);
    let rate = |of: &Observation| of.rate() * 1e-6;
    let sizes = chosen(&result.sizes());
    let shown: Vec<&Observation> = seen.iter().filter(|of| sizes.contains(&of.bytes) && is_drawable(of)).collect();
    let values = shown.iter().map(|of| rate(of));
    let (low, high) = extent(values);
    if high <= 0.0 {
        return None;
    }
    let axis = LogAxis::new(low / 1.3, high * 1.3, BOTTOM, TOP);
    let x = |k: usize| LEFT + (k - fewest) as f64 / (most - fewest).max(1) as f64 * (RIGHT - LEFT);
    let mut body = frame(&axis, &pairs, x);
    let (mut told, mut labels) = (Vec::new(), Vec::new());
    for (at, &bytes) in sizes.iter().enumerate() {
        let size = Bytes(bytes as u64).to_string();
        let fit = result.regime(bytes).and_then(RegimeResult::best_fit);
        if let Some(fit) = fit {
            body += &curve(fit, bytes, &pairs, &axis, x, at);
        }
        let of_size: Vec<&&Observation> = shown.iter().filter(|of| of.bytes == bytes).collect();
        for of in &of_size {
            let model = fit.map_or_else(String::new, |fit| {
                let modelled = of.pairs as f64 * bytes as f64 / fit.values().seconds(fit.model, of.pairs, bytes) * 1e-6;
                format!("; {} model {} MB/s", fit.model.name(), figure(modelled))
            });
            let title = format!("{size}, {} pairs: {} MB/s measured{model}", of.pairs, figure(rate(of)));
            body += &dot((x(of.pairs), axis.at(rate(of))), 4, &format!("role{at}"), &title);
        }
        if let (Some(first), Some(last)) = (of_size.first(), of_size.last()) {
            labels.push((axis.at(rate(last)), format!("value text{at}"), size.clone()));
            told.push(format!(
                "{size}: {} MB/s with {} pairs, {} with {}",
                figure(rate(first)),
                first.pairs,
                figure(rate(last)),
                last.pairs
            ));
        }
    }
    body += &stacked(labels, RIGHT + 8.0, TOP);
    body += &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", "pairs at once, k");
    let title = format!("Aggregate rate in MB/s, measured (dots) and modelled (lines), {name}");
    Some(Plot::new(&["maxrate", "rates", name], title, told.join("; "), BOTTOM + 38.0, body))
}

fn is_drawable(of: &Observation) -> bool {
    of.rate().is_finite() && of.rate() > 0.0
}

/// The largest size and every third below it: where rates are what limits.
fn chosen(sizes: &[usize]) -> Vec<usize> {
    let mut kept: Vec<usize> = sizes.iter().rev().copied().step_by(3).take(MOST_SIZES).collect();
    kept.reverse();
    kept
}

fn frame(axis: &LogAxis, pairs: &[usize], x: impl Fn(usize) -> f64) -> String {
    let mut out = grid_up(axis, LEFT, RIGHT);
    for &k in pairs.iter().step_by(pairs.len().div_ceil(12).max(1)) {
        out += &text(x(k), BOTTOM + 14.0, "middle", "tick", &k.to_string());
    }
    out + &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
}

fn curve(
    fit: &FitResult,
    bytes: usize,
    pairs: &[usize],
    axis: &LogAxis,
    x: impl Fn(usize) -> f64,
    at: usize,
) -> String {
    let values = fit.values();
    let point = |&k: &usize| {
        let rate = k as f64 * bytes as f64 / values.seconds(fit.model, k, bytes) * 1e-6;
        (rate.is_finite() && rate > 0.0).then(|| format!("{:.1},{:.1}", x(k), axis.at(rate)))
    };
    let points: Vec<String> = pairs.iter().filter_map(point).collect();
    format!("<polyline points=\"{}\" class=\"curve line{at}\"/>", points.join(" "))
}

/// Where each model errs: a cell for every size and number of pairs. Postal models of one and of the most pairs are the
/// paper's figures 2c and 2d.
pub fn errors(name: &str, result: &MaxRateResult) -> Vec<Plot> {
    let most = result.pairs().last().copied().unwrap_or(0);
    let Some(regime) = result.regimes.last() else { return Vec::new() };
    let shown = regime.shown(most).into_iter().map(|(model, _)| model);
    shown.filter_map(|model| error_map(name, result, &model, most)).collect()
}

fn error_map(name: &str, result: &MaxRateResult, model: &str, most: usize) -> Option<Plot> {
    let all = result.pairs();
    let columns: Vec<usize> = all.iter().copied().step_by(all.len().div_ceil(MOST_COLUMNS).max(1)).collect();
    let sizes = result.sizes();
    let seen = medians(&result.observations);
    let (left, top, row) = (62.0, 22.0, 15.0);
    let column = (WIDTH - 8.0 - left) / columns.len().max(1) as f64;
    let (mut body, mut errors) = (String::new(), Vec::new());
    for (at, k) in columns.iter().enumerate().step_by(columns.len().div_ceil(16).max(1)) {
        body += &text(left + (at as f64 + 0.5) * column, top - 6.0, "middle", "tick", &k.to_string());
    }
    for (line, &bytes) in sizes.iter().enumerate() {
        let y = top + line as f64 * row;
        body += &text(left - 6.0, y + 11.5, "end", "tick", &Bytes(bytes as u64).to_string());
        let named = |regime: &RegimeResult| {
            let shown = regime.shown(most).into_iter();
            shown.filter(|(of, _)| of == model).find_map(|(_, fit)| fit.cloned())
        };
        let Some(fit) = result.regime(bytes).and_then(named) else { continue };
        for (at, &k) in columns.iter().enumerate() {
            let Some(of) = seen.iter().find(|of| (of.pairs, of.bytes) == (k, bytes)) else { continue };
            let error = fit.error(of);
            if error.is_finite() {
                body += &cell(left + at as f64 * column, y, column, row, error, (k, bytes));
                errors.push(error.abs());
            }
        }
    }
    let bottom = top + sizes.len() as f64 * row;
    body += &text(left - 6.0, top - 6.0, "end", "axis-title", "size, k:");
    body += &text(
        8.0,
        bottom + 16.0,
        "start",
        "axis-title",
        "modelled time too short: blue; too long: orange; full colour at 50%",
    );
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    let told = format!("mean error {:.1}%, largest {:.1}%", 100.0 * mean, 100.0 * worst);
    let title = format!("Relative error of the {model} model: {told}, {name}");
    (!errors.is_empty()).then(|| Plot::new(&["maxrate", "error", model, name], title, told, bottom + 24.0, body))
}

fn cell(x: f64, y: f64, width: f64, height: f64, error: f64, (k, bytes): (usize, usize)) -> String {
    let class = if error < 0.0 { "calm" } else { "busy" };
    let strength = (error.abs() / FULL).min(1.0);
    let title = format!("{} with {k} pairs: {:+.1}%", Bytes(bytes as u64), 100.0 * error);
    let mut out = format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"cell {class}\" fill-opacity=\"{strength:.2}\">\
         <title>{}</title></rect>",
        width - 1.0,
        height - 1.0,
        escape(&title)
    );
    if width > 30.0 {
        let class = if strength > 0.6 { "sign" } else { "tick" };
        out += &text(x + width / 2.0, y + 11.0, "middle", class, &format!("{:+.0}", 100.0 * error));
    }
    out
}
