//! The bootstrap of a simulated job.

use std::rc::Rc;
use std::sync::Arc;

use tailback_transport::{Bootstrap, Merge, Rank, Result};

use super::handle::Handle;

/// One rank's place in the job.
pub struct SimBootstrap<'y> {
    handle: Handle<'y>,
    size: usize,
    host: String,
    machine: String,
}

/// What ranks call the node that they are on.
#[must_use]
pub fn host_name(node: usize) -> String {
    format!("n{node:05}")
}

/// What a rank that aborts unwinds with.
pub(super) struct Aborted;

impl<'y> SimBootstrap<'y> {
    pub(super) fn new(handle: Handle<'y>) -> Self {
        let world = handle.world.borrow();
        let (size, node) = (world.ranks.len(), world.node(handle.rank));
        let machine = world.machine.name.clone();
        drop(world);
        SimBootstrap { handle, size, host: host_name(node), machine }
    }

    fn meet(&self, operation: &'static str, bytes: Vec<u8>) -> Result<Rc<Vec<Vec<u8>>>> {
        self.handle.meet(operation, bytes)
    }
}

impl Bootstrap for SimBootstrap<'_> {
    fn rank(&self) -> Rank {
        self.handle.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn everyone(&self) -> Arc<[Rank]> {
        Arc::clone(&self.handle.world.borrow().everyone)
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn launcher(&self) -> String {
        format!("simulated: coroutines of one process on the machine {}", self.machine)
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(self.meet("allgather", mine.to_vec())?.to_vec())
    }

    fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mine = if self.rank() == Rank(0) { bytes } else { Vec::new() };
        Ok(self.meet("broadcast", mine)?[0].clone())
    }

    /// A binomial tree, one meeting per level: ranks whose bit is set hand over to the rank without it.
    fn reduce(&mut self, mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>> {
        let (me, size) = (self.rank().index(), self.size);
        let mut mine = mine;
        let mut bit = 1;
        while bit < size {
            let gives = me % (2 * bit) == bit;
            let level = self.meet("reduce", if gives { std::mem::take(&mut mine) } else { Vec::new() })?;
            if me % (2 * bit) == 0 && me + bit < size {
                merge(&mut mine, &level[me + bit])?;
            }
            bit *= 2;
        }
        Ok((me == 0).then_some(mine))
    }

    fn barrier(&mut self) -> Result<()> {
        self.meet("barrier", Vec::new()).map(drop)
    }

    /// Unwinds this rank; [`crate::Simulation::run`] then gives the reason.
    fn abort(&self, reason: &str) -> ! {
        self.handle.world.borrow_mut().fail(Some(self.handle.rank), reason);
        std::panic::resume_unwind(Box::new(Aborted))
    }
}
