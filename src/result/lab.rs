//! What a result keeps of the emulated cluster it came from: its shape, what its queues did, and the control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlacementRates, Run, TestImpact, entry};
use crate::engine::{Phase, PhaseId};
use crate::kernel::Canary;
use crate::lab::{Host, Lab, LabSpec, PortCounters};
use crate::plan::SECONDS;
use crate::stats::{Direction, FEWEST_PLACEMENTS, Interval, t95};

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
    /// The same plan with canaries that meet no queue.
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
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PhaseCounters {
    #[schemars(with = "String")]
    pub phase: PhaseId,
    /// From the first reading to the last of each of its blocks, in all; absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    pub ports: Vec<PortCounters>,
    /// The same by placement, in order; absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<PlacementRates>,
}

impl PhaseCounters {
    /// A phase among those so far, made if it is not there.
    pub fn among<'a>(phases: &'a mut Vec<PhaseCounters>, phase: &PhaseId) -> &'a mut Self {
        entry(phases, |known| known.phase == *phase, || PhaseCounters { phase: phase.clone(), ..Self::default() })
    }

    /// Adds how long a block on some placement took, and what these ports did in it a second.
    pub fn add_block(&mut self, placement: u32, seconds: f64, ports: &[PortCounters]) {
        *self.seconds.get_or_insert(0.0) += seconds;
        let block = PlacementRates::of(placement, seconds, ports);
        match self.placements.iter_mut().find(|known| known.placement == placement) {
            Some(known) => known.add(&block),
            None => self.placements.push(block),
        }
    }
}

/// What keeps canaries out of the queues in a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ControlKind {
    /// Every port lets the canaries' packets pass its queue; congestors have the rates and queues they had, so the
    /// processor has the same to do
    Express,
    /// Links without rates and queues for everyone; congestors then move more, and the processor has more to do
    #[default]
    Unshaped,
}

impl ControlKind {
    /// As the user types it, and as a column is called.
    pub fn word(self) -> &'static str {
        match self {
            ControlKind::Express => "express",
            ControlKind::Unshaped => "unshaped",
        }
    }

    /// What it is, for whoever reads its table.
    pub fn title(self) -> &'static str {
        match self {
            ControlKind::Express => {
                "Control: placements again under the same load, with canaries whose packets pass the queues by"
            }
            ControlKind::Unshaped => {
                "Control: placements again with unshaped links, where only the processor is the limit"
            }
        }
    }
}

/// Some of the placements again, with canaries that meet no queue: what load still adds is the processor's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ControlRecord {
    #[serde(default)]
    pub kind: ControlKind,
    /// The first run again, or the only one.
    pub run: Run,
    /// The others, where there are several, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_runs: Vec<Run>,
    pub phases: Vec<PhaseCounters>,
    pub verdicts: Vec<Verdict>,
}

impl ControlRecord {
    /// Holds runs against the same ones without queues for canaries; nothing when there are none of those.
    pub fn of(kind: ControlKind, shaped: &[Run], again: Vec<Run>, phases: Vec<PhaseCounters>) -> Option<Self> {
        let several = shaped.len() > 1;
        let verdicts = shaped.iter().zip(&again).flat_map(|(shaped, again)| {
            let label = several.then(|| shaped.label());
            let verdict = |impact| Verdict::of(shaped, again, impact);
            shaped.impacts.iter().filter_map(verdict).map(move |verdict| Verdict { run: label.clone(), ..verdict })
        });
        let verdicts = verdicts.collect();
        let mut runs = again.into_iter();
        Some(ControlRecord { kind, run: runs.next()?, more_runs: runs.collect(), phases, verdicts })
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

/// A canary in the run and in the control, side by side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The kernel.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// Which run, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The impact, by the headline, in the run.
    pub shaped: f64,
    /// The same in the control.
    #[serde(alias = "unshaped")]
    pub control: f64,
    /// The time that load adds to the headline's figure in the run, mean over the placements of both: ns, or for
    /// bandwidths ns/MiB.
    #[serde(default)]
    pub added_ns: Option<f64>,
    /// The same in the control.
    #[serde(default)]
    pub control_added_ns: Option<f64>,
    /// The part of the added time that needs no queue: mean of the placements' parts.
    #[serde(default)]
    pub control_share: Option<f64>,
    /// Its 95% interval over placements; absent where they do not bound it.
    #[serde(default)]
    pub control_share_interval: Option<Interval>,
    /// What follows.
    pub cause: Cause,
}

/// Below this factor there is no impact worth explaining.
pub(super) const WORTH_EXPLAINING: f64 = 1.5;

impl Verdict {
    /// The verdict on one canary, from the placements that both runs share. It compares times, not factors: factors over
    /// baselines of different speed say nothing about each other.
    pub fn of(shaped: &Run, control: &Run, impact: &TestImpact) -> Option<Self> {
        let kernel = impact.kernel;
        let pairs: Vec<(f64, f64)> = shaped
            .placements
            .iter()
            .zip(&control.placements)
            .filter(|(with, without)| with.seed == without.seed)
            .filter_map(|(with, without)| Some((added(with, kernel)?, added(without, kernel)?)))
            .collect();
        let headline = |run: &Run| run.impact(kernel, kernel.headline()).map(|of| of.factor);
        let (with, without) = (headline(shaped)?, headline(control)?);
        let mean = |of: fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        // A figure that a program prints need not be a time; its parts are parts all the same.
        let unit = shaped.test(kernel, Phase::Loaded).map(|test| test.unit.as_str());
        let is_time = !kernel.is_application() || unit == Some(SECONDS);
        let share = share(&pairs);
        let interval = share.and_then(|(_, interval)| interval);
        Some(Verdict {
            kernel,
            title: impact.title.clone(),
            run: None,
            shaped: with,
            control: without,
            added_ns: mean(|pair| pair.0).filter(|_| is_time),
            control_added_ns: mean(|pair| pair.1).filter(|_| is_time),
            control_share: share.map(|(share, _)| share),
            control_share_interval: interval,
            cause: cause(with, interval),
        })
    }
}

/// What load adds on one placement, in time.
fn added(placement: &super::PlacementRecord, kernel: Canary) -> Option<f64> {
    let time = |phase| {
        let figure = placement.test(kernel, phase)?.summary.as_ref()?.get(kernel.headline())?;
        Some(match kernel.info().direction {
            Direction::Latency if kernel.is_application() => figure * 1e9,
            Direction::Latency => figure * 1e3,
            Direction::Bandwidth => 1e9 / figure,
        })
    };
    Some(time(Phase::Loaded)? - time(Phase::Isolated)?)
}

/// The control's part of the added time, placement by placement, with the 95% interval of its mean (Student's t; from three
/// placements on). Not on logarithms: a part next to nothing is as far from one half whether it is 1% or 0.1%. Nothing
/// where load added no time.
fn share(pairs: &[(f64, f64)]) -> Option<(f64, Option<Interval>)> {
    if pairs.is_empty() || pairs.iter().any(|(whole, part)| *whole <= 0.0 || !part.is_finite()) {
        return None;
    }
    let (shares, count): (Vec<f64>, f64) =
        (pairs.iter().map(|(whole, part)| part / whole).collect(), pairs.len() as f64);
    let mean = shares.iter().sum::<f64>() / count;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let interval = (pairs.len() >= FEWEST_PLACEMENTS).then(|| {
        let half = t95(count - 1.0) * (variance / count).sqrt();
        Interval { low: mean - half, high: mean + half }
    });
    Some((mean, interval))
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
        let interval = share(&pairs).unwrap().1.unwrap();
        assert!(!interval.excludes(0.0125) && interval.high < 0.05, "{interval:?}");
        assert_eq!(cause(3.0, Some(interval)), Cause::Network);
        // Next to nothing, however unevenly.
        let pairs = [(80.0, 0.1), (84.0, 4.0), (76.0, -0.5)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Network);
        let pairs = [(80.0, 70.0), (84.0, 75.0), (76.0, 69.0)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Cpu);
    }

    #[test]
    fn placements_that_disagree_decide_nothing() {
        let pairs = [(80.0, 5.0), (20.0, 30.0), (100.0, 55.0)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Undecided);
        let two = share(&[(80.0, 1.0), (84.0, 1.1)]);
        assert!(two.is_some_and(|share| share.1.is_none()), "two placements are too few");
        assert!(share(&[(1.0, 1.0), (-1.0, 1.1), (0.5, 1.0)]).is_none(), "nothing was added");
        assert_eq!(cause(1.2, Some(Interval { low: 0.0, high: 0.1 })), Cause::NoImpact);
    }
}
