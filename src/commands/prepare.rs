//! Everything that can be known to be wrong before the first message is measured.

use tailback_transport::{Bootstrap, Capabilities, Rank, Result as TransportResult, Support, Transport};

use super::request::Decision;
use super::{Request, dry_run};
use crate::backend::{Networks, Visitor};
use crate::kernel::Info;
use crate::layout::{Layout, Nodes};
use crate::output;
use crate::plan::Plan;
use crate::result::Command;

/// Everything that is known before the first message is measured.
pub(super) struct Session {
    pub decision: Decision,
    pub layout: Layout,
}

pub(super) enum Prepared {
    Ready(Box<Session>),
    /// The user was told why not, or was shown the plan: end with this code.
    Told(u8),
}

impl Session {
    /// Everything that can be known to be wrong before the first run is found out here. Every network is opened for that.
    pub(super) fn prepare<N: Networks>(request: &Request, networks: &mut N) -> TransportResult<Prepared> {
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
                let _ = output::print(&dry_run::render(&session.decision, &session.layout, &variants));
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
