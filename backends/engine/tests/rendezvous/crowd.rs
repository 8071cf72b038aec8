//! A backend whose puts and gets are over one after the other, each only when the one before was answered by a FIN.

use tailback_engine::{Engine, Lane, Membership};
use tailback_host::Idle;
use tailback_testkit::loopback::Loopback;
use tailback_transport::{Description, Error, Nanos, Rank, Result, Span, Tag};

/// The loopback but for that.
pub struct Crowd {
    raw: Loopback,
    accesses: u64,
    fins: u64,
    asked: u32,
}

/// Accesses that are under way together before any is over.
pub const TOGETHER: u64 = 3;

/// How often it may be asked.
const PATIENCE: u32 = 200_000;

/// Bytes of a FIN.
const FIN: usize = 8;

impl Crowd {
    pub fn over(raw: Loopback) -> Self {
        Crowd { raw, accesses: 0, fins: 0, asked: 0 }
    }
}

impl Engine for Crowd {
    type Slot = usize;

    fn describe(&self) -> Description {
        self.raw.describe()
    }

    fn now(&self) -> Nanos {
        self.raw.now()
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<usize>> {
        self.raw.make_group(members, segment)
    }

    fn drop_group(&mut self, slot: usize) {
        self.raw.drop_group(slot);
    }

    fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        self.raw.read(slot, offset, into);
    }

    fn write(&mut self, slot: usize, offset: usize, from: &[u8]) {
        self.raw.write(slot, offset, from);
    }

    fn post_send(&mut self, slot: usize, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.fins += u64::from(lane == Lane::Protocol && span.len == FIN);
        self.raw.post_send(slot, lane, to, tag, span)
    }

    fn post_recv(&mut self, slot: usize, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.raw.post_recv(slot, lane, from, tag, span)
    }

    fn put(&mut self, slot: usize, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.accesses += 1;
        self.raw.put(slot, to, local, remote)
    }

    fn get(&mut self, slot: usize, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.accesses += 1;
        self.raw.get(slot, from, local, remote)
    }

    /// Never sleeps, so that who waits for ever asks so often that it is noticed.
    fn progress(&mut self, _: Idle) -> Result<()> {
        self.raw.progress(Idle::Return)
    }

    fn is_complete(&mut self, slot: usize, lane: Lane) -> Result<bool> {
        self.raw.is_complete(slot, lane)
    }

    fn is_sent(&mut self, slot: usize, lane: Lane, to: Rank) -> Result<bool> {
        self.raw.is_sent(slot, lane, to)
    }

    fn is_flushed(&mut self, slot: usize, peer: Rank) -> Result<bool> {
        self.are_flushed(slot, peer, self.accesses)
    }

    fn accesses(&self, _: usize, _: Rank) -> u64 {
        self.accesses
    }

    fn are_flushed(&mut self, slot: usize, peer: Rank, count: u64) -> Result<bool> {
        self.asked += 1;
        if self.asked > PATIENCE {
            return Err(Error::Setup(format!("nobody says that the first {} are there", self.fins + 1)));
        }
        Ok(self.accesses >= TOGETHER && count <= self.fins + 1 && self.raw.is_flushed(slot, peer)?)
    }
}
