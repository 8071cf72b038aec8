//! A simulated network: this process is the whole job, and its ranks are coroutines on virtual time.
//!
//! Every opening of the network is a simulated job of its own, from its first event to its last: placements know nothing of
//! each other. What is decided once for all ranks is decided by the process, which speaks for them outside of a job.

use std::cell::RefCell;
use std::sync::Arc;

use tailback_sim::machine::{Machine, shipped};
use tailback_sim::net::PhaseCounters;
use tailback_sim::{SimError, Simulation, host_name, room};
use tailback_transport::{Bootstrap, Error, Merge, Rank, Result as TransportResult};

use super::{Network, RoleSettings, Settings};
use crate::engine::{Body, OpenPair};

/// How many ranks, and how many on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSize {
    /// Ranks of the job, on the first nodes of the machine.
    pub ranks: usize,
    /// On each of these nodes; the last may have fewer.
    pub per_node: usize,
}

impl JobSize {
    /// All of a machine, or what was asked for.
    pub fn of(machine: &Machine, ranks: Option<usize>, per_node: Option<usize>) -> Result<Self, String> {
        let per_node = per_node.unwrap_or(machine.nodes.ranks_per_node).max(1);
        let room = room(machine, per_node).map_err(|error| format!("{error} (--ranks-per-node)"))?;
        let size = JobSize { ranks: ranks.unwrap_or(room), per_node };
        if size.ranks == 0 || size.ranks > room {
            let (Machine { name, nodes, .. }, ranks) = (machine, size.ranks);
            return Err(format!(
                "{ranks} ranks: the machine {name} has room for 1 to {room} with {per_node} on each of its {} nodes \
                 (-n and --ranks-per-node choose)",
                nodes.count
            ));
        }
        Ok(size)
    }

    /// Nodes that have ranks.
    pub fn nodes(self) -> usize {
        self.ranks.div_ceil(self.per_node)
    }
}

/// Whether this build can.
pub fn can_simulate() -> Result<(), String> {
    Ok(())
}

/// Speaks for all ranks of a job, outside of what is simulated.
pub(super) fn everyone(size: JobSize, machine: &Machine) -> Box<dyn Bootstrap> {
    Box::new(Everyone { size: size.ranks, machine: machine.name.clone() })
}

pub(super) fn state() -> String {
    let names: Vec<&str> = shipped().collect();
    format!("ready: simulated machines, needs no network: {}", names.join(", "))
}

/// Whether there is a machine, and nothing was asked that virtual time has no use for.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    if settings.machine.is_none() {
        let names: Vec<&str> = shipped().collect();
        return Err(format!("--transport sim needs --machine: one of {}, or a file", names.join(", ")));
    }
    class(settings)?;
    if settings.stall_limit.is_some() {
        return Err("--stall-limit is for ranks in real time: a simulated job that is stuck ends at once".into());
    }
    Ok(())
}

/// The class of a rank's packets: a number of the machine's, of which 0 is served first.
fn class(settings: &Settings) -> Result<usize, String> {
    let (Some(text), Some(machine)) = (&settings.traffic_class, &settings.machine) else { return Ok(0) };
    let (name, classes) = (&machine.name, machine.switch.classes);
    text.parse().ok().filter(|&class| class < classes).ok_or_else(|| match classes {
        1 => format!("traffic class {text}: the machine {name} has one class, 0 (switch.classes in its file)"),
        _ => format!("traffic class {text}: the machine {name} has the classes 0, served first, to {}", classes - 1),
    })
}

/// What was simulated for a while.
#[derive(Clone, Debug)]
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

impl Simulated {
    fn nothing(machine: Arc<Machine>) -> Self {
        Simulated { machine, phases: Vec::new(), elapsed_ps: 0, hops: 0 }
    }
}

/// The jobs that this process has simulated, one for each opening of a network.
#[derive(Clone)]
pub(super) struct SimulatedJobs {
    size: JobSize,
    seed: u64,
    opened: u64,
    so_far: Simulated,
}

impl SimulatedJobs {
    pub(super) fn new(machine: Arc<Machine>, size: JobSize, seed: u64) -> Self {
        SimulatedJobs { size, seed, opened: 0, so_far: Simulated::nothing(machine) }
    }

    /// Runs `body` as every rank of a job of its own. An error of a rank ends the others.
    pub(super) fn run<O>(
        &mut self,
        network: Network,
        settings: &Settings,
        role: &dyn Fn(Rank) -> RoleSettings,
        body: Body<'_, O>,
    ) -> TransportResult<O> {
        let first = RefCell::new(None);
        self.run_all(network, settings, role, &|bootstrap, networks| {
            let is_first = bootstrap.rank().index() == 0;
            let made = body(bootstrap, networks)?;
            if is_first {
                first.replace(Some(made));
            }
            Ok(())
        })?;
        // What all ranks know, the first one tells.
        Ok(first.take().expect("all ranks have come to their end"))
    }

    /// The same for work that keeps what it makes. Not generic, so that what is simulated is compiled, and optimised, here and not
    /// where it is called.
    fn run_all(
        &mut self,
        network: Network,
        settings: &Settings,
        role: &dyn Fn(Rank) -> RoleSettings,
        body: Body<'_, ()>,
    ) -> TransportResult<()> {
        let class_of = |rank| class(&settings.of_role(&role(Rank::from(rank))));
        let classes: Result<Vec<usize>, String> = (0..self.size.ranks).map(class_of).collect();
        let classes = classes.map_err(Error::Setup)?;
        self.opened += 1;
        let job = Simulation::new(Machine::clone(&self.so_far.machine))
            .ranks_per_node(self.size.per_node)
            .ranks(self.size.ranks)
            .seed(self.seed.wrapping_mul(1000).wrapping_add(self.opened));
        let finished = job.run(|mut bootstrap, mut raw| {
            raw.set_class(classes[bootstrap.rank().index()]).expect("the machine was asked for the class");
            let mut open = network.over(raw);
            body(&mut bootstrap, &mut OpenPair { canaries: &mut *open, congestors: None })
        });
        let mut finished = finished.map_err(|failed: SimError<Error>| {
            let simulated = if matches!(failed, SimError::Rank { .. }) { "simulated " } else { "" };
            Error::Setup(format!("{simulated}{failed}"))
        })?;
        if !finished.audit.is_clean() {
            let detail = format!("the simulated network lost count: {}", finished.audit.faults.join("; "));
            return Err(Error::Protocol { operation: "simulation", peer: None, detail });
        }
        self.so_far.phases.append(&mut finished.phases);
        self.so_far.elapsed_ps = self.so_far.elapsed_ps.saturating_add(finished.now_ps);
        self.so_far.hops += finished.work.hops;
        Ok(())
    }

    /// Counts a job that is not simulated.
    pub(super) fn pass_over(&mut self) {
        self.opened += 1;
    }

    /// Every rank's host and group.
    pub(super) fn places(&self) -> impl Iterator<Item = (String, String)> {
        let nodes = (0..self.size.ranks).map(|rank| rank / self.size.per_node);
        nodes.map(|node| (host_name(node), self.so_far.machine.group_of(node)))
    }

    /// What was simulated since this was asked last.
    pub(super) fn take(&mut self) -> Simulated {
        let nothing = Simulated::nothing(Arc::clone(&self.so_far.machine));
        std::mem::replace(&mut self.so_far, nothing)
    }
}

/// All ranks at once, between simulated jobs: what this process brings, every rank brings.
struct Everyone {
    size: usize,
    machine: String,
}

impl Bootstrap for Everyone {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host(&self) -> &str {
        &self.machine
    }

    fn launcher(&self) -> String {
        format!("simulated: coroutines of one process on the machine {}", self.machine)
    }

    fn allgather(&mut self, mine: &[u8]) -> TransportResult<Vec<Vec<u8>>> {
        Ok(vec![mine.to_vec(); self.size])
    }

    fn broadcast(&mut self, bytes: Vec<u8>) -> TransportResult<Vec<u8>> {
        Ok(bytes)
    }

    fn reduce(&mut self, mine: Vec<u8>, _: Merge<'_>) -> TransportResult<Option<Vec<u8>>> {
        Ok(Some(mine))
    }

    fn barrier(&mut self) -> TransportResult<()> {
        Ok(())
    }

    fn abort(&self, reason: &str) -> ! {
        eprintln!("tailback: error: {reason}");
        std::process::exit(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_from_the_machine_unless_asked_for() {
        let machine = Machine::load("small").unwrap();
        let shape =
            |ranks, per_node| JobSize::of(&machine, ranks, per_node).map(|of| (of.ranks, of.per_node, of.nodes()));
        assert_eq!(shape(None, None), Ok((64, 1, 64)));
        assert_eq!(shape(None, Some(4)), Ok((256, 4, 64)));
        assert_eq!(shape(Some(10), Some(4)), Ok((10, 4, 3)));
        assert!(shape(Some(65), None).unwrap_err().contains("room for 1 to 64"));
        assert!(shape(Some(0), None).is_err());
        assert_eq!(shape(None, Some(1024)), Ok((65_536, 1024, 64)));
        for per_node in [1025, usize::MAX] {
            let error = shape(Some(2), Some(per_node)).unwrap_err();
            let expected =
                format!("invalid number of ranks per node '{per_node}': expected 1 to 1024 (--ranks-per-node)");
            assert_eq!(error, expected);
        }
    }
}
