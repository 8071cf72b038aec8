//! The groups of one transport, so that a call that waits in one of them can go on with the others' rendezvous.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use tailback_transport::Result;

use super::machine::Machine;
use crate::RawGroup;

/// See the module. Groups that were dropped leave when the next one comes.
#[derive(Debug)]
pub(super) struct Registry<G> {
    /// Messages under way in all groups. Nothing is walked while there are none.
    open: Rc<Cell<usize>>,
    machines: RefCell<Vec<Weak<RefCell<Machine<G>>>>>,
}

impl<G> Default for Registry<G> {
    fn default() -> Self {
        Registry { open: Rc::default(), machines: RefCell::default() }
    }
}

impl<G> Registry<G> {
    /// The common count of messages under way.
    pub(super) fn open(&self) -> Rc<Cell<usize>> {
        Rc::clone(&self.open)
    }

    /// Whether a message is under way in any group.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.open.get() > 0
    }

    pub(super) fn add(&self, machine: &Rc<RefCell<Machine<G>>>) {
        let mut machines = self.machines.borrow_mut();
        machines.retain(|machine| machine.strong_count() > 0);
        machines.push(Rc::downgrade(machine));
    }
}

impl<G: RawGroup> Registry<G> {
    /// Goes on with every message that can; `own` is the group whose call this is. Says whether one did.
    pub(super) fn advance(&self, own: &mut Machine<G>) -> Result<bool> {
        let mut moved = own.advance()?;
        if self.open.get() == own.under_way() {
            return Ok(moved);
        }
        for machine in self.machines.borrow().iter().filter_map(Weak::upgrade) {
            // The caller's own is borrowed, and was served above.
            if let Ok(mut machine) = machine.try_borrow_mut() {
                moved |= machine.advance()?;
            }
        }
        Ok(moved)
    }
}
