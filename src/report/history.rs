//! A page of a machine night after night: what changed, a plot of every figure, and the tables of `tailback history`.

use super::figures::gallery;
use super::page::{Section, whole};
use super::plot::{self, Plot};
use crate::analysis::history::History;
use crate::output::history::{CHANGES_TITLE, LEVELS_TITLE, changes, every_night, levels, span, verdict};
use crate::text::escape;

/// Plots that the page begins with.
const FIRST: usize = 3;

/// The page of some histories, the longest first.
pub fn history(of: &[&History]) -> String {
    let subtitle: Vec<String> = of.iter().map(|of| escape(&format!("{}: {}", of.title, span(of)))).collect();
    let head: String = of.iter().map(|history| said(history, of.len() > 1)).collect();
    let plots: Vec<Vec<Plot>> = of.iter().map(|of| plots(of)).collect();
    // What changed last is seen first.
    let first: Vec<Plot> = plots.iter().flatten().take(FIRST).cloned().collect();
    let others: Vec<Plot> = plots.into_iter().flatten().skip(FIRST).collect();
    let tables = |table: fn(&History) -> crate::text::Table, title: &str| -> String {
        let one = |of: &&History| {
            let table = table(of);
            if table.is_empty() { String::new() } else { table.html(&format!("{}: {title}", of.title)) }
        };
        of.iter().map(one).collect()
    };
    let section = |id, title, content| Section { id, title, lead: String::new(), content, folded: false };
    let content = if others.is_empty() { String::new() } else { gallery(&others) };
    let sections = vec![
        section("changes", "Changes", tables(changes, CHANGES_TITLE)),
        section("levels", "Figures", tables(levels, LEVELS_TITLE)),
        section("plots", "Every other figure", content),
        Section { folded: true, ..section("nights", "Every night", tables(every_night, "every night")) },
    ];
    whole("Night after night", &subtitle.join("; "), &head, &gallery(&first), sections)
}

fn said(of: &History, is_one_of_several: bool) -> String {
    let verdict = verdict(of);
    let (class, words) = match verdict.split_once([' ', ';']) {
        Some(("WORSE", _)) => ("strong", "WORSE"),
        Some(("BETTER", _)) => ("none", "BETTER"),
        Some(("CANNOT", _)) => ("unsaid", "CANNOT SAY"),
        _ => ("study", "NO CHANGE SHOWN"),
    };
    let name = if is_one_of_several { format!("{}: ", escape(&of.title)) } else { String::new() };
    let rest = verdict.strip_prefix(words).unwrap_or(&verdict);
    format!("<p class=\"verdict {class}\">{name}<strong>{words}</strong>{}</p>\n", escape(rest))
}

/// A plot of every figure, those that changed last first.
fn plots(of: &History) -> Vec<Plot> {
    let mut series: Vec<_> = of.series.iter().collect();
    series.sort_by_key(|series| std::cmp::Reverse(series.changes.last().map(|change| change.night)));
    series.into_iter().filter_map(|series| plot::history(of, series)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::history::{Name, Night, Value};

    fn night(at: usize, figures: &[(&str, f64)]) -> Night {
        let figure = |(key, value): &(&str, f64)| {
            let name = Name { key: (*key).into(), unit: "us".into(), more_is_worse: true, primary: true };
            (name, Value { value: *value, whole: None, is_sound: true })
        };
        let started = format!("2026-01-{:02}T02:00:00Z", at + 1);
        Night { file: format!("n{at}.json"), started, figures: figures.iter().map(figure).collect() }
    }

    #[test]
    fn a_page_begins_with_what_changed() {
        let noise = |at: usize| 0.1 * (at * 7 % 5) as f64;
        let of = |at: usize| {
            let loaded = if at < 15 { 10.0 } else { 13.0 } + noise(at);
            night(at, &[("lat.avg.idle", 5.0 + noise(at)), ("lat.avg.loaded", loaded)])
        };
        let history = History::of("run <tcp>".into(), &(0..28).map(of).collect::<Vec<_>>(), &[]);
        let page = super::history(&[&history]);
        assert!(page.contains("<p class=\"verdict strong\"><strong>WORSE</strong> since 2026-01-16: "), "{page}");
        assert!(page.contains("run &lt;tcp&gt;: 28 nights, 2026-01-01 to 2026-01-28") && !page.contains("run <tcp>"));
        let places = ["id=\"history-lat-avg-loaded", "id=\"history-lat-avg-idle", "id=\"changes\"", "id=\"levels\""];
        let places: Vec<usize> =
            places.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
        assert!(places.is_sorted(), "{places:?}");
        let few = History::of("run".into(), &[of(0)], &[]);
        let page = super::history(&[&history, &few]);
        assert!(page.contains("<p class=\"verdict unsaid\">run: <strong>CANNOT SAY</strong>: 1 night is"), "{page}");
    }
}
