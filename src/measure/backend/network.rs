//! The networks under test of one job, and what a command does with them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailback_bootstrap::Secret;
use tailback_transport::{Bootstrap, Error, Monitor, Rank, Result};

use super::sim::{Simulated, SimulatedJobs};
use super::{Backend, Network, RoleSettings, Settings, Variant, libfabric, tcp, verbs};
use crate::engine::{Body, OpenNetwork, OpenPair};

/// What a command asks of a backend, and does with the job it is given.
pub struct Work<'a> {
    /// How the network under test is reached.
    pub settings: &'a Settings,
    /// How long a rank may make no progress.
    pub stall_limit: Option<Duration>,
    /// From when it is called on, what it gives is raised once the user wants this work to end in order.
    pub interrupt: fn() -> Arc<AtomicBool>,
    /// The build of the program, as ranks of one job have to agree on it.
    pub build: &'static str,
    /// What was asked for, as far as all ranks of a job have to agree on it.
    pub asks: String,
    /// Does the work as one rank of a job and gives the exit code. Errors end the whole job.
    pub body: &'a dyn Fn(&mut Networks<'_>, &Arc<Monitor>) -> u8,
}

/// The networks under test of one job. No more of them are open at a time than the run at hand needs, so that none
/// competes with another.
pub struct Networks<'a> {
    pub(super) bootstrap: &'a mut dyn Bootstrap,
    pub(super) settings: &'a Settings,
    pub(super) variants: Vec<Variant>,
    pub(super) ranks: Ranks,
}

/// Where the ranks of a job are.
pub(super) enum Ranks {
    /// In processes of their own: this is one. They share `secret`. MPI, where it brought them together, stays initialised
    /// throughout, and is not called while another network is measured.
    Real { secret: Secret, mpi: Option<Box<dyn OpenNetwork>> },
    /// All in this process, which speaks for them between simulated jobs.
    Simulated(SimulatedJobs),
}

impl Networks<'_> {
    /// Who is here, whatever network is open. Not while one is.
    pub fn bootstrap(&mut self) -> &mut dyn Bootstrap {
        self.bootstrap
    }

    /// What the runs go over, in order. At least one.
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// Where every rank is. Collective over the job.
    pub fn places(&mut self) -> Result<Vec<RankHost>> {
        if let Ranks::Simulated(jobs) = &self.ranks {
            return Ok(jobs.places().map(|(host, group)| RankHost { host, group }).collect());
        }
        let group = std::env::var("TAILBACK_GROUP").unwrap_or_default();
        let hosts = self.bootstrap.allgather(self.bootstrap.host().to_owned().as_bytes())?;
        let groups = self.bootstrap.allgather(group.as_bytes())?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Ok(hosts.iter().zip(&groups).map(|(host, group)| RankHost { host: text(host), group: text(group) }).collect())
    }

    /// Leaves out an opening whose outcome is known: what is random in those that follow is as if it had been made.
    pub fn pass_over(&mut self) {
        if let Ranks::Simulated(jobs) = &mut self.ranks {
            jobs.pass_over();
        }
    }

    /// What was simulated since this was asked last; nothing where the network is real.
    pub fn simulated(&mut self) -> Option<Simulated> {
        match &mut self.ranks {
            Ranks::Simulated(jobs) => Some(jobs.take()),
            Ranks::Real { .. } => None,
        }
    }

    /// Opens what a variant names, has `body` use it, and closes it. Collective over the job. `role` gives what a rank has of
    /// its role's own; it is asked for the ranks of this process.
    pub fn open<O>(&mut self, variant: Variant, role: &dyn Fn(Rank) -> RoleSettings, body: Body<'_, O>) -> Result<O> {
        let Networks { bootstrap, settings, ranks, .. } = self;
        let (secret, mpi) = match ranks {
            // There is no other network for congestors: one was refused.
            Ranks::Simulated(jobs) => return jobs.run(variant.network, settings, role, body),
            Ranks::Real { secret, mpi } => (secret, mpi),
        };
        let settings = settings.of_role(&role(bootstrap.rank()));
        let mut raw = |network: Network| {
            raw(network.backend).map(|of| (of.open)(network, &settings, *bootstrap, secret)).transpose()
        };
        // What is opened last is closed first.
        let mut canaries = raw(variant.network)?;
        let mut congestors = variant.congestors.map(raw).transpose()?;
        // At most one of the two is over MPI.
        let mut mpi = mpi.as_mut();
        let missing = || Error::Setup("MPI did not bring these ranks together".into());
        let canaries = canaries.as_mut().or_else(|| mpi.take()).ok_or_else(missing)?;
        let congestors: Option<&mut dyn OpenNetwork> = match &mut congestors {
            Some(raw) => Some(&mut **raw.as_mut().or_else(|| mpi.take()).ok_or_else(missing)?),
            None => None,
        };
        body(*bootstrap, &mut OpenPair { canaries: &mut **canaries, congestors })
    }
}

impl<'a> Networks<'a> {
    /// The openings of a simulated job that follow, to be made on any thread and in any order; nothing where the network is real.
    pub fn ahead(&self) -> Option<Ahead<'a>> {
        match &self.ranks {
            Ranks::Simulated(jobs) => Some(Ahead { jobs: jobs.clone(), settings: self.settings }),
            Ranks::Real { .. } => None,
        }
    }
}

/// See [`Networks::ahead`].
pub struct Ahead<'a> {
    jobs: SimulatedJobs,
    settings: &'a Settings,
}

impl Ahead<'_> {
    /// As [`Networks::open`], for the opening that has this number among those that follow, from 0; with what was simulated for it.
    pub fn open<O>(
        &self,
        number: u64,
        variant: Variant,
        role: &dyn Fn(Rank) -> RoleSettings,
        body: Body<'_, O>,
    ) -> Result<(O, Simulated)> {
        let mut job = self.jobs.clone();
        (0..number).for_each(|_| job.pass_over());
        job.take();
        let made = job.run(variant.network, self.settings, role, body)?;
        Ok((made, job.take()))
    }
}

/// What a module of a raw backend does.
pub(super) struct Raw {
    /// What it can do here: a line, or several. A library may be named.
    pub(super) state: fn(Option<&Path>) -> String,
    /// Whether ranks can open it here, and the options mean something.
    pub(super) check: fn(&Settings) -> std::result::Result<(), String>,
    open: Open,
}

/// Opens a raw backend between ranks that came together somehow and share a secret.
type Open = fn(Network, &Settings, &mut dyn Bootstrap, &Secret) -> Result<Box<dyn OpenNetwork>>;

/// A raw backend's module; nothing for others. A further raw backend is a further line here.
pub(super) fn raw(backend: Backend) -> Option<Raw> {
    macro_rules! module {
        ($name:ident) => {
            Some(Raw { state: $name::state, check: $name::check, open: $name::open })
        };
    }
    match backend {
        Backend::Tcp => module!(tcp),
        Backend::Libfabric => module!(libfabric),
        Backend::Verbs => module!(verbs),
        Backend::Mpi | Backend::Sim => None,
    }
}

/// Where a rank is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankHost {
    /// Ranks with equal hosts share a node.
    pub host: String,
    /// The switch, rack or other group of the topology, as far as that is known.
    pub group: String,
}

/// Ends the job because of an error on this rank.
pub fn give_up(bootstrap: &dyn Bootstrap, error: &Error) -> ! {
    bootstrap.abort(&error.to_string())
}
