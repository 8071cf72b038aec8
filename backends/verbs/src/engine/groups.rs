//! The groups of this rank: segments, receives waiting for messages and messages waiting for receives.
//!
//! A group lives in a slot. A dropped group's slot is freed once no work of this rank refers to its segment, so that the
//! device never finds a key missing. Ids of dropped groups are remembered: what comes late is told from what comes early.

use std::collections::{HashMap, HashSet, VecDeque};

use tailback_transport::{Lane, Rank, Span, Tag};

use super::peer::Work;
use crate::ffi::Memory;
use crate::wire::Header;

/// A group's index in [`Groups`].
pub(crate) type Slot = usize;

/// Where a member's segment is.
#[derive(Debug, Default)]
pub(super) enum Key {
    /// Nobody asked yet.
    #[default]
    Unknown,
    /// The member was asked; this work waits for its answer.
    Asked(Vec<Work>),
    Known {
        address: u64,
        key: u32,
    },
}

/// What this rank and one member have open with each other.
#[derive(Debug, Default)]
pub(super) struct Member {
    posted: VecDeque<(Lane, Tag, Span)>,
    unexpected: VecDeque<(Lane, Tag, Vec<u8>)>,
    pub(super) key: Key,
    /// Puts, gets and fences that are not known to be complete.
    pub(super) accesses: usize,
    /// Whether a put was made since the last fence.
    pub(super) unfenced: bool,
}

impl Member {
    /// Lets a receive wait.
    pub(super) fn post(&mut self, lane: Lane, tag: Tag, span: Span) {
        self.posted.push_back((lane, tag, span));
    }

    /// Takes the oldest receive, if it is for this lane, tag and length, and gives its place in the segment.
    #[inline]
    pub(super) fn take_first(&mut self, lane: Lane, tag: Tag, len: usize) -> Option<usize> {
        let &(of, with, span) = self.posted.front()?;
        if of != lane || with != tag || span.len != len {
            return None;
        }
        self.posted.pop_front();
        Some(span.offset)
    }

    /// Takes the oldest receive that a message with this lane and tag completes.
    pub(super) fn take_posted(&mut self, lane: Lane, tag: Tag) -> Option<Span> {
        take(&mut self.posted, lane, tag)
    }

    /// Lets a message wait.
    pub(super) fn keep(&mut self, lane: Lane, tag: Tag, data: Vec<u8>) {
        self.unexpected.push_back((lane, tag, data));
    }

    /// Takes the oldest waiting message with this lane and tag.
    #[inline]
    pub(super) fn take_unexpected(&mut self, lane: Lane, tag: Tag) -> Option<Vec<u8>> {
        if self.unexpected.is_empty() { None } else { take(&mut self.unexpected, lane, tag) }
    }

    /// Receives that wait.
    pub(super) fn receives(&self) -> usize {
        self.posted.len()
    }
}

/// Takes the first with this lane and tag.
fn take<T>(from: &mut VecDeque<(Lane, Tag, T)>, lane: Lane, tag: Tag) -> Option<T> {
    let at = from.iter().position(|&(l, t, _)| l == lane && t == tag)?;
    from.remove(at).map(|(_, _, what)| what)
}

/// One group as its engine sees it.
#[derive(Debug)]
pub(super) struct GroupState {
    /// The same number on every member.
    pub(super) id: u64,
    /// This rank's position.
    pub(super) rank: u32,
    /// The members' ranks in the job, in group order.
    pub(super) ranks: Vec<Rank>,
    /// One entry per member, in group order.
    pub(super) members: Vec<Member>,
    /// This rank's segment.
    pub(super) segment: Memory,
    /// Sends and receives posted and not complete, per lane.
    pub(super) pending: [usize; Lane::COUNT],
    /// Work, waiting or posted, that refers to the segment.
    pub(super) used: usize,
    dropped: bool,
}

/// Something that arrived for a group this rank has not made yet.
#[derive(Debug)]
pub(super) struct Early {
    /// The sender, as a rank of the job.
    pub(super) peer: usize,
    pub(super) header: Header,
    pub(super) data: Vec<u8>,
}

/// All groups of a rank.
#[derive(Debug, Default)]
pub(super) struct Groups {
    slots: Vec<Option<GroupState>>,
    /// The live ones. Every message is looked up here, and a rank has a handful of them: no table is faster.
    live: Vec<(u64, Slot)>,
    dropped: HashSet<u64>,
    /// How many groups were made of which members.
    made: HashMap<Vec<Rank>, u64>,
    early: HashMap<u64, Vec<Early>>,
}

impl Groups {
    /// The number of the next group of these members, which every member counts alike.
    pub(super) fn next_id(&mut self, ranks: &[Rank]) -> u64 {
        let count = self.made.entry(ranks.to_vec()).or_default();
        *count += 1;
        name(*count, ranks)
    }

    /// Makes a group; the caller has checked the members. Returns its slot and what arrived before it existed.
    pub(super) fn make(&mut self, id: u64, rank: usize, ranks: &[Rank], segment: Memory) -> (Slot, Vec<Early>) {
        let state = GroupState {
            id,
            rank: rank as u32,
            ranks: ranks.to_vec(),
            members: ranks.iter().map(|_| Member::default()).collect(),
            segment,
            pending: [0; Lane::COUNT],
            used: 0,
            dropped: false,
        };
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(state);
        self.live.push((id, slot));
        (slot, self.early.remove(&id).unwrap_or_default())
    }

    /// The group in `slot`.
    ///
    /// # Panics
    /// If there is none: slots are held by live handles and by work only.
    #[inline]
    pub(super) fn at(&self, slot: Slot) -> &GroupState {
        self.slots[slot].as_ref().expect("a slot in use")
    }

    /// See [`Groups::at`].
    #[inline]
    pub(super) fn at_mut(&mut self, slot: Slot) -> &mut GroupState {
        self.slots[slot].as_mut().expect("a slot in use")
    }

    /// The live group with this id.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<Slot> {
        self.live.iter().find(|&&(live, _)| live == id).map(|&(_, slot)| slot)
    }

    /// Whether this rank had that group and dropped it.
    pub(super) fn was_dropped(&self, id: u64) -> bool {
        self.dropped.contains(&id)
    }

    /// Holds what came too early.
    pub(super) fn hold(&mut self, early: Early) {
        self.early.entry(early.header.group).or_default().push(early);
    }

    /// Ends a group; its memory goes when no work needs it.
    pub(super) fn drop_group(&mut self, slot: Slot) {
        let group = self.at_mut(slot);
        group.dropped = true;
        let id = group.id;
        self.live.retain(|&(live, _)| live != id);
        self.dropped.insert(id);
        self.release(slot);
    }

    /// `count` pieces of work that referred to the segment are done.
    #[inline]
    pub(super) fn unuse(&mut self, slot: Slot, count: usize) {
        let group = self.at_mut(slot);
        group.used -= count;
        if group.dropped {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: Slot) {
        let group = self.at(slot);
        if group.dropped && group.used == 0 {
            self.slots[slot] = None;
        }
    }
}

/// A number for a group that is the same on every rank and in every build: FNV-1a over its words, then mixed.
fn name(count: u64, ranks: &[Rank]) -> u64 {
    let words = std::iter::once(count).chain(ranks.iter().map(|rank| u64::from(rank.0)));
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_on_every_member_and_differ_between_groups() {
        let (these, others) = ([Rank(4), Rank(2), Rank(9)], [Rank(2), Rank(4), Rank(9)]);
        let (mut a, mut b) = (Groups::default(), Groups::default());
        let ids = |groups: &mut Groups| [groups.next_id(&these), groups.next_id(&these), groups.next_id(&others)];
        let (of_a, of_b) = (ids(&mut a), ids(&mut b));
        assert_eq!(of_a, of_b);
        assert!(of_a[0] != of_a[1] && of_a[0] != of_a[2] && of_a[1] != of_a[2]);
    }

    #[test]
    fn messages_match_by_lane_and_tag_in_order() {
        let mut member = Member::default();
        member.keep(Lane::Data, Tag(1), vec![1]);
        member.keep(Lane::Data, Tag(2), vec![2]);
        member.keep(Lane::Data, Tag(1), vec![3]);
        assert_eq!(member.take_unexpected(Lane::Barrier, Tag(1)), None);
        assert_eq!(member.take_unexpected(Lane::Data, Tag(1)), Some(vec![1]));
        assert_eq!(member.take_unexpected(Lane::Data, Tag(1)), Some(vec![3]));
        member.post(Lane::Data, Tag(5), Span::new(0, 8));
        member.post(Lane::Data, Tag(5), Span::new(8, 8));
        assert_eq!(member.take_posted(Lane::Data, Tag(5)), Some(Span::new(0, 8)));
        assert_eq!(member.receives(), 1);
    }
}
