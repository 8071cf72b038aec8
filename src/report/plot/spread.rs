//! Pairs of nodes beside each other: the rate of the longest messages over the number of pairs, a dot for every two nodes.

use tailback_transport::Bytes;

use super::axis::LogAxis;
use super::{Plot, WIDTH, dot, extent, grid_up, line, text};
use crate::models::maxrate::{Observation, medians};
use crate::result::{BetweenResult, Kind, MaxRateResult};
use crate::text::figure;

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 236.0;

/// None where one pair of nodes was measured, in one way.
pub fn spread(name: &str, result: &MaxRateResult) -> Option<Plot> {
    let bytes = *result.sizes().last()?;
    let longest = |of: &BetweenResult| -> Vec<Observation> {
        let drawable = |seen: &Observation| seen.bytes == bytes && seen.rate().is_finite() && seen.rate() > 0.0;
        medians(&of.observations).into_iter().filter(drawable).collect()
    };
    let all: Vec<(&BetweenResult, Vec<Observation>)> = result.between.iter().map(|of| (of, longest(of))).collect();
    let rates = all.iter().flat_map(|(_, seen)| seen).map(|seen| seen.rate() * 1e-6);
    let (low, high) = extent(rates);
    let most = all.iter().flat_map(|(_, seen)| seen).map(|seen| seen.pairs).max()?;
    let axis = LogAxis::new(low / 1.2, high * 1.2, BOTTOM, TOP);
    let step = (RIGHT - LEFT) / most as f64;
    let mut body = frame(&axis, most, step);
    for (at, (of, seen)) in all.iter().enumerate() {
        // Beside each other, in the order of the table, so that equal ones are seen.
        let aside = ((at as f64 + 0.5) / all.len() as f64 - 0.5) * 0.7;
        let colour = if of.is_both() { "role1" } else { "role0" };
        for one in seen {
            let rate = one.rate() * 1e-6;
            let title = format!("{}, {} pairs: {} MB/s", of.name(), one.pairs, figure(rate));
            let x = LEFT + (one.pairs as f64 - 0.5 + aside) * step;
            body += &dot((x, axis.at(rate)), 3, colour, &title);
        }
    }
    let ways = result.between.iter().any(BetweenResult::is_both);
    if ways {
        body += &text(LEFT, 14.0, "start", "value text0", "one way");
        body += &text(LEFT + 64.0, 14.0, "start", "value text1", "both ways at once, each way's rate");
    }
    body += &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", "pairs of ranks at once, k");
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
    Some(Plot::new(&["maxrate", "nodes", name], title, told.join("; "), BOTTOM + 38.0, body))
}

fn frame(axis: &LogAxis, most: usize, step: f64) -> String {
    let mut out = grid_up(axis, LEFT, RIGHT);
    for k in (1..=most).step_by(most.div_ceil(12).max(1)) {
        out += &text(LEFT + (k as f64 - 0.5) * step, BOTTOM + 14.0, "middle", "tick", &k.to_string());
    }
    out + &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
}
