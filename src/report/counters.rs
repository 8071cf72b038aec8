//! What the nodes' own devices counted, as tables: over all nodes, and node by node.

use super::html::HtmlTable;
use crate::result::{CounterRow, CountersRecord};
use crate::text::{factor, figure};

/// Every counter that moved, those that tell of congestion first, with its ratio to the isolated phase.
pub(super) fn ratios(name: &str, counters: &CountersRecord, most: usize) -> HtmlTable {
    let mut rows = counters.rows();
    rows.sort_by(|a, b| b.is_telling().cmp(&a.is_telling()).then(b.rise().total_cmp(&a.rise())));
    let mut caption = format!("{name}: what the nodes counted, a second over all nodes");
    if rows.len() > most {
        caption += &format!(", the {most} of {} that rose most (the result file has more)", rows.len());
        rows.truncate(most);
    }
    let header = ["counter", "source", "while", "isolated /s", "loaded /s", "loaded over isolated", "most on"];
    let mut table = HtmlTable::new(&caption, header);
    let known = |value: Option<f64>, shown: fn(f64) -> String| value.map_or_else(|| "–".into(), shown);
    for row in &rows {
        let CounterRow { during, source, counter, isolated_per_s, loaded_per_s, most_on } = row;
        table.row([
            counter.clone(),
            source.clone(),
            during.to_string(),
            known(*isolated_per_s, figure),
            known(*loaded_per_s, figure),
            known(row.ratio(), factor),
            most_on.clone(),
        ]);
    }
    table
}

/// Counters that tell of congestion, phase by phase over the devices that have them: what the violins show.
pub(super) fn spreads(name: &str, counters: &CountersRecord, most: usize) -> HtmlTable {
    let header =
        ["counter", "phase", "devices", "mean /s", "over isolated", "p95 /s", "least /s", "most /s", "most on"];
    let caption = format!("{name}: counters that tell of congestion, over the devices of all nodes");
    let mut table = HtmlTable::new(&caption, header);
    let all = counters.telling().into_iter().flat_map(|(source, counter)| {
        let spreads = counters.spreads(&source, &counter).into_iter();
        spreads.map(move |of| (format!("{source} {counter}"), of))
    });
    for (counter, of) in all.take(most) {
        let (Some(least), Some(most)) = (of.least(), of.most()) else { continue };
        table.row([
            counter,
            of.phase.to_string(),
            of.devices.len().to_string(),
            figure(of.mean),
            of.times_isolated.map_or_else(|| "–".into(), factor),
            figure(of.p95),
            figure(least.1),
            figure(most.1),
            most.0.clone(),
        ]);
    }
    table
}

/// Counters that tell of congestion, node by node and phase by phase.
pub(super) fn by_node(name: &str, counters: &CountersRecord, most: usize) -> HtmlTable {
    let mut rows: Vec<[String; 5]> = Vec::new();
    let mut left_out = 0;
    for phase in &counters.phases {
        for of in &phase.devices {
            let told = of.counters.iter().filter(|(name, value)| **value > 0.0 && crate::counters::is_telling(name));
            for (counter, value) in told {
                if rows.len() < most {
                    let on = format!("{} {}", of.node, of.device);
                    let rate = figure(value / of.seconds);
                    rows.push([
                        on.trim_end().to_owned(),
                        phase.phase.to_string(),
                        format!("{} {counter}", of.source),
                        figure(*value),
                        rate,
                    ]);
                } else {
                    left_out += 1;
                }
            }
        }
    }
    let more = if left_out > 0 { format!(", {left_out} more in the result file") } else { String::new() };
    let caption = format!("{name}: counters that tell of congestion, node by node{more}");
    let mut table = HtmlTable::new(&caption, ["node", "phase", "counter", "counted", "a second"]);
    rows.into_iter().for_each(|row| table.row(row));
    table
}
