//! Maps of pairs of nodes: what is planned, the first screen, tables.

use std::fmt::Write as _;
use std::time::Duration;

use tailback_transport::Bytes;

use crate::analysis::map::{MapKind, MapRow, MapView, SLOW};
use crate::models::map::STEPS;
use crate::result::{GroupsKnownBy, MapFigure, MapPair, MapResult};
use crate::text::{Cell, Rows, Table, duration, factor, rate};

/// A map before it is measured.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct MapOutline {
    pub nodes: usize,
    pub groups: Option<usize>,
    pub rounds: usize,
    /// Rounds that are known already.
    pub known: usize,
    pub pairs: usize,
    pub all_pairs: bool,
    /// The most that the rounds take that are left, beside agreeing on them.
    pub longest: Duration,
    pub step: Duration,
    pub is_simulated: bool,
    /// The most rounds of probes that follow, where suspects are probed.
    pub probes: Option<usize>,
}

/// What is going to be measured, and how long it takes.
pub fn planned_map(of: MapOutline) -> String {
    let all = of.nodes * of.nodes.saturating_sub(1) / 2;
    let which = match of.all_pairs {
        true => format!("all {} pairs", of.pairs),
        false => format!("a sample of {} of {all} pairs ({} with every node)", of.pairs, of.rounds),
    };
    let groups = of.groups.map(|groups| format!(" in {groups} groups")).unwrap_or_default();
    let known = if of.known == 0 { String::new() } else { format!("; {} rounds are known", of.known) };
    let probes = of.probes.map(|most| format!(". Then at most {most} rounds in which suspects are measured alone"));
    let probes = probes.unwrap_or_default();
    let virtually = if of.is_simulated { " of virtual time" } else { "" };
    format!(
        "A map of {} nodes{groups}: {which} in {} rounds of up to {}{known}. At most about {}{virtually}: {} rounds of {STEPS} \
         steps of {}, unless single messages take longer{probes}\n",
        of.nodes,
        of.rounds,
        of.nodes / 2,
        duration(of.longest.as_nanos() as f64),
        of.rounds - of.known,
        duration(of.step.as_nanos() as f64)
    )
}

/// A figure of a kind as people read it.
pub(crate) fn shown(kind: MapKind, value: f64) -> String {
    if kind == MapKind::Latency { duration(1e9 * value) } else { rate(value / 1_048_576.0) }
}

/// The name of a node.
fn name(map: &MapResult, node: u32) -> &str {
    map.nodes.get(node as usize).map_or("?", String::as_str)
}

/// What was found in a sentence or two.
pub(crate) fn verdict(map: &MapResult, view: &MapView) -> String {
    let pairs = map.pairs.len() / 2;
    let which = if map.all_pairs { "all pairs" } else { "a sample of all pairs" };
    let kinds = if map.groups.is_some() { " of its kind (within a group, or between groups)" } else { "" };
    let of = format!("{pairs} pairs of {} nodes ({which})", map.nodes.len());
    let Some(worst) = view.rows.first() else { return format!("NOTHING MEASURED: {of}.") };
    let mut said = match view.slow {
        0 => format!(
            "ALIKE: no pair of {of} takes more than {SLOW} times as long as the middle one{kinds}; the slowest: {}, {} in {}.",
            arrow(map, &worst.pair),
            factor(worst.worst.1),
            worst.worst.0.word()
        ),
        slow => {
            let most = view.most.filter(|(_, count, _)| *count > 1 || slow == 1);
            let most =
                most.map(|(node, count, all)| format!(" {} is in {count} of them, of its {all}.", name(map, node)));
            format!(
                "SLOW PAIRS: {slow} of {of} take more than {SLOW} times as long as the middle one{kinds}.{}",
                most.unwrap_or_default()
            )
        }
    };
    if let Some(groups) = groups(map) {
        said += &format!(" {groups}.");
    }
    said
}

/// How many groups, and who says so.
pub(crate) fn groups(map: &MapResult) -> Option<String> {
    let mut numbers = map.groups.clone()?;
    numbers.sort_unstable();
    numbers.dedup();
    let by = match map.groups_known_by {
        Some(GroupsKnownBy::File) => "as given",
        Some(GroupsKnownBy::Names) => "by their names",
        Some(GroupsKnownBy::Environment) => "as the environment says",
        Some(GroupsKnownBy::Inferred) | None => "inferred from latencies, which nobody confirmed",
    };
    Some(format!("Groups of nodes: {}, {by}", numbers.len()))
}

fn arrow(map: &MapResult, pair: &MapPair) -> String {
    format!("{} > {}", name(map, pair.from), name(map, pair.to))
}

/// The slowest of all directions of pairs.
pub(crate) fn slowest(map: &MapResult, view: &MapView, most: usize) -> Table {
    let times = |row: &&MapRow| format!("{} ({})", factor(row.worst.1), row.worst.0.word());
    let cell = |kind: MapKind, of: Option<MapFigure>| of.map(|of| Cell::number(of.median, |value| shown(kind, value)));
    Table::of(view.rows.iter().take(most))
        .column("slowest pairs", |row| arrow(map, &row.pair))
        .column("latency", |row| cell(MapKind::Latency, row.latency_s))
        .column("one way", |row| cell(MapKind::OneWay, row.pair.one_way_bytes_per_s))
        .column("worst slice", |row| {
            row.pair.one_way_bytes_per_s.map(|of| Cell::number(of.worst, |value| shown(MapKind::OneWay, value)))
        })
        .column("both ways", |row| cell(MapKind::BothWays, row.pair.both_ways_bytes_per_s))
        .column("times the middle", times)
        .column_if(
            map.pairs.iter().any(|pair| pair.retransmitted.is_some_and(|count| count > 0)),
            "sent again",
            |row| row.pair.retransmitted,
        )
        .done()
}

/// Best, middle and worst of each kind.
pub(crate) fn extent(view: &MapView) -> Table {
    let at =
        |place: usize| move |(kind, all): &(MapKind, [f64; 3])| Cell::number(all[place], |value| shown(*kind, value));
    Table::of(view.extent.iter().copied())
        .column("over all pairs", |(kind, _)| kind.word())
        .column("best", at(0))
        .column("median", at(1))
        .column("worst", at(2))
        .done()
}

/// Every table of a map.
pub(crate) fn map(map: &MapResult) -> String {
    const MOST: usize = 40;
    let view = MapView::of(map);
    let mut out = format!("{}\n", verdict(map, &view));
    let _ = writeln!(
        out,
        "\nRounds: {} of {}; bandwidth of messages of {}\n\n{}\n{}",
        map.complete_rounds,
        map.rounds,
        Bytes(map.bytes),
        extent(&view).text(),
        slowest(map, &view, MOST).text()
    );
    if view.rows.len() > MOST {
        let _ = writeln!(out, "All {} directions of pairs: --format csv", view.rows.len());
    }
    out
}

/// A line for each direction of each pair.
pub(super) fn lines<'a>(rows: impl FnOnce(Vec<&'a MapPair>) -> Rows<&'a MapPair>, map: &'a MapResult) -> Table {
    let of = |figure: fn(&MapPair) -> Option<MapFigure>, value: fn(MapFigure) -> f64| {
        move |pair: &&MapPair| figure(pair).map(value)
    };
    let group = |node: u32| Some(*map.groups.as_ref()?.get(node as usize)?);
    let median: fn(MapFigure) -> f64 = |of| of.median;
    let worst: fn(MapFigure) -> f64 = |of| of.worst;
    rows(map.pairs.iter().collect())
        .column("from", |pair| Cell::Name(name(map, pair.from).to_owned()))
        .column("to", |pair| Cell::Name(name(map, pair.to).to_owned()))
        .column("from_group", |pair| group(pair.from))
        .column("to_group", |pair| group(pair.to))
        .column("latency_s", of(|pair| pair.latency_s, median))
        .column("latency_worst_s", of(|pair| pair.latency_s, worst))
        .column("one_way_bytes_per_s", of(|pair| pair.one_way_bytes_per_s, median))
        .column("one_way_worst_bytes_per_s", of(|pair| pair.one_way_bytes_per_s, worst))
        .column("both_ways_bytes_per_s", of(|pair| pair.both_ways_bytes_per_s, median))
        .column("both_ways_worst_bytes_per_s", of(|pair| pair.both_ways_bytes_per_s, worst))
        .column("retransmitted", |pair| pair.retransmitted)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::map::tests::map as drawn;

    #[test]
    fn a_map_says_what_is_slow_and_how_groups_are_known() {
        let mut of = drawn(6, |_, _| 1.0, |a, b| if a == 3 || b == 3 { 2.0 } else { 10.0 });
        let view = MapView::of(&of);
        let said = verdict(&of, &view);
        assert_eq!(
            said,
            "SLOW PAIRS: 5 of 15 pairs of 6 nodes (all pairs) take more than 1.5 times as long as the middle one. n3 is in 5 of \
             them, of its 5."
        );
        let table = slowest(&of, &view, 3).text();
        assert!(table.lines().count() == 4 && table.contains("n3"), "{table}");
        of.groups = Some(vec![0, 0, 0, 1, 1, 1]);
        of.groups_known_by = Some(GroupsKnownBy::Inferred);
        assert!(map(&of).contains("Groups of nodes: 2, inferred from latencies"), "{}", map(&of));
        let even = drawn(4, |_, _| 1.0, |_, _| 10.0);
        assert!(verdict(&even, &MapView::of(&even)).starts_with("ALIKE: no pair of 6 pairs of 4 nodes (all pairs)"));
    }

    #[test]
    fn a_plan_says_its_time_before() {
        let (longest, step) = (Duration::from_secs(80), Duration::from_millis(20));
        let of = MapOutline {
            nodes: 1000,
            groups: Some(25),
            rounds: 999,
            known: 0,
            pairs: 499_500,
            all_pairs: true,
            longest,
            step,
            is_simulated: false,
            probes: None,
        };
        let said = planned_map(of);
        assert!(
            said.starts_with("A map of 1000 nodes in 25 groups: all 499500 pairs in 999 rounds of up to 500."),
            "{said}"
        );
        assert!(said.contains("At most about 80") && said.contains("999 rounds of 4 steps of 20"), "{said}");
        let said = planned_map(MapOutline { rounds: 64, pairs: 32_000, all_pairs: false, known: 14, ..of });
        assert!(said.contains("a sample of 32000 of 499500 pairs (64 with every node)"), "{said}");
        assert!(said.contains("; 14 rounds are known. At most") && said.contains(": 50 rounds"), "{said}");
    }
}
