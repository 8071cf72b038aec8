//! For tests: ranks on the loopback transport, and a card that spoils messages.

use tailback_engine::Collective;
use tailback_testkit::loopback::{Fault, Job, Loopback, Transfer};
use tailback_transport::{Rank, Result, Transport};

type Group = <Collective<Loopback> as Transport>::Group;

/// Runs `body` on a group of all ranks of `job`, each with so many bytes of segment.
pub(crate) fn on_ranks<R: Send>(
    job: Job,
    ranks: usize,
    bytes: usize,
    body: impl Fn(&mut Group) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    job.run(|_, raw| {
        let members: Vec<Rank> = (0..ranks).map(Rank::from).collect();
        body(&mut Collective::new(raw).group(&members, bytes)?)
    })
}

/// Changes a byte of every message of rank 1 that is longer than this.
pub(crate) struct BadCard {
    pub(crate) longer: usize,
    pub(crate) at: usize,
    pub(crate) bits: u8,
}

impl Fault for BadCard {
    fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
        if transfer.from == Rank(1) && payload.len() > self.longer {
            payload[self.at] ^= self.bits;
        }
    }
}
