//! What each study measures, and what the result file says of it.

use serde::{Deserialize, Serialize};
use tailback_transport::{Monitor, Result};

use super::map_study::{MapPlan, MapStudy};
use crate::engine::OpenNetwork;
use crate::layout::{Nodes, order};
use crate::models::{StudyJob, beff, contention, hpcc, maxrate};
use crate::result::{
    BetweenResult, Command, ContentionResult, EdgeResult, GraphResult, MapResult, MaxRateResult, ModelResults,
    RegimeResult,
};
/// What is studied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Study {
    /// How many ranks of a node should talk at once.
    MaxRate(maxrate::Settings),
    /// Messages that compete.
    Contention(ContentionStudy),
    /// HPC Challenge's latency and bandwidth.
    Beff(beff::Settings),
    /// The HPC Challenge suite.
    Hpcc(hpcc::Settings),
    /// Latency and bandwidth between pairs of nodes.
    Map(MapStudy),
}

/// The latest start that is measured: ranks that only wait would pass for stalled.
const LATEST_S: f64 = 60.0;

/// Graphs to measure and to predict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ContentionStudy {
    /// Names and edges; edges as text, which every rank reads alike.
    pub graphs: Vec<(String, Vec<(String, String)>)>,
    /// For each graph, the sizes and starts of its messages; empty where all are alike.
    pub messages: Vec<Vec<contention::Message>>,
    pub model: contention::Model,
    /// Penalties that were measured before, which go before the model's.
    pub learned: Option<contention::Learned>,
    pub bytes: u64,
    pub repetitions: usize,
}

impl ContentionStudy {
    pub(crate) fn graphs(&self) -> Vec<(&str, contention::Graph)> {
        let graph = |(pairs, messages): (&[(String, String)], &Vec<contention::Message>)| {
            let graph = contention::Graph::new(pairs).expect("rank 0 read it before");
            if messages.is_empty() { graph } else { graph.with_messages(messages.clone()) }
        };
        let graphs = self.graphs.iter().zip(&self.messages);
        graphs.map(|((name, pairs), messages)| (name.as_str(), graph((pairs, messages)))).collect()
    }

    /// Says which starts are too late to be measured.
    pub fn check_measurable(&self) -> std::result::Result<(), String> {
        let starts = self.messages.iter().flatten().map(|message| message.start_ns);
        let latest_s = starts.max().unwrap_or(0) as f64 * 1e-9;
        if latest_s <= LATEST_S {
            return Ok(());
        }
        Err(format!(
            "a message that starts after {latest_s} s is not measured, {LATEST_S} s are the most: add --predict-only"
        ))
    }

    /// The longest message of all graphs.
    fn longest(&self) -> u64 {
        self.messages.iter().flatten().filter_map(|message| message.bytes).fold(self.bytes, u64::max)
    }

    /// Every graph's prediction with its steps, without a network.
    pub fn steps(&self, reference_s: f64) -> Vec<(String, contention::Graph, contention::Prediction)> {
        let alone = self.alone(reference_s);
        let followed = |(name, graph): (&str, contention::Graph)| {
            let prediction = contention::predict_messages(&graph, |live| self.penalties(live).0, alone);
            (name.to_owned(), graph, prediction)
        };
        self.graphs().into_iter().map(followed).collect()
    }

    /// The penalties of messages under way, and how many of them were measured before.
    fn penalties(&self, graph: &contention::Graph) -> (Vec<f64>, usize) {
        match &self.learned {
            Some(learned) => learned.penalties(graph),
            None => (contention::penalties(graph, self.model), 0),
        }
    }

    fn alone(&self, reference_s: f64) -> contention::Alone {
        contention::Alone { bytes: self.bytes, seconds: reference_s }
    }

    /// The predictions, without a network.
    pub fn predicted(&self, reference_s: f64) -> ContentionResult {
        let graphs = self.graphs();
        let graphs = graphs.iter().map(|(name, graph)| self.predict(name, graph, self.alone(reference_s))).collect();
        self.result(graphs)
    }

    fn result(&self, graphs: Vec<GraphResult>) -> ContentionResult {
        let learned_from = self.learned.as_ref().map(|learned| learned.source.clone());
        ContentionResult { bytes: self.bytes, model: self.model, learned_from, graphs }
    }

    fn predict(&self, name: &str, graph: &contention::Graph, alone: contention::Alone) -> GraphResult {
        let (mut looked_up, mut all) = (0, 0);
        let of = |live: &contention::Graph| {
            let (penalties, known) = self.penalties(live);
            (looked_up, all) = (looked_up + known, all + penalties.len());
            penalties
        };
        let prediction = contention::predict_messages(graph, of, alone);
        let edge = |(at, edge): (usize, &contention::Edge)| EdgeResult {
            source: graph.node(edge.source).to_owned(),
            destination: graph.node(edge.destination).to_owned(),
            message: (!graph.is_uniform()).then(|| graph.messages()[at].clone()),
            penalties: prediction.penalties_of(at),
            predicted: prediction.times[at],
            measured_s: None,
            multiple_interval: None,
            measured_penalty: None,
            penalty_interval: None,
        };
        let edges = graph.edges().iter().enumerate().map(edge).collect();
        let looked_up = self.learned.as_ref().map(|_| looked_up as f64 / f64::max(all as f64, 1.0));
        let (name, reference_s) = (name.to_owned(), alone.seconds);
        GraphResult { name, reference_s, reference_interval: None, took: None, edges, looked_up }
    }
}

/// What a study left.
pub(crate) struct Studied {
    /// What was complete; none when nothing was.
    pub(crate) models: Option<ModelResults>,
    /// Which part of the study is complete or not: a repetition, a graph.
    part: &'static str,
    complete: usize,
    asked: usize,
}

impl Studied {
    /// How far it came, if it was interrupted.
    pub(crate) fn note(&self) -> Option<String> {
        let Studied { part, complete, asked, .. } = self;
        match (complete, asked) {
            (complete, asked) if complete >= asked => None,
            (0, _) => Some(format!("interrupted before the first {part} was complete")),
            _ => Some(format!("interrupted when {complete} of {asked} {part}s were complete; the rest is left out")),
        }
    }
}

impl Study {
    /// Ranks to start on this machine, and how many of them make a node.
    pub(crate) fn local_ranks(&self, ranks_per_node: Option<usize>) -> (usize, usize) {
        match self {
            Study::MaxRate(settings) => {
                let per_node = ranks_per_node.unwrap_or(settings.most_pairs.unwrap_or(4).max(1));
                // Several pairs of nodes want more than two.
                let nodes = if settings.node_pairs.is_first() { 2 } else { 4 };
                (nodes * per_node, per_node)
            }
            Study::Contention(study) => {
                let graphs = study.graphs();
                let need = graphs.iter().map(|(_, graph)| contention::ranks_needed(graph));
                let (nodes, ends) = need.fold((2, 1), |(nodes, ends), need| {
                    (nodes.max(need.len()), need.into_iter().fold(ends, usize::max))
                });
                let per_node = ranks_per_node.unwrap_or(ends);
                (nodes * per_node, per_node)
            }
            Study::Beff(_) => (4, ranks_per_node.unwrap_or(1)),
            Study::Map(_) => {
                let per_node = ranks_per_node.unwrap_or(1);
                (8 * per_node, per_node)
            }
            // Ranks that compute want a core each.
            Study::Hpcc(settings) => {
                let cores = std::thread::available_parallelism().map_or(2, usize::from);
                ((cores / settings.threads.max(1)).clamp(2, 8), ranks_per_node.unwrap_or(1))
            }
        }
    }

    /// The command it is.
    pub fn command(&self) -> Command {
        match self {
            Study::MaxRate(_) => Command::Maxrate,
            Study::Contention(_) => Command::Contention,
            Study::Beff(_) => Command::Beff,
            Study::Hpcc(_) => Command::Hpcc,
            Study::Map(study) if study.locates => Command::Locate,
            Study::Map(_) => Command::Map,
        }
    }

    /// What it would take, of a study that can tell; nothing when the user interrupts. Collective; every rank gets the same.
    pub(crate) fn expected(&self, job: StudyJob<'_>, network: &mut dyn OpenNetwork) -> Result<Option<hpcc::Expected>> {
        let ranks = job.bootstrap.size();
        match self {
            Study::Hpcc(settings) => {
                let expected = network.hpcc_estimate(job, settings)?;
                Ok((expected.phases.len() == settings.asked(ranks).len()).then_some(expected))
            }
            Study::MaxRate(_) | Study::Contention(_) | Study::Beff(_) | Study::Map(_) => Ok(None),
        }
    }

    /// Measures; `map` is the plan of a map. Collective; every rank gets the same, but for a map, which rank 0 has. What there is
    /// so far is kept by `keep`, on rank 0.
    pub(crate) fn measure(
        &self,
        job: StudyJob<'_>,
        network: &mut dyn OpenNetwork,
        map: Option<&MapPlan>,
        keep: &mut dyn FnMut(ModelResults),
    ) -> Result<Studied> {
        let StudyJob { nodes, seed, control, .. } = job;
        let ranks = job.bootstrap.size();
        let mut models = ModelResults::default();
        let (part, complete, asked) = match self {
            Study::MaxRate(settings) => {
                let seen = network.maxrate(job, settings)?;
                models.maxrate = Some(fitted(settings, nodes, seen.found, seen.complete, control.monitor));
                ("repetition", seen.complete, settings.repetitions())
            }
            Study::Contention(study) => {
                let counts = contention::Counts {
                    bytes: study.bytes as usize,
                    longest: study.longest() as usize,
                    repetitions: study.repetitions,
                    model: study.model,
                };
                // No longer than the network lives.
                let job = StudyJob { bootstrap: job.bootstrap, nodes, seed, control };
                let graphs = study.measured(seed, network.contention(job, counts)?)?;
                let complete = graphs.len();
                models.contention = Some(study.result(graphs));
                ("graph", complete, study.graphs.len())
            }
            Study::Beff(settings) => {
                let seen = network.beff(job, settings)?;
                models.beff = seen.found;
                ("repetition", seen.complete, settings.repetitions())
            }
            Study::Hpcc(settings) => {
                let seen = network.hpcc(job, settings)?;
                models.hpcc = Some(seen.found);
                ("test", seen.complete, settings.asked(ranks).len())
            }
            Study::Map(_) => {
                let plan = map.expect("a map is planned before");
                let keep =
                    &mut |map: &MapResult| keep(ModelResults { map: Some(map.clone()), ..ModelResults::default() });
                let (found, complete) = plan.measure(job, network, keep)?;
                models.map = Some(found);
                ("round", complete, plan.rounds())
            }
        };
        Ok(Studied { models: (complete > 0).then_some(models), part, complete, asked })
    }
}

impl ContentionStudy {
    /// The graphs that `measure` has, in the order asked for. They are measured in an order that the seed decides, until
    /// one is interrupted.
    fn measured(
        &self,
        seed: u64,
        mut measure: impl FnMut(&contention::Graph, usize) -> Result<Option<contention::Measured>>,
    ) -> Result<Vec<GraphResult>> {
        let graphs = self.graphs();
        let mut results: Vec<Option<GraphResult>> = vec![None; graphs.len()];
        // Draws of the graphs themselves are numbered from 1.
        for at in order(seed, 0, graphs.len()) {
            let (name, graph) = &graphs[at];
            let Some(found) = measure(graph, at + 1)? else { break };
            let mut result = self.predict(name, graph, self.alone(found.reference));
            result.reference_interval = found.reference_interval;
            result.took = Some(found.took);
            for (edge, own) in result.edges.iter_mut().zip(&found.edges) {
                edge.measured_s = Some(own.seconds);
                edge.multiple_interval = own.multiple_interval;
                edge.measured_penalty = own.penalty;
                edge.penalty_interval = own.penalty_interval;
            }
            results[at] = Some(result);
        }
        Ok(results.into_iter().flatten().collect())
    }
}

fn fitted(
    settings: &maxrate::Settings,
    nodes: &Nodes,
    maxrate::Found { between: all, took, thresholds, halos }: maxrate::Found,
    complete: usize,
    monitor: &Monitor,
) -> MaxRateResult {
    let observations = maxrate::middle(&all, complete);
    let by_itself = |of: &maxrate::Between| {
        // Thousands of fits take their time, and are no stall.
        monitor.tick();
        BetweenResult {
            nodes: [of.nodes.0, of.nodes.1].map(|node| nodes.name(node).to_owned()),
            direction: of.direction,
            regimes: regimes(settings, &of.observations),
            observations: of.observations.clone(),
        }
    };
    let between = if all.len() > 1 { all.iter().map(by_itself).collect() } else { Vec::new() };
    let regimes = regimes(settings, &observations);
    let settings = settings.clone();
    MaxRateResult { settings, observations, took: Some(took), regimes, between, thresholds, halos }
}

fn regimes(settings: &maxrate::Settings, observations: &[maxrate::Observation]) -> Vec<RegimeResult> {
    // A lost packet's timeout is no property of a rate: medians keep it out of the fits.
    let medians = maxrate::medians(observations);
    let sizes = match &settings.thresholds[..] {
        [] => maxrate::regimes(&medians),
        given => maxrate::given_regimes(&medians, given),
    };
    sizes.iter().filter_map(|sizes| RegimeResult::fitted(&medians, sizes, settings.method())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Took;

    fn study(names: &[&str]) -> ContentionStudy {
        let graph = |name: &&str| ((*name).to_owned(), vec![("a".to_owned(), "b".to_owned())]);
        let graphs = names.iter().map(graph).collect();
        let messages = vec![Vec::new(); names.len()];
        ContentionStudy {
            graphs,
            messages,
            model: contention::Model::default(),
            learned: None,
            bytes: 1,
            repetitions: 1,
        }
    }

    fn found() -> contention::Measured {
        let edge = contention::MeasuredEdge {
            seconds: 2.0,
            multiple_interval: None,
            penalty: Some(1.0),
            penalty_interval: None,
        };
        contention::Measured { reference: 2.0, reference_interval: None, edges: vec![edge], took: Took::default() }
    }

    #[test]
    fn graphs_are_measured_in_an_order_of_the_seed_and_told_as_asked() {
        let names = ["0", "1", "2", "3", "4", "5"];
        let run = |seed, most: usize| {
            let mut order = Vec::new();
            let results = study(&names).measured(seed, |_, number| {
                order.push(number);
                Ok((order.len() <= most).then(found))
            });
            (order, results.unwrap().into_iter().map(|graph| graph.name).collect::<Vec<_>>())
        };
        let (order, told) = run(1, 6);
        assert_eq!(told, names);
        assert_ne!(order, [1, 2, 3, 4, 5, 6]);
        assert_eq!(run(1, 6).0, order, "the same seed, the same order");
        assert_ne!(run(2, 6).0, order);
        // Interrupted in the third: two are whole, and told in their order.
        let (cut, told) = run(1, 2);
        let mut whole: Vec<String> = cut[..2].iter().map(|number| (number - 1).to_string()).collect();
        whole.sort();
        assert_eq!((cut.len(), told), (3, whole));
    }

    #[test]
    fn an_interrupted_study_says_how_far_it_came() {
        let studied = |complete| Studied { models: None, part: "repetition", complete, asked: 5 };
        assert_eq!(studied(5).note(), None);
        assert_eq!(studied(0).note().unwrap(), "interrupted before the first repetition was complete");
        assert!(studied(2).note().unwrap().contains("2 of 5 repetitions were complete"));
    }
}
