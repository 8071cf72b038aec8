//! The time that load adds, as results keep it: loaded minus isolated, placement by placement, in us (us per MiB for a
//! bandwidth).
//!
//! It is what is compared and judged between jobs: it holds where the factor moves with the processor's idle latency.

use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::{PlacementRecord, Run, Test};
use crate::stats::{Direction, Statistic};

/// A figure as a time in us: of a message, or for a bandwidth of a MiB. A program's figure keeps its own unit; its rates
/// are turned over.
fn time(kernel: Canary, figure: f64) -> f64 {
    match kernel.info().direction {
        Direction::Latency if kernel.is_application() => figure,
        Direction::Bandwidth if kernel.is_application() => 1.0 / figure,
        direction => direction.sample_ns(figure) / 1e3,
    }
}

/// The unit of the time that load adds to a test.
pub fn unit(test: &Test) -> String {
    match test.kernel.info().direction {
        Direction::Latency if test.kernel.is_application() => test.unit.clone(),
        Direction::Bandwidth if test.kernel.is_application() => format!("1/({})", test.unit),
        direction => direction.added_unit().into(),
    }
}

/// One figure as times in us, one for each placement; one in all where placements were not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Without load.
    pub isolated: Vec<f64>,
    /// Under load.
    pub loaded: Vec<f64>,
}

impl Times {
    /// Of a run; nothing unless every placement has the figure in both states.
    pub fn of(run: &Run, kernel: Canary, statistic: Statistic) -> Option<Self> {
        let in_all = |phase| Some(vec![run.test(kernel, phase)?.figure(statistic)?]);
        let of = |phase| {
            let placed = !run.placements.is_empty();
            let figures = if placed { run.figures(kernel, phase, statistic) } else { in_all(phase) };
            let times: Vec<f64> = figures?.into_iter().map(|figure| time(kernel, figure)).collect();
            times.iter().all(|time| time.is_finite()).then_some(times)
        };
        Some(Times { isolated: of(LoadState::Isolated)?, loaded: of(LoadState::Loaded)? })
    }

    /// What load adds on each placement.
    pub fn added(&self) -> Vec<f64> {
        self.isolated.iter().zip(&self.loaded).map(|(isolated, loaded)| loaded - isolated).collect()
    }
}

/// What load adds to each block of each placement, in the order of the blocks of both states.
pub fn blocks(run: &Run, kernel: Canary) -> Vec<Vec<f64>> {
    let of = |placement: &PlacementRecord| {
        let times = |phase| -> Option<Vec<f64>> {
            let blocks = placement.test(kernel, phase)?.blocks.iter();
            blocks.map(|block| Some(time(kernel, block.headline?))).collect()
        };
        Some(Times { isolated: times(LoadState::Isolated)?, loaded: times(LoadState::Loaded)? }.added())
    };
    run.placements.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn rates_add_time_per_byte() {
        let run = &synthetic::file("tcp", None, 3.0).runs[0];
        for kernel in [Canary::Lat, Canary::BwSync] {
            let times = Times::of(run, kernel, kernel.headline()).unwrap();
            assert_eq!((times.isolated.len(), times.loaded.len()), (5, 5));
            // Three times as long on the placement in the middle: twice the isolated time is added.
            let (added, isolated) = (times.added()[2], times.isolated[2]);
            assert!((added / isolated - 2.0).abs() < 0.05, "{kernel}: {times:?}");
            let blocks = blocks(run, kernel);
            assert!(
                blocks.len() == 5 && blocks[2].len() == 2 && (blocks[2][0] / added - 1.0).abs() < 0.05,
                "{blocks:?}"
            );
        }
        assert_eq!(Times::of(run, Canary::GetLat, Statistic::HEADLINE), None);
        let unit = |kernel| unit(run.test(kernel, LoadState::Loaded).unwrap());
        assert_eq!((unit(Canary::Lat).as_str(), unit(Canary::BwSync).as_str()), ("us", "us/MiB"));
    }
}
