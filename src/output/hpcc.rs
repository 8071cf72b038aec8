//! Tables of HPC Challenge: figures under its own names, checks, and the balance.

use std::fmt::Write as _;

use crate::models::hpcc::{Check, Good, Hpcc, NAMES, Name, ratios};
use crate::text::{Table, figure, within};

/// All of it, for a job of so many ranks.
pub(super) fn hpcc(found: &Hpcc, ranks: usize) -> String {
    let libraries = found.libraries.as_ref().map(|libraries| format!(": {libraries}")).unwrap_or_default();
    let mut out = format!("HPC Challenge{libraries}\n");
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

/// Figures under HPCC's names, as far as they were measured.
pub(crate) fn figures<'a>(found: &Hpcc, names: impl IntoIterator<Item = &'a Name>) -> Table {
    let interval = |name: &Name| found.beff.as_ref().and_then(|beff| beff.intervals.get(name.theirs).copied());
    let form = |name: &Name| if name.good == Good::Neither { figure } else { number };
    Table::of(names.into_iter().filter_map(|name| Some((name, found.figure(name.theirs)?))))
        .column("figure", |(name, _)| name.ours)
        .column("value", |(name, value)| within(*value, interval(name), form(name)))
        .column("unit", |(name, _)| name.unit)
        .column("HPCC's name", |(name, _)| name.theirs)
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
        let found = Hpcc { settings: None, libraries: None, figures, checks, links_on_node: Some(0.0), beff: None };
        let shown = hpcc(&found, 2);
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
}
