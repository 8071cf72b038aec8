//! Options of the studies: `tailback maxrate`, `contention`, `beff`, `hpcc` and `map`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::backend::Settings;
use crate::input::Limit;
use crate::job::{
    ContentionStudy, GroupsFrom, LocalRanks, MapStudy, Output, Request, Seed, Study, StudySelection, with_result_file,
};
use crate::launch;
use crate::models::contention::{Graph, Learned, MOST_EDGES, Model, PAPER_BYTES, PAPER_T_REF, Shape};
use crate::models::{beff, hpcc, map, maxrate};
use crate::output::{self, Format};
use crate::result;
use crate::units;

/// What all studies take.
#[derive(Clone, Debug, Args)]
pub struct StudyOptions {
    /// Treat every N consecutive ranks as a node, whatever hosts they are on; with sim, put N on each node of the machine
    #[arg(long, value_name = "N", value_parser = units::count)]
    ranks_per_node: Option<usize>,

    /// Seed of what is drawn (graphs, pairs, rings, and the order of measurements)
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    local: LocalRanks,
    #[command(flatten)]
    settings: Settings,
}

impl StudyOptions {
    fn start(self, study: Study, draw: Option<PathBuf>) -> Result<u8, String> {
        self.start_or_try(study, draw, false)
    }

    fn start_or_try(self, study: Study, draw: Option<PathBuf>, dry_run: bool) -> Result<u8, String> {
        let request = self.request(study)?;
        let study = request.study.map(|of| StudySelection { draw, ..of });
        begin(Request { study, dry_run, ..request })
    }

    /// How results are printed, and whether all of them.
    pub(super) fn format(&self) -> (Format, bool) {
        (self.output.format, self.output.verbose)
    }

    /// Whether a result file was asked for.
    pub(super) fn keeps(&self) -> bool {
        self.output.out.is_some()
    }

    pub(super) fn request(self, study: Study) -> Result<Request, String> {
        let StudyOptions { ranks_per_node, seed, output, local, settings } = self;
        if output.format == Format::Gpcnet {
            return Err("--format gpcnet: GPCNeT has no table for a study".into());
        }
        let request = Request::new(study.command(), local, settings, output);
        let study = Some(StudySelection { study, ranks_per_node, draw: None, resume: None, locate: None });
        Ok(Request { study, seed: Some(Seed::Number(seed)), ..request })
    }
}

pub(super) fn begin(request: Request) -> Result<u8, String> {
    launch::start(&if request.dry_run { request } else { with_result_file(request) })
}

/// Options of `tailback maxrate`.
#[derive(Clone, Debug, Args)]
pub struct MaxRateOptions {
    #[command(flatten)]
    settings: maxrate::Settings,

    /// Measure nothing: what --halo takes by the models in this result file of maxrate
    #[arg(long, value_name = "FILE", requires = "halo", help_heading = "Prediction")]
    predict: Option<PathBuf>,

    /// Measure nothing: what --halo takes by given parameters; LATENCY,R_C,R_N such as 1.6us,5.9GB,5.5GB, a CSV file of them, or
    /// blue-waters, the paper's
    #[arg(
        long,
        value_name = "VALUES|FILE",
        requires = "halo",
        conflicts_with = "predict",
        help_heading = "Prediction"
    )]
    parameters: Option<String>,

    #[command(flatten)]
    study: StudyOptions,
}

impl MaxRateOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let halos = &self.settings.halo;
        if (self.predict.is_some() || self.parameters.is_some()) && self.study.output.out.is_some() {
            let option = if self.predict.is_some() { "--predict" } else { "--parameters" };
            return Err(format!("--out keeps measurements, and {option} makes none: keep what it prints"));
        }
        if let Some(text) = &self.parameters {
            return output::print(&output::given_halos(&maxrate::Given::read(text)?, halos)?);
        }
        if let Some(path) = &self.predict {
            let file = result::read(path).map_err(|error| error.to_string())?;
            let studies = file.studies();
            let found = || studies.iter().filter_map(|(run, models)| Some((run, models.maxrate.as_ref()?)));
            if found().next().is_none() {
                return Err(format!("{} is no result of tailback maxrate", path.display()));
            }
            let mut text = String::new();
            for (run, found) in found() {
                if studies.len() > 1 {
                    text += &format!("Over {}\n\n", run.label());
                }
                text += &output::halos(found, halos)?;
            }
            return output::print(&text);
        }
        self.study.start(Study::MaxRate(self.settings), None)
    }
}

/// Options of `tailback beff`.
#[derive(Clone, Debug, Args)]
pub struct BeffOptions {
    #[command(flatten)]
    settings: beff::Settings,
    #[command(flatten)]
    study: StudyOptions,
}

impl BeffOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        self.study.start(Study::Beff(self.settings), None)
    }
}

/// Options of `tailback hpcc`.
#[derive(Clone, Debug, Args)]
pub struct HpccOptions {
    #[command(flatten)]
    settings: hpcc::Settings,

    /// Try every test on less data, print how long a run would take, and run nothing more
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    study: StudyOptions,
}

impl HpccOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        hpcc::check()?;
        if self.dry_run && self.study.output.out.is_some() {
            return Err("--out keeps measurements, and --dry-run makes none: keep what it prints".into());
        }
        self.study.start_or_try(Study::Hpcc(self.settings), None, self.dry_run)
    }
}

/// Options of `tailback map`.
#[derive(Clone, Debug, Args)]
pub struct MapOptions {
    #[command(flatten)]
    settings: map::Settings,

    /// Go on with the map in this result file of a job that was cut short, on the same nodes: its rounds are kept, and its
    /// options of measurement and its seed hold
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bytes", "messages", "round_trips", "slices", "step", "rounds", "all_pairs"])]
    resume: Option<PathBuf>,

    /// Say what would be measured and how long it takes, and measure nothing
    #[arg(long)]
    dry_run: bool,

    /// Switch or rack of each host: a file (`host group` lines, topology.conf, `ibnetdiscover`), or name:PATTERN, whose only
    /// group finds it in the host's name, e.g. 'name:^r([0-9]+)'; else as the environment says, else inferred
    #[arg(long, value_name = "FILE|name:PATTERN", help_heading = "Topology")]
    groups: Option<GroupsFrom>,

    #[command(flatten)]
    study: StudyOptions,
}

impl MapOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let MapOptions { settings, resume, dry_run, groups, study } = self;
        if dry_run && study.output.out.is_some() {
            return Err("--out keeps measurements, and --dry-run makes none: keep what it prints".into());
        }
        let request = study.request(Study::Map(MapStudy { settings, known: None, locates: false, probes: false }))?;
        let study = request.study.map(|of| StudySelection { resume, ..of });
        begin(Request { study, dry_run, groups, ..request })
    }
}

/// Options of `tailback contention`.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "tailback contention [OPTIONS] <--graph FILE|--shape LIST|--random LIST>")]
#[command(group(clap::ArgGroup::new("source").required(true).args(["graph", "shape", "random"])))]
pub struct ContentionOptions {
    /// A graph file, or a trace of messages: `source destination [bytes [start]]` a line, such as `a b 1MiB 5ms`, or DOT with
    /// `bytes` and `start` as attributes of edges. A start is a time, or the arrival of messages above: `b c 1MiB a>b`,
    /// `b c 1MiB a>b,d>b+5ms`
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,

    /// Named graphs: out-N, in-N, ring-N, pairs-N, incast-N, alltoall-N, halo-RxC (a grid's neighbours), fig2.1, fig2.2, fig2.3, fig2.4, fig3, graph-a, graph-b
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    shape: Vec<Shape>,

    /// Random graphs with so many edges
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::up_to(MOST_EDGES))]
    random: Vec<usize>,

    /// How many random graphs of each number of edges
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 1)]
    count: usize,

    /// How many nodes random graphs draw from
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: usize,

    /// What predicts: the paper's penalty rules, read so that its figures 2 and 4 follow (text), as its figure 3 computes, a lone
    /// source with one rival by rule (c) (figure3), the text's with no port receiving more than its rate (port-limited) or
    /// with messages that pace themselves left out of rule (c) (paced-apart); or a result FILE of this command, whose measured
    /// penalties are looked up by the shape of a graph, with that file's rules for what it has not
    #[arg(long, value_name = "RULES|FILE", default_value = "text")]
    model: String,

    /// Message size in bytes
    #[arg(long, value_name = "BYTES", value_parser = units::message, default_value_t = PAPER_BYTES as usize)]
    bytes: usize,

    /// Measurements of every edge, alone and with the others; with three or more, figures have intervals
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 5)]
    repetitions: usize,

    /// Predict and measure nothing
    #[arg(long)]
    predict_only: bool,

    /// With --predict-only: what is left of every message at the end of each step, with its penalty in it
    #[arg(long, requires = "predict_only")]
    steps: bool,

    /// With --predict-only: time of one message without contention, in seconds [default: the paper's 0.010706 s for
    /// 20 MB, scaled to --bytes]
    #[arg(long, value_name = "SECONDS")]
    t_ref: Option<f64>,

    /// Draw the first graph with its penalties here: SVG, or DOT when the name ends in .dot or .gv
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,

    #[command(flatten)]
    study: StudyOptions,
}

impl ContentionOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let study = self.contention()?;
        if !self.predict_only {
            study.check_measurable()?;
            return self.study.start(Study::Contention(study), self.draw);
        }
        if self.study.output.out.is_some() {
            return Err("--out keeps measurements, and --predict-only makes none: keep what it prints".into());
        }
        let t_ref = self.t_ref.unwrap_or(PAPER_T_REF / PAPER_BYTES as f64 * self.bytes as f64);
        if !(t_ref.is_finite() && t_ref > 0.0) {
            return Err("--t-ref is a time above 0 s".into());
        }
        let result = study.predicted(t_ref);
        if let Some(path) = &self.draw {
            output::draw(path, &result.graphs[0])?;
        }
        let mut text = output::contention(&result);
        if self.steps {
            for (name, graph, prediction) in study.steps(t_ref) {
                text += &output::steps(&name, &graph, &prediction, (study.bytes, t_ref))?;
            }
        }
        output::print(&text)
    }

    fn contention(&self) -> Result<ContentionStudy, String> {
        let mut graphs: Vec<(String, Graph)> = Vec::new();
        if let Some(path) = &self.graph {
            graphs.push((path.display().to_string(), read(path)?));
        }
        graphs.extend(self.shape.iter().map(|shape| (shape.name().to_owned(), shape.graph())));
        let random: usize = self.random.iter().map(|edges| edges * self.count).sum();
        let edges = random + graphs.iter().map(|(_, graph)| graph.edges().len()).sum::<usize>();
        if edges > MOST_IN_ALL {
            return Err(format!("invalid graphs: {edges} edges in all, expected up to {MOST_IN_ALL}"));
        }
        for &edges in &self.random {
            for at in 0..self.count {
                let seed = self.study.seed.wrapping_add(at as u64);
                let graph = Graph::random(edges, self.nodes, seed).map_err(|error| format!("--random: {error}"))?;
                graphs.push((format!("random, {edges} edges, seed {seed}"), graph));
            }
        }
        let pairs = |graph: &Graph| {
            let name = |node| graph.node(node).to_owned();
            graph.edges().iter().map(|edge| (name(edge.source), name(edge.destination))).collect()
        };
        let of_its_own = |(_, graph): &(String, Graph)| match graph.is_uniform() {
            true => Vec::new(),
            false => graph.messages().to_vec(),
        };
        let messages = graphs.iter().map(of_its_own).collect();
        let graphs = graphs.into_iter().map(|(name, graph)| (name, pairs(&graph))).collect();
        let (bytes, repetitions) = (self.bytes as u64, self.repetitions);
        let learned = self.learned()?;
        let model =
            learned.as_ref().map_or_else(|| Model::from_str(&self.model, true).unwrap_or_default(), |of| of.rules);
        Ok(ContentionStudy { graphs, messages, model, learned, bytes, repetitions })
    }

    /// What an earlier result knows, if --model names one.
    fn learned(&self) -> Result<Option<Learned>, String> {
        if Model::from_str(&self.model, true).is_ok() {
            return Ok(None);
        }
        let path = Path::new(&self.model);
        if !path.exists() {
            let rules: Vec<String> = Model::value_variants().iter().filter_map(named).collect();
            return Err(format!("--model: '{}' is neither a result file nor one of {}", self.model, rules.join(", ")));
        }
        let file = result::read(path).map_err(|error| error.to_string())?;
        let studies = file.studies();
        let mut found = studies.iter().filter_map(|(_, models)| models.contention.as_ref());
        let (first, others) = (found.next(), found.count());
        let first = first.ok_or_else(|| format!("--model: {} is no result of tailback contention", self.model))?;
        if others > 0 {
            return Err(format!("--model: {} has studies over {} networks: give one of one", self.model, others + 1));
        }
        let learned = Learned::new(self.model.clone(), first.model, &first.measured_penalties());
        if learned.is_empty() {
            return Err(format!("--model: {} has no graph with all its penalties measured", self.model));
        }
        Ok(Some(learned))
    }
}

/// Edges of all graphs of a study: each has a row in its tables and in the result file.
const MOST_IN_ALL: usize = 1 << 18;

fn named(model: &Model) -> Option<String> {
    Some(model.to_possible_value()?.get_name().to_owned())
}

fn read(path: &Path) -> Result<Graph, String> {
    let text = Limit::GRAPH.read_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}
