//! A study from its options to its results: `tailback maxrate`, `contention`, `beff` and `hpcc`, on whatever backend runs.
//!
//! Rank 0 decides and the others are told, as in a load test. Results are the same file family, with a section
//! of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Bytes, Error, Monitor, Operation, Rank, Support};

use super::around::Around;
use super::show::handed_over;
use super::studies::{Studied, Study};
use super::watching::memory;
use super::{Place, interrupt};
use crate::backend::{Networks, RoleSettings, Settings, Variant, Work, give_up};
use crate::engine::{OpenNetwork, OpenPair};
use crate::layout::Nodes;
use crate::models::{Control, contention};
use crate::output;
use crate::plan::Plan;
use crate::result::{self, Build, HostFacts, MachineRecord, ModelResults, ResultFile, Run, System, TransportFacts};
use crate::stats::Rule;
use crate::text::printable;

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

impl StudyRequest {
    /// Has `body` do it in a job.
    pub(super) fn work<'a>(&'a self, body: &'a dyn Fn(&mut Networks<'_>, &Arc<Monitor>) -> u8) -> Work<'a> {
        let StudyRequest { study, seed, ranks_per_node, settings, .. } = self;
        let Settings { protocols, eager_threshold, rails, .. } = settings;
        let asks = format!("{:?}", (study, seed, ranks_per_node, protocols, eager_threshold, rails));
        let stall_limit = settings.stall_limit.or(Some(Duration::from_secs(120)));
        Work { settings, stall_limit, interrupt: interrupt::flag, asks, body }
    }

    /// Does it, as one rank of a job.
    pub(super) fn run(&self, networks: &mut Networks<'_>, monitor: &Arc<Monitor>) -> u8 {
        interrupt::flag();
        let root = networks.bootstrap().rank() == Rank(0);
        match self.measure_all(networks, monitor, root) {
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

/// What a study found over one network, and where it was.
struct Part {
    studied: Studied,
    transport: TransportFacts,
    system: System,
    ranks_per_node: Option<usize>,
    seed: u64,
}

impl StudyRequest {
    /// Ranks to start on this machine and how many of them make a node, with every mistake in the request found.
    pub fn local_ranks(&self) -> Result<(usize, usize), String> {
        result::check_distinct(self.out.iter().chain(&self.draw))?;
        for path in self.out.iter().chain(&self.draw) {
            result::check_writable(path).map_err(|error| error.to_string())?;
        }
        Ok(match &self.study {
            Study::MaxRate(settings) => {
                let per_node = self.ranks_per_node.unwrap_or(settings.most_pairs.unwrap_or(4).max(1));
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
                let per_node = self.ranks_per_node.unwrap_or(ends);
                (nodes * per_node, per_node)
            }
            Study::Beff(_) => (4, self.ranks_per_node.unwrap_or(1)),
            // Ranks that compute want a core each.
            Study::Hpcc(_) => {
                let cores = std::thread::available_parallelism().map_or(2, usize::from);
                (cores.clamp(2, 8), self.ranks_per_node.unwrap_or(1))
            }
        })
    }

    /// Tells the user something, on stderr.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("tailback: {}", printable(text));
        }
    }

    /// Measures over every network in turn, until one is interrupted, and shows what was found.
    fn measure_all(
        &self,
        networks: &mut Networks<'_>,
        monitor: &Arc<Monitor>,
        root: bool,
    ) -> tailback_transport::Result<u8> {
        let (started, clock) = (result::now_rfc3339(), Instant::now());
        let around = Around::find(root, false);
        around.begin(self.study.command().word());
        let variants = networks.variants().to_vec();
        let mut parts: Vec<Part> = Vec::new();
        for variant in &variants {
            let threshold = variant.network.eager_threshold();
            let body = |bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>| match self.measure(
                bootstrap,
                networks.canaries,
                threshold,
                monitor,
            ) {
                Err(Error::Setup(message)) => Ok(Err(message)),
                measured => measured.map(Ok),
            };
            let part = match networks.open(Variant::of(variant.network), &|_| RoleSettings::default(), &body) {
                Ok(part) => part.map_err(Error::Setup)?,
                Err(error) => give_up(networks.bootstrap(), &error),
            };
            let interrupted = part.studied.note().is_some();
            parts.push(part);
            if interrupted {
                break;
            }
        }
        if !root {
            return Ok(0);
        }
        let several = variants.len() > 1;
        let note = |part: &Part| {
            let note = part.studied.note()?;
            Some(if several { format!("{}: {note}", part.transport.label()) } else { note })
        };
        let mut notes: Vec<String> = parts.iter().filter_map(note).collect();
        if several && parts.len() < variants.len() {
            notes.push(format!("{} of {} networks were not measured", variants.len() - parts.len(), variants.len()));
        }
        let Some(mut file) = self.file(parts, several) else {
            // The user knows why; what there is to know is that no file was written.
            eprintln!("tailback: {}: there is nothing to show", notes.join("; "));
            return Ok(2);
        };
        (file.started, file.duration_s) = (started, clock.elapsed().as_secs_f64());
        (file.interrupted, file.notes) = (!notes.is_empty(), notes);
        around.complete(&mut file);
        file.notes.iter().for_each(|note| self.say(note));
        Ok(self.show(&file))
    }

    /// The result of what is complete; nothing when nothing is. Over one network it stands with the file, over several with
    /// each run.
    fn file(&self, parts: Vec<Part>, several: bool) -> Option<ResultFile> {
        let mut file: Option<ResultFile> = None;
        for Part { studied, transport, system, ranks_per_node, seed } in parts {
            let Some(models) = studied.models else { continue };
            let file = file.get_or_insert_with(|| ResultFile {
                schema_version: result::SCHEMA_VERSION,
                build: Build::this(),
                command: self.study.command(),
                label: None,
                started: String::new(),
                duration_s: 0.0,
                seed,
                plan: Plan { ranks_per_node, ..Plan::of_a_study() },
                system,
                runs: Vec::new(),
                lab: None,
                machine: self.settings.machine.as_deref().map(MachineRecord::of),
                counters: None,
                models: None,
                calibration: None,
                interrupted: false,
                notes: Vec::new(),
                imported: None,
            });
            let mut run = Run::bare(transport);
            *(if several { &mut run.models } else { &mut file.models }) = Some(models);
            file.runs.push(run);
        }
        file
    }

    fn measure(
        &self,
        bootstrap: &mut dyn Bootstrap,
        network: &mut dyn OpenNetwork,
        threshold: Option<Bytes>,
        monitor: &Arc<Monitor>,
    ) -> tailback_transport::Result<Part> {
        let decision = self.decide(bootstrap)?;
        let hosts = bootstrap.allgather(bootstrap.host().to_owned().as_bytes())?;
        let nodes = match decision.ranks_per_node {
            Some(per_node) => Nodes::virtual_nodes(hosts.len(), per_node.max(1)),
            None => Nodes::from_hosts(&hosts.iter().map(|host| String::from_utf8_lossy(host)).collect::<Vec<_>>()),
        };
        if let Support::No(reason) = network.capabilities().of(Operation::TwoSided) {
            return Err(Error::Setup(format!("studies need messages, which are not supported here: {reason}")));
        }
        let interrupt = interrupt::flag();
        let rule = if self.settings.machine.is_some() { Rule::on_virtual_time() } else { Rule::default() };
        let control = Control { monitor, interrupt: &interrupt, rule };
        let studied = decision.study.measure(bootstrap, network, &nodes, decision.seed, control)?;
        // Nobody leaves while another may still need an answer.
        bootstrap.barrier()?;
        let memory = if self.settings.machine.is_none() { memory(bootstrap)? } else { None };
        let system = System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: result::plain_placement(&nodes),
            host: HostFacts::this(),
            environment: result::environment(),
            ends: Vec::new(),
            ports: None,
            watch: None,
            memory,
        };
        let transport = TransportFacts::of(network.describe(), threshold);
        Ok(Part { studied, transport, system, ranks_per_node: decision.ranks_per_node, seed: decision.seed })
    }

    fn decide(&self, bootstrap: &mut dyn Bootstrap) -> tailback_transport::Result<Decision> {
        let mine = Decision { study: self.study.clone(), seed: self.seed, ranks_per_node: self.ranks_per_node };
        let told = bootstrap.broadcast(serde_json::to_vec(&mine).expect("plain data"))?;
        Ok(serde_json::from_slice(&told).expect("rank 0 sent a decision"))
    }

    /// The first graph that was asked for, if it was measured.
    fn first_graph<'f>(&self, file: &'f ResultFile) -> Option<&'f result::GraphResult> {
        let Study::Contention(study) = &self.study else { return None };
        let (name, _) = *study.graphs().first()?;
        let mut graphs = file.studies().into_iter().filter_map(|(_, models)| models.contention.as_ref());
        graphs.find_map(|study| study.graphs.iter().find(|graph| graph.name == name))
    }

    /// Prints the results, then keeps them. A rank that was started by this program hands them over instead.
    pub fn show(&self, file: &ResultFile) -> u8 {
        if let Some(path) = handed_over() {
            let kept = result::write(&path, file);
            return kept.map_or_else(|error| self.fail(&error.to_string()), |()| 0);
        }
        // A file on stdout is there for a program, which would not read a table before it.
        let silent = self.out.iter().chain(&self.draw).any(|path| result::is_stdout(path));
        let printed = if silent { Ok(0) } else { output::print(&output::study(file)) };
        let kept = self.out.as_deref().map_or(Ok(()), |path| result::write(path, file).map_err(|e| e.to_string()));
        let drawn = match (&self.draw, self.first_graph(file)) {
            (None, _) => Ok(()),
            (Some(path), Some(graph)) => output::draw(path, graph),
            (Some(path), None) => Err(format!("{} was not drawn: its graph was not measured", path.display())),
        };
        let problems = [printed.map(drop), kept, drawn].into_iter().filter_map(Result::err);
        problems.fold(code(file), |_, problem| self.fail(&problem))
    }

    /// Tells why it could not be done, and gives the exit code.
    fn fail(&self, problem: &str) -> u8 {
        eprintln!("tailback: error: {problem}");
        2
    }
}

/// What a result that is kept and shown means for the exit code.
fn code(file: &ResultFile) -> u8 {
    let failed = |models: &ModelResults| models.hpcc.as_ref().is_some_and(|hpcc| hpcc.failed().next().is_some());
    match file.studies().iter().any(|(_, models)| failed(models)) {
        _ if file.interrupted => 2,
        true => 1,
        false => 0,
    }
}
