//! A study from its options to its results: `tailback maxrate`, `contention` and `beff`, on whatever backend runs.
//!
//! Rank 0 decides and the others are told, as in a load test. Results are the same file family, with a section
//! of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Bytes, Error, Monitor, Operation, Rank, Support, Transport};

use super::Place;
use super::around::Around;
use super::show::handed_over;
use crate::backend::{Networks, Settings, Visitor, Work, give_up};
use crate::layout::Nodes;
use crate::models::{beff, contention, maxrate};
use crate::output;
use crate::plan::Preset;
use crate::result::{
    self, Build, Command, ContentionResult, EdgeResult, FitResult, GraphResult, HostFacts, MaxRateResult, ModelResults,
    RegimeResult, ResultFile, Run, System, TransportFacts,
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
}

impl Study {
    fn command(&self) -> Command {
        match self {
            Study::MaxRate(_) => Command::Maxrate,
            Study::Contention(_) => Command::Contention,
            Study::Beff(_) => Command::Beff,
        }
    }
}

/// Graphs to measure and to predict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ContentionStudy {
    /// Names and edges; edges as text, which every rank reads alike.
    pub graphs: Vec<(String, Vec<(String, String)>)>,
    pub model: contention::Model,
    pub bytes: u64,
    pub repetitions: usize,
}

impl ContentionStudy {
    fn graphs(&self) -> Vec<(&str, contention::Graph)> {
        let graph = |pairs: &[(String, String)]| contention::Graph::new(pairs).expect("rank 0 read it before");
        self.graphs.iter().map(|(name, pairs)| (name.as_str(), graph(pairs))).collect()
    }

    /// The predictions, without a network.
    pub fn predicted(&self, reference_s: f64) -> ContentionResult {
        let graphs = self.graphs();
        let graphs = graphs.iter().map(|(name, graph)| predicted(name, graph, self.model, reference_s)).collect();
        ContentionResult { bytes: self.bytes, model: self.model, graphs }
    }
}

/// What the user asked for.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct StudyRequest {
    pub study: Study,
    pub seed: u64,
    pub ranks_per_node: Option<usize>,
    pub place: Place,
    pub settings: Settings,
    pub out: Option<PathBuf>,
    /// Where to draw the first graph, with measured penalties.
    pub draw: Option<PathBuf>,
    pub quiet: bool,
}

/// What rank 0 decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Decision {
    study: Study,
    seed: u64,
    ranks_per_node: Option<usize>,
}

impl Work for StudyRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn stall_limit(&self) -> Option<Duration> {
        self.settings.stall_limit.or(Some(Duration::from_secs(120)))
    }

    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    fn run<N: Networks>(&self, networks: &mut N, monitor: &Arc<Monitor>) -> u8 {
        let root = networks.bootstrap().rank() == Rank(0);
        let outcome = match networks.variants() {
            &[variant] => {
                let threshold = variant.eager_threshold();
                match networks.open(variant, Measure { request: self, threshold, monitor }) {
                    Ok(outcome) => outcome,
                    Err(error) => give_up(networks.bootstrap(), &error),
                }
            }
            several => {
                let count = several.len();
                Err(Error::Setup(format!("a study runs over one transport with one protocol; {count} were named")))
            }
        };
        match outcome {
            Ok(code) => code,
            // Every rank finds the same mistake in the set-up: one tells the user and all end alike.
            Err(Error::Setup(message)) => {
                if root {
                    eprintln!("tailback: error: {message}");
                }
                2
            }
            Err(error) => give_up(networks.bootstrap(), &error),
        }
    }
}

/// The study over an open network.
struct Measure<'a> {
    request: &'a StudyRequest,
    threshold: Option<Bytes>,
    monitor: &'a Arc<Monitor>,
}

impl Visitor for Measure<'_> {
    type Output = tailback_transport::Result<u8>;

    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Self::Output {
        self.request.measure(bootstrap, transport, self.threshold, self.monitor)
    }
}

impl StudyRequest {
    /// Ranks to start on this machine and how many of them make a node, with every mistake in the request found.
    pub fn local_ranks(&self) -> Result<(usize, usize), String> {
        for path in self.out.iter().chain(&self.draw) {
            result::check_writable(path).map_err(|error| error.to_string())?;
        }
        Ok(match &self.study {
            Study::MaxRate(settings) => {
                let per_node = self.ranks_per_node.unwrap_or(settings.most_pairs.unwrap_or(4).max(1));
                (2 * per_node, per_node)
            }
            Study::Contention(study) => {
                let graphs = study.graphs();
                let need = graphs.iter().map(|(_, graph)| contention::ranks_needed(graph));
                let (nodes, ends) = need.fold((2, 1), |(nodes, ends), need| {
                    (nodes.max(need.len()), need.into_iter().fold(ends, usize::max))
                });
                let per_node = self.ranks_per_node.unwrap_or(ends);
                (nodes * per_node, per_node)
            }
            Study::Beff(_) => (4, self.ranks_per_node.unwrap_or(1)),
        })
    }

    /// Tells the user something, on stderr.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("tailback: {text}");
        }
    }

    fn measure<B: Bootstrap, T: Transport>(
        &self,
        bootstrap: &mut B,
        transport: &mut T,
        threshold: Option<Bytes>,
        monitor: &Arc<Monitor>,
    ) -> tailback_transport::Result<u8> {
        let root = bootstrap.rank() == Rank(0);
        let (started, clock) = (result::now_rfc3339(), Instant::now());
        let decision = self.decide(bootstrap)?;
        let hosts = bootstrap.allgather(bootstrap.host().to_owned().as_bytes())?;
        let nodes = match decision.ranks_per_node {
            Some(per_node) => Nodes::virtual_nodes(hosts.len(), per_node.max(1)),
            None => Nodes::from_hosts(&hosts.iter().map(|host| String::from_utf8_lossy(host)).collect::<Vec<_>>()),
        };
        if let Support::No(reason) = transport.capabilities().of(Operation::TwoSided) {
            return Err(Error::Setup(format!("studies need messages, which are not supported here: {reason}")));
        }
        let command = decision.study.command();
        let around = Around::find(root);
        around.begin(command.word());
        let models = measure(bootstrap, transport, &nodes, &decision, monitor)?;
        if !root {
            return Ok(0);
        }
        let run = Run {
            transport: TransportFacts::of(transport.describe(), threshold),
            tests: Vec::new(),
            congestors: Vec::new(),
            impacts: Vec::new(),
            placements: Vec::new(),
        };
        let mut plan = Preset::Quick.plan();
        // Nothing of a plan is run by a study.
        plan.canaries.clear();
        plan.congestors.clear();
        plan.ranks_per_node = decision.ranks_per_node;
        let mut file = ResultFile {
            schema_version: result::SCHEMA_VERSION,
            build: Build::this(),
            command,
            started,
            duration_s: clock.elapsed().as_secs_f64(),
            seed: decision.seed,
            plan,
            system: System {
                ranks: bootstrap.size(),
                launcher: bootstrap.launcher(),
                nodes: result::plain_placement(&nodes),
                host: HostFacts::this(),
                environment: result::environment(),
            },
            runs: vec![run],
            lab: None,
            models: Some(models),
            notes: Vec::new(),
            interrupted: false,
            imported: None,
        };
        around.complete(&mut file);
        file.notes.iter().for_each(|note| self.say(note));
        Ok(self.show(&file))
    }

    fn decide<B: Bootstrap>(&self, bootstrap: &mut B) -> tailback_transport::Result<Decision> {
        let mine = Decision { study: self.study.clone(), seed: self.seed, ranks_per_node: self.ranks_per_node };
        let told = bootstrap.broadcast(serde_json::to_vec(&mine).expect("plain data"))?;
        Ok(serde_json::from_slice(&told).expect("rank 0 sent a decision"))
    }

    /// Prints the results, then keeps them. A rank that was started by this program hands them over instead.
    pub fn show(&self, file: &ResultFile) -> u8 {
        if let Some(path) = handed_over() {
            let kept = result::write(&path, file);
            return kept.map_or_else(|error| self.fail(&error.to_string()), |()| 0);
        }
        let printed = output::print(&output::study(file));
        let kept = self.out.as_deref().map_or(Ok(()), |path| result::write(path, file).map_err(|e| e.to_string()));
        let graph = file.models.as_ref().and_then(|models| models.contention.as_ref()?.graphs.first());
        let drawn = match (&self.draw, graph) {
            (Some(path), Some(graph)) => output::draw(path, graph),
            _ => Ok(()),
        };
        let problems = [printed.map(drop), kept, drawn].into_iter().filter_map(Result::err);
        problems.fold(0, |_, problem| self.fail(&problem))
    }

    /// Tells why it could not be done, and gives the exit code.
    fn fail(&self, problem: &str) -> u8 {
        eprintln!("tailback: error: {problem}");
        2
    }
}

fn measure<B: Bootstrap, T: Transport>(
    bootstrap: &mut B,
    transport: &mut T,
    nodes: &Nodes,
    decision: &Decision,
    monitor: &Monitor,
) -> tailback_transport::Result<ModelResults> {
    let mut models = ModelResults::default();
    match &decision.study {
        Study::MaxRate(settings) => {
            let observations = maxrate::measure(bootstrap, transport, nodes, settings, monitor)?;
            models.maxrate = Some(fitted(settings, observations));
        }
        Study::Contention(study) => {
            let counts = (study.bytes as usize, study.repetitions);
            let mut bench = contention::Bench::new(bootstrap, transport, nodes, counts, monitor)?;
            let mut graphs = Vec::new();
            for (name, graph) in study.graphs() {
                let reference = bench.reference(&graph)?;
                let measured = bench.graph(&graph, reference)?;
                let mut result = predicted(name, &graph, study.model, reference);
                for (at, edge) in result.edges.iter_mut().enumerate() {
                    edge.measured_s = Some(measured.seconds[at]);
                    edge.measured_penalty = measured.penalties[at];
                }
                graphs.push(result);
            }
            models.contention = Some(ContentionResult { bytes: study.bytes, model: study.model, graphs });
        }
        Study::Beff(settings) => {
            models.beff = Some(beff::measure(bootstrap, transport, settings, decision.seed, monitor)?);
        }
    }
    Ok(models)
}

fn fitted(settings: &maxrate::Settings, observations: Vec<maxrate::Observation>) -> MaxRateResult {
    // A lost packet's timeout is no property of a rate: medians keep it out of the fits.
    let medians = maxrate::medians(&observations);
    let regime = |sizes: Vec<usize>| {
        let within = |seen: &&maxrate::Observation| sizes.binary_search(&seen.bytes).is_ok();
        let seen: Vec<maxrate::Observation> = medians.iter().filter(within).copied().collect();
        let fits = maxrate::Model::ALL.iter().filter_map(|&model| maxrate::fit(model, settings.weighting, &seen));
        let fits: Vec<FitResult> = fits.map(|fit| FitResult::from(&fit)).collect();
        let (smallest_bytes, largest_bytes) = (sizes[0], sizes[sizes.len() - 1]);
        RegimeResult { smallest_bytes, largest_bytes, fits }
    };
    let regimes = maxrate::regimes(&medians).into_iter().map(regime).collect();
    MaxRateResult { settings: settings.clone(), observations, regimes }
}

fn predicted(name: &str, graph: &contention::Graph, model: contention::Model, reference_s: f64) -> GraphResult {
    let prediction = contention::predict(graph, model);
    let edge = |(at, edge): (usize, &contention::Edge)| EdgeResult {
        source: graph.node(edge.source).to_owned(),
        destination: graph.node(edge.destination).to_owned(),
        penalties: prediction.penalties_of(at),
        predicted: prediction.times[at],
        measured_s: None,
        measured_penalty: None,
    };
    let edges = graph.edges().iter().enumerate().map(edge).collect();
    GraphResult { name: name.to_owned(), reference_s, edges }
}
