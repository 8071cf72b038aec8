//! Bursts of load: latency by the time since the onset, folded over all of them; over several bursts and pauses as a map.

use super::{Area, LINE, Plot, WIDTH, bar, block, cell, extent, line, lines, polyline, text};
use crate::output::burst::{Bursts, Map, all, curve, maps, named};
use crate::result::{BurstEffect, BurstOutcome, BurstPoint, ResultFile};
use crate::text::duration;

const AREA: Area = Area { left: 46.0, right: WIDTH - 24.0, top: 26.0, bottom: 216.0 };

/// The maps, and the folded curve of every canary.
pub fn bursts(file_name: &str, file: &ResultFile) -> Vec<Plot> {
    let all = all(file);
    let maps = maps(&all);
    let maps = maps.iter().filter_map(|of| map(file_name, of));
    maps.chain(all.iter().filter_map(|of| folded(file_name, of))).collect()
}

fn us(value: f64) -> String {
    duration(1e3 * value)
}

fn folded(file_name: &str, of: &Bursts<'_>) -> Option<Plot> {
    let record = of.record;
    let period = 1e6 * record.burst.period_s();
    let known = |of: fn(&BurstPoint) -> Option<f64>| {
        let points = record.curve.iter();
        points.filter_map(move |point| Some((point.since_us, of(point).filter(|us| *us > 0.0)?))).collect::<Vec<_>>()
    };
    let (median, tail) = (known(|point| point.p50_us), known(|point| point.p99_us));
    if median.is_empty() {
        return None;
    }
    let idle = [record.p50.idle_us, record.p99.idle_us].into_iter().filter(|us| *us > 0.0);
    let (low, high) = extent(median.iter().chain(&tail).map(|of| of.1).chain(idle));
    let up = AREA.up(low, high);
    let place = |(since, value): &(f64, f64)| (AREA.at(since / period, 0.0).0, up.at(*value));
    let end = AREA.at(record.burst.on_s / record.burst.period_s(), 0.0).0;
    let mut body = format!(
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"idle\"/>",
        AREA.left,
        AREA.top,
        end - AREA.left,
        AREA.bottom - AREA.top
    );
    // However short a burst is, beside the axis' own labels.
    body += &text(AREA.left, AREA.top - 4.0, "start", "mark-name busy", "load on");
    body += &AREA.levels(&up);
    if !tail.is_empty() {
        let above = tail.iter().map(place);
        let below = median.iter().rev().map(place);
        let band: Vec<String> = above.chain(below).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        body += &format!("<polygon points=\"{}\" class=\"area busy\"/>", band.join(" "));
        body += &polyline(tail.iter().map(place), "busy thin");
    }
    body += &polyline(median.iter().map(place), "busy");
    body += &line((AREA.left, up.at(record.p50.idle_us)), (AREA.right, up.at(record.p50.idle_us)), "mark calm");
    let back = |effect: &BurstEffect| match effect.outcome() {
        BurstOutcome::Back(of) if of.value > 0.0 => Some(of.value),
        _ => None,
    };
    if let Some(recovery) = back(&record.p99) {
        let x = AREA.at((1e6 * record.burst.on_s + recovery).min(period) / period, 0.0).0;
        body += &line((x, AREA.top), (x, AREA.bottom), "mark busy");
        let (anchor, beside) = if x > WIDTH / 2.0 { ("end", -3.0) } else { ("start", 3.0) };
        body += &text(x + beside, AREA.top + 10.0, anchor, "mark-name busy", &format!("back (p99) {}", us(recovery)));
    }
    let width = (AREA.right - AREA.left) / record.curve.len() as f64;
    for (at, part) in record.curve.iter().enumerate() {
        let Some(median) = part.p50_us else { continue };
        let tail = part.p99_us.map(|of| format!(", p99 {}", us(of))).unwrap_or_default();
        let title =
            format!("{} after the onset: p50 {}{tail}, {} samples", us(part.since_us), us(median), part.samples);
        body += &bar(AREA.left + at as f64 * width, AREA.top, width, AREA.bottom - AREA.top, "target", &title);
    }
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        body += &AREA.below(AREA.at(part, 0.0).0, &us(part * period));
    }
    body += &AREA.base();
    body += &AREA.title(30.0, "time since the onset; latency in us: p50 to p99, idle p50 dashed");
    let told = [("p50", &record.p50), ("p99", &record.p99)].map(|(name, effect)| {
        let peak = effect.peak_us.map(|of| us(of.value)).unwrap_or_default();
        let recovery = back(effect).map(|of| format!(", back {} after the end", us(of))).unwrap_or_default();
        format!("{name} peaks at {peak}, idle {}{recovery}", us(effect.idle_us))
    });
    let title = format!("{} in bursts, {}, {file_name}", named(of), of.run.network());
    Some(Plot::new(&["burst", &title], title.clone(), told.join("; "), AREA.bottom + 38.0, body, curve(record)))
}

/// A cell for each burst and pause, as dark as the part of the pause that the recovery takes.
fn map(file_name: &str, map: &Map<'_>) -> Option<Plot> {
    /// Room for the lengths of bursts.
    const LEFT: f64 = 110.0;
    const HEIGHT: f64 = 26.0;
    let [ons, offs] = map.axes();
    let width = (WIDTH - LEFT - 4.0) / offs.len().max(1) as f64;
    let top = 12.0 + LINE;
    let mut body = text(LEFT - 6.0, 12.0, "end", "axis-title", "burst \\ pause");
    for (at, off) in offs.iter().enumerate() {
        body += &text(LEFT + (at as f64 + 0.5) * width, 12.0, "middle", "tick", off);
    }
    let mut told = Vec::new();
    for (row, on) in ons.iter().enumerate() {
        let y = top + row as f64 * HEIGHT;
        body += &block(LEFT - 6.0, y + 17.0, "end", "tick", &lines(on, 16));
        for (at, off) in offs.iter().enumerate() {
            let Some(record) = map.at(on, off) else { continue };
            let (share, shown) = match record.p99.outcome() {
                BurstOutcome::Back(of) => ((1e-6 * of.value / record.burst.off_s).clamp(0.0, 1.0), us(of.value)),
                BurstOutcome::NotBack => (1.0, "not back".into()),
                BurstOutcome::NotShown => (0.0, "not shown".into()),
                BurstOutcome::NotFelt => (0.0, "not felt".into()),
                BurstOutcome::Unknown => continue,
            };
            let title = format!("burst {on}, pause {off}: {shown}");
            let x = LEFT + at as f64 * width;
            body +=
                &cell((x, y), (width - 2.0, HEIGHT - 2.0), "rx=\"2\" class=\"cell busy\"", 0.08 + 0.6 * share, &title);
            // Narrow cells have their values on hovering only.
            if width >= 44.0 {
                body += &text(x + width / 2.0 - 1.0, y + 17.0, "middle", "value", &shown);
            }
            told.push(title);
        }
    }
    if told.is_empty() {
        return None;
    }
    let bottom = top + ons.len() as f64 * HEIGHT;
    body += &text(
        (LEFT + WIDTH) / 2.0,
        bottom + 16.0,
        "middle",
        "axis-title",
        "recovery of p99 after a burst; dark: all of the pause",
    );
    let title = format!("Recovery by burst and pause, {}, {file_name}", map.name());
    Some(Plot::new(&["burst", &title], title.clone(), told.join("; "), bottom + 24.0, body, map.data()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn a_folded_curve_has_its_burst_and_its_recovery() {
        let file = synthetic::bursts(&[("2ms", "8ms")]);
        let plots = bursts("a", &file);
        assert_eq!(plots.len(), 1);
        let svg = plots[0].inline();
        assert!(svg.contains(">load on<") && svg.contains(">back (p99) 3.0") && svg.contains("<polygon"), "{svg}");
        assert!(plots[0].title.starts_with("lat in bursts"), "{}", plots[0].title);
        assert_eq!(plots[0].data.cells("").len(), 1 + 100);
    }

    #[test]
    fn lists_of_bursts_and_pauses_are_a_map() {
        let file = synthetic::bursts(&[("2ms", "8ms"), ("2ms", "4ms"), ("4ms", "8ms"), ("4ms", "4ms")]);
        let plots = bursts("a", &file);
        assert_eq!(plots.len(), 1 + 4);
        assert_eq!(plots[0].inline().matches("class=\"cell busy\"").count(), 4);
        assert!(plots[0].title.starts_with("Recovery by burst and pause, lat"), "{}", plots[0].title);
    }
}
