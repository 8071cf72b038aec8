//! Phases of the job that runs on this thread, for whoever hears of them and has no rank's planes at hand.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::world::World;

/// How often the queues are looked at, as a part of a second, until a phase has many looks.
const LOOK_EVERY_PS: u64 = 1_000_000;

thread_local! {
    static CURRENT: RefCell<Weak<RefCell<World>>> = const { RefCell::new(Weak::new()) };
}

/// Makes a job the one that runs on this thread, for as long as this lives.
pub(super) struct Current {
    before: Weak<RefCell<World>>,
}

pub(super) fn enter(world: &Rc<RefCell<World>>) -> Current {
    Current { before: CURRENT.replace(Rc::downgrade(world)) }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.before));
    }
}

/// Begins a phase of the simulated job that runs on this thread and ends the one before: from here on ports count for it.
/// Without such a job this does nothing. Ranks call it between measurements; the first to name a phase begins it, for to begin
/// it once per rank would take more time than the phase.
pub fn begin_phase(name: &str) {
    let Some(world) = CURRENT.with_borrow(Weak::upgrade) else { return };
    if let Ok(mut world) = world.try_borrow_mut()
        && world.network.phase() != Some(name)
    {
        end(&mut world);
        world.network.begin_phase(name, LOOK_EVERY_PS);
    }
}

/// Ends the phase under way.
pub(super) fn end(world: &mut World) {
    if let Some(phase) = world.network.end_phase() {
        world.phases.push(phase);
    }
}
