//! What a command asks of the networks under test, and what it gets to work with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailback_transport::{Bootstrap, Error, Monitor, Result, Transport};

use super::{Network, Settings, Variant};

/// What a command asks of a backend, and does with the job it is given.
pub trait Work {
    /// How the network under test is reached.
    fn settings(&self) -> &Settings;

    /// How long a rank may make no progress.
    fn stall_limit(&self) -> Option<Duration>;

    /// Raised once the user wants this work to end in order; `None` where a signal simply ends the ranks.
    fn interrupt(&self) -> Option<Arc<AtomicBool>>;

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

    /// Opens a network, hands it to `visitor`, and closes it. Collective over the job.
    fn open<V: Visitor>(&mut self, network: Network, visitor: V) -> Result<V::Output>;

    /// The same with the networks of canaries and congestors, which are one where the variant does not say otherwise.
    /// `class` is this rank's traffic class, if its role has one.
    fn open_pair<V: PairVisitor>(&mut self, variant: Variant, class: Option<&str>, visitor: V) -> Result<V::Output>;
}

/// What is done with an open network.
pub trait Visitor {
    /// What it leaves.
    type Output;

    /// Does it.
    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Self::Output;
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
}

/// Ends the job because of an error on this rank.
pub fn give_up<B: Bootstrap>(bootstrap: &B, error: &Error) -> ! {
    bootstrap.abort(&error.to_string())
}
