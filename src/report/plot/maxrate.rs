//! Plots of a max-rate study: aggregate rate by message size and by number of pairs, measured and modelled (the paper's figures
//! 1, 3 and 4), pairs of nodes beside each other, and where each model errs.

use tailback_transport::Bytes;

use super::{Area, LogAxis, Plot, WIDTH, cell, dot, extent, polyline, stacked, text};
use crate::analysis::Kind;
use crate::models::maxrate::{Observation, medians};
use crate::result::{BetweenResult, FitResult, MaxRateResult, RegimeResult};
use crate::text::{Table, figure};

const AREA: Area = Area { left: 46.0, right: WIDTH - 62.0, top: 12.0, bottom: 236.0 };
/// Lines that can be told apart.
const MOST_LINES: usize = 5;
/// An error of this much has the full colour.
const FULL: f64 = 0.5;
/// Wider maps show every second k, and so on.
const MOST_COLUMNS: usize = 48;

/// Every plot of a study.
pub fn maxrate(name: &str, result: &MaxRateResult) -> Vec<Plot> {
    let lines = [sizes(name, result), rates(name, result), between(name, result)];
    lines.into_iter().flatten().chain(errors(name, result)).collect()
}

/// In MB/s, of all pairs together.
fn rate(of: &Observation) -> f64 {
    of.rate() * 1e-6
}

fn modelled(fit: &FitResult, pairs: usize, bytes: usize) -> f64 {
    pairs as f64 * bytes as f64 / fit.values().seconds(fit.model, pairs, bytes) * 1e-6
}

fn is_drawable(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// A modelled line through the points whose rate can be drawn.
fn curve(points: impl Iterator<Item = (f64, f64)>, axis: &LogAxis, at: usize) -> String {
    let drawable = points.filter(|(_, rate)| is_drawable(*rate));
    polyline(drawable.map(|(x, rate)| (x, axis.at(rate))), &format!("line{at}"))
}

/// Aggregate rate over message size; dots are measured, lines modelled, one for each of some numbers of pairs.
fn sizes(name: &str, result: &MaxRateResult) -> Option<Plot> {
    let seen: Vec<Observation> =
        medians(&result.observations).into_iter().filter(|of| is_drawable(of.rate())).collect();
    let bytes = result.sizes();
    let (smallest, largest) = (*bytes.first()? as f64, *bytes.last()? as f64);
    let (low, high) = extent(seen.iter().map(rate));
    if high <= 0.0 || smallest <= 0.0 {
        return None;
    }
    let (across, up) = (AREA.across(smallest, largest), AREA.up(low / 1.3, high * 1.3));
    let mut body = AREA.levels(&up);
    for &bytes in bytes.iter().step_by(bytes.len().div_ceil(6).max(1)) {
        body += &AREA.below(across.at(bytes as f64), &Bytes(bytes as u64).to_string());
    }
    body += &AREA.base();
    let (mut told, mut labels) = (Vec::new(), Vec::new());
    for (at, pairs) in spaced(&result.pairs()).into_iter().enumerate() {
        let of_pairs: Vec<&Observation> = seen.iter().filter(|of| of.pairs == pairs).collect();
        // Lines end where the protocol changes.
        for (regime, fit) in result.regimes.iter().filter_map(|regime| Some((regime, regime.best_fit()?))) {
            let sizes = regime.smallest_bytes..=regime.largest_bytes;
            let within = bytes.iter().copied().filter(|bytes| sizes.contains(bytes));
            body += &curve(within.map(|bytes| (across.at(bytes as f64), modelled(fit, pairs, bytes))), &up, at);
        }
        for of in &of_pairs {
            let title = format!("{}, {pairs} pairs: {} MB/s", Bytes(of.bytes as u64), figure(rate(of)));
            body += &dot((across.at(of.bytes as f64), up.at(rate(of))), 3, &format!("role{at}"), &title);
        }
        if let Some(last) = of_pairs.last() {
            labels.push((up.at(rate(last)), format!("value text{at}"), format!("k = {pairs}")));
            told.push(format!("k = {pairs}: {} MB/s at {}", figure(rate(last)), Bytes(last.bytes as u64)));
        }
    }
    body += &stacked(labels, AREA.right + 8.0, AREA.top);
    body += &AREA.title(31.0, "message size");
    let title = format!("Aggregate rate in MB/s over message size, measured (dots) and modelled (lines), {name}");
    let data = measured(result, seen.iter().filter(|of| spaced(&result.pairs()).contains(&of.pairs)));
    Some(Plot::new(&["maxrate", "sizes", name], title, told.join("; "), AREA.bottom + 38.0, body, data))
}

/// Rates beside those of the model that fits best.
fn measured<'a>(result: &MaxRateResult, seen: impl Iterator<Item = &'a Observation>) -> Table {
    let fit = |of: &Observation| result.regime(of.bytes).and_then(RegimeResult::best_fit);
    Table::of(seen)
        .column("bytes", |of| of.bytes)
        .column("pairs", |of| of.pairs)
        .column("measured MB/s", |of| rate(of))
        .column("modelled MB/s", |of| fit(of).map(|fit| modelled(fit, of.pairs, of.bytes)))
        .column("model", |of| fit(of).map(|fit| fit.model.name()))
        .done()
}

/// The first, the last, and some between at equal distances.
fn spaced(pairs: &[usize]) -> Vec<usize> {
    let last = pairs.len().saturating_sub(1);
    let count = pairs.len().min(MOST_LINES);
    (0..count).map(|at| pairs[at * last / (count - 1).max(1)]).collect()
}

/// Aggregate rate over the number of pairs; dots are measured, lines modelled.
fn rates(name: &str, result: &MaxRateResult) -> Option<Plot> {
    let (seen, pairs) = (medians(&result.observations), result.pairs());
    let (&fewest, &most) = (pairs.first()?, pairs.last()?);
    // The largest size and every third below it: where rates are what limits.
    let mut sizes: Vec<usize> = result.sizes().into_iter().rev().step_by(3).take(MOST_LINES).collect();
    sizes.reverse();
    let shown: Vec<&Observation> =
        seen.iter().filter(|of| sizes.contains(&of.bytes) && is_drawable(of.rate())).collect();
    let (low, high) = extent(shown.iter().map(|of| rate(of)));
    if high <= 0.0 {
        return None;
    }
    let axis = AREA.up(low / 1.3, high * 1.3);
    let x = |k: usize| AREA.at((k - fewest) as f64 / (most - fewest).max(1) as f64, 0.0).0;
    let mut body = AREA.levels(&axis);
    for &k in pairs.iter().step_by(pairs.len().div_ceil(12).max(1)) {
        body += &AREA.below(x(k), &k.to_string());
    }
    body += &AREA.base();
    let (mut told, mut labels) = (Vec::new(), Vec::new());
    for (at, &bytes) in sizes.iter().enumerate() {
        let size = Bytes(bytes as u64).to_string();
        let fit = result.regime(bytes).and_then(RegimeResult::best_fit);
        if let Some(fit) = fit {
            body += &curve(pairs.iter().map(|&k| (x(k), modelled(fit, k, bytes))), &axis, at);
        }
        let of_size: Vec<&&Observation> = shown.iter().filter(|of| of.bytes == bytes).collect();
        for of in &of_size {
            let model = fit.map_or_else(String::new, |fit| {
                format!("; {} model {} MB/s", fit.model.name(), figure(modelled(fit, of.pairs, bytes)))
            });
            let title = format!("{size}, {} pairs: {} MB/s measured{model}", of.pairs, figure(rate(of)));
            body += &dot((x(of.pairs), axis.at(rate(of))), 4, &format!("role{at}"), &title);
        }
        if let (Some(first), Some(last)) = (of_size.first(), of_size.last()) {
            labels.push((axis.at(rate(last)), format!("value text{at}"), size.clone()));
            let (from, to) = (figure(rate(first)), figure(rate(last)));
            told.push(format!("{size}: {from} MB/s with {} pairs, {to} with {}", first.pairs, last.pairs));
        }
    }
    body += &stacked(labels, AREA.right + 8.0, AREA.top);
    body += &AREA.title(31.0, "pairs at once, k");
    let title = format!("Aggregate rate in MB/s, measured (dots) and modelled (lines), {name}");
    let data = measured(result, shown.into_iter());
    Some(Plot::new(&["maxrate", "rates", name], title, told.join("; "), AREA.bottom + 38.0, body, data))
}

/// Pairs of nodes beside each other: the rate of the longest messages over the number of pairs, a dot for every two nodes.
/// None where one pair of nodes was measured, in one way.
fn between(name: &str, result: &MaxRateResult) -> Option<Plot> {
    const AREA: Area = Area { left: 46.0, right: WIDTH - 16.0, top: 26.0, bottom: 236.0 };
    let bytes = *result.sizes().last()?;
    let longest = |of: &BetweenResult| -> Vec<Observation> {
        let drawable = |seen: &Observation| seen.bytes == bytes && is_drawable(seen.rate());
        medians(&of.observations).into_iter().filter(drawable).collect()
    };
    let all: Vec<(&BetweenResult, Vec<Observation>)> = result.between.iter().map(|of| (of, longest(of))).collect();
    let (low, high) = extent(all.iter().flat_map(|(_, seen)| seen).map(rate));
    let most = all.iter().flat_map(|(_, seen)| seen).map(|seen| seen.pairs).max()?;
    let axis = AREA.up(low / 1.2, high * 1.2);
    let step = (AREA.right - AREA.left) / most as f64;
    let mut body = AREA.levels(&axis);
    for k in (1..=most).step_by(most.div_ceil(12).max(1)) {
        body += &AREA.below(AREA.left + (k as f64 - 0.5) * step, &k.to_string());
    }
    body += &AREA.base();
    for (at, (of, seen)) in all.iter().enumerate() {
        // Beside each other, in the order of the table, so that equal ones are seen.
        let aside = ((at as f64 + 0.5) / all.len() as f64 - 0.5) * 0.7;
        let colour = if of.is_both() { "role1" } else { "role0" };
        for one in seen {
            let title = format!("{}, {} pairs: {} MB/s", of.name(), one.pairs, figure(rate(one)));
            let x = AREA.left + (one.pairs as f64 - 0.5 + aside) * step;
            body += &dot((x, axis.at(rate(one))), 3, colour, &title);
        }
    }
    if result.between.iter().any(BetweenResult::is_both) {
        body += &text(AREA.left, 14.0, "start", "value text0", "one way");
        body += &text(AREA.left + 64.0, 14.0, "start", "value text1", "both ways at once, each way's rate");
    }
    body += &AREA.title(31.0, "pairs of ranks at once, k");
    let spans = result.spans();
    let told: Vec<String> = spans
        .iter()
        .filter(|span| span.kind == Kind::Rate)
        .map(|span| {
            let way = if span.both { ", both ways at once" } else { "" };
            let (least, most) = (&span.least, &span.most);
            format!("{}{way}: {} ({}) to {} ({}) MB/s", span.figure, figure(least.0), least.1, figure(most.0), most.1)
        })
        .collect();
    let title = format!("Rate in MB/s of {} between each two nodes, {name}", Bytes(bytes as u64));
    let rows = all.iter().flat_map(|(of, seen)| seen.iter().map(move |seen| (of.name(), seen)));
    let data = Table::of(rows)
        .column("nodes", |(name, _)| name.clone())
        .column("pairs", |(_, seen)| seen.pairs)
        .column("MB/s", |(_, seen)| rate(seen))
        .done();
    Some(Plot::new(&["maxrate", "nodes", name], title, told.join("; "), AREA.bottom + 38.0, body, data))
}

/// Where each model errs: a cell for every size and number of pairs. Postal models of one and of the most pairs are the
/// paper's figures 2c and 2d.
fn errors(name: &str, result: &MaxRateResult) -> Vec<Plot> {
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
        let (y, size) = (top + line as f64 * row, Bytes(bytes as u64).to_string());
        body += &text(left - 6.0, y + 11.5, "end", "tick", &size);
        let named = |regime: &RegimeResult| {
            let shown = regime.shown(most).into_iter();
            shown.filter(|(of, _)| of == model).find_map(|(_, fit)| fit.cloned())
        };
        let Some(fit) = result.regime(bytes).and_then(named) else { continue };
        for (at, &k) in columns.iter().enumerate() {
            let Some(of) = seen.iter().find(|of| (of.pairs, of.bytes) == (k, bytes)) else { continue };
            let error = fit.error(of);
            if error.is_finite() {
                let title = format!("{size} with {k} pairs: {:+.1}%", 100.0 * error);
                body += &error_cell((left + at as f64 * column, y), (column, row), error, &title);
                errors.push((bytes, k, error));
            }
        }
    }
    let bottom = top + sizes.len() as f64 * row;
    body += &text(left - 6.0, top - 6.0, "end", "axis-title", "size, k:");
    let colours = "modelled time too short: blue; too long: orange; full colour at 50%";
    body += &text(8.0, bottom + 16.0, "start", "axis-title", colours);
    let worst = errors.iter().map(|of| of.2.abs()).fold(0.0, f64::max);
    let mean = errors.iter().map(|of| of.2.abs()).sum::<f64>() / errors.len().max(1) as f64;
    let told = format!("mean error {:.1}%, largest {:.1}%", 100.0 * mean, 100.0 * worst);
    let title = format!("Relative error of the {model} model: {told}, {name}");
    let data = Table::of(&errors)
        .column("bytes", |(bytes, ..)| *bytes)
        .column("pairs", |(_, pairs, _)| *pairs)
        .column("relative error", |(.., error)| *error)
        .done();
    (!errors.is_empty()).then(|| Plot::new(&["maxrate", "error", model, name], title, told, bottom + 24.0, body, data))
}

fn error_cell((x, y): (f64, f64), (width, height): (f64, f64), error: f64, title: &str) -> String {
    let class = if error < 0.0 { "class=\"cell calm\"" } else { "class=\"cell busy\"" };
    let strength = (error.abs() / FULL).min(1.0);
    let mut out = cell((x, y), (width - 1.0, height - 1.0), class, strength, title);
    if width > 30.0 {
        let class = if strength > 0.6 { "sign" } else { "tick" };
        out += &text(x + width / 2.0, y + 11.0, "middle", class, &format!("{:+.0}", 100.0 * error));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_have_both_ends() {
        assert_eq!(spaced(&[]), Vec::<usize>::new());
        assert_eq!(spaced(&[1]), [1]);
        assert_eq!(spaced(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(spaced(&(1..=16).collect::<Vec<_>>()), [1, 4, 8, 12, 16]);
    }
}
