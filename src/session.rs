//! A command from its options to its results, on whatever backend it runs.
//!
//! Rank 0 reads files and decides; the others are told. So a mistake is reported once, and ranks cannot disagree about
//! the plan.

mod dry_run;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Monitor, Nanos, Rank, Support, Transport};

use crate::cli::{self, CheckOptions, CongestOptions, LocalOptions, NetworkOptions, RunOptions, TransportOptions};
use crate::engine::{self, Control, Job, OnPhase};
use crate::kernel::Info;
use crate::layout::{Layout, Nodes};
use crate::local::PhaseReporter;
use crate::output::{Format, Progress};
use crate::plan::{Patch, Plan, Preset};
use crate::result::{self, Build, Command, HostFacts, ResultFile, RunBuilder, System};

/// Congestion without an end: a day is longer than any allocation that would not be interrupted.
const ENDLESS: Duration = Duration::from_secs(86_400);

/// What the user asked for, before anything is decided.
pub struct Request {
    command: Command,
    plan: cli::PlanOptions,
    patch: Patch,
    duration: Option<Duration>,
    /// What to do when there is no launcher.
    pub local: LocalOptions,
    /// How the network under test is reached.
    pub transport: TransportOptions,
    output: cli::OutputOptions,
    checks: CheckOptions,
}

/// What rank 0 decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Decision {
    command: Command,
    plan: Plan,
    seed: u64,
    duration_s: f64,
    dry_run: bool,
}

impl Request {
    /// `tailback run`.
    pub fn run(options: RunOptions) -> Result<Self, String> {
        let alone = options.roles.congestors_alone
            || (options.common.output.verbose && options.common.output.format == Format::Gpcnet);
        let patch = Patch {
            canaries: options.canaries.canaries,
            congestors: options.congestors.mix()?,
            canary_fraction: options.roles.canary_fraction,
            split: options.roles.split,
            congestors_alone: alone.then_some(true),
            ..Patch::default()
        };
        Self::new(Command::Run, options.plan, patch, None, options.common).map(|request| Request {
            local: options.local,
            checks: options.checks,
            ..request
        })
    }

    /// `tailback network`.
    pub fn network(options: NetworkOptions) -> Result<Self, String> {
        let patch = Patch { canaries: options.canaries.canaries, ..Patch::default() };
        Self::new(Command::Network, options.plan, patch, None, options.common)
    }

    /// `tailback congest`.
    pub fn congest(options: CongestOptions) -> Result<Self, String> {
        let patch = Patch { congestors: options.congestors.mix()?, ..Patch::default() };
        let duration = options.duration.unwrap_or(ENDLESS);
        Self::new(Command::Congest, options.plan, patch, Some(duration), options.common)
    }

    fn new(
        command: Command,
        plan: cli::PlanOptions,
        patch: Patch,
        duration: Option<Duration>,
        common: cli::CommonOptions,
    ) -> Result<Self, String> {
        let local = LocalOptions::default();
        let checks = CheckOptions::default();
        let cli::CommonOptions { transport, output } = common;
        Ok(Request { command, plan, patch, duration, local, transport, output, checks })
    }

    /// The plan, with every mistake in it found, and a look at whether its results could be kept.
    pub fn resolve(&self, preset: Preset) -> Result<Plan, String> {
        let mut patches = self.plan.patches(self.patch.clone())?;
        if self.command == Command::Network {
            // The network test starts from all canaries; a plan file may still choose among them and set their counts.
            let all = crate::kernel::Canary::ALL.to_vec();
            patches.insert(0, Patch { canaries: Some(all), ..Patch::default() });
        }
        let plan = Plan::resolve(preset, &patches).map_err(|error| error.to_string())?;
        self.check_thresholds(&plan)?;
        for path in self.files() {
            result::check_writable(path).map_err(|error| error.to_string())?;
        }
        Ok(plan)
    }

    /// A threshold that this plan cannot meet or miss is a mistake, better found before the run than after.
    fn check_thresholds(&self, plan: &Plan) -> Result<(), String> {
        for threshold in &self.checks.fail_if {
            if threshold.ratio {
                return Err(format!("'{threshold}': ratios are for `tailback compare`"));
            }
            if !plan.canaries.iter().any(|test| test.kernel == threshold.kernel) {
                return Err(format!("'{threshold}': the plan does not measure {}", threshold.kernel));
            }
        }
        Ok(())
    }

    /// What must be added to the command line so that ranks decide as this process did.
    pub fn fixed(&self, plan: &Plan, seed: u64) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.plan.preset.is_none() {
            words.extend(["--preset".into(), plan.preset.to_string().into()]);
        }
        if self.plan.seed.is_none() {
            words.extend(["--seed".into(), seed.to_string().into()]);
        }
        words
    }

    /// The seed asked for, or a new one. 32 bits: easy to read out and to type.
    pub fn seed(&self) -> u64 {
        self.plan.seed.unwrap_or_else(|| rand::random::<u32>().into())
    }

    /// Whether the plan is only to be shown.
    pub fn is_dry_run(&self) -> bool {
        self.plan.dry_run
    }

    /// What was asked for.
    pub fn command(&self) -> Command {
        self.command
    }

    /// How long a rank may make no progress.
    pub fn stall_limit(&self) -> Option<Duration> {
        let budget = self.plan.budget.unwrap_or(Duration::from_secs(10));
        self.transport.stall_limit.or(match self.command {
            // A rank without partners waits for as long as the others load.
            Command::Congest => None,
            _ => Some(Duration::from_secs(60) + 4 * budget),
        })
    }

    /// Whether the user wants results only.
    pub fn quiet(&self) -> bool {
        self.output.quiet
    }

    /// Tells the user something, on stderr.
    pub fn say(&self, text: &str) {
        if !self.output.quiet {
            eprintln!("tailback: {text}");
        }
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.output.out.iter().chain(&self.output.csv).chain(&self.checks.junit)
    }

    fn decide(&self) -> Result<Decision, String> {
        Ok(Decision {
            command: self.command,
            plan: self.resolve(Preset::Gpcnet)?,
            seed: self.seed(),
            duration_s: self.duration.unwrap_or_default().as_secs_f64(),
            dry_run: self.plan.dry_run,
        })
    }
}

/// Runs the request on this rank of a job and gives its exit code. Errors end the whole job.
pub fn run<B: Bootstrap, T: Transport>(
    request: &Request,
    bootstrap: &mut B,
    transport: &mut T,
    monitor: &Arc<Monitor>,
) -> u8 {
    match Session::prepare(request, bootstrap, transport) {
        Ok(Prepared::Ready(session)) => session.run(request, bootstrap, transport, monitor),
        Ok(Prepared::Told(code)) => code,
        Err(error) => give_up(bootstrap, &error),
    }
}

/// Ends the job because of an error on this rank.
pub fn give_up<B: Bootstrap>(bootstrap: &B, error: &tailback_transport::Error) -> ! {
    bootstrap.abort(&error.to_string())
}

/// Everything that is known before the first message is measured.
struct Session {
    decision: Decision,
    layout: Layout,
}

enum Prepared {
    Ready(Box<Session>),
    /// The user was told why not, or was shown the plan: end with this code.
    Told(u8),
}

impl Session {
    fn prepare<B: Bootstrap, T: Transport>(
        request: &Request,
        bootstrap: &mut B,
        transport: &T,
    ) -> tailback_transport::Result<Prepared> {
        let root = bootstrap.rank() == Rank(0);
        let mine = if root { serde_json::to_vec(&request.decide()).expect("plain data") } else { Vec::new() };
        let told = bootstrap.broadcast(mine)?;
        let decision: Result<Decision, String> = serde_json::from_slice(&told).expect("rank 0 sent a decision");
        let hosts = bootstrap.allgather(bootstrap.host().to_owned().as_bytes())?;
        let prepared = decision.and_then(|decision| {
            let nodes = nodes(&decision.plan, &hosts);
            let layout = layout(&decision, nodes).map_err(|error| error.to_string())?;
            check_operations(&decision, transport)?;
            Ok(Session { decision, layout })
        });
        // Every rank comes to the same answer, so one tells the user and all end alike.
        match prepared {
            Err(message) => {
                if root {
                    eprintln!("tailback: error: {message}");
                }
                Ok(Prepared::Told(2))
            }
            Ok(session) if session.decision.dry_run => {
                if root {
                    let _ = cli::print(&dry_run::render(&session.decision, &session.layout));
                }
                Ok(Prepared::Told(0))
            }
            Ok(session) => Ok(Prepared::Ready(Box::new(session))),
        }
    }

    fn run<B: Bootstrap, T: Transport>(
        self,
        request: &Request,
        bootstrap: &mut B,
        transport: &mut T,
        monitor: &Arc<Monitor>,
    ) -> u8 {
        let root = bootstrap.rank() == Rank(0);
        let (started, clock) = (result::now_rfc3339(), Instant::now());
        let mut notes = self.layout.notes.clone();
        let description = transport.describe();
        notes.extend(description.details.get("wait").map(|wait| format!("ranks wait for the network by: {wait}")));
        if root {
            request.say(&format!("seed {}", self.decision.seed));
            notes.iter().for_each(|note| request.say(note));
        }
        let system = root.then(|| self.system(bootstrap));
        let measured = match self.measure(bootstrap, transport, monitor, phase_observer(request, root)) {
            Ok(measured) => measured,
            Err(error) => give_up(bootstrap, &error),
        };
        let Some(system) = system else { return 0 };
        let (phases, interrupted) = measured;
        let mut builder = RunBuilder::new(&self.decision.plan, self.decision.seed, description);
        for phase in phases {
            // Resampling takes its time, while the others wait for this rank.
            monitor.tick();
            builder.add(phase);
        }
        let run = builder.finish();
        let file = ResultFile {
            schema_version: result::SCHEMA_VERSION,
            build: Build::this(),
            command: self.decision.command,
            started,
            duration_s: clock.elapsed().as_secs_f64(),
            seed: self.decision.seed,
            plan: self.decision.plan,
            system,
            runs: vec![run],
            lab: None,
            notes,
            interrupted,
            imported: None,
        };
        show(request, &file)
    }

    fn measure<B: Bootstrap, T: Transport>(
        &self,
        bootstrap: &mut B,
        transport: &mut T,
        monitor: &Arc<Monitor>,
        on_phase: OnPhase,
    ) -> tailback_transport::Result<(Vec<engine::Measured>, bool)> {
        let control = Control { monitor: Arc::clone(monitor), interrupt: interrupt_flag(), on_phase };
        let Decision { command, plan, seed, duration_s, .. } = &self.decision;
        let mut job = Job::new(bootstrap, transport, plan, &self.layout, *seed, control)?;
        let measured = match command {
            Command::Run => engine::load_test(&mut job)?,
            Command::Network => engine::network_test(&mut job)?,
            Command::Congest => engine::congest(&mut job, Nanos((duration_s * 1e9) as u64))?,
        };
        job.finish()?;
        Ok(measured)
    }

    fn system<B: Bootstrap>(&self, bootstrap: &B) -> System {
        System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: result::placement(&self.layout, &self.decision.plan),
            host: HostFacts::this(),
            environment: result::environment(),
        }
    }
}

fn nodes(plan: &Plan, hosts: &[Vec<u8>]) -> Nodes {
    match plan.ranks_per_node {
        Some(per_node) => Nodes::virtual_nodes(hosts.len(), per_node),
        None => Nodes::from_hosts(&hosts.iter().map(|host| String::from_utf8_lossy(host)).collect::<Vec<_>>()),
    }
}

fn layout(decision: &Decision, nodes: Nodes) -> Result<Layout, crate::layout::LayoutError> {
    let (plan, seed) = (&decision.plan, decision.seed);
    match decision.command {
        Command::Run => Layout::load_test(nodes, seed, plan.canary_fraction, &plan.weights(), plan.split),
        Command::Network => Layout::canaries_only(nodes),
        Command::Congest => Layout::congestors_only(nodes, seed, &plan.weights()),
    }
}

/// Refuses kernels that the transport cannot run, before anything runs.
fn check_operations<T: Transport>(decision: &Decision, transport: &T) -> Result<(), String> {
    let capabilities = transport.capabilities();
    let canaries = decision.plan.canaries.iter().map(|test| test.kernel.info());
    let congestors = decision.plan.congestors.iter().map(|test| test.kernel.info());
    let used: Vec<Info> = match decision.command {
        Command::Run => canaries.chain(congestors).collect(),
        Command::Network => canaries.collect(),
        Command::Congest => congestors.collect(),
    };
    for info in used {
        for &operation in info.needs {
            if let Support::No(reason) = capabilities.of(operation) {
                return Err(format!("{} needs {operation}, which is not supported here: {reason}", info.key));
            }
        }
    }
    Ok(())
}

/// Who hears of phases: on rank 0 the process that started the ranks, if it wants to, else the user.
fn phase_observer(request: &Request, root: bool) -> OnPhase {
    if !root {
        return Arc::new(|_, _| {});
    }
    if let Some(listener) = PhaseReporter::from_env() {
        return Arc::new(move |name, budget| listener.tell(name, budget));
    }
    let progress = Progress::new(!request.quiet());
    Arc::new(move |name, budget| progress.phase(name, budget))
}

/// Raised by the first Ctrl-C or SIGTERM; the second ends the process at once.
fn interrupt_flag() -> Arc<AtomicBool> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without a handler the signal ends the process, which is what a second one should do anyway.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    flag
}

/// Prints the results, then keeps them: what cannot be written has at least been seen. A rank that was started by
/// [`crate::local`] hands them over instead.
pub fn show(request: &Request, file: &ResultFile) -> u8 {
    if let Some(path) = std::env::var_os(crate::local::RESULT_VARIABLE) {
        return match result::write(path.as_ref(), file) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("tailback: error: {error}");
                2
            }
        };
    }
    let output = &request.output;
    let printed = cli::print(&output.format.render(file, output.verbose));
    let kept =
        output.out.as_deref().map_or(Ok(()), |path| result::write(path, file).map_err(|error| error.to_string()));
    let csv = output.csv.as_deref().map_or(Ok(()), |path| {
        result::write_text(path, &Format::Csv.render(file, false)).map_err(|error| error.to_string())
    });
    let checked = request.checks.check(file);
    let mut code = *checked.as_ref().unwrap_or(&0);
    if file.interrupted && file.command != Command::Congest {
        code = 2;
    }
    for problem in [printed.map(|_| ()), kept, csv, checked.map(|_| ())].into_iter().filter_map(Result::err) {
        eprintln!("tailback: error: {problem}");
        code = 2;
    }
    code
}
