//! Suspects in text: the verdict first, a row for each of the worst, what was looked at. And all of them as CSV.

use crate::analysis::locate::{Evidence, Figure, Located, Probed, Suspect, Way};
use crate::text::{Table, plural, whole_percent, wrap};

/// Rows on the first screen.
const SHOWN: usize = 4;

/// Text for a terminal, in at most twelve lines; all suspects with all that shows them where `verbose`.
pub fn located(of: &Located, verbose: bool) -> String {
    shown(of, super::columns(), verbose)
}

fn shown(of: &Located, columns: usize, verbose: bool) -> String {
    let mut out = wrap(&verdict(of), columns);
    let most = if verbose { usize::MAX } else { SHOWN };
    if !of.suspects.is_empty() {
        out += &suspects(of, most).text();
        if let Some(more) = of.suspects.len().checked_sub(most).filter(|more| *more > 0) {
            out += &format!("  and {more} more (--verbose shows all)\n");
        }
    }
    if verbose {
        out += &all_evidence(of).text();
    }
    notes(of).iter().for_each(|note| out += &wrap(note, columns));
    out
}

/// A row for each of the worst.
pub(crate) fn suspects(of: &Located, most: usize) -> Table {
    let first = |suspect: &&Suspect| strength(suspect.first());
    Table::of(of.suspects.iter().take(most))
        .column("suspect", |suspect| suspect.name.clone())
        .column("verdict", |suspect| suspect.fault.to_string())
        .column("strength [95%]", first)
        .column("way", |suspect| way(suspect.way))
        .column("p", |suspect| chance(suspect.first().p_value))
        .done()
}

/// What was looked at, and what may be no fault.
pub(crate) fn notes(of: &Located) -> Vec<String> {
    let groups = if of.groups > 0 { format!(" in {} groups", of.groups) } else { String::new() };
    let visible = of.visible.map(|part| format!("; a rate {} lower is seen", whole_percent(part))).unwrap_or_default();
    let maps = if of.maps > 1 { format!("{} maps, ", of.maps) } else { String::new() };
    let looked_at =
        format!("Looked at: {maps}{} nodes{groups}, {} pairs, {} effects{visible}", of.nodes, of.pairs, of.looked_at);
    let mut notes = vec![looked_at];
    notes.extend(of.probed.as_ref().map(alone));
    let busy: Vec<&str> = of.busy.iter().map(|busy| busy.name.as_str()).take(SHOWN).collect();
    if !busy.is_empty() {
        let gone = if of.probed.is_some() { "gone when measured alone" } else { "gone in another map" };
        let more = of.busy.len().checked_sub(SHOWN).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        notes.push(format!("Busy with neighbours' load, {gone}: {}{more}", busy.join(", ")));
    }
    if !of.suspects.is_empty() && of.maps == 1 && of.probed.is_none() {
        notes.push("Nodes that others kept busy look the same in one map: give a second one, of another time".into());
    }
    notes
}

/// What was measured again.
fn alone(of: &Probed) -> String {
    let some = |count: usize, of: &str| (count > 0).then(|| plural(count, of));
    let parts: Vec<String> = [some(of.nodes, "node"), some(of.links, "link")].into_iter().flatten().collect();
    let parts = if parts.is_empty() { "nothing suspicious".to_owned() } else { parts.join(" and ") };
    let visible = of.visible.map(|part| format!("; a rate {} lower is seen", whole_percent(part))).unwrap_or_default();
    format!("Measured alone: {parts}, beside {} others, {} rounds{visible}", of.controls, of.rounds)
}

/// The first line.
pub(crate) fn verdict(of: &Located) -> String {
    let alarms = format!("false alarms on at most {}% of healthy systems", 100.0 * of.false_alarms);
    match of.suspects.len() {
        0 => format!("NO SUSPECT: no node, group or pair of groups is slower than its peers ({alarms})"),
        1 => format!("1 SUSPECT: {} ({alarms})", phrase(&of.suspects[0])),
        count => format!("{count} SUSPECTS, the worst: {} ({alarms})", phrase(&of.suspects[0])),
    }
}

fn phrase(of: &Suspect) -> String {
    format!("{} is taken for: {}, {}", of.name, of.fault, strength(of.first()))
}

/// `30% [22, 41] less rate`.
fn strength(of: &Evidence) -> String {
    let whole = |part: f64| format!("{:.0}", 100.0 * part);
    let (low, high) = (of.interval.low, of.interval.high);
    let part = || format!("{}% [{}, {}]", whole(of.slower), whole(low), whole(high));
    match of.figure {
        Figure::Rate => format!("{} less rate", part()),
        Figure::Copy => format!("{} slower copies", part()),
        Figure::Latency => format!("{} more latency", part()),
        Figure::WorstSlice => format!("worst slice {} below", part()),
        Figure::Retransmissions => format!("{:.0} [{:.0}, {:.0}] sent again", of.slower, low.max(0.0), high),
    }
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Out => "out",
        Way::In => "in",
        Way::Both => "both",
    }
}

fn chance(p_value: f64) -> String {
    if p_value < 0.001 { "<0.001".into() } else { format!("{p_value:.3}") }
}

/// Every figure of every suspect.
pub(crate) fn all_evidence(of: &Located) -> Table {
    let rows = of.suspects.iter().flat_map(|suspect| suspect.evidence.iter().map(move |evidence| (suspect, evidence)));
    Table::of(rows)
        .column("seen by", |(suspect, _)| suspect.name.clone())
        .column("figure [95%]", |(_, evidence)| strength(evidence))
        .column("way", |(_, evidence)| way(evidence.way))
        .column("p", |(_, evidence)| chance(evidence.p_value))
        .done()
}

/// A line for each figure of each suspect.
pub fn located_csv(of: &Located) -> String {
    let key = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let rows = of.suspects.iter().flat_map(|suspect| suspect.evidence.iter().map(move |evidence| (suspect, evidence)));
    Table::of(rows)
        .column("suspect", |(suspect, _)| crate::text::Cell::Name(suspect.name.clone()))
        .column("verdict", move |(suspect, _)| key(serde_json::json!(suspect.fault)))
        .column("figure", move |(_, evidence)| key(serde_json::json!(evidence.figure)))
        .column("way", |(_, evidence)| way(evidence.way))
        .column("slower", |(_, evidence)| evidence.slower)
        .column("low", |(_, evidence)| evidence.interval.low)
        .column("high", |(_, evidence)| evidence.interval.high)
        .column("p_value", |(_, evidence)| evidence.p_value)
        .done()
        .csv()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::locate::{Fault, Place};
    use crate::stats::Interval;

    fn suspect(node: u32, fault: Fault, figure: Figure) -> Suspect {
        let interval = Interval { low: 0.22, high: 0.41 };
        let evidence = Evidence { figure, way: Way::Out, slower: 0.3, interval, p_value: 1e-9 };
        Suspect { place: Place::Node(node), name: format!("h{node}"), fault, way: Way::Out, evidence: vec![evidence] }
    }

    fn some(suspects: Vec<Suspect>) -> Located {
        Located {
            nodes: 64,
            groups: 8,
            pairs: 4032,
            false_alarms: 0.01,
            looked_at: 262,
            figures: vec![Figure::Rate],
            visible: Some(0.123),
            maps: 1,
            probed: None,
            suspects,
            busy: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_first_and_all_fits_a_screen() {
        let joined = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = joined(shown(&some(vec![]), 80, false));
        assert!(text.starts_with("NO SUSPECT: ") && text.contains("at most 1% of healthy systems"), "{text}");
        assert!(text.contains("64 nodes in 8 groups, 4032 pairs, 262 effects; a rate 12% lower is seen"), "{text}");
        let text = joined(shown(&some(vec![suspect(7, Fault::SlowToSend, Figure::Rate)]), 80, false));
        assert!(text.starts_with("1 SUSPECT: h7 is taken for: slow to send, 30% [22, 41] less rate"), "{text}");
        let many = (0..20).map(|node| suspect(node, Fault::Host, Figure::Copy)).collect();
        let text = shown(&some(many), 80, false);
        assert!(text.lines().count() <= 12 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("20 SUSPECTS, the worst: h0 ") && text.contains("and 16 more"), "{text}");
        let all =
            shown(&some((0..20).map(|node| suspect(node, Fault::Loss, Figure::Retransmissions)).collect()), 80, true);
        assert!(all.contains("h19") && !all.contains("more (--verbose"), "{all}");
    }

    #[test]
    fn what_was_busy_is_told_with_its_reason() {
        let busy = (0..7).map(|node| suspect(node, Fault::SlowToSend, Figure::Rate)).collect();
        let text = shown(&Located { maps: 2, busy, ..some(vec![]) }, 200, false);
        assert!(text.starts_with("NO SUSPECT: ") && text.contains("Looked at: 2 maps, 64 nodes"), "{text}");
        assert!(text.contains("neighbours' load, gone in another map: h0, h1, h2, h3 and 3 more"), "{text}");
    }

    #[test]
    fn csv_has_keys_and_whole_numbers() {
        let text = located_csv(&some(vec![suspect(7, Fault::SlowToSend, Figure::WorstSlice)]));
        assert_eq!(
            text,
            "suspect,verdict,figure,way,slower,low,high,p_value\n\"h7\",slow-to-send,worst-slice,out,0.3,0.22,0.41,0.000000001\n"
        );
    }
}
