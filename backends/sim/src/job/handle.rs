//! A rank's way to the others: the shared world, and the way to give up the processor.

use std::cell::RefCell;
use std::rc::Rc;

use tailback_transport::{Rank, Result};

use super::world::{Waiting, World};
use crate::ffi::Yielder;

/// One rank's handle. It cannot leave the coroutine that it was made for: its lifetime is that coroutine's.
#[derive(Clone)]
pub(super) struct Handle<'y> {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) rank: Rank,
    yielder: &'y Yielder,
}

impl<'y> Handle<'y> {
    pub(super) fn new(world: Rc<RefCell<World>>, rank: Rank, yielder: &'y Yielder) -> Self {
        Handle { world, rank, yielder }
    }

    /// Waits until the world says that the wait is over.
    pub(super) fn wait(&self, waiting: Waiting) {
        self.world.borrow_mut().ranks[self.rank.index()].waiting = waiting;
        self.yielder.suspend(());
    }

    /// Lets the network come up to this rank's time.
    pub(super) fn catch_up(&self) {
        self.world.borrow_mut().wake_in_time(self.rank);
        self.yielder.suspend(());
    }

    /// Brings `bytes` to a meeting of all ranks and waits for what everyone brought.
    pub(super) fn meet(&self, operation: &'static str, bytes: Vec<u8>) -> Result<Rc<Vec<Vec<u8>>>> {
        let mut world = self.world.borrow_mut();
        world.enter(operation, self.rank)?;
        let me = self.rank.index();
        let clock = world.ranks[me].clock;
        let over = world.meeting.bring(me, clock, bytes);
        match over {
            // The last to come wakes the others and goes on.
            Some(latest) => {
                for rank in 0..world.ranks.len() {
                    world.ranks[rank].clock = latest;
                    if rank != me {
                        world.wake(rank);
                    }
                }
            }
            None => {
                drop(world);
                self.wait(Waiting::Meeting(operation));
                world = self.world.borrow_mut();
            }
        }
        world.enter(operation, self.rank)?;
        Ok(Rc::clone(&world.meeting.told))
    }
}
