//! What a result keeps of the emulated cluster it came from: its shape, what its queues did, and the unshaped control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Run, TestImpact};
use crate::kernel::Canary;
use crate::lab::{Host, LabSpec, PortCounters};
use crate::stats::Direction;

/// An emulated cluster.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LabRecord {
    /// Its shape.
    pub spec: LabSpec,
    /// Whether it ran as root or in a user namespace.
    pub mode: String,
    /// Its hosts, by whose names nodes are known; in a load test, rank i ran on the i-th.
    pub hosts: Vec<Host>,
    /// What its ports did in each phase.
    pub phases: Vec<PhaseCounters>,
    /// The same plan with unshaped links.
    pub control: Option<ControlRecord>,
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
    /// The shaped network: the control does not show it.
    Network,
    /// The processor: the control shows it too.
    Cpu,
    /// It is below 1.5: too small to be explained.
    NoImpact,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cause::Network => "network",
            Cause::Cpu => "CPU",
            Cause::NoImpact => "below 1.5x",
        })
    }
}

/// Both impacts of a canary's mean, side by side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The kernel.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// Which run, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Impact on the average, with shaped links.
    pub shaped: f64,
    /// The same with unshaped links.
    pub unshaped: f64,
    /// How many times worse the canary is under load with shaped links than under load with unshaped ones.
    pub loaded_ratio: f64,
    /// What follows.
    pub cause: Cause,
}

/// Below this factor there is no impact worth explaining.
const WORTH_EXPLAINING: f64 = 1.5;

impl Verdict {
    /// The verdict on one canary. The network is to blame when most of the added cost is absent from the control: when
    /// `(impact - 1)` without shaping is less than half of it with shaping.
    pub fn of(shaped: &Run, unshaped: &Run, impact: &TestImpact) -> Option<Self> {
        let control = unshaped.impacts.iter().find(|other| other.kernel == impact.kernel)?;
        let loaded = |run: &Run| -> Option<(f64, Direction)> {
            let test = run.tests.iter().find(|test| test.kernel == impact.kernel && !test.load.is_empty())?;
            Some((test.summary.as_ref()?.avg, test.direction))
        };
        let ((slow, direction), (fast, _)) = (loaded(shaped)?, loaded(unshaped)?);
        let (with, without) = (impact.impact.avg.factor, control.impact.avg.factor);
        Some(Verdict {
            kernel: impact.kernel,
            title: impact.title.clone(),
            run: None,
            shaped: with,
            unshaped: without,
            loaded_ratio: direction.factor(fast, slow),
            cause: cause(with, without),
        })
    }
}

fn cause(shaped: f64, unshaped: f64) -> Cause {
    if shaped < WORTH_EXPLAINING {
        Cause::NoImpact
    } else if unshaped - 1.0 < (shaped - 1.0) / 2.0 {
        Cause::Network
    } else {
        Cause::Cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impact_that_the_control_shows_too_is_the_processors() {
        assert_eq!(cause(88.0, 2.3), Cause::Network);
        assert_eq!(cause(12.0, 8.6), Cause::Cpu);
        assert_eq!(cause(2.3, 2.3), Cause::Cpu);
        assert_eq!(cause(1.1, 0.9), Cause::NoImpact);
        assert_eq!(cause(3.0, 0.7), Cause::Network);
    }
}
