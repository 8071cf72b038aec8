//! A search for a mix: what was run, how near it came, what was found and what could not be told.

use std::fmt::Write as _;

use crate::result::{CalibrationRecord, CalibrationRun};
use crate::text::{Table, whole_percent};

/// The search, before the run that it found.
pub(super) fn render(of: &CalibrationRecord) -> String {
    let mut out = format!(
        "Calibrated to {}: {} runs, shares of {} nodes that do not measure\n",
        of.like,
        of.runs.len(),
        of.nodes
    );
    let mark = |at: usize| match at {
        _ if at == of.found => "  <- found",
        0 => "  <- before",
        _ => "",
    };
    let runs = Table::of(of.runs.iter().enumerate())
        .column("run", |(at, _)| at + 1)
        .column("distance", |(_, run)| run.distance)
        .column("congestors", |(at, run)| mix(run) + mark(*at));
    let shares = of.shares.iter().map(|found| (found.kernel.info().key, found.part)).chain([("at rest", of.resting)]);
    let shares = Table::of(shares)
        .column("found", |(name, _)| *name)
        .column("share", |(_, part)| whole_percent(part.share))
        .column("not ruled out", |(_, part)| format!("{} to {}", whole_percent(part.low), whole_percent(part.high)));
    let _ = write!(out, "{}\n{}", runs.done().text(), shares.done().text());
    for alike in &of.alike {
        let names: Vec<&str> = alike.iter().map(|kernel| kernel.info().key).collect();
        let first = names.first().copied().unwrap_or_default();
        let _ = writeln!(out, "  {} could not be told apart: {first} stands for all of them", names.join(" and "));
    }
    if of.possible_bytes.len() > 1 {
        let sizes: Vec<String> = of.possible_bytes.iter().map(|bytes| format!("{bytes} B")).collect();
        let _ = writeln!(out, "  sizes that are not ruled out: {}", sizes.join(", "));
    }
    let all = of.distances().map(|(before, after)| ("all, each counting the same", before, after));
    let compared = of.compared.iter().map(|row| (row.name.as_str(), row.before, row.after)).chain(all);
    let compared = Table::of(compared)
        .column("distance by", |(name, _, _)| *name)
        .column("before", |(_, before, _)| *before)
        .column("after", |(_, _, after)| *after);
    let _ = write!(out, "\n{}", compared.done().text());
    out + "  1 is the distance of two runs under the same load\n\n"
}

/// A run's congestors with their shares.
pub fn mix(run: &CalibrationRun) -> String {
    if run.congestors.is_empty() {
        return "none".into();
    }
    let share = |of: &crate::result::Share| format!("{} {} ({} B)", of.kernel, whole_percent(of.share), of.bytes);
    run.congestors.iter().map(share).collect::<Vec<_>>().join(", ")
}
