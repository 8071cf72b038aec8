//! A search for a mix: what was run, how near it came, what was found and what could not be told.

use std::fmt::Write as _;

use crate::result::{CalibrationRecord, CalibrationRun, PartFound};
use crate::text::{Table, figure};

/// The search, before the run that it found.
pub(super) fn render(of: &CalibrationRecord) -> String {
    let mut out = format!(
        "Calibrated to {}: {} runs, shares of {} nodes that do not measure\n",
        of.like,
        of.runs.len(),
        of.nodes
    );
    let mut runs = Table::new(["run", "distance", "congestors"]);
    for (at, run) in of.runs.iter().enumerate() {
        let mark = match at {
            _ if at == of.found => "  <- found",
            0 => "  <- before",
            _ => "",
        };
        runs.row([(at + 1).to_string(), figure(run.distance), mix(run) + mark]);
    }
    out += &runs.render();
    let mut shares = Table::new(["found", "share", "not ruled out"]);
    let mut row = |name: &str, part: PartFound| {
        let range = format!("{} to {}", percent(part.low), percent(part.high));
        shares.row([name.to_owned(), percent(part.share), range]);
    };
    of.shares.iter().for_each(|found| row(found.kernel.info().key, found.part));
    row("at rest", of.resting);
    let _ = write!(out, "\n{}", shares.render());
    for alike in &of.alike {
        let names: Vec<&str> = alike.iter().map(|kernel| kernel.info().key).collect();
        let first = names.first().copied().unwrap_or_default();
        let _ = writeln!(out, "  {} could not be told apart: {first} stands for all of them", names.join(" and "));
    }
    if of.possible_bytes.len() > 1 {
        let sizes: Vec<String> = of.possible_bytes.iter().map(|bytes| format!("{bytes} B")).collect();
        let _ = writeln!(out, "  sizes that are not ruled out: {}", sizes.join(", "));
    }
    let mut compared = Table::new(["distance by", "before", "after"]);
    of.compared.iter().for_each(|row| compared.row([row.name.clone(), figure(row.before), figure(row.after)]));
    if let Some((before, after)) = of.distances() {
        compared.row(["all, each counting the same".to_owned(), figure(before), figure(after)]);
    }
    let _ = write!(out, "\n{}", compared.render());
    out + "  1 is the distance of two runs under the same load\n\n"
}

/// A run's congestors with their shares.
pub fn mix(run: &CalibrationRun) -> String {
    if run.congestors.is_empty() {
        return "none".into();
    }
    let share = |of: &crate::result::Share| format!("{} {} ({} B)", of.kernel, percent(of.share), of.bytes);
    run.congestors.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}
