//! The groups of this rank: who is in them and what is open.

use tailback_transport::{Rank, Span};

use super::library::{Card, Kind, RegionId, Ticket};
use super::tag::LANES;

/// Another member of a group, or this rank itself.
#[derive(Debug)]
pub(super) struct Member<C> {
    /// Its rank in the job.
    pub rank: Rank,
    /// The group's part of the tags of messages to it, and of those from it.
    pub outgoing: u64,
    pub incoming: u64,
    /// How its segment is accessed.
    pub card: C,
    /// Messages to it that are not complete, per lane.
    pub sending: [u32; LANES],
    /// Puts and gets made with it, how many of the first of them are complete, and how many of all are not.
    pub accesses: u64,
    pub completed: u64,
    pub open: u32,
    /// Whether a put completed without the target's word.
    pub unconfirmed: bool,
}

impl<C> Member<C> {
    /// A put or a get is under way, or waits for room: its number.
    pub(super) fn begin_access(&mut self) -> u64 {
        self.accesses += 1;
        self.open += 1;
        self.accesses
    }
}

/// One group as its engine sees it.
#[derive(Debug)]
pub(super) struct GroupState<C> {
    /// This rank's position.
    pub rank: Rank,
    /// Everyone, in group order.
    pub members: Vec<Member<C>>,
    /// Length of the segment; what is behind it is the engine's.
    pub segment: usize,
    /// Where a byte is that any member may read from any other, to see that its puts arrived.
    pub confirm: usize,
    /// Messages posted and not complete, per lane.
    pub pending: [usize; LANES],
    /// Puts and gets that are complete while one before them is not: members and numbers.
    pub ahead: Vec<(u32, u64)>,
}

impl<C: Card> GroupState<C> {
    /// A message is under way, or waits for room.
    #[inline]
    pub(super) fn begin(&mut self, ticket: &Ticket) {
        let lane = usize::from(ticket.lane);
        self.pending[lane] += 1;
        self.members[ticket.member as usize].sending[lane] += u32::from(ticket.kind == Kind::Send);
    }

    /// A put or a get is complete. Providers complete them in whatever order.
    fn end_access(&mut self, ticket: &Ticket) {
        let member = &mut self.members[ticket.member as usize];
        member.open -= 1;
        if ticket.access != member.completed + 1 {
            return self.ahead.push((ticket.member, ticket.access));
        }
        member.completed += 1;
        while let Some(at) = self.ahead.iter().position(|&done| done == (ticket.member, member.completed + 1)) {
            self.ahead.swap_remove(at);
            member.completed += 1;
        }
    }

    /// Whether everything posted on a lane is complete.
    #[inline]
    pub(super) fn is_complete(&self, lane: u8) -> bool {
        self.pending[usize::from(lane)] == 0
    }

    /// # Panics
    /// If the range is not in the segment.
    #[inline]
    pub(super) fn check(&self, offset: usize, len: usize) {
        assert!(
            offset <= self.segment && len <= self.segment - offset,
            "{len} bytes at offset {offset} are not inside the segment of {} bytes",
            self.segment
        );
    }

    /// Behind the segment: the byte to confirm puts with, then a card of every member.
    pub(super) fn layout(segment: usize, members: usize) -> (usize, Span) {
        let confirm = segment.next_multiple_of(64);
        (confirm, Span::new(confirm + 64, members * C::LEN))
    }
}

/// All groups of a rank, by the number of their memory.
#[derive(Debug)]
pub(super) struct Groups<C> {
    slots: Vec<Option<GroupState<C>>>,
    /// How many groups this rank has made with every other: see [`super::tag`].
    made_with: Vec<u32>,
    /// Operations that are over.
    pub completions: u64,
}

impl<C: Card> Groups<C> {
    pub(super) fn new(ranks: usize) -> Groups<C> {
        Groups { slots: Vec::new(), made_with: vec![0; ranks], completions: 0 }
    }

    /// How many ranks the job has.
    pub(super) fn ranks(&self) -> usize {
        self.made_with.len()
    }

    /// How many groups this rank made with `rank` before, counting this one from now on.
    pub(super) fn number_with(&mut self, rank: Rank) -> u32 {
        let count = &mut self.made_with[rank.index()];
        *count = count.wrapping_add(1);
        count.wrapping_sub(1)
    }

    pub(super) fn add(&mut self, slot: RegionId, group: GroupState<C>) {
        let at = slot.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(group);
    }

    pub(super) fn remove(&mut self, slot: RegionId) {
        self.slots[slot.0 as usize] = None;
    }

    /// # Panics
    /// If there is no such group: slots are held by live handles only.
    #[inline]
    pub(super) fn at(&self, slot: RegionId) -> &GroupState<C> {
        self.slots[slot.0 as usize].as_ref().expect("a group in use")
    }

    /// See [`Groups::at`].
    #[inline]
    pub(super) fn at_mut(&mut self, slot: RegionId) -> &mut GroupState<C> {
        self.slots[slot.0 as usize].as_mut().expect("a group in use")
    }

    /// An operation is over. Its group may be gone; its memory number is not reused before that.
    #[inline]
    pub(super) fn complete(&mut self, ticket: Ticket) {
        self.completions += 1;
        let Some(group) = self.slots[ticket.region.0 as usize].as_mut() else { return };
        match ticket.kind {
            Kind::Send => {
                group.pending[usize::from(ticket.lane)] -= 1;
                group.members[ticket.member as usize].sending[usize::from(ticket.lane)] -= 1;
            }
            Kind::Recv => group.pending[usize::from(ticket.lane)] -= 1,
            Kind::Put | Kind::Get => group.end_access(&ticket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct NoCard;

    impl Card for NoCard {
        const LEN: usize = 0;

        fn encode(&self, _: &mut [u8]) {}

        fn decode(_: &[u8]) -> Self {
            NoCard
        }
    }

    #[test]
    fn the_first_accesses_are_over_whatever_the_order_of_completions() {
        let member = |rank| Member {
            rank: Rank(rank),
            outgoing: 0,
            incoming: 0,
            card: NoCard,
            sending: [0; LANES],
            accesses: 0,
            completed: 0,
            open: 0,
            unconfirmed: false,
        };
        let mut group = GroupState {
            rank: Rank(0),
            members: vec![member(0), member(1)],
            segment: 0,
            confirm: 0,
            pending: [0; LANES],
            ahead: Vec::new(),
        };
        for member in [0, 1, 1, 1, 1] {
            group.members[member].begin_access();
        }
        let mut end = |member: u32, access| {
            group.end_access(&Ticket {
                kind: Kind::Put,
                lane: 0,
                region: RegionId(0),
                member,
                peer: member,
                len: 8,
                access,
            });
            [0, 1].map(|member: usize| (group.members[member].completed, group.members[member].open))
        };
        assert_eq!(end(1, 3), [(0, 1), (0, 3)]);
        assert_eq!(end(1, 1), [(0, 1), (1, 2)]);
        assert_eq!(end(0, 1), [(1, 0), (1, 2)]);
        assert_eq!(end(1, 2), [(1, 0), (3, 1)]);
        assert_eq!(end(1, 4), [(1, 0), (4, 0)]);
        assert!(group.ahead.is_empty());
    }
}
