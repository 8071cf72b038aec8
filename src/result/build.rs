//! From what the engine measured to what the file says.

use tailback_transport::{Bytes, Description};

use super::{BatchRecord, CongestorLoad, EncodedHistogram, Node, NodeRole, Run, Test, TestImpact, TransportFacts};
use crate::engine::{Load, Measured, Phase};
use crate::layout::{Layout, Nodes, Role};
use crate::plan::Plan;
use crate::stats::{Direction, Samples, Side, Summary, impact};

/// Puts together one transport's run.
pub struct RunBuilder<'a> {
    plan: &'a Plan,
    seed: u64,
    run: Run,
    /// Samples of isolated tests, encoded because that is a hundredth of their size, until their loaded half comes.
    isolated: Vec<(usize, Vec<u8>)>,
}

impl<'a> RunBuilder<'a> {
    /// A run of `plan` over the transport described, whose messages are eager up to `threshold`.
    pub fn new(plan: &'a Plan, seed: u64, description: Description, threshold: Option<Bytes>) -> Self {
        let transport = TransportFacts::of(description, threshold);
        let run = Run { transport, tests: Vec::new(), congestors: Vec::new(), impacts: Vec::new() };
        RunBuilder { plan, seed, run, isolated: Vec::new() }
    }

    /// Adds a phase.
    pub fn add(&mut self, measured: Measured) {
        let Measured { phase, canary, tally, .. } = measured;
        // Before this phase's samples are unpacked: one test's at a time is enough.
        let calm = canary.filter(|_| phase == Phase::Loaded).and_then(|test| self.isolated_side(test));
        let tally = tally.decode();
        let load = self.loads(&tally.loads);
        match (phase, canary, tally.canary) {
            (Phase::Isolated | Phase::Loaded, Some(test), Some(samples)) => {
                self.run.tests.push(self.test(phase, test, &samples, tally.wall_ns, load));
                if phase == Phase::Isolated {
                    self.isolated.push((test, samples.encode()));
                } else {
                    self.add_impact(test, calm, samples);
                }
            }
            _ => self.run.congestors.extend(load),
        }
    }

    /// The finished run.
    pub fn finish(self) -> Run {
        self.run
    }

    fn test(&self, phase: Phase, test: usize, samples: &Samples, wall_ns: u64, load: Vec<CongestorLoad>) -> Test {
        let test = &self.plan.canaries[test];
        let direction = test.kernel.info().direction;
        let batch = |batch: &crate::stats::Batch| BatchRecord {
            avg: batch.pass_mean(),
            histogram: EncodedHistogram::of(batch.histogram()),
        };
        Test {
            phase,
            kernel: test.kernel,
            title: test.title(),
            bytes: test.counts.bytes,
            direction,
            unit: direction.unit().into(),
            wall_s: wall_ns as f64 * 1e-9,
            summary: Summary::of(samples, direction),
            histogram: Some(EncodedHistogram::of(samples.total().histogram())),
            printed: None,
            batches: samples.batches().map(batch).collect(),
            load,
        }
    }

    fn loads(&self, loads: &[Option<Load>]) -> Vec<CongestorLoad> {
        let record = |(kind, load): (usize, &Load)| {
            let test = &self.plan.congestors[kind];
            let seconds = load.seconds / load.ranks.max(1) as f64;
            let mib = load.bytes as f64 / 1_048_576.0;
            CongestorLoad {
                kernel: test.kernel,
                title: test.title(),
                ranks: load.ranks,
                delivered_bytes: load.bytes,
                seconds,
                delivered_mib_per_s: if seconds > 0.0 { mib / seconds } else { 0.0 },
                summary: Summary::of(&load.samples, Direction::Bandwidth),
            }
        };
        loads.iter().enumerate().filter_map(|(kind, load)| load.as_ref().map(|load| record((kind, load)))).collect()
    }

    fn isolated_side(&mut self, test: usize) -> Option<Side> {
        let at = self.isolated.iter().position(|(index, _)| *index == test)?;
        let samples = Samples::decode(&self.isolated.swap_remove(at).1).expect("encoded by this builder");
        Side::of(&samples, self.plan.canaries[test].kernel.info().direction)
    }

    fn add_impact(&mut self, test: usize, calm: Option<Side>, loaded: Samples) {
        let test = &self.plan.canaries[test];
        let direction = test.kernel.info().direction;
        let busy = Side::of(&loaded, direction);
        drop(loaded);
        if let Some((calm, busy)) = calm.zip(busy) {
            let impact = impact(&calm, &busy, direction, self.seed);
            self.run.impacts.push(TestImpact { kernel: test.kernel, title: test.title(), impact });
        }
    }
}

/// The placement, node by node.
pub fn placement(layout: &Layout, plan: &Plan) -> Vec<Node> {
    let role = |role: Role| match role {
        Role::Canary => NodeRole::Canary,
        Role::Congestor(kind) => NodeRole::Congestor(plan.congestors[kind].kernel),
        Role::Idle => NodeRole::Idle,
    };
    let nodes = layout.nodes();
    (0..nodes.len())
        .map(|node| Node {
            name: nodes.name(node).into(),
            ranks: nodes.ranks(node).iter().map(|rank| rank.0).collect(),
            roles: layout.roles_on(node).into_iter().map(role).collect(),
        })
        .collect()
}

/// The placement of a job without roles.
pub fn plain_placement(nodes: &Nodes) -> Vec<Node> {
    (0..nodes.len())
        .map(|node| Node {
            name: nodes.name(node).into(),
            ranks: nodes.ranks(node).iter().map(|rank| rank.0).collect(),
            roles: Vec::new(),
        })
        .collect()
}
