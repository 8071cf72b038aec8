use std::path::PathBuf;

use super::*;
use crate::result::synthetic;

fn files(count: usize) -> Vec<(PathBuf, ResultFile)> {
    (0..count).map(|at| (format!("r{at}.json").into(), synthetic::file("tcp", None, 1.5 + at as f64))).collect()
}

/// Every opened element is closed, in order: enough of an HTML check to catch a lost tag.
fn check_nesting(html: &str) {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().expect("split gives at least one part");
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().expect("likewise");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing {tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name) && !tag.starts_with('?') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn a_page_is_whole_and_asks_nothing_of_a_network() {
    let files = files(2);
    let html = Report::new(&files, true).html();
    check_nesting(&html);
    let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "<script", "@import", "url(", "src="] {
        assert!(!without_namespace.contains(word), "{word}");
    }
    for id in
        ["key", "run", "impact", "distributions", "percentiles", "load", "nodes", "comparison", "numbers", "guide"]
    {
        assert!(html.contains(&format!("<section id=\"{id}\"")), "{id}");
        assert!(html.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
    assert!(html.contains("a note with &lt;angle&gt; &amp; ampersand"));
    // Every plot tells what it shows to those who cannot see it.
    assert!(html.matches("<svg").count() >= 10);
    assert_eq!(html.matches("<svg").count(), html.matches("role=\"img\" aria-label=\"").count());
}

#[test]
fn plots_stand_alone_under_names_of_their_own() {
    let files = files(2);
    let plots = Report::new(&files, false).plots();
    // Three canaries: impact of both runs; distribution and percentiles of each; load and nodes of each file.
    assert_eq!(plots.len(), 3 + 6 + 6 + 2 + 2);
    let mut ids: Vec<&str> = plots.iter().map(|plot| plot.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), plots.len());
    for plot in &plots {
        let svg = plot.standalone();
        check_nesting(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", plot.id);
        assert!(svg.contains("<title>"), "{}", plot.id);
    }
}

#[test]
fn twenty_files_stay_small() {
    let one = files(1).remove(0).1;
    let files: Vec<(PathBuf, ResultFile)> = (0..20).map(|at| (format!("r{at}.json").into(), one.clone())).collect();
    let html = Report::new(&files, true).html();
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
}

#[test]
fn results_without_samples_or_load_have_a_page_too() {
    let mut files = files(1);
    for run in &mut files[0].1.runs {
        run.impacts.clear();
        run.tests.iter_mut().for_each(|test| {
            (test.histogram, test.summary) = (None, None);
            test.batches.clear();
            test.load.clear();
        });
    }
    files[0].1.system.nodes.clear();
    check_nesting(&Report::new(&files, false).html());
}
