//! Open loops whose iterations came faster than the network carried them, and the pace that it would have carried.

use super::{ResultFile, Run, Schedule, Test};
use crate::plan::Plan;
use crate::stats::Statistic;

impl ResultFile {
    /// Tests whose schedule was not kept: their figures are of another load than was asked for.
    pub fn overloaded(&self) -> impl Iterator<Item = (&Run, &Test, Schedule)> {
        let tests = self.runs.iter().flat_map(|run| run.tests.iter().map(move |test| (run, test)));
        tests.filter_map(|(run, test)| Some((run, test, test.schedule.filter(Schedule::is_overloaded)?)))
    }

    /// Options with which all of these keep theirs; nothing where all do.
    pub fn longer_pace(&self) -> Option<String> {
        // Without figures it is known how late iterations were.
        let us = |(_, test, kept): (&Run, &Test, Schedule)| {
            let slow = [Statistic::P99, Statistic::P90].into_iter().find_map(|of| test.figure(of));
            slow.unwrap_or(1e6 * kept.worst_s)
        };
        self.overloaded().map(us).reduce(f64::max).map(|us| longer_pace(&self.plan, us))
    }
}

/// Options with which iterations that take so long are over before the next is due, of which half the pace is always left.
fn longer_pace(plan: &Plan, longest_us: f64) -> String {
    // Two digits, rounded up.
    let us = (2.0 * longest_us).max(plan.pace_s.map_or(0.0, |pace| 2e6 * pace)).max(10.0);
    let unit = 10f64.powf(us.log10().floor() - 1.0);
    let us = (us / unit).ceil() * unit;
    let time = |us: f64| if us >= 1000.0 { format!("{}ms", us.round() / 1e3) } else { format!("{}us", us.round()) };
    // A block has room for four of them.
    let short = 4e-6 * us / plan.block_s();
    let budget = (short > 1.0).then(|| format!(" --budget {}s", (10.0 * plan.budget_s * short).ceil() / 10.0));
    format!("--pace {}{}", time(us), budget.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::engine::LoadState;
    use crate::plan::Preset;

    #[test]
    fn a_longer_pace_is_named_with_the_budget_that_it_needs() {
        let plan = Preset::Lab.plan();
        let room_ms = 1e3 * plan.block_s() / 4.0;
        assert!(room_ms > 5.0, "{room_ms}");
        assert_eq!(longer_pace(&plan, 123.0), "--pace 250us");
        assert_eq!(longer_pace(&plan, 2410.0), "--pace 4.9ms");
        assert_eq!(longer_pace(&Plan { pace_s: Some(0.002), ..plan.clone() }, 1000.0), "--pace 4ms");
        let long = longer_pace(&plan, 100_000.0);
        let seconds: f64 = long.trim_start_matches("--pace 200ms --budget ").trim_end_matches('s').parse().unwrap();
        let longer = Plan { pace_s: Some(0.2), budget_s: seconds, ..plan.clone() };
        assert!(4.0 * 0.2 <= longer.block_s(), "{long}");
        assert_eq!(longer_pace(&plan, 0.0), "--pace 10us");
    }

    #[test]
    fn one_pace_serves_all_tests_that_were_late() {
        let mut file = synthetic::file("tcp", None, 3.0);
        assert_eq!(file.longer_pace(), None);
        let late = Schedule { iterations: 100, late: 50, lost: 0, worst_s: 0.5 };
        let loaded = |test: &&mut Test| test.phase == LoadState::Loaded;
        let tests = &mut file.runs[0].tests;
        let figure = tests.iter_mut().find(loaded).map(|test| {
            test.schedule = Some(late);
            test.figure(Statistic::P99).or(test.figure(Statistic::P90)).unwrap()
        });
        assert_eq!(file.longer_pace(), Some(longer_pace(&file.plan, figure.unwrap())));
        // Of one without figures it is known how late it was, half a second.
        let test = file.runs[0].tests.iter_mut().filter(loaded).nth(1).unwrap();
        (test.schedule, test.summary, test.printed) = (Some(late), None, None);
        assert!(file.longer_pace().unwrap().starts_with("--pace 1000ms"), "{:?}", file.longer_pace());
    }
}
