//! Matching: pairs messages with receives by (sender, tag), each in its order.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use tailback_transport::{Rank, Span, Tag};

use super::shared::Message;

/// The receives and the early messages of one lane.
#[derive(Default)]
pub(super) struct Matching {
    posted: Queues<Span>,
    early: Queues<Vec<u8>>,
    waiting: usize,
}

/// First in, first out, per sender and tag.
type Queues<V> = HashMap<(Rank, Tag), VecDeque<V>>;

impl Matching {
    /// Takes a posted receive; its message, if it came already.
    pub(super) fn post(&mut self, from: Rank, tag: Tag, span: Span) -> Option<Vec<u8>> {
        let early = take(&mut self.early, (from, tag));
        if early.is_none() {
            self.posted.entry((from, tag)).or_default().push_back(span);
            self.waiting += 1;
        }
        early
    }

    /// Takes an arrived message; where it goes, if its receive is posted.
    pub(super) fn arrive(&mut self, message: Message) -> Option<(Span, Vec<u8>)> {
        let key = (message.from, message.tag);
        match take(&mut self.posted, key) {
            Some(span) => {
                self.waiting -= 1;
                Some((span, message.payload))
            }
            None => {
                self.early.entry(key).or_default().push_back(message.payload);
                None
            }
        }
    }

    /// How many receives are posted without a message.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// One of the receives that wait, for a message to the user.
    pub(super) fn example(&self) -> Option<(Rank, Tag)> {
        self.posted.keys().min().copied()
    }
}

/// Emptied queues go: collectives use a tag once.
fn take<K: Hash + Eq + Copy, V>(queues: &mut HashMap<K, VecDeque<V>>, key: K) -> Option<V> {
    let queue = queues.get_mut(&key)?;
    let value = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&key);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: u32, tag: u32, byte: u8) -> Message {
        Message { from: Rank(from), tag: Tag(tag), payload: vec![byte] }
    }

    #[test]
    fn order_holds_per_sender_and_tag_and_nothing_crosses() {
        let mut matching = Matching::default();
        let at = |offset| Span::new(offset, 1);
        assert!(matching.arrive(message(0, 7, 1)).is_none());
        assert!(matching.arrive(message(0, 7, 2)).is_none());
        assert!(matching.post(Rank(1), Tag(7), at(0)).is_none());
        assert!(matching.post(Rank(0), Tag(8), at(1)).is_none());
        assert_eq!(matching.post(Rank(0), Tag(7), at(2)), Some(vec![1]));
        assert_eq!(matching.arrive(message(0, 8, 3)), Some((at(1), vec![3])));
        assert_eq!(matching.waiting(), 1);
        assert_eq!(matching.arrive(message(1, 7, 4)), Some((at(0), vec![4])));
        assert_eq!(matching.post(Rank(0), Tag(7), at(3)), Some(vec![2]));
        assert_eq!((matching.waiting(), matching.example()), (0, None));
    }
}
