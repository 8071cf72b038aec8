//! A command from its options to its results, on whatever backend it runs.
//!
//! Rank 0 reads files and decides; the others are told. So a mistake is reported once, and ranks cannot disagree about
//! the plan.

mod dry_run;
pub mod interrupt;
mod request;
mod runs;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailback_transport::{Bootstrap, Capabilities, Monitor, Rank, Support, Transport};

use crate::backend::{Networks, Visitor, Work};
use crate::cli::{self, TransportOptions};
use crate::engine::OnPhase;
use crate::kernel::Info;
use crate::layout::{Layout, Nodes};
use crate::local::PhaseReporter;
use crate::output::{Format, Progress};
use crate::plan::Plan;
use crate::result::{self, Command, ResultFile};

use request::Decision;
pub use request::Request;
use runs::Runs;

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

    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        Some(interrupt::flag())
    }

    fn run<N: Networks>(&self, networks: &mut N, monitor: &Arc<Monitor>) -> u8 {
        interrupt::flag();
        let root = networks.bootstrap().rank() == Rank(0);
        match Session::prepare(self, networks) {
            Ok(Prepared::Ready(session)) => Runs::new(&session, self, monitor, root).make(networks),
            Ok(Prepared::Told(code)) => code,
            Err(error) => give_up(networks.bootstrap(), &error),
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
    /// Everything that can be known to be wrong before the first run is found out here. Every network is opened for that.
    fn prepare<N: Networks>(request: &Request, networks: &mut N) -> tailback_transport::Result<Prepared> {
        let bootstrap = networks.bootstrap();
        let root = bootstrap.rank() == Rank(0);
        let mine = if root { serde_json::to_vec(&request.decide()).expect("plain data") } else { Vec::new() };
        let told = bootstrap.broadcast(mine)?;
        let decision: Result<Decision, String> = serde_json::from_slice(&told).expect("rank 0 sent a decision");
        let hosts = bootstrap.allgather(bootstrap.host().to_owned().as_bytes())?;
        let prepared = decision.and_then(|decision| {
            let nodes = nodes(&decision.plan, &hosts);
            let layout = layout(&decision, nodes).map_err(|error| error.to_string())?;
            Ok(Session { decision, layout })
        });
        // Every rank comes to the same answer, so one tells the user and all end alike.
        let refused = |message: &str| {
            if root {
                eprintln!("tailback: error: {message}");
            }
            Ok(Prepared::Told(2))
        };
        let session = match prepared {
            Ok(session) => session,
            Err(message) => return refused(&message),
        };
        let variants = networks.variants().to_vec();
        for &variant in &variants {
            let capabilities = networks.open(variant, AskCapabilities)?;
            if let Err(message) = check_operations(&session.decision, &capabilities) {
                return refused(&if variants.len() > 1 { format!("{}: {message}", variant.label()) } else { message });
            }
        }
        if session.decision.dry_run {
            if root {
                let _ = cli::print(&dry_run::render(&session.decision, &session.layout, &variants));
            }
            return Ok(Prepared::Told(0));
        }
        Ok(Prepared::Ready(Box::new(session)))
    }
}

/// Asks a network what it can do.
struct AskCapabilities;

impl Visitor for AskCapabilities {
    type Output = Capabilities;

    fn visit<B: Bootstrap, T: Transport>(self, _: &mut B, transport: &mut T) -> Capabilities {
        transport.capabilities()
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

/// Refuses kernels that a network cannot run, before anything runs.
fn check_operations(decision: &Decision, capabilities: &Capabilities) -> Result<(), String> {
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
