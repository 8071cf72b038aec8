//! Jobs: ranks as coroutines of one process, on virtual time.
//!
//! [`Simulation::run`] hands every rank its two planes, as every backend does, and runs the same closure on each. Ranks
//! that wait give the processor to others; when all wait, the network's next event happens.

mod bootstrap;
mod channel;
mod groups;
mod handle;
mod meeting;
mod phase;
mod segment;
mod transport;
mod world;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;

use tailback_transport::Rank;

use crate::ffi::{Fibers, Stacks};
use crate::machine::{MOST_RANKS, MOST_RANKS_PER_NODE, Machine, MachineError};
use crate::net::{Audit, LONGEST_PS, Network, PhaseCounters, Work};
use bootstrap::Aborted;
use handle::Handle;
use world::{RankState, Waiting, World};

pub use bootstrap::{SimBootstrap, host_name};
pub use phase::begin_phase;
pub use transport::{SimSlot, SimTransport};

/// Address space of a rank's stack; memory is used as far as it is touched.
const STACK: usize = 1 << 20;

/// A job to be simulated.
#[derive(Clone, Debug)]
pub struct Simulation {
    machine: Machine,
    per_node: usize,
    ranks: usize,
    seed: u64,
    time_limit_ps: u64,
}

/// What a job left.
#[derive(Debug)]
pub struct Finished<R> {
    /// What every rank returned, in rank order.
    pub results: Vec<R>,
    /// Virtual time of the last event, in picoseconds.
    pub now_ps: u64,
    /// How much was simulated.
    pub work: Work,
    /// Whether the network's accounts are in order. Messages that nobody received are under way no more, but open.
    pub audit: Audit,
    /// Counters of the phases that were begun.
    pub phases: Vec<PhaseCounters>,
}

/// Why a job did not end well.
#[derive(Debug, thiserror::Error)]
pub enum SimError<E> {
    /// The machine makes no sense.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The ranks do not fit the machine, their stacks not into memory, or what they left under way not into virtual time.
    #[error("{0}")]
    Setup(String),
    /// A rank failed; the first to do so.
    #[error("rank {rank}: {error}")]
    Rank {
        /// Which.
        rank: Rank,
        /// Its error.
        error: E,
    },
    /// A rank ended the job by [`tailback_transport::Bootstrap::abort`].
    #[error("rank {rank}: {reason}")]
    Aborted {
        /// Which.
        rank: Rank,
        /// Why.
        reason: String,
    },
}

impl Simulation {
    /// A job on every node of `machine`, with as many ranks on each as the machine says.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        let per_node = machine.nodes.ranks_per_node;
        let ranks = machine.nodes.count.saturating_mul(per_node);
        Simulation { machine, per_node, ranks, seed: 1, time_limit_ps: LONGEST_PS }
    }

    /// This many ranks on each node, on every node.
    #[must_use]
    pub fn ranks_per_node(mut self, per_node: usize) -> Self {
        self.per_node = per_node.max(1);
        self.ranks = self.machine.nodes.count.saturating_mul(self.per_node);
        self
    }

    /// This many ranks, on as many nodes as that takes.
    #[must_use]
    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = ranks;
        self
    }

    /// The seed of everything random in the network.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The virtual time after which the job fails, in picoseconds; [`LONGEST_PS`] unless said, and at most. Together with a
    /// bound on what ranks start it bounds how much is simulated, whatever the machine.
    #[must_use]
    pub fn time_limit(mut self, limit_ps: u64) -> Self {
        self.time_limit_ps = limit_ps.min(LONGEST_PS);
        self
    }

    /// How many ranks the job has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.ranks
    }

    /// Runs `body` as every rank.
    ///
    /// # Errors
    /// What the first rank to fail returned; the other ranks' calls fail from then on.
    ///
    /// # Panics
    /// With the panic of the first rank that panicked.
    pub fn run<R, E, F>(&self, body: F) -> Result<Finished<R>, SimError<E>>
    where
        E: fmt::Display,
        F: for<'y> Fn(SimBootstrap<'y>, SimTransport<'y>) -> Result<R, E>,
    {
        self.machine.validate()?;
        let room = room(&self.machine, self.per_node).map_err(SimError::Setup)?;
        if self.ranks == 0 || self.ranks > room {
            return Err(SimError::Setup(format!(
                "{} ranks: the machine {} has room for 1 to {room} with {} on each of its {} nodes",
                self.ranks, self.machine.name, self.per_node, self.machine.nodes.count
            )));
        }
        let mut network = Network::new(&self.machine, self.seed)?;
        network.set_time_limit(self.time_limit_ps);
        let world = Rc::new(RefCell::new(World::new(network, self.ranks, self.per_node)));
        let _current = phase::enter(&world);
        let outcomes: RefCell<Vec<Option<Result<R, E>>>> = RefCell::new((0..self.ranks).map(|_| None).collect());
        let stacks = Stacks::new(self.ranks, STACK).map_err(|error| {
            SimError::Setup(format!(
                "stacks for {} ranks: {error}; kernels before Linux 6.13 need vm.max_map_count above {}",
                self.ranks,
                2 * self.ranks + 1000
            ))
        })?;
        let mut fibers = Fibers::new(stacks);
        for rank in 0..self.ranks {
            let (world, outcomes, body) = (&world, &outcomes, &body);
            fibers.add(move |yielder| {
                let handle = Handle::new(Rc::clone(world), Rank::from(rank), yielder);
                let outcome = body(SimBootstrap::new(handle.clone()), SimTransport::new(handle));
                if let Err(error) = &outcome {
                    world.borrow_mut().fail(Some(Rank::from(rank)), &error.to_string());
                }
                outcomes.borrow_mut()[rank] = Some(outcome);
            });
        }
        let panicked = schedule(&world, &mut fibers);
        drop(fibers);
        if let Some(payload) = panicked {
            panic::resume_unwind(payload);
        }
        finish(&world, outcomes.into_inner())
    }
}

/// How many ranks a machine has room for with `per_node` on each node.
///
/// # Errors
/// If that is more than the simulator has for a node.
pub fn room(machine: &Machine, per_node: usize) -> Result<usize, String> {
    if !(1..=MOST_RANKS_PER_NODE).contains(&per_node) {
        return Err(format!("invalid number of ranks per node '{per_node}': expected 1 to {MOST_RANKS_PER_NODE}"));
    }
    Ok(machine.nodes.count.saturating_mul(per_node).min(MOST_RANKS))
}

/// Runs the ranks to their ends; the first panic, if there is one.
fn schedule(world: &RefCell<World>, fibers: &mut Fibers<'_>) -> Option<Box<dyn Any + Send>> {
    let mut panicked = None;
    let mut left = world.borrow().ranks.len();
    loop {
        let next = {
            let mut world = world.borrow_mut();
            // After the last rank too: what is still under way comes to its end, so that the accounts can be checked.
            while world.ready.is_empty() && world.step() {}
            world.ready.pop_front()
        };
        let Some(rank) = next else {
            if left == 0 {
                return panicked;
            }
            let mut world = world.borrow_mut();
            let reason = stuck(&world);
            world.fail(None, &reason);
            continue;
        };
        let rank = rank as usize;
        let ended = panic::catch_unwind(AssertUnwindSafe(|| fibers.resume(rank)));
        if let Err(payload) = ended {
            if !payload.is::<Aborted>() {
                world.borrow_mut().fail(Some(Rank::from(rank)), "it panicked");
                panicked.get_or_insert(payload);
            }
        } else if !matches!(ended, Ok(true)) {
            continue;
        }
        world.borrow_mut().ranks[rank].done = true;
        left -= 1;
    }
}

/// What to say when everyone waits and nothing is to happen.
fn stuck(world: &World) -> String {
    if world.network.is_out_of_time() {
        return world.out_of_time();
    }
    let meeting = world.ranks.iter().find_map(|state| match state.waiting {
        Waiting::Meeting(operation) => Some(operation),
        _ => None,
    });
    if let Some(operation) = meeting {
        return format!("nothing is under way, and {operation} waits for rank {}", world.meeting.absent());
    }
    let waits = |state: &RankState| !state.done && state.waiting != Waiting::No;
    let first = world.ranks.iter().position(waits).unwrap_or_default();
    format!("nothing is under way, and every rank waits: rank {first} for {:?}", world.ranks[first].waiting)
}

fn finish<R, E: fmt::Display>(
    world: &RefCell<World>,
    outcomes: Vec<Option<Result<R, E>>>,
) -> Result<Finished<R>, SimError<E>> {
    let mut world = world.borrow_mut();
    phase::end(&mut world);
    let failed = world.failure.take();
    let blamed = failed.as_ref().and_then(|failure| failure.rank);
    let mut results = Vec::with_capacity(outcomes.len());
    let mut first: Option<(Rank, Option<E>)> = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        let rank = Rank::from(rank);
        let error = match outcome {
            Some(Ok(result)) => {
                results.push(result);
                continue;
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        if first.is_none() || blamed == Some(rank) {
            first = Some((rank, error));
        }
    }
    match (first, failed) {
        // What was left under way has no end to be checked.
        (None, _) if world.network.is_out_of_time() => Err(SimError::Setup(world.out_of_time())),
        (None, _) => {
            let (now_ps, work, audit) = (world.network.now(), world.network.work(), world.network.audit());
            Ok(Finished { results, now_ps, work, audit, phases: std::mem::take(&mut world.phases) })
        }
        (Some((rank, Some(error))), _) => Err(SimError::Rank { rank, error }),
        (Some((rank, None)), failed) => {
            let reason = failed.map_or_else(|| "it ended without a result".into(), |failure| failure.reason);
            Err(SimError::Aborted { rank, reason })
        }
    }
}
