use std::path::PathBuf;

use super::sides::chosen;
use super::*;
use crate::assemble::synthetic;
use crate::kernel::Canary;
use crate::result::ResultFile;
use crate::stats::Statistic;

fn named(files: Vec<ResultFile>) -> Vec<(PathBuf, ResultFile)> {
    let name = |at: usize| PathBuf::from(format!("dir/{}.json", ["a", "b", "c"][at]));
    files.into_iter().enumerate().map(|(at, file)| (name(at), file)).collect()
}

fn cell(comparison: &Comparison, state: State, kernel: Canary) -> Cell {
    let found = |row: &&Row| row.state == state && row.kernel == kernel && row.statistic == Statistic::P99;
    comparison.rows.iter().find(found).expect("the row is there").cells[1]
}

#[test]
fn a_known_ratio_is_found_marked_and_covered() {
    let files = named(vec![synthetic::file("tcp", None, 2.0), synthetic::file("tcp", None, 6.0)]);
    let comparison = compare(&sides(&files), &Statistic::ALL);
    assert_eq!(comparison.sides, ["a", "b"]);
    for kernel in [Canary::Lat, Canary::BwSync, Canary::Allreduce] {
        for state in [State::Loaded, State::Impact] {
            let Cell { ratio, verdict, .. } = cell(&comparison, state, kernel);
            let ratio = ratio.expect("both sides measured it");
            assert!((ratio.factor - 3.0).abs() < 0.02, "{kernel} {state:?}: {ratio:?}");
            assert!(!ratio.interval.expect("enough batches").excludes(3.0), "{kernel} {state:?}: {ratio:?}");
            assert_eq!(verdict, Some(Verdict::Worse));
        }
        assert_eq!(cell(&comparison, State::Isolated, kernel).verdict, Some(Verdict::NotSignificant));
    }
    let turned = named(vec![synthetic::file("tcp", None, 6.0), synthetic::file("tcp", None, 2.0)]);
    let comparison = compare(&sides(&turned), &[Statistic::P99]);
    assert_eq!(cell(&comparison, State::Loaded, Canary::BwSync).verdict, Some(Verdict::Better));
}

#[test]
fn differing_plans_ranks_and_placement_are_told() {
    let mut other = synthetic::file("tcp", None, 2.0);
    other.system.ranks = 20;
    other.plan.congestors.pop();
    other.plan.canaries[0].counts.bytes = 64;
    other.system.nodes.swap(0, 3);
    let files = named(vec![synthetic::file("tcp", None, 2.0), other]);
    let sides = sides(&files);
    let found = differences(&sides[0], &sides[1]);
    let told = |text: &str| found.iter().find(|difference| difference.what.starts_with(text)).map(|d| d.fatal);
    assert_eq!(told("ranks: 10"), Some(true));
    assert_eq!(told("congestors: a2a 25%"), Some(true));
    assert_eq!(told("lat bytes: 8"), Some(true));
    assert_eq!(told("placement"), Some(false));
    assert!(differences(&sides[0], &sides[0]).is_empty());
}

#[test]
fn runs_of_one_file_are_compared_by_protocol() {
    let mut file = synthetic::file("libfabric", Some("eager"), 2.0);
    file.runs.extend(synthetic::file("libfabric", Some("put"), 4.0).runs);
    let files = named(vec![file]);
    let sides = chosen(&files, Some(By::Protocol)).unwrap();
    let labels: Vec<&str> = sides.iter().map(|side| side.label.as_str()).collect();
    assert_eq!(labels, ["libfabric, eager", "libfabric, put"]);
    assert!(chosen(&files, Some(By::Transport)).unwrap_err().contains("only one transport"));
}

#[test]
fn one_run_has_nothing_to_be_compared_with() {
    let files = named(vec![synthetic::file("tcp", None, 2.0)]);
    assert!(chosen(&files, None).unwrap_err().starts_with("nothing to compare"));
}

#[test]
fn tables_name_the_test_and_mark_what_it_shows() {
    let files = named(vec![synthetic::file("tcp", None, 2.0), synthetic::file("tcp", None, 6.0)]);
    let text = render(&compare(&sides(&files), &[Statistic::Avg, Statistic::P99]));
    assert!(text.contains("worse *") && text.contains("not sig."), "{text}");
    assert!(text.contains(TEST), "{text}");
}

#[test]
fn congestors_of_one_file_are_compared() {
    let comparison = compare_congestors(&synthetic::file("tcp", None, 2.0)).expect("four kinds");
    assert_eq!(comparison.sides.len(), 4);
    let text = render(&comparison);
    for expected in ["While lat measured", "delivered by all its ranks", "no test"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let mut one = synthetic::file("tcp", None, 2.0);
    one.runs[0].tests.iter_mut().for_each(|test| test.load.truncate(1));
    assert!(compare_congestors(&one).is_none());
}

#[test]
fn files_of_different_congestors_are_compared_by_them() {
    let mut other = synthetic::file("tcp", None, 6.0);
    other.plan.congestors.truncate(1);
    let files = named(vec![synthetic::file("tcp", None, 2.0), other]);
    let sides = chosen(&files, Some(By::Congestor)).unwrap();
    let labels: Vec<&str> = sides.iter().map(|side| side.label.as_str()).collect();
    assert_eq!(labels, ["a2a+incast+put-incast+get-bcast", "a2a"]);
    assert!(chosen(&named(vec![files[0].1.clone(), files[0].1.clone()]), Some(By::Congestor)).is_err());
}

#[test]
fn files_of_different_ranks_are_compared_when_that_is_the_question() {
    let mut other = synthetic::file("tcp", None, 6.0);
    other.system.ranks = 20;
    other.system.nodes.truncate(2);
    other.plan.canaries[0].counts.bytes = 64;
    let files = named(vec![synthetic::file("tcp", None, 2.0), other]);
    let sides = chosen(&files, Some(By::Ranks)).unwrap();
    assert!(sides[0].label.starts_with("a, 10 ranks on ") && sides[1].label == "b, 20 ranks on 2 nodes", "{sides:?}");
    let found = differences(&sides[0], &sides[1]);
    let asked: Vec<&str> = found.iter().filter(|of| of.is_asked_for(By::Ranks)).map(|of| of.what.as_str()).collect();
    assert!(asked.len() == 2 && asked[0].starts_with("ranks: 10") && asked[1].starts_with("nodes: "), "{asked:?}");
    // Anything else is the obstacle that it was.
    let bytes = found.iter().find(|of| of.what.starts_with("lat bytes")).unwrap();
    assert!(bytes.fatal && !bytes.is_asked_for(By::Ranks));
    assert!(!found.iter().any(|of| of.is_asked_for(By::Transport)));
    let same = named(vec![files[0].1.clone(), files[0].1.clone()]);
    assert!(chosen(&same, Some(By::Ranks)).unwrap_err().contains("only one number of ranks"));
}
