//! The communication kernels: what one iteration of a canary or a congestor does.
//!
//! A kernel is a struct with an [`Kernel::iterate`] that is generic over the group, so that the timed loop is
//! monomorphised per backend. To add one: a file here, a line in [`registry`]. Sizes, counts and names are GPCNeT's
//! unless a plan says otherwise; receives never overlap in memory, and received data is checked between passes.

mod allreduce;
mod alltoall;
mod application;
mod at_once;
mod broadcast;
mod clock;
mod incast;
mod panel;
mod payload;
pub mod registry;
mod repeat;
mod ring_bandwidth;
mod ring_latency;

use tailback_transport::{Error, Group, Rank, Result};

use crate::layout::Neighbours;

pub(crate) use clock::{CLOCK_SEGMENT, SharedClock};
pub use registry::{Canary, Congestor, Info, KernelVisitor, Ring};
pub(crate) use repeat::until_steady;

/// The knobs of a kernel that a plan sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Message size.
    pub bytes: usize,
    /// Messages outstanding per neighbour, for bandwidth kernels.
    pub window: usize,
}

/// One iteration of a communication pattern, for one member of a group.
pub trait Kernel {
    /// The kernel for a member of a group of `size`.
    fn new(shape: Shape, size: usize, rank: Rank) -> Self;

    /// How many bytes of segment a member needs.
    fn segment(shape: Shape, size: usize) -> usize;

    /// Fills what this member sends, so that receivers can check it. Called before the first iteration.
    fn fill<G: Group>(&self, group: &mut G) -> Result<()>;

    /// One iteration. `ring` is this member's place in the current ring; kernels without rings ignore it.
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()>;

    /// Checks what the last iteration brought. Called outside timed regions, when no peer is writing.
    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()>;

    /// Payload bytes that this member moves in an iteration: those it sends or puts, or those it gets. Zero for a root
    /// that only serves others; such a member takes no samples.
    fn payload(&self) -> usize;

    /// A latency sample is the iteration's time divided by this.
    const PARTS: u64 = 1;
}

const STEP: usize = 4096;

/// Writes the pattern of this member over `len` bytes at `offset`.
pub(crate) fn fill_pattern<G: Group>(group: &mut G, offset: usize, len: usize) {
    let me = group.rank();
    let mut block = [0u8; STEP];
    for start in (0..len).step_by(STEP) {
        let block = &mut block[..STEP.min(len - start)];
        payload::fill(me, start, block);
        group.write(offset + start, block);
    }
}

/// Compares `len` bytes at `offset` with what `sender` sends.
pub(crate) fn check_pattern<G: Group>(group: &G, sender: Rank, offset: usize, len: usize) -> Result<()> {
    let mut block = [0u8; STEP];
    for start in (0..len).step_by(STEP) {
        let block = &mut block[..STEP.min(len - start)];
        group.read(offset + start, block);
        if let Some((at, sent)) = payload::difference(sender, start, block) {
            return Err(Error::Protocol {
                operation: "checking received data",
                peer: None,
                detail: format!(
                    "byte {} of {len} from member {sender} of the team is {:#04x}, not {sent:#04x}: the network or a library corrupted it",
                    start + at,
                    block[at]
                ),
            });
        }
    }
    Ok(())
}
