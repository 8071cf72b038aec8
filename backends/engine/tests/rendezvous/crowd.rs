//! A backend whose puts and gets are over one after the other, each only when the one before was answered by a FIN.

use tailback_engine::{Lane, RawGroup, RawTransport};
use tailback_host::Idle;
use tailback_testkit::{loopback::Loopback, loopback::LoopbackGroup};
use tailback_transport::{Capabilities, Description, Error, Nanos, Rank, Result, Span, Tag};

/// The loopback but for that.
pub struct Crowd(pub Loopback);

/// Its groups.
pub struct CrowdGroup {
    raw: LoopbackGroup,
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

impl RawTransport for Crowd {
    type Group = CrowdGroup;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<CrowdGroup> {
        self.0.group(members, segment).map(|raw| CrowdGroup { raw, accesses: 0, fins: 0, asked: 0 })
    }
}

impl RawGroup for CrowdGroup {
    fn rank(&self) -> Rank {
        self.raw.rank()
    }

    fn size(&self) -> usize {
        self.raw.size()
    }

    fn now(&self) -> Nanos {
        self.raw.now()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.raw.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.raw.write(offset, from);
    }

    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.fins += u64::from(lane == Lane::Protocol && span.len == FIN);
        self.raw.post_send(lane, to, tag, span)
    }

    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.raw.post_recv(lane, from, tag, span)
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.accesses += 1;
        self.raw.put(to, local, remote)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.accesses += 1;
        self.raw.get(from, local, remote)
    }

    /// Never sleeps, so that who waits for ever asks so often that it is noticed.
    fn progress(&mut self, _: Idle) -> Result<()> {
        self.raw.progress(Idle::Return)
    }

    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        self.raw.is_complete(lane)
    }

    fn is_sent(&mut self, lane: Lane, to: Rank) -> Result<bool> {
        self.raw.is_sent(lane, to)
    }

    fn is_flushed(&mut self, peer: Rank) -> Result<bool> {
        self.are_flushed(peer, self.accesses)
    }

    fn accesses(&self, _: Rank) -> u64 {
        self.accesses
    }

    fn are_flushed(&mut self, peer: Rank, count: u64) -> Result<bool> {
        self.asked += 1;
        if self.asked > PATIENCE {
            return Err(Error::Setup(format!("nobody says that the first {} are there", self.fins + 1)));
        }
        Ok(self.accesses >= TOGETHER && count <= self.fins + 1 && self.raw.is_flushed(peer)?)
    }
}
