//! What the nodes' own devices counted in each phase, as violins: the counters that tell of congestion.

use super::Plot;
use super::violin::Violins;
use crate::result::CountersRecord;

/// One plot for each of the `most` counters that rose most under load. What a single device counts needs no plot.
pub fn devices(name: &str, counters: &CountersRecord, (most, dots): (usize, usize)) -> Vec<Plot> {
    let plot = |(source, counter): (String, String)| {
        let (spreads, counter) = (counters.spreads(&source, &counter), format!("{source} {counter}"));
        let several = spreads.iter().any(|of| of.devices.len() > 1);
        let (id, title, unit) =
            (["counters", counter.as_str(), name], format!("{counter}, {name}"), "a second".to_owned());
        several.then(|| Violins { id, title, unit, floor: 1.0, spreads, dots }.plot()).flatten()
    };
    counters.telling().into_iter().filter_map(plot).take(most).collect()
}
