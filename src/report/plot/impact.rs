//! Impact bars on a log axis, one plot per canary: every run's headline, average and 99th percentile, with intervals; and the
//! heat map of victims and aggressors.

use super::{Area, LogAxis, Plot, WIDTH, bar, cell, fit, line, text};
use crate::analysis::compare::{Aggressors, Side};
use crate::kernel::Canary;
use crate::report::published::{self, System};
use crate::stats::{Factor, Statistic};
use crate::text::{factor, with_interval};

const LEFT: f64 = 8.0;
const GROUP: f64 = 59.0;

struct Group {
    name: String,
    class: &'static str,
    factors: [Option<Factor>; 3],
}

/// The impact on one canary, over all sides and published systems that have it.
pub fn impact(kernel: Canary, sides: &[Side<'_>], systems: &[System]) -> Option<Plot> {
    const SHOWN: [Statistic; 3] = [Statistic::HEADLINE, Statistic::Avg, Statistic::P99];
    let own = sides.iter().map(|side| Group {
        name: side.label.clone(),
        class: "own",
        factors: SHOWN.map(|statistic| side.run.impact(kernel, statistic)),
    });
    let published = systems.iter().map(|system| Group {
        name: system.label(),
        class: "published",
        factors: SHOWN.map(|of| system.impact(kernel, of).map(|factor| Factor { factor, interval: None })),
    });
    let mut groups: Vec<Group> = own.filter(has_any).collect();
    if groups.is_empty() {
        return None;
    }
    groups.extend(published.filter(has_any));
    if kernel.is_application() && !systems.is_empty() {
        groups.extend(published::applications().iter().map(|of| Group {
            name: of.label(),
            class: "published",
            factors: SHOWN.map(|statistic| {
                (statistic == kernel.headline()).then(|| Factor { factor: of.impact(), interval: None })
            }),
        }));
    }
    let values = groups.iter().flat_map(|group| group.factors.iter().flatten());
    let reach = values
        .flat_map(|f| [f.factor, f.interval.map_or(f.factor, |i| i.low), f.interval.map_or(f.factor, |i| i.high)]);
    let (low, high) = reach.fold((1.0f64, 2.0f64), |(low, high), value| (low.min(value), high.max(value)));
    // Room for the value behind the longest bar.
    let area = Area { left: LEFT, right: WIDTH - 104.0, top: 4.0, bottom: 8.0 + groups.len() as f64 * GROUP };
    let axis = area.across(low, high);
    let mut body = area.uprights(&axis);
    body += &line((axis.at(1.0), area.top), (axis.at(1.0), area.bottom), "axis");
    for (at, group) in groups.iter().enumerate() {
        body += &draw(group, 8.0 + at as f64 * GROUP, &axis);
    }
    body += &area.title(30.0, "times worse under load (1 = no impact)");
    let told: Vec<String> = groups.iter().map(told).collect();
    let title = kernel.info().title.to_owned();
    Some(Plot::new(&["impact", kernel.info().key], title, told.join("; "), area.bottom + 38.0, body))
}

fn has_any(group: &Group) -> bool {
    group.factors.iter().any(Option::is_some)
}

fn told(group: &Group) -> String {
    let value = |of: Option<Factor>| of.map_or_else(|| "unknown".into(), |of| factor(of.factor));
    let [headline, average, p99] = group.factors.map(value);
    format!("{}: by time {headline}, average {average}, p99 {p99}", group.name)
}

fn draw(group: &Group, top: f64, axis: &LogAxis) -> String {
    let mut out = text(LEFT, top + 10.0, "start", "name", &fit(&group.name, 60));
    const BARS: [(&str, &str); 3] = [("90th percentile by time", "time-p90"), ("average", "avg"), ("p99", "p99")];
    for (at, ((name, key), of)) in BARS.into_iter().zip(group.factors).enumerate() {
        let Some(of) = of else { continue };
        let (y, height) = (top + 14.0 + 13.0 * at as f64, 11.0);
        let (from, to) = (axis.at(1.0), axis.at(of.factor));
        let title = format!("{}, {name}: {}", group.name, with_interval(of));
        out += &bar(from.min(to), y, (to - from).abs(), height, &format!("{} {key}", group.class), &title);
        let mut end = from.max(to);
        if let Some(interval) = of.interval {
            let (low, high) = (axis.at(interval.low), axis.at(interval.high));
            let middle = y + height / 2.0;
            out += &line((low, middle), (high, middle), "whisker");
            out += &line((low, middle - 3.0), (low, middle + 3.0), "whisker");
            out += &line((high, middle - 3.0), (high, middle + 3.0), "whisker");
            end = end.max(high);
        }
        out += &text(end + 5.0, y + 9.0, "start", "value", &format!("{} {key}", factor(of.factor)));
    }
    out
}

/// Victims and aggressors: a cell is as dark as the impact is large, on a logarithmic scale, and says it.
pub fn heat(of: &Aggressors) -> Plot {
    /// Room for the victims' names.
    const LEFT: f64 = 150.0;
    const ROW: f64 = 26.0;
    const TOP: f64 = 22.0;
    /// An impact of so much is as dark as it gets.
    const DARKEST: f64 = 100.0;
    let width = (WIDTH - LEFT - 4.0) / of.loads.len().max(1) as f64;
    let mut body = String::new();
    for (at, load) in of.loads.iter().enumerate() {
        let most = (width / 6.0) as usize;
        body += &text(LEFT + (at as f64 + 0.5) * width, TOP - 8.0, "middle", "tick", &fit(load, most.max(3)));
    }
    let mut told = Vec::new();
    for (row, victim) in of.victims.iter().enumerate() {
        let y = TOP + row as f64 * ROW;
        body += &text(LEFT - 6.0, y + ROW / 2.0 + 3.0, "end", "tick", &fit(&victim.title, 26));
        for (at, (load, impact)) in of.loads.iter().zip(&victim.impacts).enumerate() {
            let Some(impact) = impact else { continue };
            let share = (impact.factor.max(1.0).ln() / DARKEST.ln()).clamp(0.0, 1.0);
            let title = format!("{} beside {load}: {}", victim.title, with_interval(*impact));
            let x = LEFT + at as f64 * width;
            let look = "rx=\"2\" class=\"cell busy\"";
            body += &cell((x, y), (width - 2.0, ROW - 2.0), look, 0.08 + 0.6 * share, &title);
            body += &text(x + width / 2.0 - 1.0, y + ROW / 2.0 + 3.0, "middle", "value", &factor(impact.factor));
            told.push(title);
        }
    }
    let height = TOP + of.victims.len() as f64 * ROW + 8.0;
    Plot::new(&["victims", "aggressors"], "Victims and aggressors".into(), told.join("; "), height, body)
}
