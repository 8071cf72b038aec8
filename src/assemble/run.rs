//! From what the engine measured to what the file says of a run.

use super::burst::{self, Bursts};
use super::entry;
use super::slow::{Peers, QuickestPairs, slow_nodes};
use crate::engine::{Kept, Load, LoadState, Measured, Tally};
use crate::kernel::Canary;
use crate::layout::{Layout, Nodes, Role};
use crate::plan::{Plan, SweptValue};
use crate::result::{
    BatchRecord, BlockRecord, BurstRecord, CollectiveBandwidth, CongestorLoad, EncodedHistogram, Headline, KindSpread,
    Node, NodeRole, PlacementRecord, PlacementTest, Run, Schedule, SlowNode, Test, TestImpact, TimeCongested,
    TransportFacts, distinct,
};
use crate::stats::{
    Batch, Direction, Factor, Impact, Interval, Samples, Spread, Statistic, Summary, TimeView, one_placement, pooled,
    quantile_ns, unpaired,
};

/// Puts together one transport's run, placement by placement.
#[derive(Clone)]
pub struct RunBuilder<'a> {
    plan: &'a Plan,
    transport: TransportFacts,
    congestors_over: Option<TransportFacts>,
    beside: Option<String>,
    size_bytes: Option<usize>,
    setting: Option<String>,
    /// The size of the canaries' teams, where all are alike.
    team: Option<usize>,
    point: Vec<SweptValue>,
    /// What congestors did without canaries, over the placements so far.
    alone: (LoadState, Vec<Option<Load>>),
    placements: Vec<PlacementRecord>,
    /// What tests have gathered so far, in the order of their first phase.
    gathered: Vec<Gathered>,
    /// The nodes, where they are known.
    peers: Option<Peers>,
}

/// One canary in one state, over the placements so far.
#[derive(Clone)]
struct Gathered {
    canary: usize,
    phase: LoadState,
    /// Each placement's samples as one batch, or the batches of the only one; encoded, which is a hundredth of their size.
    parts: Vec<Vec<u8>>,
    /// Instead of samples, what each repetition of an application gave.
    figures: Vec<f64>,
    passes: u64,
    wall_ns: u64,
    schedule: Schedule,
    /// The time inside timed iterations and the tests' wall time, both added up over ranks.
    covered: (u64, u64),
    bursts: Option<Bursts>,
    /// The quickest messages between nodes.
    quickest: QuickestPairs,
    loads: Vec<Option<Load>>,
}

impl Gathered {
    fn samples(&self) -> Vec<Samples> {
        self.decoded().collect()
    }

    fn decoded(&self) -> impl Iterator<Item = Samples> {
        self.parts.iter().map(|part| Samples::decode(part).expect("encoded by this builder"))
    }

    /// All of them in one batch, decoded one after the other: a histogram is large, and there may be many placements.
    fn pooled(&self) -> Batch {
        let none = pooled(&[]);
        self.decoded().fold(none, |sum, samples| Batch::joined([&sum].into_iter().chain(samples.batches())))
    }
}

impl<'a> RunBuilder<'a> {
    /// A run of `plan` over a transport, with congestors over another one if there is one.
    pub fn new(plan: &'a Plan, transport: TransportFacts, congestors_over: Option<TransportFacts>) -> Self {
        let alone = (LoadState::Alone, vec![None; plan.congestors.len()]);
        let (placements, gathered) = (Vec::new(), Vec::new());
        let (beside, size_bytes, setting, team, point) = (None, None, None, None, Vec::new());
        RunBuilder {
            plan,
            transport,
            congestors_over,
            beside,
            size_bytes,
            setting,
            team,
            point,
            alone,
            placements,
            gathered,
            peers: None,
        }
    }

    /// The same, of one load among several.
    #[must_use]
    pub fn beside(self, load: Option<String>) -> Self {
        RunBuilder { beside: load, ..self }
    }

    /// The same, of one message size among several.
    #[must_use]
    pub fn of_size(self, size_bytes: Option<usize>) -> Self {
        RunBuilder { size_bytes, ..self }
    }

    /// The same, with one setting in force among several.
    #[must_use]
    pub fn set_to(self, setting: Option<String>) -> Self {
        RunBuilder { setting, ..self }
    }

    /// The same, at a point of a sweep.
    #[must_use]
    pub fn at(self, point: Vec<SweptValue>) -> Self {
        RunBuilder { point, ..self }
    }

    /// Adds a placement and its complete phases.
    pub fn add(&mut self, seed: u64, layout: &Layout, phases: &[Measured]) {
        let team = layout.team_size(Role::Canary);
        self.team = if self.placements.is_empty() { team } else { self.team.filter(|_| self.team == team) };
        let roles = placement(layout, self.plan).into_iter().map(|node| node.roles).collect();
        self.peers.get_or_insert_with(|| Peers::of(layout.nodes()));
        let record = PlacementRecord { seed, kind: layout.kind(), roles, tests: Vec::new() };
        self.add_to(record, phases, Some(layout));
    }

    /// The same, for a placement whose facts are known.
    #[cfg(test)]
    pub fn add_phases(&mut self, record: PlacementRecord, phases: &[Measured]) {
        self.add_to(record, phases, None);
    }

    fn add_to(&mut self, mut record: PlacementRecord, phases: &[Measured], layout: Option<&Layout>) {
        let mut tests: Vec<(usize, LoadState)> = Vec::new();
        for measured in phases {
            match measured.canary {
                Some(canary) if !tests.contains(&(canary, measured.phase)) => tests.push((canary, measured.phase)),
                Some(_) => {}
                None => {
                    self.alone.0 = measured.phase;
                    let loads = measured.tally.decode().loads;
                    self.alone.1.iter_mut().zip(loads).for_each(|(sum, load)| join(sum, load));
                }
            }
        }
        for (canary, phase) in tests {
            // Decoded one at a time: each is megabytes.
            let blocks = phases
                .iter()
                .filter(|measured| (measured.canary, measured.phase) == (Some(canary), phase))
                .map(|measured| (measured.block, measured.clock_error_ns, measured.tally.decode()));
            record.tests.push(self.gather((canary, phase), blocks, layout.map(|layout| (layout, record.seed))));
        }
        self.placements.push(record);
    }

    fn gather(
        &mut self,
        (canary, phase): (usize, LoadState),
        blocks: impl Iterator<Item = (usize, u64, Tally)>,
        drawn: Option<(&Layout, u64)>,
    ) -> PlacementTest {
        let test = &self.plan.canaries[canary];
        let (kernel, direction, weight) = (test.kernel, test.kernel.info().direction, self.plan.weight_of(test));
        let mut figures: Vec<f64> = Vec::new();
        let mut schedule = Schedule::default();
        let (mut records, mut samples) = (Vec::new(), Vec::new());
        let mut rings: Vec<Batch> = Vec::new();
        let mut loads: Vec<Option<Load>> = vec![None; self.plan.congestors.len()];
        let (mut passes, mut wall_ns, mut covered) = (0, 0, (0, 0));
        let mut bursts: Option<Bursts> = None;
        let mut quickest = Vec::new();
        for (place, clock_error_ns, tally) in blocks {
            if let Some(folded) = &tally.folded {
                bursts.get_or_insert_default().add(folded, clock_error_ns);
            }
            let of_samples = tally.canary.as_ref().and_then(|samples| {
                let batches: Vec<&Batch> = samples.batches().collect();
                Summary::of_batches(&batches, samples.passes(), direction, weight)
            });
            let of_block = of_samples.or_else(|| Summary::of_figures(&[tally.figure?], direction));
            figures.extend(tally.figure);
            quickest.extend(tally.quickest);
            schedule.add(&tally.kept);
            records.push(BlockRecord {
                place,
                wall_s: tally.wall_ns as f64 * 1e-9,
                settled_s: tally.settled_ns as f64 * 1e-9,
                warm_up: (tally.warm_up.measurements > 0).then_some(tally.warm_up),
                headline: of_block.as_ref().and_then(|summary| summary.get(kernel.headline())),
                p50: of_block.as_ref().map(|summary| summary.percentiles.p50),
            });
            wall_ns += tally.wall_ns;
            covered = (covered.0 + tally.covered_ns, covered.1 + tally.rank_ns);
            loads.iter_mut().zip(tally.loads).for_each(|(sum, load)| join(sum, load));
            for (at, of_ring) in tally.rings.iter().map(Samples::total).enumerate() {
                match rings.get_mut(at) {
                    Some(sum) => *sum = Batch::joined([&*sum, &of_ring]),
                    None => rings.push(of_ring),
                }
            }
            if let Some(of_block) = tally.canary {
                passes += of_block.passes();
                samples.push(of_block);
            }
        }
        let batches: Vec<&Batch> = samples.iter().flat_map(Samples::batches).collect();
        let of_samples = Summary::of_batches(&batches, passes, direction, weight);
        let summary = of_samples.or_else(|| Summary::of_figures(&figures, direction));
        let part = match (self.plan.placements, &samples[..]) {
            (1, [only]) => only.encode(),
            _ => Samples::of_batch(Batch::joined(batches.iter().copied())).encode(),
        };
        let load = self.loads(&loads, phase);
        let kinds = self.plan.congestors.len();
        let gathered = entry(
            &mut self.gathered,
            |of| (of.canary, of.phase) == (canary, phase),
            || {
                let (parts, figures, loads) = (Vec::new(), Vec::new(), vec![None; kinds]);
                let (passes, wall_ns, schedule, covered, bursts) = (0, 0, Schedule::default(), (0, 0), None);
                let quickest = QuickestPairs::default();
                Gathered { canary, phase, parts, figures, passes, wall_ns, schedule, covered, bursts, quickest, loads }
            },
        );
        gathered.parts.push(part);
        gathered.figures.extend(figures);
        gathered.passes += passes;
        gathered.wall_ns += wall_ns;
        gathered.covered = (gathered.covered.0 + covered.0, gathered.covered.1 + covered.1);
        gathered.schedule.join(&schedule);
        if let Some((layout, seed)) = drawn {
            gathered.quickest.add(layout, seed, &quickest);
        }
        if let Some(bursts) = bursts {
            gathered.bursts.get_or_insert_default().join(&bursts);
        }
        gathered.loads.iter_mut().zip(loads).for_each(|(sum, load)| join(sum, load));
        let rings = rings.iter().map(|ring| EncodedHistogram::of(&ring.histogram())).collect();
        PlacementTest { phase, kernel, summary, blocks: records, rings, load }
    }

    /// The factors over the placements so far, for a look at how certain they are.
    pub fn headlines(&self) -> Vec<Headline> {
        let of = |canary| Headline::of(&self.placements, canary, None);
        self.plan.canaries.iter().filter_map(|test| of(test.kernel)).collect()
    }

    /// How many placements there are so far.
    pub fn placements(&self) -> usize {
        self.placements.len()
    }

    /// The run as far as it came.
    pub fn finish(&self) -> Run {
        // As a reader looks for them: all that is isolated, then all that is loaded.
        let mut gathered: Vec<&Gathered> = self.gathered.iter().collect();
        gathered.sort_by_key(|of| (of.phase == LoadState::Loaded, of.canary));
        let tests = gathered.into_iter().map(|of| self.test(of)).collect();
        let impacts = (0..self.plan.canaries.len()).filter_map(|canary| self.impact(canary)).collect();
        let run = Run {
            transport: self.transport.clone(),
            congestors_over: self.congestors_over.clone(),
            beside: self.beside.clone(),
            size_bytes: self.size_bytes,
            setting: self.setting.clone(),
            point: self.point.clone(),
            tests,
            congestors: self.loads(&self.alone.1, self.alone.0),
            impacts,
            slow_nodes: self.slow_nodes(),
            stolen: None,
            placements: self.placements.clone(),
            models: None,
        };
        run.judged()
    }

    fn test(&self, of: &Gathered) -> Test {
        let test = &self.plan.canaries[of.canary];
        let direction = test.kernel.info().direction;
        let application = self.plan.application.as_ref().filter(|_| test.kernel.is_application());
        let open = self.plan.pace_of(test).is_some();
        let samples = of.samples();
        let batches: Vec<&Batch> = samples.iter().flat_map(Samples::batches).collect();
        let batch =
            |batch: &Batch| BatchRecord { avg: batch.pass_mean(), histogram: EncodedHistogram::of(&batch.histogram()) };
        let summary = Summary::of_batches(&batches, of.passes, direction, self.plan.weight_of(test))
            .or_else(|| Summary::of_figures(&of.figures, direction));
        let bus = summary.as_ref().and_then(|of| of.get(Statistic::Avg)).zip(self.team);
        Test {
            phase: of.phase,
            kernel: test.kernel,
            title: self.plan.title(test),
            bytes: test.counts.bytes,
            direction,
            unit: application.map_or_else(|| direction.unit().into(), |of| of.unit.clone()),
            wall_s: of.wall_ns as f64 * 1e-9,
            summary,
            collective: bus.and_then(|(mean, team)| CollectiveBandwidth::of(test.kernel, mean, team)),
            burst: self.burst(of),
            schedule: open.then_some(of.schedule),
            covered: (!open && of.covered.1 > 0).then(|| of.covered.0 as f64 / of.covered.1 as f64),
            histogram: application
                .is_none()
                .then(|| EncodedHistogram::of(&Batch::joined(batches.iter().copied()).histogram())),
            printed: None,
            batches: batches.into_iter().map(batch).collect(),
            load: self.loads(&of.loads, of.phase),
        }
    }

    /// What a canary met in bursts, beside what it meets without load.
    fn burst(&self, of: &Gathered) -> Option<BurstRecord> {
        let (bursts, burst) = (of.bursts.as_ref()?, self.plan.burst?);
        let idle = self.gathered.iter().find(|idle| (idle.canary, idle.phase) == (of.canary, LoadState::Isolated))?;
        let pooled = idle.pooled();
        let histogram = pooled.histogram();
        let idle_ns = [0.5, 0.99].map(|quantile| quantile_ns(&histogram, quantile));
        let loads = self.plan.congestors.iter().zip(&of.loads);
        let loads = loads.filter_map(|(test, load)| Some(burst::load(test.kernel, load.as_ref()?, burst)));
        (!histogram.is_empty()).then(|| bursts.record(burst, loads.collect(), idle_ns))
    }

    fn slow_nodes(&self) -> Vec<SlowNode> {
        let Some(peers) = &self.peers else { return Vec::new() };
        let of = |canary: usize, phase| {
            let found = self.gathered.iter().find(|of| (of.canary, of.phase) == (canary, phase));
            found.map(|of| &of.quickest)
        };
        let tests = self.plan.canaries.iter().enumerate().filter_map(|(canary, test)| {
            Some((test.kernel, of(canary, LoadState::Isolated)?, of(canary, LoadState::Loaded)?))
        });
        slow_nodes(tests, peers)
    }

    fn impact(&self, canary: usize) -> Option<TestImpact> {
        let test = &self.plan.canaries[canary];
        let find = |phase| self.gathered.iter().find(|of| (of.canary, of.phase) == (canary, phase));
        let (alone, beside) = (find(LoadState::Isolated)?, find(LoadState::Loaded)?);
        let weight = self.plan.weight_of(test);
        let view = |of: &Gathered| TimeView::of(&of.pooled().histogram(), weight);
        let congested = view(alone).zip(view(beside)).map(|(calm, busy)| TimeCongested::of(&calm, &busy));
        let only = (self.placements.len() == 1).then(|| (alone.samples(), beside.samples()));
        let headline = Headline::of(&self.placements, test.kernel, congested);
        let impact = Impact::of(|statistic| {
            let factors: Vec<f64> = self.placements.iter().filter_map(|of| of.factor(test.kernel, statistic)).collect();
            // A figure that some placements could not carry is a figure of the others only.
            let whole = factors.len() == self.placements.len();
            let spread = Spread::of(&factors).filter(|_| whole)?;
            let single = || match test.kernel.is_application() {
                true => over_repetitions(&alone.figures, &beside.figures, test.kernel.info().direction),
                false => {
                    let (calm, busy) = only.as_ref()?;
                    one_placement(statistic, calm.first()?, busy.first()?).ok().map(|of| of.interval)
                }
            };
            let interval = if factors.len() == 1 { single() } else { spread.interval };
            Some(Factor { factor: spread.factor, interval })
        });
        headline.is_some().then(|| TestImpact {
            kernel: test.kernel,
            title: self.plan.title(test),
            added_us: None,
            not_reportable: Vec::new(),
            impact,
            headline,
        })
    }

    fn loads(&self, loads: &[Option<Load>], phase: LoadState) -> Vec<CongestorLoad> {
        let record = |(kind, load): (usize, &Load)| {
            let test = &self.plan.congestors[kind];
            let seconds = load.seconds / load.ranks.max(1) as f64;
            let mib = |bytes: f64| bytes / 1_048_576.0;
            let slice_s = load.slices.width().as_secs_f64();
            let slices = load.slices.whole();
            let least = slices.iter().copied().reduce(f64::min);
            // Slices of single ranks jump; what counts is whether all of them together had come up.
            let mean = slices.iter().sum::<f64>() / slices.len().max(1) as f64;
            let steady = load.steady || slices.first().is_none_or(|first| *first >= 0.5 * mean);
            let delivered_mib_per_s = if seconds > 0.0 { mib(load.bytes as f64) / seconds } else { 0.0 };
            CongestorLoad {
                kernel: test.kernel,
                title: test.title(),
                ranks: load.ranks,
                delivered_bytes: load.bytes,
                seconds,
                delivered_mib_per_s,
                // The time before and behind whole slices counts in the mean only.
                least_mib_per_s: least.map(|bytes| (mib(bytes) / slice_s).min(delivered_mib_per_s)),
                slice_s: Some(slice_s),
                steady: (phase == LoadState::Loaded).then_some(steady),
                summary: Summary::of(&load.samples, Direction::Bandwidth),
            }
        };
        loads.iter().enumerate().filter_map(|(kind, load)| load.as_ref().map(|load| record((kind, load)))).collect()
    }
}

/// The interval of an application's impact on the only placement, over its repetitions: of this placement and no other.
fn over_repetitions(isolated: &[f64], loaded: &[f64], direction: Direction) -> Option<Interval> {
    match direction {
        Direction::Latency => unpaired(isolated, loaded)?.interval,
        Direction::Bandwidth => unpaired(loaded, isolated)?.interval,
    }
}

/// Adds what the same congestor did in another block.
fn join(sum: &mut Option<Load>, load: Option<Load>) {
    let Some(load) = load else { return };
    let Some(sum) = sum else {
        *sum = Some(load);
        return;
    };
    sum.bytes += load.bytes;
    // Ranks are those of one block: the same ones, or as many on another placement.
    sum.seconds += load.seconds * sum.ranks as f64 / load.ranks.max(1) as f64;
    sum.steady &= load.steady;
    sum.slices.follow(&load.slices);
    sum.samples.merge(&load.samples).expect("the iterations of a load are one batch");
}

impl Schedule {
    /// Adds what the engine saw.
    pub fn add(&mut self, kept: &Kept) {
        let Kept { slots, late, lost, worst_ns } = *kept;
        self.join(&Schedule { iterations: slots, late, lost, worst_s: worst_ns as f64 * 1e-9 });
    }

    /// Adds another part of the same test.
    pub fn join(&mut self, other: &Schedule) {
        self.iterations += other.iterations;
        self.late += other.late;
        self.lost += other.lost;
        self.worst_s = self.worst_s.max(other.worst_s);
    }
}

impl TimeCongested {
    /// More than this many times the isolated median is congested.
    pub const TIMES: f64 = 2.0;

    /// From all samples of both states.
    pub fn of(isolated: &TimeView, loaded: &TimeView) -> Self {
        let limit = Self::TIMES * isolated.quantile_ns(0.5);
        TimeCongested { isolated: isolated.share_above(limit), loaded: loaded.share_above(limit) }
    }
}

impl Headline {
    /// The headline of a kernel; nothing when no placement has both states.
    pub fn of(placements: &[PlacementRecord], kernel: Canary, congested: Option<TimeCongested>) -> Option<Self> {
        let statistic = kernel.headline();
        let factors = |of: &dyn Fn(&&PlacementRecord) -> bool| -> Vec<f64> {
            placements.iter().filter(of).filter_map(|placement| placement.factor(kernel, statistic)).collect()
        };
        let spread = Spread::of(&factors(&|_| true))?;
        let names = distinct(placements.iter().map(|placement| placement.kind.as_str()));
        let kind = |name: &&str| {
            let spread = Spread::of(&factors(&|placement| placement.kind == **name))?;
            Some(KindSpread { kind: (*name).to_owned(), spread })
        };
        let kinds = if names.len() > 1 { names.iter().filter_map(kind).collect() } else { Vec::new() };
        Some(Headline { statistic, spread, congested, kinds })
    }
}

/// The placement, node by node.
pub fn placement(layout: &Layout, plan: &Plan) -> Vec<Node> {
    let role = |role: Role| match role {
        Role::Canary => NodeRole::Canary,
        Role::Congestor(kind) => NodeRole::Congestor(plan.congestors[kind].kernel),
        Role::Idle => NodeRole::Idle,
    };
    nodes_with(layout.nodes(), |node| layout.roles_on(node).into_iter().map(role).collect())
}

/// The placement of a job without roles.
pub fn plain_placement(nodes: &Nodes) -> Vec<Node> {
    nodes_with(nodes, |_| Vec::new())
}

fn nodes_with(nodes: &Nodes, roles: impl Fn(usize) -> Vec<NodeRole>) -> Vec<Node> {
    let node = |node: usize| Node {
        name: nodes.name(node).into(),
        ranks: nodes.ranks(node).iter().map(|rank| rank.0).collect(),
        roles: roles(node),
    };
    (0..nodes.len()).map(node).collect()
}
