//! Tables of HPC Challenge: figures under its own names, checks, and the balance.

use std::fmt::Write as _;

use crate::models::hpcc::{Check, Good, Hpcc, NAMES, Name, ratios};
use crate::text::{Table, figure, within};

/// All of it, for a job of so many ranks.
pub(super) fn hpcc(found: &Hpcc, ranks: usize) -> String {
    let libraries = found.libraries.as_ref().map(|libraries| format!(": {libraries}")).unwrap_or_default();
    let mut out = format!("HPC Challenge{libraries}\n");
    let mut table = Table::new(["figure", "value", "unit", "HPCC's name"]);
    for name in NAMES.iter().filter(|name| name.good != Good::Neither) {
        let Some(value) = found.figure(name.theirs) else { continue };
        let interval = found.beff.as_ref().and_then(|beff| beff.intervals.get(name.theirs).copied());
        table.row([name.ours, &within(value, interval, number), name.unit, name.theirs]);
    }
    out += &table.render();
    if !found.checks.is_empty() {
        out += "\nChecks of the results\n";
        out += &checks(&found.checks);
    }
    let mut table = Table::new(["size", "value", "HPCC's name"]);
    for name in NAMES.iter().filter(|name| name.good == Good::Neither) {
        if let Some(value) = found.figure(name.theirs) {
            table.row([name.ours.to_owned(), with_unit(name, value), name.theirs.to_owned()]);
        }
    }
    let _ = write!(out, "\nSizes and times\n{}", table.render());
    let mut table = Table::new(["balance", "value", "unit"]);
    for ratio in ratios(found, ranks) {
        table.row([ratio.name, &figure(ratio.value), ratio.unit]);
    }
    if !table.is_empty() {
        let _ = write!(out, "\nBalance\n{}", table.render());
    }
    out
}

fn checks(checks: &[Check]) -> String {
    let mut table = Table::new(["test", "what", "value", "limit", "result"]);
    for check in checks {
        let value = check.value.map_or_else(|| "not a number".into(), residual);
        let (test, quantity, limit) = (check.test.as_str(), check.quantity.as_str(), residual(check.limit));
        table.row([test, quantity, &value, &limit, if check.passed() { "passed" } else { "FAILED" }]);
    }
    table.render()
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
pub(crate) fn number(value: f64) -> String {
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
