//! The groups of this rank: segments, receives waiting for messages and messages waiting for receives.
//!
//! A group lives in a slot. A dropped group's slot is freed once no queued output refers to its segment. Ids of
//! dropped groups are remembered, so that what comes late is told from what comes early.

use std::collections::{HashMap, HashSet, VecDeque};

use tailback_transport::{Lane, Rank, Span, Tag};

use crate::wire::Header;

/// A group's index in [`Groups`].
pub type Slot = usize;

/// A receive that waits for its message.
#[derive(Debug)]
struct Posted {
    lane: Lane,
    tag: Tag,
    span: Span,
}

/// A complete message that waits for its receive.
#[derive(Debug)]
struct Unexpected {
    lane: Lane,
    tag: Tag,
    data: Vec<u8>,
}

/// What this rank and one member have open with each other.
#[derive(Debug, Default)]
pub struct Member {
    posted: VecDeque<Posted>,
    unexpected: VecDeque<Unexpected>,
    /// Gets whose reply has not begun to arrive, in order.
    pub gets: VecDeque<Span>,
    /// Gets whose reply has not arrived in full.
    pub gets_open: usize,
    /// Whether a put was made since the last flush request.
    pub unflushed: bool,
    /// Flush requests sent.
    pub flushes: u64,
    /// Flush requests answered.
    pub flushes_acked: u64,
}

impl Member {
    /// Lets a receive wait.
    pub fn post(&mut self, lane: Lane, tag: Tag, span: Span) {
        self.posted.push_back(Posted { lane, tag, span });
    }

    /// Takes the oldest receive that a message with this lane and tag completes.
    pub fn take_posted(&mut self, lane: Lane, tag: Tag) -> Option<Span> {
        let at = self.posted.iter().position(|p| p.lane == lane && p.tag == tag)?;
        self.posted.remove(at).map(|p| p.span)
    }

    /// Lets a message wait.
    pub fn keep(&mut self, lane: Lane, tag: Tag, data: Vec<u8>) {
        self.unexpected.push_back(Unexpected { lane, tag, data });
    }

    /// Takes the oldest waiting message with this lane and tag.
    pub fn take_unexpected(&mut self, lane: Lane, tag: Tag) -> Option<Vec<u8>> {
        let at = self.unexpected.iter().position(|u| u.lane == lane && u.tag == tag)?;
        self.unexpected.remove(at).map(|u| u.data)
    }

    /// Operations of this rank that the member has not answered.
    pub fn open(&self) -> usize {
        self.posted.len() + self.gets_open + (self.flushes - self.flushes_acked) as usize
    }

    /// Messages in waiting, and their bytes.
    pub fn waiting(&self) -> (usize, usize) {
        (self.unexpected.len(), self.unexpected.iter().map(|u| u.data.len()).sum())
    }
}

/// One group as its engine sees it.
#[derive(Debug)]
pub struct GroupState {
    /// The same number on every member.
    pub id: u64,
    /// This rank's position.
    pub rank: u32,
    /// The members' ranks in the job, in group order.
    pub ranks: Vec<Rank>,
    /// One entry per member, in group order.
    pub members: Vec<Member>,
    /// This rank's segment.
    pub segment: Vec<u8>,
    /// Sends and receives posted and not complete, per lane.
    pub pending: [usize; Lane::COUNT],
    /// Pieces of queued output that refer to the segment or end a send.
    pub queued: usize,
    dropped: bool,
}

/// Something that arrived for a group this rank has not made yet.
#[derive(Debug)]
pub struct Early {
    /// The sender, as a rank of the job.
    pub peer: Rank,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub data: Vec<u8>,
}

/// All groups of a rank.
#[derive(Debug, Default)]
pub struct Groups {
    slots: Vec<Option<GroupState>>,
    by_id: HashMap<u64, Slot>,
    dropped: HashSet<u64>,
    made: HashMap<u64, u32>,
    early: HashMap<u64, Vec<Early>>,
}

impl Groups {
    /// Makes a group; the caller has checked the members. Returns its slot and what arrived before it existed.
    pub fn make(&mut self, rank: u32, ranks: &[Rank], segment: usize) -> (Slot, Vec<Early>) {
        let members = hash(&[], ranks);
        let count = self.made.entry(members).or_default();
        let id = hash(&[*count], ranks);
        *count += 1;
        let state = GroupState {
            id,
            rank,
            ranks: ranks.to_vec(),
            members: ranks.iter().map(|_| Member::default()).collect(),
            segment: vec![0; segment],
            pending: [0; Lane::COUNT],
            queued: 0,
            dropped: false,
        };
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(state);
        self.by_id.insert(id, slot);
        (slot, self.early.remove(&id).unwrap_or_default())
    }

    /// The group in `slot`.
    ///
    /// # Panics
    /// If there is none: slots are held by live handles and queued output only.
    pub fn at(&self, slot: Slot) -> &GroupState {
        self.slots[slot].as_ref().expect("a slot in use")
    }

    /// See [`Groups::at`].
    pub fn at_mut(&mut self, slot: Slot) -> &mut GroupState {
        self.slots[slot].as_mut().expect("a slot in use")
    }

    /// The live group with this id.
    pub fn find(&self, id: u64) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    /// Whether this rank had that group and dropped it.
    pub fn was_dropped(&self, id: u64) -> bool {
        self.dropped.contains(&id)
    }

    /// Holds what came too early.
    pub fn hold(&mut self, early: Early) {
        self.early.entry(early.header.group).or_default().push(early);
    }

    /// Ends a group; its memory goes when no queued output needs it.
    pub fn drop_group(&mut self, slot: Slot) {
        let group = self.at_mut(slot);
        group.dropped = true;
        let id = group.id;
        self.by_id.remove(&id);
        self.dropped.insert(id);
        self.release(slot);
    }

    /// One piece of queued output that referred to the segment is gone.
    pub fn unqueue(&mut self, slot: Slot) {
        self.at_mut(slot).queued -= 1;
        self.release(slot);
    }

    fn release(&mut self, slot: Slot) {
        let group = self.at(slot);
        if group.dropped && group.queued == 0 {
            self.slots[slot] = None;
        }
    }
}

/// FNV-1a over 64-bit words with a finisher: every rank gets the same number, in every build.
fn hash(salt: &[u32], ranks: &[Rank]) -> u64 {
    let words = salt.iter().copied().chain(ranks.iter().map(|r| r.0));
    let mixed = words.fold(0xcbf2_9ce4_8422_2325_u64, |h, word| {
        let h = (h ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01b3);
        (h ^ (h >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_on_every_member_and_differ_between_groups() {
        let ranks = [Rank(4), Rank(2), Rank(9)];
        let (mut a, mut b) = (Groups::default(), Groups::default());
        let ids = |groups: &mut Groups, rank| {
            let of = |groups: &mut Groups, ranks: &[Rank]| {
                let slot = groups.make(rank, ranks, 0).0;
                groups.at(slot).id
            };
            [of(groups, &ranks), of(groups, &ranks), of(groups, &[Rank(2), Rank(4), Rank(9)])]
        };
        let (of_a, of_b) = (ids(&mut a, 0), ids(&mut b, 1));
        assert_eq!(of_a, of_b);
        assert!(of_a[0] != of_a[1] && of_a[0] != of_a[2] && of_a[1] != of_a[2]);
    }

    #[test]
    fn a_slot_lives_while_output_refers_to_it() {
        let mut groups = Groups::default();
        let slot = groups.make(0, &[Rank(0)], 16).0;
        let id = groups.at(slot).id;
        groups.at_mut(slot).queued += 1;
        groups.drop_group(slot);
        assert!(groups.was_dropped(id) && groups.find(id).is_none());
        assert_eq!(groups.at(slot).segment.len(), 16);
        groups.unqueue(slot);
        assert!(groups.slots[slot].is_none());
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
        assert_eq!(member.waiting(), (1, 1));
        member.post(Lane::Data, Tag(5), Span::new(0, 8));
        member.post(Lane::Data, Tag(5), Span::new(8, 8));
        assert_eq!(member.take_posted(Lane::Data, Tag(5)), Some(Span::new(0, 8)));
        assert_eq!(member.open(), 1);
    }
}
