//! A command from its options to its results, on whatever backend it runs.
//!
//! Rank 0 reads files and decides; the others are told. So a mistake is reported once, and ranks cannot disagree about
//! the plan.

mod dry_run;
pub mod interrupt;
mod request;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tailback_transport::{Bootstrap, Monitor, Nanos, Rank, Support, Transport};

use crate::backend::Work;
use crate::cli::{self, TransportOptions};
use crate::engine::{self, Control, Job, OnPhase};
use crate::kernel::Info;
use crate::layout::{Layout, Nodes};
use crate::local::PhaseReporter;
use crate::output::{Format, Progress};
use crate::plan::Plan;
use crate::result::{self, Build, Command, HostFacts, ResultFile, RunBuilder, System};

use request::Decision;
pub use request::Request;

impl Work for Request {
    fn transport(&self) -> &TransportOptions {
        &self.transport
    }

    fn stall_limit(&self) -> Option<Duration> {
        let budget = self.plan.budget.unwrap_or(Duration::from_secs(10));
        self.transport.stall_limit.or(match self.command {
            // A rank without partners waits for as long as the others load.
            Command::Congest => None,
            _ => Some(Duration::from_secs(60) + 4 * budget),
        })
    }

    fn run<B: Bootstrap, T: Transport>(&self, bootstrap: &mut B, transport: &mut T, monitor: &Arc<Monitor>) -> u8 {
        interrupt::flag();
        match Session::prepare(self, bootstrap, transport) {
            Ok(Prepared::Ready(session)) => session.run(self, bootstrap, transport, monitor),
            Ok(Prepared::Told(code)) => code,
            Err(error) => give_up(bootstrap, &error),
        }
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
            models: None,
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
        let control = Control { monitor: Arc::clone(monitor), interrupt: interrupt::flag(), on_phase };
        let Decision { command, plan, seed, duration_s, .. } = &self.decision;
        let mut job = Job::new(bootstrap, transport, plan, &self.layout, *seed, control)?;
        let measured = match command {
            Command::Run => engine::load_test(&mut job)?,
            Command::Network => engine::network_test(&mut job)?,
            Command::Congest => engine::congest(&mut job, Nanos((duration_s * 1e9) as u64))?,
            study => return Err(tailback_transport::Error::Setup(format!("{study:?} is a study and has no plan"))),
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
        // A study never gets here: it has no plan.
        Command::Network | Command::Maxrate | Command::Contention | Command::Beff => Layout::canaries_only(nodes),
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
        Command::Maxrate | Command::Contention | Command::Beff => Vec::new(),
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
