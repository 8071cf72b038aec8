//! What a command asks of the networks under test, and what it gets to work with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailback_sim::machine::Machine;
use tailback_sim::net::PhaseCounters;
use tailback_transport::{Bootstrap, Error, Monitor, Rank, Result, Transport};

use super::{Network, RoleSettings, Settings, Variant};

/// What a command asks of a backend, and does with the job it is given.
pub trait Work {
    /// How the network under test is reached.
    fn settings(&self) -> &Settings;

    /// How long a rank may make no progress.
    fn stall_limit(&self) -> Option<Duration>;

    /// Raised once the user wants this work to end in order; `None` where a signal simply ends the ranks.
    fn interrupt(&self) -> Option<Arc<AtomicBool>>;

    /// What was asked for, as far as all ranks of a job have to agree on it.
    fn asks(&self) -> String;

    /// Does the work as one rank of a job and gives the exit code. Errors end the whole job.
    fn run<N: Networks>(&self, networks: &mut N, monitor: &Arc<Monitor>) -> u8;
}

/// The networks under test of one job. No more of them are open at a time than the run at hand needs, so that none
/// competes with another.
pub trait Networks {
    /// Who is here, whatever network is open.
    type Bootstrap: Bootstrap;

    /// Outside of [`Networks::open`].
    fn bootstrap(&mut self) -> &mut Self::Bootstrap;

    /// What the runs go over, in order. At least one.
    fn variants(&self) -> &[Variant];

    /// Where every rank is. Collective over the job.
    fn places(&mut self) -> Result<Vec<Place>> {
        let bootstrap = self.bootstrap();
        let group = std::env::var("TAILBACK_GROUP").unwrap_or_default();
        let hosts = bootstrap.allgather(bootstrap.host().to_owned().as_bytes())?;
        let groups = bootstrap.allgather(group.as_bytes())?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Ok(hosts.iter().zip(&groups).map(|(host, group)| Place { host: text(host), group: text(group) }).collect())
    }

    /// What was simulated since this was asked last; nothing where the network is real.
    fn simulated(&mut self) -> Option<Simulated> {
        None
    }

    /// Opens a network, hands it to `visitor`, and closes it. Collective over the job.
    fn open<V: Visitor + Clone>(&mut self, network: Network, visitor: V) -> Result<V::Output>;

    /// The same with the networks of canaries and congestors, which are one where the variant does not say otherwise.
    /// `role` gives what a rank has of its role's own; it is asked for the ranks of this process.
    fn open_pair<V: PairVisitor + Clone>(
        &mut self,
        variant: Variant,
        role: &dyn Fn(Rank) -> RoleSettings,
        visitor: V,
    ) -> Result<V::Output>;
}

/// Where a rank is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Ranks with equal hosts share a node.
    pub host: String,
    /// The switch, rack or other group of the topology, as far as that is known.
    pub group: String,
}

/// What was simulated for a while.
#[derive(Debug)]
pub struct Simulated {
    /// What was simulated.
    pub machine: Arc<Machine>,
    /// What its ports did, phase by phase.
    pub phases: Vec<PhaseCounters>,
    /// Virtual time that went by, in picoseconds.
    pub elapsed_ps: u64,
    /// Packets over links.
    pub hops: u64,
}

/// What is done with an open network. Where ranks share a process, each has a clone.
pub trait Visitor {
    /// What it leaves.
    type Output;

    /// Does it.
    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Self::Output;

    /// The error in what a rank leaves, if there is one: where ranks share a process, it ends the others.
    fn error(_: &Self::Output) -> Option<&Error> {
        None
    }
}

/// The canaries' network and the congestors', which may be the same.
pub trait Pair {
    /// The canaries'.
    type Canary: Transport;
    /// The congestors'.
    type Congestor: Transport;

    /// The canaries', on which everyone meets.
    fn canary(&mut self) -> &mut Self::Canary;

    /// The congestors'.
    fn congestor(&mut self) -> &mut Self::Congestor;
}

/// What is done with an open pair.
pub trait PairVisitor {
    /// What it leaves.
    type Output;

    /// Does it.
    fn visit<B: Bootstrap, P: Pair>(self, bootstrap: &mut B, networks: &mut P) -> Self::Output;

    /// See [`Visitor::error`].
    fn error(_: &Self::Output) -> Option<&Error> {
        None
    }
}

/// Ends the job because of an error on this rank.
pub fn give_up<B: Bootstrap>(bootstrap: &B, error: &Error) -> ! {
    bootstrap.abort(&error.to_string())
}
