//! Operations that the provider had no room for, in order, per peer and kind.

use std::collections::VecDeque;

use tailback_transport::Span;

use super::library::{Kind, RegionId, Remote, Ticket};

/// What an operation needs beyond its ticket and its span.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<C> {
    /// With this tag.
    Send(u64),
    /// With this tag.
    Recv(u64),
    Put(Remote<C>),
    Get(Remote<C>),
}

/// An operation to be posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<C> {
    pub ticket: Ticket,
    pub span: Span,
    pub what: What<C>,
}

/// Receives do not wait for what goes out, nor the other way round, and puts and gets not for messages.
fn line<C>(work: &Work<C>) -> usize {
    let kind = match work.ticket.kind {
        Kind::Send => 0,
        Kind::Recv => 1,
        Kind::Put | Kind::Get => 2,
    };
    work.ticket.peer as usize * LINES + kind
}

/// Lines per peer.
const LINES: usize = 3;

#[derive(Debug)]
pub(super) struct Queues<C> {
    lines: Vec<VecDeque<Work<C>>>,
    /// Lines that are not empty.
    busy: Vec<usize>,
}

impl<C: Copy> Queues<C> {
    pub(super) fn new(ranks: usize) -> Queues<C> {
        Queues { lines: (0..ranks * LINES).map(|_| VecDeque::new()).collect(), busy: Vec::new() }
    }

    /// Whether nothing is before `work`.
    #[inline]
    pub(super) fn is_empty(&self, work: &Work<C>) -> bool {
        self.busy.is_empty() || self.lines[line(work)].is_empty()
    }

    /// Whether nothing waits at all.
    #[inline]
    pub(super) fn all_empty(&self) -> bool {
        self.busy.is_empty()
    }

    pub(super) fn push(&mut self, work: Work<C>) {
        let at = line(&work);
        if self.lines[at].is_empty() {
            self.busy.push(at);
        }
        self.lines[at].push_back(work);
    }

    /// How many lines have something.
    pub(super) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// The first of the line at position `at` among the busy ones.
    pub(super) fn first(&self, at: usize) -> Option<Work<C>> {
        self.lines[self.busy[at]].front().copied()
    }

    /// The first of that line was posted.
    pub(super) fn pop(&mut self, at: usize) {
        self.lines[self.busy[at]].pop_front();
    }

    /// Lines that became empty are no longer busy.
    pub(super) fn tidy(&mut self) {
        let lines = &self.lines;
        self.busy.retain(|&line| !lines[line].is_empty());
    }

    /// A group is gone, and what it had not posted.
    pub(super) fn forget(&mut self, slot: RegionId) {
        for &line in &self.busy {
            self.lines[line].retain(|work| work.ticket.region != slot);
        }
        self.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(peer: u32, kind: Kind, region: u32, len: usize) -> Work<()> {
        let ticket = Ticket { kind, lane: 0, region: RegionId(region), member: 0, peer, len, access: 0 };
        Work { ticket, span: Span::new(0, len), what: What::Send(0) }
    }

    #[test]
    fn peers_and_kinds_do_not_wait_for_each_other() {
        let mut queues = Queues::new(3);
        queues.push(work(1, Kind::Send, 0, 1));
        queues.push(work(1, Kind::Send, 0, 2));
        assert!(!queues.is_empty(&work(1, Kind::Send, 0, 0)) && queues.is_empty(&work(1, Kind::Put, 0, 0)));
        assert!(queues.is_empty(&work(1, Kind::Recv, 0, 0)) && queues.is_empty(&work(2, Kind::Send, 0, 0)));
        assert_eq!(queues.first(0).map(|work| work.span.len), Some(1));
        queues.pop(0);
        queues.tidy();
        assert_eq!((queues.busy(), queues.first(0).map(|work| work.span.len)), (1, Some(2)));
    }

    #[test]
    fn a_dropped_group_leaves_nothing() {
        let mut queues = Queues::new(2);
        queues.push(work(0, Kind::Send, 4, 1));
        queues.push(work(1, Kind::Send, 5, 1));
        queues.forget(RegionId(4));
        assert_eq!(queues.busy(), 1);
        queues.forget(RegionId(5));
        assert!(queues.all_empty());
    }
}
