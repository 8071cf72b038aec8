//! What a kernel is, and the bytes that its members send and check.

use tailback_transport::{Error, Group, Rank, Result, payload};

use crate::layout::Neighbours;

/// What a plan sets of a kernel's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Message size.
    pub bytes: usize,
    /// Messages outstanding per neighbour, for bandwidth kernels.
    pub window: usize,
}

/// One iteration of a communication pattern, for one member of a group.
pub trait Kernel {
    /// A latency sample of a whole iteration is its time divided by this.
    const PARTS: u64 = 1;

    /// Whether members write into each other's segments: one that is still on the last ring would write over what this ring
    /// brought, so they meet before each.
    const PUTS: bool = false;

    /// The kernel for a member of a group of `size`.
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self;

    /// How many bytes of segment a member needs.
    fn segment(sizes: Sizes, size: usize) -> usize;

    /// Fills what this member sends, so that receivers can check it: a message at the start of its segment. Called before
    /// the first iteration.
    fn fill<G: Group>(&self, group: &mut G, sizes: Sizes) {
        fill_pattern(group, 0, sizes.bytes);
    }

    /// One iteration. `ring` is this member's place in the current ring; kernels without rings ignore it.
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()>;

    /// What an open loop times: one message where an iteration has several that need not wait for each other, another one in
    /// every turn; else an iteration.
    #[inline]
    fn message<G: Group>(&self, group: &mut G, ring: Neighbours, _turn: u64) -> Result<()> {
        self.iterate(group, ring)
    }

    /// Checks what the last iteration brought. Called outside timed regions, when no peer is writing.
    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()>;

    /// Payload bytes that this member moves in an iteration: those it sends or puts, or those it gets. Zero for a root
    /// that only serves others; such a member takes no samples.
    fn payload(&self) -> usize;
}

/// By messages, for kernels that move the same bytes in several ways.
pub struct Messages;
/// By puts of whoever has the bytes.
pub struct Puts;
/// By gets of whoever wants the bytes.
pub struct Gets;

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

/// Runs a kernel of 1000-byte messages thrice over a team of all ranks of `job`, checks its data, and gives the payloads.
#[cfg(test)]
pub(super) fn run_on_loopback<K: Kernel>(job: tailback_testkit::loopback::Job, size: usize) -> Result<Vec<usize>> {
    run_of::<K>(job, size, Sizes { bytes: 1000, window: 2 })
}

/// The same, of messages of any size.
#[cfg(test)]
pub(super) fn run_of<K: Kernel>(job: tailback_testkit::loopback::Job, size: usize, sizes: Sizes) -> Result<Vec<usize>> {
    use tailback_engine::Collective;
    use tailback_transport::Transport;
    job.run(|_, raw| {
        let members: Vec<Rank> = (0..size).map(Rank::from).collect();
        let mut transport = Collective::new(raw);
        let mut group = transport.group(&members, K::segment(sizes, size))?;
        let kernel = K::new(sizes, size, group.rank());
        kernel.fill(&mut group, sizes);
        let ring = crate::layout::natural_ring(size, group.rank());
        (0..3).try_for_each(|_| kernel.iterate(&mut group, ring))?;
        group.barrier()?;
        kernel.check(&mut group, ring)?;
        Ok(kernel.payload())
    })
}

/// Corrupts byte 77 of every long message that rank 1 sends or hands on.
#[cfg(test)]
pub(super) struct BadCard;

#[cfg(test)]
impl tailback_testkit::loopback::Fault for BadCard {
    fn corrupt(&self, transfer: tailback_testkit::loopback::Transfer, payload: &mut [u8]) {
        if transfer.from == Rank(1) && payload.len() >= 300 {
            payload[77] ^= 2;
        }
    }
}
