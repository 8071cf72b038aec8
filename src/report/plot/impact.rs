//! Impact bars on a log axis, one plot per canary: every run's headline, average and 99th percentile, with intervals.

use super::axis::LogAxis;
use super::{Plot, WIDTH, bar, fit, grid_across, line, text};
use crate::compare::Side;
use crate::kernel::Canary;
use crate::report::published::{self, System};
use crate::stats::{Factor, Statistic};
use crate::text::{factor, with_interval};

const LEFT: f64 = 8.0;
/// Room for the value behind the longest bar.
const RIGHT: f64 = WIDTH - 104.0;
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
    let axis = LogAxis::new(low, high, LEFT, RIGHT);
    let bottom = 8.0 + groups.len() as f64 * GROUP;
    let mut body = grid_across(&axis, 4.0, bottom);
    body += &line((axis.at(1.0), 4.0), (axis.at(1.0), bottom), "axis");
    for (at, group) in groups.iter().enumerate() {
        body += &draw(group, 8.0 + at as f64 * GROUP, &axis);
    }
    body +=
        &text((LEFT + RIGHT) / 2.0, bottom + 30.0, "middle", "axis-title", "times worse under load (1 = no impact)");
    let told: Vec<String> = groups.iter().map(told).collect();
    let title = kernel.info().title.to_owned();
    Some(Plot::new(&["impact", kernel.info().key], title, told.join("; "), bottom + 38.0, body))
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
    const BARS: [(&str, &str); 3] = [("75th percentile by time", "time-p75"), ("average", "avg"), ("p99", "p99")];
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
