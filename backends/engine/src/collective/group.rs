//! [`CollectiveGroup`]: checks what the user names, then hands data to the raw group and collectives to their algorithms.

use tailback_host::Idle;
use tailback_transport::{Error, Group, Nanos, Proposal, Rank, Result, Span, Tag};

use super::allreduce::Allreduce;
use super::dissemination::Dissemination;
use super::scratch::{Scratch, Sequence};
use crate::{Lane, RawGroup, RawTransport};

/// A raw group with collectives.
#[derive(Debug)]
pub struct CollectiveGroup<G> {
    raw: G,
    /// Length of the user's part of the segment.
    user: usize,
    /// One sequence for all blocking collectives: every member calls them in the same order.
    blocking: Sequence,
    background_barriers: Sequence,
    agreements: Sequence,
    barrier: Dissemination,
    background_barrier: Dissemination,
    agreement: Dissemination,
    allreduce: Allreduce,
}

impl<G: RawGroup> CollectiveGroup<G> {
    /// Makes the raw group with scratch behind the user's segment and waits until every member has.
    pub(super) fn make<T: RawTransport<Group = G>>(raw: &mut T, members: &[Rank], segment: usize) -> Result<Self> {
        let scratch = Scratch::behind(segment);
        let raw = raw.group(members, scratch.end())?;
        let allreduce = Allreduce::new(raw.rank().index(), raw.size(), scratch);
        let mut group = CollectiveGroup {
            raw,
            user: segment,
            blocking: Sequence::default(),
            background_barriers: Sequence::default(),
            agreements: Sequence::default(),
            barrier: Dissemination::bare(Lane::Collective),
            background_barrier: Dissemination::bare(Lane::Barrier),
            agreement: Dissemination::carrying(Lane::Agreement, scratch.outgoing(), scratch.incoming()),
            allreduce,
        };
        group.barrier()?;
        Ok(group)
    }

    #[inline]
    fn check(&self, operation: &'static str, peer: Rank, span: Span) -> Result<()> {
        if peer.index() >= self.raw.size() {
            return Err(no_member(operation, peer, self.raw.size()));
        }
        self.check_range(operation, span.offset, span.len)
    }

    #[inline]
    fn check_range(&self, operation: &'static str, offset: usize, len: usize) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.user => Ok(()),
            _ => Err(outside(operation, offset, len, self.user)),
        }
    }
}

impl<G: RawGroup> Group for CollectiveGroup<G> {
    fn rank(&self) -> Rank {
        self.raw.rank()
    }

    fn size(&self) -> usize {
        self.raw.size()
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.raw.now()
    }

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        loop {
            self.raw.progress(Idle::Return)?;
            let now = self.raw.now();
            if now.0 >= at.0 {
                return Ok(());
            }
            self.raw.pause(at.since(now))?;
        }
    }

    /// # Panics
    /// If the range is not in the segment.
    fn read(&self, offset: usize, into: &mut [u8]) {
        if let Err(error) = self.check_range("read", offset, into.len()) {
            panic!("{error}");
        }
        self.raw.read(offset, into);
    }

    /// # Panics
    /// If the range is not in the segment.
    fn write(&mut self, offset: usize, from: &[u8]) {
        if let Err(error) = self.check_range("write", offset, from.len()) {
            panic!("{error}");
        }
        self.raw.write(offset, from);
    }

    #[inline]
    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("send", to, span)?;
        self.raw.post_send(Lane::Data, to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("recv", from, span)?;
        self.raw.post_recv(Lane::Data, from, tag, span)
    }

    #[inline]
    fn wait_all(&mut self) -> Result<()> {
        self.raw.wait(Lane::Data)
    }

    #[inline]
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.check("put", to, local)?;
        self.check_range("put", remote, local.len)?;
        self.raw.put(to, local, remote)
    }

    #[inline]
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.check("get", from, local)?;
        self.check_range("get", remote, local.len)?;
        self.raw.get(from, local, remote)
    }

    #[inline]
    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.check("flush", peer, Span::default())?;
        self.raw.flush(peer)
    }

    fn barrier(&mut self) -> Result<()> {
        self.barrier.start(&mut self.raw, self.blocking.advance(), Proposal::default())?;
        self.barrier.wait(&mut self.raw)?;
        Ok(())
    }

    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.check_range("allreduce", values.offset, values.len)?;
        if !values.len.is_multiple_of(8) {
            return Err(usage("allreduce", format!("{} bytes are no whole number of doubles", values.len)));
        }
        self.allreduce.run(&mut self.raw, self.blocking.advance(), values)
    }

    fn start_barrier(&mut self) -> Result<()> {
        if self.background_barrier.is_under_way() {
            return Err(usage("start_barrier", "a barrier is under way already".into()));
        }
        self.background_barrier.start(&mut self.raw, self.background_barriers.advance(), Proposal::default())
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        if !self.background_barrier.is_under_way() {
            return Err(usage("poll_barrier", "no barrier is under way".into()));
        }
        Ok(self.background_barrier.poll(&mut self.raw)?.is_some())
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        if self.agreement.is_under_way() {
            return Err(usage("start_agreement", "an agreement is under way already".into()));
        }
        self.agreement.start(&mut self.raw, self.agreements.advance(), mine)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        if !self.agreement.is_under_way() {
            return Err(usage("poll_agreement", "no agreement is under way".into()));
        }
        self.agreement.poll(&mut self.raw)
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        if !self.agreement.is_under_way() {
            return Err(usage("wait_agreement", "no agreement is under way".into()));
        }
        self.agreement.wait(&mut self.raw)
    }
}

fn usage(operation: &'static str, detail: String) -> Error {
    Error::Usage { operation, detail }
}

#[cold]
fn no_member(operation: &'static str, peer: Rank, size: usize) -> Error {
    usage(operation, format!("there is no member {peer} in a group of {size}"))
}

#[cold]
fn outside(operation: &'static str, offset: usize, len: usize, user: usize) -> Error {
    usage(operation, format!("{len} bytes at offset {offset} are not inside the segment of {user} bytes"))
}
