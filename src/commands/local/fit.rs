//! Whether a plan fits an emulated network: how long its messages need there at least, against the time they are given.
//!
//! An iteration is never cut, so a budget can only be kept if iterations are shorter than a block. Over the lab's links that
//! is known before anything runs.

use crate::lab::LabSpec;
use crate::plan::{Counts, Plan};
use crate::result::Command;

/// A test that takes this many times what it was given says so itself, and is still what was asked for.
const GROSS: f64 = 4.0;

/// Refuses a plan whose budget cannot be kept even nearly, with the time it would need.
pub(super) fn check(command: Command, plan: &Plan, spec: &LabSpec) -> Result<(), String> {
    if !spec.shaped || command == Command::Congest {
        return Ok(());
    }
    let canaries = plan.canaries.iter().map(|test| (test.kernel.info().key, &test.counts));
    let congestors = plan.congestors.iter().map(|test| (test.kernel.info().key, &test.counts));
    let tests = canaries.chain(congestors.filter(|_| matches!(command, Command::Run | Command::Calibrate)));
    let least_s = |counts: &Counts| spec.link_rate.seconds((counts.bytes * counts.window.max(1)) as u64);
    let longest = tests.max_by(|(_, one), (_, other)| least_s(one).total_cmp(&least_s(other)));
    let Some((key, counts)) = longest.filter(|(_, counts)| least_s(counts) > GROSS * plan.block_s()) else {
        return Ok(());
    };
    let (needed_s, block_s) = (least_s(counts), plan.block_s());
    let budget_s = (needed_s * f64::from(plan.placements) * f64::from(plan.blocks)).ceil();
    let fits = (counts.bytes as f64 * block_s / needed_s) as usize;
    let smaller = if fits > 0 { format!(", or messages of at most --set {key}.bytes={fits}") } else { String::new() };
    Err(format!(
        "one iteration of {key} moves {} x {} B, which takes {needed_s:.3} s at {}, and has blocks of {block_s:.3} s: it needs \
         a --budget of at least {budget_s:.0}s{smaller}",
        counts.window.max(1),
        counts.bytes,
        spec.link_rate
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Preset;
    use crate::units::Rate;

    #[test]
    fn what_cannot_be_kept_is_refused_with_the_time_it_needs() {
        let plan = Plan { budget_s: 0.5, ..Preset::Lab.plan() };
        let spec = LabSpec::default();
        assert_eq!(check(Command::Run, &plan, &spec), Ok(()));
        assert_eq!(check(Command::Run, &Plan { budget_s: 0.3, ..plan.clone() }, &spec), Ok(()));
        let slow = LabSpec { link_rate: Rate::bits_per_second(1_000_000), ..spec };
        let refusal = check(Command::Run, &plan, &slow).unwrap_err();
        assert!(refusal.contains("--budget of at least") && refusal.contains(".bytes="), "{refusal}");
        assert_eq!(check(Command::Run, &plan, &LabSpec { shaped: false, ..slow.clone() }), Ok(()));
        let patient = Plan { budget_s: 3600.0, ..plan };
        assert_eq!(check(Command::Run, &patient, &slow), Ok(()));
    }
}
