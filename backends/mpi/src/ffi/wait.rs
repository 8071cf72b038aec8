//! How a rank waits for the end of an MPI call. Invariants as in `ffi.rs`.
//!
//! MPI's blocking calls look at the network again and again, and some libraries never offer the core to anybody else:
//! ranks that share one then wait for each other for whole time slices. Such ranks start what they wait for and look
//! for its end themselves, and yield or nap in between. MPI has no way to sleep until something arrives.
//!
//! A nap is better than to yield where others compute: who yields to them gets the core back when their slice is over,
//! milliseconds later; who wakes up goes first.
//!
//! Calls that have no second form still wait inside MPI: `MPI_Win_flush`, and what makes and frees communicators and
//! windows.

use std::mem::ManuallyDrop;
use std::thread;
use std::time::Duration;

use mpi::ffi;
use mpi::ffi::MPI_Request;
use tailback_transport::{Rank, Result};

use super::{failure, mpi, null_request};

/// Fruitless looks before the first nap: what is about to end need not pay for one.
const LOOKS: u32 = 16;
/// To which the system adds its slack, usually 50 us.
const NAP: Duration = Duration::from_micros(20);

/// Where the end of a call is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Inside MPI's own blocking calls, at their cost: for ranks that have a core each.
    Inside,
    /// As `Inside`, except for collectives, which are started first: a blocking one does not meet the started one of
    /// ranks elsewhere in the job that wait apart.
    Mixed,
    /// Here, with the core offered to others after each fruitless look.
    Yielding,
    /// Here, asleep for a moment between looks.
    Napping,
}

impl Waiting {
    /// Whether blocking calls are avoided.
    #[inline(always)]
    pub(super) fn is_apart(self) -> bool {
        matches!(self, Waiting::Yielding | Waiting::Napping)
    }

    /// What to do after a fruitless look, of which there have been `looks`.
    pub(super) fn pause(self, looks: u32) {
        match self {
            Waiting::Napping if looks > LOOKS => thread::sleep(NAP),
            Waiting::Napping => std::hint::spin_loop(),
            _ => thread::yield_now(),
        }
    }

    /// Starts something and returns after its end, as a blocking call does.
    pub(super) fn after(self, peer: Option<Rank>, start: impl FnOnce(&mut MPI_Request) -> Result<()>) -> Result<()> {
        let mut request = null_request();
        start(&mut request)?;
        self.until_done(&mut request, peer)
    }

    /// Likewise, with `memory` that MPI reads or writes meanwhile, on the heap; it is given back. An error is no proof that
    /// MPI is done with it: it then stays as it is until the process ends.
    pub(super) fn after_with<M>(
        self,
        peer: Option<Rank>,
        memory: M,
        start: impl FnOnce(&mut M, &mut MPI_Request) -> Result<()>,
    ) -> Result<M> {
        let mut memory = ManuallyDrop::new(memory);
        self.after(peer, |end| start(&mut memory, end))?;
        Ok(ManuallyDrop::into_inner(memory))
    }

    pub(super) fn until_done(self, request: &mut MPI_Request, peer: Option<Rank>) -> Result<()> {
        if !self.is_apart() {
            // SAFETY: *Live*; a request of ours, pending.
            return unsafe { mpi!(MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE), peer) };
        }
        let mut looks = 0u32;
        while !test(request, peer)? {
            looks = looks.saturating_add(1);
            self.pause(looks);
        }
        Ok(())
    }

    /// Whether it is done. Whoever asks may have nothing else to do, so the core is offered after a no; but no nap, as
    /// there may be.
    pub(super) fn look(self, request: &mut MPI_Request) -> Result<bool> {
        let done = test(request, None)?;
        if !done && self.is_apart() {
            thread::yield_now();
        }
        Ok(done)
    }
}

fn test(request: &mut MPI_Request, peer: Option<Rank>) -> Result<bool> {
    let mut done = 0;
    // SAFETY: *Live*; a request of ours, pending.
    unsafe { mpi!(MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE), peer) }?;
    Ok(done != 0)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tailback_transport::Error;

    use super::*;

    #[test]
    fn memory_that_mpi_may_still_use_is_kept() {
        let memory = Rc::new(7);
        let fail = |_: &mut Rc<i32>, _: &mut MPI_Request| Err(Error::Setup("MPI_Ibcast failed".into()));
        assert!(Waiting::Yielding.after_with(None, Rc::clone(&memory), fail).is_err());
        assert_eq!(Rc::strong_count(&memory), 2, "it was dropped");
    }
}
