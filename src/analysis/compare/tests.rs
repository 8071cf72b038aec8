use std::path::PathBuf;

use super::sides::chosen;
use super::*;
use crate::assemble::synthetic::{self, named};
use crate::kernel::Canary;
use crate::result::ResultFile;
use crate::stats::Statistic;

fn cell(comparison: &Comparison, state: State, kernel: Canary) -> Cell {
    let found = |row: &&Row| row.state == state && row.kernel == kernel && row.statistic == Statistic::P99;
    comparison.rows.iter().find(found).expect("the row is there").cells[1]
}

/// Files of jobs whose impacts are these, of one kind.
fn jobs(impacts: &[f64]) -> Vec<(PathBuf, ResultFile)> {
    named(impacts.iter().map(|impact| synthetic::file("tcp", None, *impact)))
}

fn beside(before: &[f64], after: &[f64], history: &[f64], margin: Option<f64>) -> Comparison {
    let [before, after, history] = [before, after, history].map(jobs);
    let sets = [JobSet::of(sides(&before)), JobSet::of(sides(&after))];
    let history = if history.is_empty() { Vec::new() } else { vec![JobSet::of(sides(&history))] };
    compare_jobs(&sets, &Statistic::ALL, &history, margin)
}

/// The verdicts on what decides.
fn primary(comparison: &Comparison) -> Vec<Verdict> {
    let rows = comparison.rows.iter().filter(|row| row.primary);
    rows.map(|row| row.cells[1].verdict.expect("both sides have it")).collect()
}

#[test]
fn one_job_a_side_is_shown_and_not_marked() {
    let comparison = beside(&[2.0], &[6.0], &[], None);
    assert_eq!((comparison.sides.clone(), comparison.jobs.clone()), (vec!["r0".into(), "r0".into()], vec![1, 1]));
    for kernel in [Canary::Lat, Canary::BwSync, Canary::Allreduce] {
        for state in [State::Loaded, State::Impact] {
            let Cell { ratio, verdict, p_value, .. } = cell(&comparison, state, kernel);
            let ratio = ratio.expect("both sides measured it");
            assert!((ratio.factor - 3.0).abs() < 0.02, "{kernel} {state:?}: {ratio:?}");
            assert_eq!((ratio.interval, p_value, verdict), (None, None, Some(Verdict::OneJob)));
        }
        assert!((cell(&comparison, State::Isolated, kernel).ratio.unwrap().factor - 1.0).abs() < 1e-9);
    }
    assert_eq!(primary(&comparison), [Verdict::OneJob; 3]);
    for row in comparison.rows.iter().filter(|row| row.primary) {
        assert!(row.cells.iter().all(|cell| cell.interval.is_some()), "both intervals are shown: {row:?}");
        // Twice the idle time becomes six times: four idle times more than the two that were loaded.
        assert!((row.cells[1].change.unwrap().part - 2.0).abs() < 0.02, "{row:?}");
    }
    let text = render(&comparison);
    assert!(text.contains("these two jobs") && !text.contains("worse *"), "{text}");
}

#[test]
fn what_may_not_be_reported_is_not_marked_and_tells_no_history() {
    let spoil = |mut all: Vec<(PathBuf, ResultFile)>, count: usize| {
        let tests = all.iter_mut().take(count).flat_map(|(_, file)| &mut file.runs[0].tests);
        tests.filter(|test| test.kernel == Canary::Lat).for_each(|test| test.covered = Some(0.1));
        all
    };
    let compared =
        |before: &[(PathBuf, ResultFile)], after: &[(PathBuf, ResultFile)], past: &[(PathBuf, ResultFile)]| {
            let history = if past.is_empty() { Vec::new() } else { vec![JobSet::of(sides(past))] };
            compare_jobs(&[JobSet::of(sides(before)), JobSet::of(sides(after))], &Statistic::ALL, &history, Some(0.05))
        };
    let (before, after) = (jobs(&[4.9, 5.0, 5.1]), spoil(jobs(&[5.9, 6.0, 6.1]), 2));
    let found = compared(&before, &after, &[]);
    assert_eq!(primary(&found), [Verdict::NotReportable, Verdict::Worse, Verdict::Worse]);
    let said = &found.not_reportable[..];
    assert!(matches!(said, [one] if one.contains("lat 8 B") && one.contains("cover 10%")), "{said:?}");
    assert!(render(&found).contains("not reportable: lat 8 B"), "{}", render(&found));
    assert_eq!(found.exit_code(), 1, "the others differ");
    // Where enough jobs are left, the others answer.
    let found = compared(&before, &spoil(jobs(&[5.9, 6.0, 6.1]), 1), &[]);
    assert_eq!(primary(&found), [Verdict::Worse; 3]);
    assert_eq!(found.left_out, ["lat: 1 of 3 jobs of r (3 jobs) are not reportable and left out"]);
    // One job a side takes the variance of jobs from those of the past that may be reported.
    let past = spoil(jobs(&[4.9, 5.0, 5.1]), 3);
    let found = compared(&jobs(&[5.0]), &jobs(&[6.0]), &past);
    assert_eq!(primary(&found), [Verdict::OneJob, Verdict::Worse, Verdict::Worse]);
}

#[test]
fn several_jobs_a_side_are_told_apart_by_their_means() {
    let comparison = beside(&[4.9, 5.0, 5.1], &[5.9, 6.0, 6.1], &[], None);
    assert_eq!(comparison.sides, ["r (3 jobs)", "r (3 jobs)"]);
    assert_eq!(primary(&comparison), [Verdict::Worse; 3]);
    for row in comparison.rows.iter().filter(|row| row.primary) {
        let change = row.cells[1].change.unwrap();
        assert!((change.part - 0.2).abs() < 0.01 && !change.interval.unwrap().excludes(0.2), "{row:?}");
        assert!(change.interval.unwrap().excludes(0.0) && change.confidence.unwrap() >= 0.95, "{row:?}");
    }
    assert_eq!(cell(&comparison, State::Loaded, Canary::BwSync).verdict, Some(Verdict::Worse));
    assert_eq!(cell(&comparison, State::Isolated, Canary::Lat).verdict, Some(Verdict::NotSignificant));
    let components = comparison.components[0].components;
    // Impacts 0.1 apart of 5 and 6, on the same placements: a standard deviation of 2% and less.
    assert!((components.job.unwrap() - 0.018).abs() < 0.003, "{components:?}");
    assert!(comparison.components_table().text().contains("placement"));
    let turned = beside(&[5.9, 6.0, 6.1], &[4.9, 5.0, 5.1], &[], None);
    assert_eq!(primary(&turned), [Verdict::Better; 3]);
    assert_eq!(primary(&beside(&[4.9, 5.0, 5.1], &[4.95, 5.05, 5.0], &[], None)), [Verdict::NotSignificant; 3]);
}

#[test]
fn single_jobs_borrow_the_variance_of_repeated_ones() {
    assert_eq!(primary(&beside(&[4.9, 5.0, 5.1, 5.0, 4.95], &[6.5], &[], None)), [Verdict::Worse; 3]);
    let earlier = [4.9, 5.0, 5.1, 5.0, 4.95, 5.05];
    assert_eq!(primary(&beside(&[5.0], &[6.0], &earlier, None)), [Verdict::Worse; 3]);
    assert_eq!(primary(&beside(&[5.0], &[5.1], &earlier, None)), [Verdict::NotSignificant; 3]);
}

#[test]
fn added_times_are_the_same_within_a_margin_differ_or_cannot_be_told() {
    let before = [4.98, 5.0, 5.02, 5.01];
    let same = beside(&before, &[5.0, 5.01, 5.03, 4.99], &[], Some(0.05));
    assert_eq!((primary(&same), same.exit_code()), (vec![Verdict::Same; 3], 0));
    for row in same.rows.iter().filter(|row| row.primary) {
        let interval = row.cells[1].change.unwrap().interval.unwrap();
        assert!(interval.low > -0.05 && interval.high < 0.05, "{row:?}");
    }
    let different = beside(&before, &[6.0, 6.02, 5.98, 6.01], &[], Some(0.05));
    assert_eq!((primary(&different), different.exit_code()), (vec![Verdict::Worse; 3], 1));
    let open = beside(&[4.0, 5.0, 6.0], &[4.1, 5.2, 6.1], &[], Some(0.05));
    assert_eq!((primary(&open), open.exit_code()), (vec![Verdict::CannotTell; 3], 3));
    let detectable = |row: &Row| row.cells[1].change.unwrap().detectable.unwrap();
    assert!(open.rows.iter().filter(|row| row.primary).all(|row| detectable(row) > 0.2));
    let one = beside(&[5.0], &[5.0], &[], Some(0.05));
    assert_eq!((primary(&one), one.exit_code()), (vec![Verdict::OneJob; 3], 3));
    assert!(render(&same).contains("same: within 5% of the first side's loaded time"), "{}", render(&same));
}

#[test]
fn runs_of_one_job_are_compared_placement_by_placement() {
    let mut file = synthetic::file("libfabric", Some("eager"), 2.0);
    file.runs.extend(synthetic::file("libfabric", Some("put"), 6.0).runs);
    let files = named(vec![file]);
    let comparison = compare(&sides(&files), &Statistic::ALL);
    assert_eq!(primary(&comparison), [Verdict::Worse; 3]);
    for kernel in [Canary::Lat, Canary::BwSync, Canary::Allreduce] {
        let Cell { ratio, verdict, .. } = cell(&comparison, State::Impact, kernel);
        assert!(!ratio.unwrap().interval.unwrap().excludes(3.0) && verdict == Some(Verdict::Worse), "{kernel}");
        assert_eq!(cell(&comparison, State::Isolated, kernel).verdict, Some(Verdict::NotSignificant));
    }
    let few = |count: usize| {
        let mut file = files[0].1.clone();
        file.runs.iter_mut().for_each(|run| run.placements.truncate(count));
        primary(&compare(&sides(&named(vec![file])), &[Statistic::P99]))
    };
    assert_eq!((few(2), few(3)), (vec![Verdict::Unknown; 3], vec![Verdict::Worse; 3]));
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
    let text = render(&beside(&[4.9, 5.0, 5.1], &[5.9, 6.0, 6.1], &[], None));
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
    assert!(sides[0].label.starts_with("r0, 10 ranks on ") && sides[1].label == "r1, 20 ranks on 2 nodes", "{sides:?}");
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
