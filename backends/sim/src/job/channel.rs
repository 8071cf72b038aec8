//! Matching. Without wildcards the nth receive of a (group, sender, receiver, lane, tag) is for the nth send of it, in
//! whatever order the network delivers: a slot per message, filled from both sides.
//!
//! A channel without open slots is forgotten, for collectives use a tag once.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use tailback_transport::Span;

use super::segment::Extract;
use crate::hash::Mixer;

/// Names a channel. Members are positions in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) group: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) lane: u32,
    pub(super) tag: u32,
}

#[derive(Debug, Default)]
struct Slot {
    arrived: Option<Extract>,
    posted: Option<Span>,
    done: bool,
}

#[derive(Debug, Default)]
struct Channel {
    /// The number of the first open slot; sends and receives so far.
    base: u64,
    sends: u64,
    receives: u64,
    slots: VecDeque<Slot>,
}

impl Channel {
    fn slot(&mut self, number: u64) -> &mut Slot {
        let at = (number - self.base) as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        &mut self.slots[at]
    }
}

/// All channels of a job.
#[derive(Debug, Default)]
pub(super) struct Channels {
    all: HashMap<Key, Channel, BuildHasherDefault<Mixer>>,
}

impl Channels {
    /// Numbers a send.
    pub(super) fn send(&mut self, key: Key) -> u64 {
        let channel = self.all.entry(key).or_default();
        channel.sends += 1;
        channel.slot(channel.sends - 1);
        channel.sends - 1
    }

    /// A message is there; where it goes, if its receive is posted.
    pub(super) fn arrive(&mut self, key: Key, number: u64, extract: Extract) -> Option<(Span, Extract)> {
        let slot = self.all.entry(key).or_default().slot(number);
        slot.arrived = Some(extract);
        self.match_up(key, number)
    }

    /// A receive is posted; its message, if that is there.
    pub(super) fn receive(&mut self, key: Key, span: Span) -> Option<(Span, Extract)> {
        let channel = self.all.entry(key).or_default();
        channel.receives += 1;
        let number = channel.receives - 1;
        channel.slot(number).posted = Some(span);
        self.match_up(key, number)
    }

    fn match_up(&mut self, key: Key, number: u64) -> Option<(Span, Extract)> {
        let channel = self.all.get_mut(&key)?;
        let slot = channel.slot(number);
        let (Some(span), true) = (slot.posted, slot.arrived.is_some()) else { return None };
        slot.done = true;
        let extract = slot.arrived.take()?;
        while channel.slots.front().is_some_and(|slot| slot.done) {
            channel.slots.pop_front();
            channel.base += 1;
        }
        if channel.slots.is_empty() {
            self.all.remove(&key);
        }
        Some((span, extract))
    }

    /// Forgets what is left of a group.
    pub(super) fn forget(&mut self, group: u32) {
        self.all.retain(|key, _| key.group != group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_receive_is_for_the_nth_send() {
        let key = |tag| Key { group: 0, from: 1, to: 2, lane: 0, tag };
        let bytes = |byte: u8| Extract::Bytes(Box::new([byte]));
        let at = |offset| Span::new(offset, 1);
        let mut channels = Channels::default();
        assert_eq!([channels.send(key(1)), channels.send(key(1)), channels.send(key(2))], [0, 1, 0]);
        assert!(channels.receive(key(1), at(10)).is_none());
        // The second overtakes the first.
        assert!(channels.arrive(key(1), 1, bytes(1)).is_none());
        assert!(channels.arrive(key(2), 0, bytes(2)).is_none());
        let Some((span, Extract::Bytes(found))) = channels.receive(key(1), at(11)) else { panic!("it is there") };
        assert_eq!((span.offset, found[0]), (11, 1));
        let Some((span, Extract::Bytes(found))) = channels.arrive(key(1), 0, bytes(0)) else { panic!("it is wanted") };
        assert_eq!((span.offset, found[0]), (10, 0));
        assert!(channels.receive(key(2), at(0)).is_some());
        assert!(channels.all.is_empty());
    }
}
