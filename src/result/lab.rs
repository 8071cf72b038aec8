//! What a result keeps of the emulated cluster it came from: its shape, what its queues did, and the unshaped control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Run, TestImpact};
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::lab::{Host, Lab, LabSpec, PortCounters};
use crate::stats::{Direction, Interval, Statistic, paired};

/// An emulated cluster.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LabRecord {
    /// Its shape.
    pub spec: LabSpec,
    /// Whether it ran as root or in a user namespace.
    pub mode: String,
    /// Its hosts, by whose names nodes are known. Where Tailback started the ranks of a load test itself, rank i ran on
    /// the i-th.
    pub hosts: Vec<Host>,
    /// What its ports did in each phase; empty where that could not be read, and then a note says why.
    pub phases: Vec<PhaseCounters>,
    /// The same plan with unshaped links.
    pub control: Option<ControlRecord>,
}

impl LabRecord {
    /// What is known of a lab that is up, with what its ports did; without a control.
    pub fn of(lab: &Lab, phases: Vec<PhaseCounters>) -> Self {
        let (spec, mode, hosts) = (lab.spec().clone(), lab.mode().to_string(), lab.hosts().to_vec());
        LabRecord { spec, mode, hosts, phases, control: None }
    }
}

/// What the ports did in one phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PhaseCounters {
    pub phase: String,
    pub ports: Vec<PortCounters>,
}

/// The same plan and placement with unshaped links, where only the processor can be the limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ControlRecord {
    /// The first run again, or the only one.
    pub run: Run,
    /// The others, where there are several, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_runs: Vec<Run>,
    pub phases: Vec<PhaseCounters>,
    pub verdicts: Vec<Verdict>,
}

impl ControlRecord {
    /// Holds `shaped` runs against the same runs with unshaped links; nothing when there are none of those.
    pub fn of(shaped: &[Run], unshaped: Vec<Run>, phases: Vec<PhaseCounters>) -> Option<Self> {
        let several = shaped.len() > 1;
        let verdicts = shaped.iter().zip(&unshaped).flat_map(|(shaped, unshaped)| {
            let label = several.then(|| shaped.transport.label());
            let verdict = |impact| Verdict::of(shaped, unshaped, impact);
            shaped.impacts.iter().filter_map(verdict).map(move |verdict| Verdict { run: label.clone(), ..verdict })
        });
        let verdicts = verdicts.collect();
        let mut runs = unshaped.into_iter();
        Some(ControlRecord { run: runs.next()?, more_runs: runs.collect(), phases, verdicts })
    }

    /// All of its runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.run).chain(&self.more_runs)
    }
}

/// What a canary's impact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The shaped network: the control shows less than half of the time that load adds.
    Network,
    /// The processor: the control shows more than half of it.
    Cpu,
    /// The impact is below 1.5: too small to be explained.
    NoImpact,
    /// The placements do not tell.
    Undecided,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cause::Network => "network",
            Cause::Cpu => "CPU",
            Cause::NoImpact => "below 1.5x",
            Cause::Undecided => "undecided",
        })
    }
}

/// A canary with shaped and with unshaped links, side by side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The kernel.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// Which run, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The impact, by the headline, with shaped links.
    pub shaped: f64,
    /// The same with unshaped links.
    pub unshaped: f64,
    /// The time that load adds to the headline's figure with shaped links: ns, or for bandwidths ns/MiB.
    #[serde(default)]
    pub added_ns: Option<f64>,
    /// The same with unshaped links.
    #[serde(default)]
    pub control_added_ns: Option<f64>,
    /// The second over the first: the part of the added time that needs no network.
    #[serde(default)]
    pub control_share: Option<f64>,
    /// Its 95% interval over placements; absent where they do not bound it.
    #[serde(default)]
    pub control_share_interval: Option<Interval>,
    /// What follows.
    pub cause: Cause,
}

/// Below this factor there is no impact worth explaining.
const WORTH_EXPLAINING: f64 = 1.5;

impl Verdict {
    /// The verdict on one canary, from the placements that both runs share. It compares times, not factors: factors over
    /// baselines of different speed say nothing about each other.
    pub fn of(shaped: &Run, unshaped: &Run, impact: &TestImpact) -> Option<Self> {
        let kernel = impact.kernel;
        let pairs: Vec<(f64, f64)> = shaped
            .placements
            .iter()
            .zip(&unshaped.placements)
            .filter(|(with, without)| with.seed == without.seed)
            .filter_map(|(with, without)| Some((added(with, kernel)?, added(without, kernel)?)))
            .collect();
        let headline = |run: &Run| run.impact(kernel, Statistic::HEADLINE).map(|of| of.factor);
        let (with, without) = (headline(shaped)?, headline(unshaped)?);
        let mean = |of: fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        let (added_ns, control_added_ns) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let interval = share_interval(&pairs);
        Some(Verdict {
            kernel,
            title: impact.title.clone(),
            run: None,
            shaped: with,
            unshaped: without,
            added_ns,
            control_added_ns,
            control_share: added_ns.zip(control_added_ns).map(|(with, without)| without / with),
            control_share_interval: interval,
            cause: cause(with, interval),
        })
    }
}

/// What load adds on one placement, in time.
fn added(placement: &super::PlacementRecord, kernel: Canary) -> Option<f64> {
    let time = |phase| {
        let figure = placement.test(kernel, phase)?.summary.as_ref()?.get(Statistic::HEADLINE)?;
        Some(match kernel.info().direction {
            Direction::Latency => figure * 1e3,
            Direction::Bandwidth => 1e9 / figure,
        })
    };
    Some(time(Phase::Loaded)? - time(Phase::Isolated)?)
}

/// The 95% interval of the control's part of the added time: Student's t on logarithms, placement by placement. A part of
/// less than 1% counts as 1%, so that a control without any has a logarithm. Nothing where load added no time.
fn share_interval(pairs: &[(f64, f64)]) -> Option<Interval> {
    const LEAST: f64 = 0.01;
    let (whole, part): (Vec<f64>, Vec<f64>) =
        pairs.iter().map(|&(whole, part)| (whole, part.max(LEAST * whole))).unzip();
    paired(&whole, &part)?.interval
}

fn cause(shaped: f64, control: Option<Interval>) -> Cause {
    match control {
        _ if shaped < WORTH_EXPLAINING => Cause::NoImpact,
        Some(interval) if interval.high < 0.5 => Cause::Network,
        Some(interval) if interval.low > 0.5 => Cause::Cpu,
        _ => Cause::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_time_decides_and_not_the_ratio_of_ratios() {
        // 40 -> 120 ns/B shaped, 1 -> 2 unshaped: twice as slow, and 1.25% of the added time.
        let pairs = [(80.0, 1.0), (84.0, 1.1), (76.0, 0.9)];
        let interval = share_interval(&pairs).unwrap();
        assert!(!interval.excludes(0.0125) && interval.high < 0.05, "{interval:?}");
        assert_eq!(cause(3.0, Some(interval)), Cause::Network);
        let pairs = [(80.0, 70.0), (84.0, 75.0), (76.0, 69.0)];
        assert_eq!(cause(3.0, share_interval(&pairs)), Cause::Cpu);
    }

    #[test]
    fn placements_that_disagree_decide_nothing() {
        let pairs = [(80.0, 5.0), (20.0, 30.0), (100.0, 55.0)];
        assert_eq!(cause(3.0, share_interval(&pairs)), Cause::Undecided);
        assert_eq!(share_interval(&[(80.0, 1.0), (84.0, 1.1)]), None, "two placements are too few");
        assert_eq!(share_interval(&[(1.0, 1.0), (-1.0, 1.1), (0.5, 1.0)]), None, "nothing was added");
        assert_eq!(cause(1.2, Some(Interval { low: 0.0, high: 0.1 })), Cause::NoImpact);
    }
}
