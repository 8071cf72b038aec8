//! The journal of a sweep: what each finished run left, beside the result file, so that a job that was killed can go on.
//!
//! A result file keeps figures, of which the samples cannot be had again. The journal has a line that says what is measured, then
//! one for each point that is finished on a placement: JSON, deflated (with a checksum) and in base64. A line without its end
//! is what a kill left: that run is measured again. Rank 0 alone reads and writes it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tailback_transport::Description;

use super::prepare::Session;
use super::request::Request;
use super::result_assembler::{RunConfig, RunOutcome};
use crate::backend::Simulated;
use crate::backend::simulator::net::PhaseCounters;
use crate::engine::{EncodedTally, LoadState, Measured};
use crate::input::Limit;
use crate::plan::Plan;
use crate::result::{self, Build, Command, CountersRecord, HostActivity};
use crate::text::printable;

/// The form of the file.
const FORMAT: u32 = 1;
/// The most that a line holds: ports of a large simulated machine.
const LONGEST: u64 = 256 << 20;

/// A run of a sweep: which placement, and which of the runs that take turns on it.
pub(crate) type Place = (u32, usize);

/// What a finished run left, on rank 0.
pub(crate) struct FinishedRun {
    pub outcome: RunOutcome,
    pub counters: CountersRecord,
    pub activity: Vec<HostActivity>,
    pub notes: Vec<String>,
    pub simulated: Option<Simulated>,
}

/// The open journal of a job.
pub(crate) struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Lines of runs that were finished before this job.
    known: BTreeMap<Place, String>,
    /// Whether what is written has to outlast the host: a simulation can be had again.
    synced: bool,
}

impl Request {
    /// Where a sweep keeps its journal: beside the file that its result is drafted in, if it has one.
    pub(crate) fn journal(&self) -> Option<PathBuf> {
        let path = self.resume.as_ref().or(self.output.out.as_ref())?;
        (self.command == Command::Sweep && !self.dry_run && result::is_replaced(path)).then(|| beside(path))
    }

    /// Removes the journal of a sweep whose result is kept.
    pub(crate) fn remove_journal(&self) -> Result<(), String> {
        let Some(path) = self.journal() else { return Ok(()) };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// The seed of the sweep that is to go on.
    pub(crate) fn resumed_seed(&self) -> Result<Option<u64>, String> {
        let Some(path) = &self.resume else { return Ok(None) };
        Ok(Some(read(path)?.0.seed))
    }
}

/// `r.json.journal` of `r.json`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// What is measured; the first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    sweep_journal: u32,
    build: String,
    seed: u64,
    /// Names, groups, and how many ranks each has.
    nodes: Vec<(String, usize, usize)>,
    networks: Vec<String>,
    machine: Option<String>,
    /// Options that change what is measured, beside the plan.
    options: BTreeMap<String, String>,
    plan: Value,
}

/// A finished run; a line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    placement: u32,
    run: usize,
    networks: [Described; 2],
    phases: Vec<Phase>,
    counters: CountersRecord,
    activity: Vec<HostActivity>,
    notes: Vec<String>,
    simulated: Option<SimulatedRun>,
}

#[derive(Serialize, Deserialize)]
struct Described {
    backend: String,
    library: String,
    details: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Phase {
    state: LoadState,
    canary: Option<usize>,
    congestor: Option<usize>,
    block: usize,
    clock_error_ns: u64,
    tally: String,
}

#[derive(Serialize, Deserialize)]
struct SimulatedRun {
    phases: Vec<PhaseCounters>,
    elapsed_ps: u64,
    hops: u64,
}

impl Journal {
    /// The journal of a job whose runs these are: a new one, or that of the sweep that goes on.
    pub(crate) fn open(session: &Session<'_>, configs: &[RunConfig]) -> Result<Option<Self>, String> {
        let request = session.request;
        let Some(path) = request.journal() else { return Ok(None) };
        let here = Header::of(session, configs);
        let synced = request.settings.machine.is_none();
        let known = match &request.resume {
            Some(result) => resume(result, &path, &here, session, configs)?,
            None => {
                if path.exists() {
                    return Err(format!(
                        "{} is of a sweep that did not come to its end: go on with it (--resume {}), or remove it",
                        path.display(),
                        path.with_extension("").display()
                    ));
                }
                let line = serde_json::to_string(&here).expect("plain data") + "\n";
                result::write_text(&path, &line).map_err(|error| error.to_string())?;
                BTreeMap::new()
            }
        };
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Some(Journal { path, file: Some(file), known, synced }))
    }

    /// The runs that were finished before.
    pub(crate) fn known(&self) -> Vec<Place> {
        self.known.keys().copied().collect()
    }

    /// What one of them left.
    pub(crate) fn run(&self, session: &Session<'_>, config: RunConfig, place: Place) -> FinishedRun {
        let line = self.known.get(&place).expect("it is known");
        let record = Record::read(line).expect("it was read a moment ago");
        record.finished(session, &session.mixes[config.mix].plan).expect("it was checked a moment ago")
    }

    /// Keeps a run that is finished. What cannot be kept is said once, and is no reason to end.
    pub(crate) fn keep(&mut self, place: Place, run: &FinishedRun) -> Option<String> {
        let line = Record::of(place, run).line();
        let file = self.file.as_mut()?;
        let written =
            file.write_all(line.as_bytes()).and_then(|()| if self.synced { file.sync_data() } else { Ok(()) });
        let error = written.err()?;
        self.file = None;
        Some(format!("cannot write {}: {error}: of what follows nothing can be resumed", self.path.display()))
    }
}

/// Checks that a sweep can go on with its journal, and gives the lines of its runs; a torn one is cut off.
fn resume(
    result: &Path,
    path: &Path,
    here: &Header,
    session: &Session<'_>,
    configs: &[RunConfig],
) -> Result<BTreeMap<Place, String>, String> {
    let (there, text) = read(result)?;
    there.check(here).map_err(|why| format!("--resume: {why}"))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut known = BTreeMap::new();
    for (at, line) in text[..whole].lines().enumerate().skip(1) {
        let damaged = |why: String| format!("--resume: line {} of {} is damaged: {why}", at + 1, path.display());
        let record = Record::read(line).map_err(damaged)?;
        let place = (record.placement, record.run);
        let config = configs.get(place.1).filter(|_| place.0 < session.placements());
        let config = config.ok_or_else(|| damaged("the sweep has no such run".into()))?;
        record.finished(session, &session.mixes[config.mix].plan).map_err(damaged)?;
        if known.insert(place, line.to_owned()).is_some() {
            return Err(damaged("its run is there twice".into()));
        }
    }
    if whole < text.len() {
        let cut = OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(whole as u64));
        cut.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(known)
}

/// The first line of the journal beside a result, and all of its text.
fn read(result: &Path) -> Result<(Header, String), String> {
    let path = beside(result);
    let text = match Limit::JOURNAL.read_text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_whole = result::read(result).is_ok_and(|file| file.command == Command::Sweep && !file.interrupted);
            return Err(match is_whole {
                true => format!("the sweep in {} is complete: there is nothing to resume", result.display()),
                false => format!("--resume: there is no {}: nothing of that sweep was finished", path.display()),
            });
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let no = || format!("{} is no journal of a sweep", path.display());
    let (first, _) = text.split_once('\n').ok_or_else(no)?;
    let value: Value = serde_json::from_str(first).map_err(|_| no())?;
    match value.get("sweep_journal").and_then(Value::as_u64) {
        None => Err(no()),
        Some(found) if found != u64::from(FORMAT) => Err(format!(
            "{} has form {found}, and this Tailback reads form {FORMAT}: use the version that wrote it",
            path.display()
        )),
        Some(_) => {
            let header = serde_json::from_value(value);
            Ok((header.map_err(|error| format!("{}: {}", no(), printable(&error.to_string())))?, text))
        }
    }
}

impl Header {
    fn of(session: &Session<'_>, configs: &[RunConfig]) -> Self {
        let (request, nodes) = (session.request, &session.nodes);
        let settings = &request.settings;
        let mut networks: Vec<String> = Vec::new();
        for variant in configs.iter().map(|config| config.variant) {
            let label = variant.label();
            if !networks.contains(&label) {
                networks.push(label);
            }
        }
        let mut options: BTreeMap<String, String> = [
            ("--eager-threshold", format!("{:?}", settings.eager_threshold)),
            ("--wait", format!("{:?}", settings.wait)),
            ("--huge-pages", format!("{:?}", settings.huge_pages)),
            ("--mpi-thread", format!("{:?}", settings.mpi_thread)),
            ("--rails", settings.rails.to_string()),
            ("--traffic-class", format!("{:?}", settings.traffic_class)),
            ("what roles have of their own", format!("{:?}", settings.roles)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if settings.machine.is_some() {
            // What is random in a simulated network comes of it.
            options.insert("--seed".into(), request.seed.map_or_else(|| "none".into(), |seed| seed.to_string()));
        }
        let Build { version, git, .. } = Build::this();
        let node = |of: usize| (nodes.name(of).to_owned(), nodes.group_of(of), nodes.ranks(of).len());
        Header {
            sweep_journal: FORMAT,
            build: git.map_or_else(|| version.clone(), |git| format!("{version} {git}")),
            seed: session.seed,
            nodes: (0..nodes.len()).map(node).collect(),
            networks,
            machine: settings.machine.as_ref().map(|machine| machine.text.clone()),
            options,
            plan: serde_json::to_value(&session.decision.plan).expect("plain data"),
        }
    }

    /// Says what differs between the sweep that is to go on and this job, which `here` is of.
    fn check(&self, here: &Header) -> Result<(), String> {
        let differ = |what: &str, there: &str, here: &str| {
            Err(format!("the sweep has another {what}: {} there and {} here", short(there), short(here)))
        };
        let ranks = |of: &Header| of.nodes.iter().map(|(_, _, ranks)| *ranks).sum::<usize>();
        if ranks(self) != ranks(here) {
            return Err(format!("the sweep is of {} ranks and this job has {}", ranks(self), ranks(here)));
        }
        if self.machine != here.machine {
            return Err("the sweep is of another machine, or its file has changed".into());
        }
        if self.nodes != here.nodes {
            let at = (0..).find(|&at| self.nodes.get(at) != here.nodes.get(at)).unwrap_or(0);
            let told = |(name, group, ranks): &(String, usize, usize)| format!("{name} (group {group}, {ranks} ranks)");
            let of = |nodes: &[(String, usize, usize)]| nodes.get(at).map_or_else(|| "none".into(), told);
            return Err(format!(
                "the sweep is of {} nodes and this job has {}; the first that differs is {} there and {} here",
                self.nodes.len(),
                here.nodes.len(),
                printable(&of(&self.nodes)),
                printable(&of(&here.nodes))
            ));
        }
        if self.networks != here.networks {
            return differ("network", &self.networks.join("; "), &here.networks.join("; "));
        }
        let keys = |of: &Value| of.as_object().map(|of| of.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let value = |of: &Value, key: &str| of.get(key).map_or_else(|| "not given".into(), Value::to_string);
        for key in keys(&here.plan).iter().chain(&keys(&self.plan)) {
            if self.plan.get(key) != here.plan.get(key) {
                return differ(&format!("plan, '{key}'"), &value(&self.plan, key), &value(&here.plan, key));
            }
        }
        for (name, value) in &here.options {
            let there = self.options.get(name).map_or("not given", String::as_str);
            if there != value {
                return differ(&format!("setting, {name}"), there, value);
            }
        }
        if self.seed != here.seed {
            return differ("seed", &self.seed.to_string(), &here.seed.to_string());
        }
        if self.build != here.build {
            return differ("version of Tailback", &self.build, &here.build);
        }
        Ok(())
    }
}

/// What can stand in a line.
fn short(text: &str) -> String {
    const MOST: usize = 120;
    let text = printable(text).into_owned();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text,
    }
}

impl Record {
    fn of((placement, run): Place, finished: &FinishedRun) -> Self {
        let FinishedRun { outcome, counters, activity, notes, simulated } = finished;
        let described = |of: &Description| {
            let Description { backend, library, details } = of.clone();
            Described { backend, library, details }
        };
        let phase = |of: &Measured| Phase {
            state: of.phase,
            canary: of.canary,
            congestor: of.congestor,
            block: of.block,
            clock_error_ns: of.clock_error_ns,
            tally: BASE64.encode(of.tally.bytes()),
        };
        Record {
            placement,
            run,
            networks: [described(&outcome.description), described(&outcome.congestors)],
            phases: outcome.phases.iter().map(phase).collect(),
            counters: counters.clone(),
            activity: activity.clone(),
            notes: notes.clone(),
            simulated: simulated.as_ref().map(|of| SimulatedRun {
                phases: of.phases.clone(),
                elapsed_ps: of.elapsed_ps,
                hops: of.hops,
            }),
        }
    }

    fn line(&self) -> String {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut deflated, self).expect("plain data");
        BASE64.encode(deflated.finish().expect("memory takes it")) + "\n"
    }

    fn read(line: &str) -> Result<Self, String> {
        let deflated = BASE64.decode(line).map_err(|error| error.to_string())?;
        let mut text = String::new();
        let read = ZlibDecoder::new(&deflated[..]).take(LONGEST + 1).read_to_string(&mut text);
        read.map_err(|error| error.to_string())?;
        if text.len() as u64 > LONGEST {
            return Err(format!("it has more than {} MiB", LONGEST >> 20));
        }
        serde_json::from_str(&text).map_err(|error| printable(&error.to_string()).into_owned())
    }

    /// What the run left, of a plan whose tests it has.
    fn finished(self, session: &Session<'_>, plan: &Plan) -> Result<FinishedRun, String> {
        let Record { networks, phases, counters, activity, notes, simulated, .. } = self;
        let (canaries, kinds) = (plan.canaries.len(), plan.congestors.len());
        let measured = |of: Phase| {
            let Phase { state, canary, congestor, block, clock_error_ns, tally } = of;
            let fits = canary.is_none_or(|at| at < canaries) && congestor.is_none_or(|at| at < kinds);
            let bytes = BASE64.decode(tally).ok().filter(|_| fits);
            let tally = bytes.and_then(|bytes| EncodedTally::read(bytes, kinds));
            let tally = tally.ok_or("its samples are not of this plan")?;
            Ok(Measured { phase: state, canary, congestor, block, clock_error_ns, tally })
        };
        let phases = phases.into_iter().map(measured).collect::<Result<Vec<_>, String>>()?;
        let [description, congestors] =
            networks.map(|Described { backend, library, details }| Description { backend, library, details });
        let machine = session.request.settings.machine.as_ref();
        if machine.is_some() != simulated.is_some() {
            return Err("it is not of this network".into());
        }
        let simulated = simulated.zip(machine).map(|(of, machine)| Simulated {
            machine: Arc::clone(machine),
            phases: of.phases,
            elapsed_ps: of.elapsed_ps,
            hops: of.hops,
        });
        let outcome = RunOutcome { description, congestors, phases, interrupted: false, trouble: None };
        Ok(FinishedRun { outcome, counters, activity, notes, simulated })
    }
}
