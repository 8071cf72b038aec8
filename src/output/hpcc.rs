//! Tables of HPC Challenge: figures under its own names, checks, and the balance.

use std::fmt::Write as _;

use crate::models::hpcc::{Check, Expected, Good, Hpcc, NAMES, Name, ratios};
use crate::text::{Table, figure, within};

/// All of it, for a job of so many ranks.
pub(super) fn hpcc(found: &Hpcc, ranks: usize) -> String {
    let libraries = found.libraries.as_ref().map(|libraries| format!(": {libraries}")).unwrap_or_default();
    let run = found.run.map(|run| format!(", {} run", run.word())).unwrap_or_default();
    let threads = found.settings.as_ref().map_or(1, |settings| settings.threads);
    let threads = if threads > 1 { format!(", {threads} threads per rank") } else { String::new() };
    let mut out = format!("HPC Challenge{run}{threads}{libraries}\n");
    out += &too_small(&found.too_small());
    let (sizes, merits): (Vec<&Name>, Vec<&Name>) = NAMES.iter().partition(|name| name.good == Good::Neither);
    out += &figures(found, merits).text();
    if !found.checks.is_empty() {
        out += "\nChecks of the results\n";
        out += &checks(&found.checks, residual).text();
    }
    let sizes = Table::of(sizes.into_iter().filter_map(|name| Some((name, found.figure(name.theirs)?))))
        .column("size", |(name, _)| name.ours)
        .column("value", |(name, value)| with_unit(name, *value))
        .column("HPCC's name", |(name, _)| name.theirs);
    let _ = write!(out, "\nSizes and times\n{}", sizes.done().text());
    let balance = balance(found, ranks);
    if !balance.is_empty() {
        let _ = write!(out, "\nBalance\n{}", balance.text());
    }
    out
}

/// What a run would take: `--dry-run`.
pub fn expected(expected: &Expected, ranks: usize, nodes: usize) -> String {
    let total: f64 = expected.phases.iter().map(|phase| phase.seconds).sum();
    let table = Table::of(&expected.phases)
        .column("test", |phase| phase.test.word())
        .column("size", |phase| phase.size.clone())
        .column("expected s", |phase| figure(phase.seconds))
        .done();
    format!(
        "HPC Challenge on {ranks} ranks on {nodes} nodes\n{}{}\nExpected duration: about {} s, beside starting the job (by {} s \
         of every test on less data)\n",
        too_small(&expected.too_small),
        table.text(),
        figure(total),
        figure(expected.tried_s)
    )
}

fn too_small(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("Too small to report: {reason}.\n")).collect()
}

/// Figures under HPCC's names, as far as they were measured.
pub(crate) fn figures<'a>(found: &Hpcc, names: impl IntoIterator<Item = &'a Name>) -> Table {
    let interval = |name: &Name| found.beff.as_ref().and_then(|beff| beff.intervals.get(name.theirs).copied());
    let form = |name: &Name| if name.good == Good::Neither { figure } else { number };
    Table::of(names.into_iter().filter_map(|name| Some((name, found.figure(name.theirs)?))))
        .column("figure", |(name, _)| name.ours)
        .column("value", |(name, value)| within(*value, interval(name), form(name)))
        .column("unit", |(name, _)| name.unit)
        .column("HPCC's name", |(name, _)| name.theirs)
        .column_if(found.stream_in_caches(), "size", |(name, _)| name.theirs.contains("STREAM_").then_some("too small"))
        .done()
}

/// What figures say of each other.
pub(crate) fn balance(found: &Hpcc, ranks: usize) -> Table {
    let rows = Table::of(ratios(found, ranks)).column("balance", |ratio| ratio.name);
    rows.column("value", |ratio| ratio.value).column("unit", |ratio| ratio.unit).done()
}

/// The checks of results, and what became of them.
pub(crate) fn checks(checks: &[Check], form: fn(f64) -> String) -> Table {
    Table::of(checks)
        .column("test", |check| &check.test)
        .column("what", |check| &check.quantity)
        .column("value", |check| check.value.map_or_else(|| "not a number".into(), form))
        .column("limit", |check| form(check.limit))
        .column("result", |check| if check.passed() { "passed" } else { "FAILED" })
        .done()
}

/// Errors and limits range over many powers of ten.
fn residual(value: f64) -> String {
    if value == 0.0 || value >= 1e-3 { figure(value) } else { format!("{value:.1e}") }
}

fn with_unit(name: &Name, value: f64) -> String {
    match name.unit {
        "" => format!("{value:.0}"),
        unit => format!("{} {unit}", figure(value)),
    }
}

/// Rates of slow networks are small parts of their unit.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { format!("{value:.3e}") } else { figure(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::hpcc::{DataSize, Phase, RunKind, Test};

    #[test]
    fn figures_checks_and_balance_are_told() {
        let figures = [
            ("HPL_Tflops", 0.004),
            ("RandomlyOrderedRingBandwidth_GBytes", 7.0),
            ("HPL_N", 1000.0),
            ("PTRANS_time", 0.25),
        ];
        let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
        let check = |value| Check::new("HPL", "scaled residual", value, 16.0);
        let checks = vec![check(0.003), check(17.0), check(f64::NAN)];
        let found = Hpcc { figures, checks, links_on_node: Some(0.0), ..Hpcc::default() };
        let shown = hpcc(&found, 2);
        assert!(shown.starts_with("HPC Challenge\n") && !shown.contains("oo small"), "{shown}");
        for line in [
            "  HPL, all ranks                  4.000e-3  Tflop/s                           HPL_Tflops",
            "  HPL   scaled residual         0.003  16.00  passed",
            "  HPL   scaled residual         17.00  16.00  FAILED",
            "  HPL   scaled residual  not a number  16.00  FAILED",
            "  time of PTRANS         0.250 s  PTRANS_time",
            "  random rings / HPL                      3500  byte/kflop",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\n{shown}");
        }
    }

    #[test]
    fn what_is_too_small_is_said_and_marked() {
        let figures = [("HPL_Tflops", 0.004), ("StarSTREAM_Triad", 80.0), ("RandomlyOrderedRingBandwidth_GBytes", 7.0)];
        let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
        let data = DataSize { matrix_of_memory: Some(0.001), vector_of_caches: Some(0.2) };
        let found = Hpcc { figures, run: Some(RunKind::Base), data: Some(data), ..Hpcc::default() };
        let shown = hpcc(&found, 2);
        assert!(shown.starts_with("HPC Challenge, base run\nToo small to report: HPL's matrix takes 0.10%"), "{shown}");
        let marked: Vec<&str> = shown.lines().filter(|line| line.ends_with("too small")).collect();
        assert!(marked.len() == 1 && marked[0].contains("STREAM triad"), "{shown}");
        assert!(shown.contains("random rings / HPL") && !shown.contains("STREAM triad / HPL"), "{shown}");
        let whole = DataSize { matrix_of_memory: Some(0.3), vector_of_caches: Some(9.0) };
        assert!(!hpcc(&Hpcc { data: Some(whole), ..found }, 2).contains("oo small"));
    }

    #[test]
    fn expected_times_are_added_up() {
        let phase = |test, seconds| Phase { test, size: "order 10".into(), seconds };
        let phases = vec![phase(Test::Hpl, 12.0), phase(Test::Beff, 3.0)];
        let told = expected(&Expected { phases, tried_s: 0.5, too_small: vec!["a rule".into()] }, 4, 2);
        assert!(told.contains("Expected duration: about 15.00 s") && told.contains("by 0.500 s"), "{told}");
        assert!(told.starts_with("HPC Challenge on 4 ranks on 2 nodes\nToo small to report: a rule.\n"), "{told}");
    }
}
