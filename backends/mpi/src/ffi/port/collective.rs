//! What all members of a group do together, at once or in the background. Invariants as in `ffi.rs`.

use mpi::ffi;
use mpi::ffi::MPI_Request;
use tailback_transport::{Error, Proposal, Result, Span};

use super::super::segment::Model;
use super::super::{Waiting, failure, mpi, null_request, signed, tailback_mpi_double, tailback_mpi_in_place, unsigned};
use super::Port;

impl Port {
    #[inline]
    pub(crate) fn barrier(&mut self) -> Result<()> {
        self.comm.barrier()?;
        if self.segment.model() == Some(Model::Separate) {
            // What peers put before the barrier may be sent on after it, by calls that read the private copy.
            self.segment.sync();
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn allreduce(&mut self, span: Span) -> Result<()> {
        let (at, n) = self.segment.place("allreduce", span)?;
        if !span.len.is_multiple_of(8) || !span.offset.is_multiple_of(8) {
            let detail = format!("{} bytes at offset {} are not doubles in their place", span.len, span.offset);
            return Err(Error::Usage { operation: "allreduce", detail });
        }
        // SAFETY: *Live*, *Inside*; the base is aligned for any type and the offset for doubles.
        unsafe {
            let (all, n, double, sum) = (tailback_mpi_in_place, n / 8, tailback_mpi_double, ffi::RSMPI_SUM);
            match self.comm.waiting {
                Waiting::Inside => mpi!(MPI_Allreduce(all, at.cast(), n, double, sum, self.comm.raw)),
                apart => {
                    apart.after(None, |end| mpi!(MPI_Iallreduce(all, at.cast(), n, double, sum, self.comm.raw, end)))
                }
            }
        }
    }

    pub(crate) fn start_barrier(&mut self) -> Result<()> {
        idle("start_barrier", self.barrier)?;
        // SAFETY: *Live*; no other barrier is under way on this communicator.
        unsafe { mpi!(MPI_Ibarrier(self.background[0].raw, &mut self.barrier)) }
    }

    pub(crate) fn test_barrier(&mut self) -> Result<bool> {
        under_way("poll_barrier", self.barrier)?;
        self.comm.waiting.look(&mut self.barrier)
    }

    pub(crate) fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        idle("start_agreement", self.agreement)?;
        self.proposals[0] = mine.map(signed);
        let base = self.proposals.as_mut_ptr();
        // SAFETY: *Live*; both rows are on the heap, untouched until the request is complete, and leaked by `retire`
        // if it never is.
        unsafe {
            let (from, into) = (base.cast_const().cast(), base.add(1).cast());
            let (kind, max) = (ffi::RSMPI_INT64_T, ffi::RSMPI_MAX);
            mpi!(MPI_Iallreduce(from, into, 4, kind, max, self.background[1].raw, &mut self.agreement))
        }
    }

    pub(crate) fn test_agreement(&mut self) -> Result<Option<Proposal>> {
        under_way("poll_agreement", self.agreement)?;
        Ok(if self.comm.waiting.look(&mut self.agreement)? { Some(self.proposals[1].map(unsigned)) } else { None })
    }

    pub(crate) fn wait_agreement(&mut self) -> Result<Proposal> {
        under_way("wait_agreement", self.agreement)?;
        self.comm.waiting.until_done(&mut self.agreement, None)?;
        Ok(self.proposals[1].map(unsigned))
    }
}

fn idle(operation: &'static str, request: MPI_Request) -> Result<()> {
    if request == null_request() {
        return Ok(());
    }
    Err(Error::Usage { operation, detail: "one is already under way on this group".into() })
}

fn under_way(operation: &'static str, request: MPI_Request) -> Result<()> {
    if request != null_request() {
        return Ok(());
    }
    Err(Error::Usage { operation, detail: "none is under way on this group".into() })
}
