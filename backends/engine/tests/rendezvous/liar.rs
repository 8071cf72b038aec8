//! A backend that says a flush is done before it is.

use tailback_engine::{Lane, RawGroup, RawTransport};
use tailback_host::Idle;
use tailback_testkit::{loopback::Loopback, loopback::LoopbackGroup};
use tailback_transport::{Capabilities, Description, Nanos, Rank, Result, Span, Tag};

/// The loopback but for that.
pub struct Liar(pub Loopback);

/// Its groups.
pub struct LiarGroup(LoopbackGroup);

impl RawTransport for Liar {
    type Group = LiarGroup;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<LiarGroup> {
        self.0.group(members, segment).map(LiarGroup)
    }
}

impl RawGroup for LiarGroup {
    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.0.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.0.write(offset, from);
    }

    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.0.post_send(lane, to, tag, span)
    }

    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.0.post_recv(lane, from, tag, span)
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.0.put(to, local, remote)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.0.get(from, local, remote)
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.0.progress(idle)
    }

    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        self.0.is_complete(lane)
    }

    fn is_sent(&mut self, lane: Lane, to: Rank) -> Result<bool> {
        self.0.is_sent(lane, to)
    }

    fn is_flushed(&mut self, _: Rank) -> Result<bool> {
        Ok(true)
    }
}
