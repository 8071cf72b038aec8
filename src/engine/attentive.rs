//! A congestor's group while it iterates: between two waits of an iteration, the agreement of all ranks may advance.
//!
//! An agreement takes a round for each doubling of the ranks, and a rank takes part in a round only when it looks. Iterations
//! of an all-to-all beside full queues take milliseconds to seconds: if ranks looked once in each, the end of a part would be
//! known a dozen iterations late.

use tailback_transport::{Group, Nanos, Proposal, Rank, Result, Span, Tag};

/// What advances meanwhile.
pub(super) trait Background {
    /// Goes as far as it can without waiting.
    fn advance(&mut self) -> Result<()>;
}

/// See the module. Everything else is the group's own.
pub(super) struct Attentive<'a, G, B> {
    pub group: &'a mut G,
    pub background: &'a mut B,
    /// Looks are at least this far apart.
    pub every: Nanos,
    /// The last one.
    pub last: &'a mut Nanos,
}

impl<G: Group, B: Background> Attentive<'_, G, B> {
    fn look(&mut self) -> Result<()> {
        let now = self.group.now();
        if now.since(*self.last) < self.every {
            return Ok(());
        }
        *self.last = now;
        self.background.advance()
    }
}

impl<G: Group, B: Background> Group for Attentive<'_, G, B> {
    fn rank(&self) -> Rank {
        self.group.rank()
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn now(&self) -> Nanos {
        self.group.now()
    }

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        self.group.wait_until(at)
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.group.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.group.write(offset, from);
    }

    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.group.post_send(to, tag, span)
    }

    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.group.post_recv(from, tag, span)
    }

    fn wait_all(&mut self) -> Result<()> {
        self.group.wait_all()?;
        self.look()
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.group.put(to, local, remote)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.group.get(from, local, remote)
    }

    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.group.flush(peer)?;
        self.look()
    }

    fn barrier(&mut self) -> Result<()> {
        self.group.barrier()
    }

    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.group.allreduce(values)
    }

    fn start_barrier(&mut self) -> Result<()> {
        self.group.start_barrier()
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        self.group.poll_barrier()
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        self.group.start_agreement(mine)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        self.group.poll_agreement()
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        self.group.wait_agreement()
    }
}
