//! The groups of a rank. A group lives in a slot; a dropped group's slot is freed once nothing refers to its segment.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tailback_transport::Rank;

use super::kinds::{Envelope, Kinds, Slot};
use super::member::Member;
use super::rails::Rails;
use crate::{Lane, Segment};

/// One group as its engine sees it.
pub struct Group<K: Kinds> {
    /// The same number on every member.
    pub id: u64,
    /// This rank's position.
    pub rank: u32,
    /// The members' ranks in the job, in group order.
    pub ranks: Vec<Rank>,
    /// Entries of every member, one per rail, by [`Rails::seat`].
    pub members: Vec<Member<K::Far>>,
    /// This rank's segment.
    pub segment: Segment<K::Registration>,
    /// Sends and receives posted and not complete, per lane.
    pub(super) pending: [usize; Lane::COUNT],
    /// Work that refers to the segment.
    used: usize,
    dropped: bool,
}

impl<K: Kinds> Group<K> {
    /// One more piece of work refers to the segment.
    #[inline]
    pub(super) fn hold(&mut self) {
        self.used += 1;
    }

    /// Whether this rank of the job is the member at position `from`.
    #[inline]
    pub(super) fn is_member(&self, from: u32, rank: usize) -> bool {
        self.ranks.get(from as usize).is_some_and(|member| member.index() == rank)
    }
}

/// Something that arrived for a group that this rank has not made yet.
pub(super) struct Early<Q> {
    /// The sender.
    pub(super) peer: usize,
    pub(super) what: Arrival<Q>,
    pub(super) data: Vec<u8>,
}

/// What that is.
pub(super) enum Arrival<Q> {
    Message(Envelope),
    Request(Q),
}

/// All groups of a rank.
pub struct Groups<K: Kinds> {
    rails: Rails,
    slots: Vec<Option<Group<K>>>,
    /// The live ones. Every message is looked up here, and a rank has a handful of them: no table is faster.
    live: Vec<(u64, Slot)>,
    dropped: HashSet<u64>,
    /// How many groups were made of which members.
    made: HashMap<Vec<Rank>, u64>,
    early: HashMap<u64, Vec<Early<K::Request>>>,
}

impl<K: Kinds> Groups<K> {
    /// None yet, of a rank with these rails.
    pub(super) fn over(rails: Rails) -> Self {
        Groups {
            rails,
            slots: Vec::new(),
            live: Vec::new(),
            dropped: HashSet::new(),
            made: HashMap::new(),
            early: HashMap::new(),
        }
    }

    /// Makes a group of `ranks` in which this one is at position `rank`; the caller has checked them.
    pub fn make(&mut self, rank: usize, ranks: &[Rank], segment: Segment<K::Registration>) -> Slot {
        let count = self.made.entry(ranks.to_vec()).or_default();
        *count += 1;
        let id = name(*count, ranks);
        let group = Group {
            id,
            rank: rank as u32,
            ranks: ranks.to_vec(),
            members: (0..self.rails.peers(ranks.len())).map(|_| Member::default()).collect(),
            segment,
            pending: [0; Lane::COUNT],
            used: 0,
            dropped: false,
        };
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(group);
        self.live.push((id, slot));
        slot
    }

    /// What arrived for a group before it existed.
    pub(super) fn take_early(&mut self, slot: Slot) -> Vec<Early<K::Request>> {
        let id = self.at(slot).id;
        self.early.remove(&id).unwrap_or_default()
    }

    /// The group in `slot`.
    ///
    /// # Panics
    /// If there is none: slots are held by live handles and by work only.
    #[inline]
    pub fn at(&self, slot: Slot) -> &Group<K> {
        self.slots[slot].as_ref().expect("a slot in use")
    }

    /// See [`Groups::at`].
    #[inline]
    pub fn at_mut(&mut self, slot: Slot) -> &mut Group<K> {
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
    pub(super) fn hold_early(&mut self, id: u64, early: Early<K::Request>) {
        self.early.entry(id).or_default().push(early);
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

    /// A piece of work that referred to the segment is done.
    #[inline]
    pub(super) fn unuse(&mut self, slot: Slot) {
        let group = self.at_mut(slot);
        group.used -= 1;
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

impl<K: Kinds> fmt::Debug for Groups<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("live", &self.live).finish_non_exhaustive()
    }
}

/// A number for a group that is the same on every rank and in every build: FNV-1a over its words, each then mixed.
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
    use super::super::bare::Bare;
    use super::*;

    fn make(groups: &mut Groups<Bare>, rank: usize, ranks: &[Rank]) -> Slot {
        groups.make(rank, ranks, Segment::plain(16).expect("memory"))
    }

    #[test]
    fn ids_are_the_same_on_every_member_and_differ_between_groups() {
        let (these, others) = ([Rank(4), Rank(2), Rank(9)], [Rank(2), Rank(4), Rank(9)]);
        let ids = |rank: usize| {
            let mut groups = Groups::<Bare>::over(Rails::default());
            [&these, &these, &others].map(|ranks| {
                let slot = make(&mut groups, rank, ranks);
                groups.at(slot).id
            })
        };
        let of = ids(0);
        assert_eq!(of, ids(1));
        assert!(of[0] != of[1] && of[0] != of[2] && of[1] != of[2]);
    }

    #[test]
    fn a_slot_lives_while_work_refers_to_it() {
        let mut groups = Groups::<Bare>::over(Rails::default());
        let slot = make(&mut groups, 0, &[Rank(0)]);
        let id = groups.at(slot).id;
        groups.at_mut(slot).hold();
        groups.drop_group(slot);
        assert!(groups.was_dropped(id) && groups.find(id).is_none());
        assert_eq!(groups.at(slot).segment.len(), 16);
        assert_ne!(make(&mut groups, 0, &[Rank(0)]), slot);
        groups.unuse(slot);
        assert!(groups.slots[slot].is_none());
    }
}
