//! What the congestors delivered while each canary measured.

use super::axis::label;
use super::{Plot, WIDTH, bar, fit, line, text};
use crate::compare::Side;
use crate::engine::Phase;
use crate::kernel::Congestor;
use crate::text::figure;

const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 62.0;
const BAR: f64 = 15.0;

/// The load on one side; nothing when no canary ran under load.
pub fn load(side: &Side<'_>) -> Option<Plot> {
    let tests: Vec<_> =
        side.run.tests.iter().filter(|test| test.phase == Phase::Loaded && !test.load.is_empty()).collect();
    let loads = tests.iter().flat_map(|test| &test.load);
    let most = loads.map(|load| load.delivered_mib_per_s).fold(0.0f64, f64::max);
    if tests.is_empty() || !most.is_finite() || most <= 0.0 {
        return None;
    }
    let x = |value: f64| LEFT + value / most * (RIGHT - LEFT);
    let (mut y, mut body, mut told) = (4.0, String::new(), Vec::new());
    for test in &tests {
        body += &text(8.0, y + 12.0, "start", "name", &fit(&format!("during {}", test.title), 60));
        y += 18.0;
        for load in &test.load {
            let kind = Congestor::ALL.iter().position(|kernel| *kernel == load.kernel).unwrap_or(0);
            let value = figure(load.delivered_mib_per_s);
            let title =
                format!("{} during {}: {value} MiB/s delivered by {} ranks", load.title, test.title, load.ranks);
            body += &text(LEFT - 6.0, y + 11.0, "end", "tick", load.kernel.info().key);
            body += &bar(LEFT, y + 1.5, x(load.delivered_mib_per_s) - LEFT, BAR - 3.0, &format!("role{kind}"), &title);
            body += &text(x(load.delivered_mib_per_s) + 5.0, y + 11.0, "start", "value", &value);
            y += BAR;
        }
        let total: f64 = test.load.iter().map(|load| load.delivered_mib_per_s).sum();
        told.push(format!("during {} {} MiB/s in all", test.title, figure(total)));
        y += 8.0;
    }
    for part in [0.5, 1.0] {
        body.insert_str(0, &line((x(most * part), 4.0), (x(most * part), y), "grid"));
        body += &text(x(most * part), y + 12.0, "middle", "tick", &label((most * part).round()));
    }
    body.insert_str(0, &line((LEFT, 4.0), (LEFT, y), "axis"));
    body +=
        &text((LEFT + RIGHT) / 2.0, y + 28.0, "middle", "axis-title", "MiB/s delivered, all ranks of a kind together");
    Some(Plot::new(&["load", &side.label], side.label.clone(), told.join("; "), y + 36.0, body))
}
