//! Where control messages lie, how they are tagged and how they are encoded.
//!
//! Behind the user's segment, from the next multiple of 64 bytes on, each in a cache line of its own: the FIN that every
//! FIN of a put is sent from (its bytes never change), then a sender's slots, a window of them per peer, then a
//! receiver's, one per message that it may have granted. A sender's slot has a half that an RTS leaves from and a half
//! that an answer arrives in, not of the same message; a receiver's has a half that a CTS, or the FIN of a get, leaves
//! from and a half that the FIN arrives in.
//!
//! A control message is made of words of eight bytes with a mark in the last byte. The place of a word is cleared before
//! its receive is posted and is then looked at while the receive may still be pending: a word is there when its mark is,
//! because words arrive whole or in the order of their bytes.

use tailback_transport::{Span, Tag};

use crate::Engine;

/// The shortest message that can be announced, in bytes.
pub const SHORTEST: usize = 32;

/// Bytes of a word.
const WORD: usize = 8;

/// Bytes of a slot.
const SLOT: usize = 64;

/// Where the answer arrives in a slot.
const ANSWER: usize = SLOT / 2;

/// In the last byte of every word.
const MARK: u64 = 0xa5;

/// Room for a value in a word.
const VALUE_BITS: u32 = 56;

/// Room for the number of a message next to a receiver's slot.
const MESSAGE_BITS: u32 = 32;

/// A message to come: its length, the sender's slot, and where it lies in the sender's segment.
pub(super) const RTS_WORDS: usize = 3;

/// Where a message is to go in the receiver's segment; the receiver's slot and which message it is.
pub(super) const CTS_WORDS: usize = 2;

/// It is there: which message.
pub(super) const FIN_WORDS: usize = 1;

/// The layout of a raw segment whose first `user` bytes are the user's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    base: usize,
    senders: usize,
    receivers: usize,
}

impl Slots {
    /// A layout without slots: the user's segment alone.
    pub(super) fn none(user: usize) -> Self {
        Slots { base: user, senders: 0, receivers: 0 }
    }

    /// Slots for `senders` and `receivers` messages behind `user` bytes.
    pub(super) fn behind(user: usize, senders: usize, receivers: usize) -> Self {
        Slots { base: user.next_multiple_of(SLOT), senders, receivers }
    }

    /// How long the raw segment has to be.
    pub(super) fn end(self) -> usize {
        match self.senders + self.receivers {
            0 => self.base,
            slots => self.base + (1 + slots) * SLOT,
        }
    }

    /// How many messages may be granted at a time.
    pub(super) fn receivers(self) -> usize {
        self.receivers
    }

    /// Where every FIN is sent from.
    pub(super) fn fin(self) -> Span {
        words(self.base, FIN_WORDS)
    }

    /// Where an RTS is sent from in sender's slot `slot`.
    pub(super) fn rts(self, slot: usize) -> Span {
        words(self.sender(slot), RTS_WORDS)
    }

    /// Where an answer arrives in it: a CTS or a FIN.
    pub(super) fn answer(self, slot: usize, count: usize) -> Span {
        words(self.sender(slot) + ANSWER, count)
    }

    /// Where a CTS, or the FIN of a get, is sent from in receiver's slot `slot`.
    pub(super) fn reply(self, slot: usize, count: usize) -> Span {
        words(self.receiver(slot), count)
    }

    /// Where the FIN for it arrives.
    pub(super) fn landing(self, slot: usize) -> Span {
        words(self.receiver(slot) + ANSWER, FIN_WORDS)
    }

    fn sender(self, slot: usize) -> usize {
        debug_assert!(slot < self.senders);
        self.base + (1 + slot) * SLOT
    }

    fn receiver(self, slot: usize) -> usize {
        debug_assert!(slot < self.receivers);
        self.base + (1 + self.senders + slot) * SLOT
    }
}

/// The tag of answers to a sender: they arrive in the order of its places.
pub(super) const TO_SENDER: Tag = Tag(0);

/// A receiver's slot and the number of a message in one word.
pub(super) fn pack(slot: usize, message: usize) -> u64 {
    (slot as u64) << MESSAGE_BITS | message as u64
}

/// See [`pack`].
pub(super) fn unpack(word: u64) -> (usize, usize) {
    ((word >> MESSAGE_BITS) as usize, (word & ((1 << MESSAGE_BITS) - 1)) as usize)
}

/// The tag of what is sent to a receiver about its slot. A slot has one message at a time, so it names the message.
pub(super) fn to_receiver(slot: usize) -> Tag {
    Tag((slot as u32) << 1 | 1)
}

/// Where the RTS arrives in the span of its receive: at the first whole word.
pub(super) fn rts_in(span: Span) -> Span {
    words(span.offset.next_multiple_of(WORD), RTS_WORDS)
}

/// What was found where words are to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<const N: usize> {
    Nothing,
    Words([u64; N]),
    /// Something that no rendezvous sends.
    Garbage,
}

/// Clears the place at `offset` where `N` words are to arrive.
pub(super) fn clear<E: Engine, const N: usize>(engine: &mut E, slot: E::Slot, offset: usize) {
    write(engine, slot, offset, [0; N]);
}

/// Writes `N` words of at most 56 bits each at `offset`.
pub(super) fn put_words<E: Engine, const N: usize>(engine: &mut E, slot: E::Slot, offset: usize, values: [u64; N]) {
    write(engine, slot, offset, values.map(|value| value | MARK << VALUE_BITS));
}

/// The words at `offset`, if all of them are there.
pub(super) fn look<E: Engine, const N: usize>(engine: &E, slot: E::Slot, offset: usize) -> Found<N> {
    let mut bytes = [[0; WORD]; N];
    engine.read(slot, offset, bytes.as_flattened_mut());
    let words = bytes.map(u64::from_le_bytes);
    if words.iter().any(|word| word >> VALUE_BITS == 0) {
        return Found::Nothing;
    }
    if words.iter().any(|word| word >> VALUE_BITS != MARK) {
        return Found::Garbage;
    }
    Found::Words(words.map(|word| word & !(0xff << VALUE_BITS)))
}

fn write<E: Engine, const N: usize>(engine: &mut E, slot: E::Slot, offset: usize, words: [u64; N]) {
    let bytes = words.map(u64::to_le_bytes);
    engine.write(slot, offset, bytes.as_flattened());
}

fn words(offset: usize, count: usize) -> Span {
    Span::new(offset, count * WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_behind_the_user_and_do_not_overlap() {
        for user in [0, 1, 63, 64, 65, 6_553_600] {
            let slots = Slots::behind(user, 5, 3);
            let mut spans = vec![slots.fin()];
            spans.extend((0..5).flat_map(|slot| [slots.rts(slot), slots.answer(slot, CTS_WORDS)]));
            spans.extend((0..3).flat_map(|slot| [slots.reply(slot, CTS_WORDS), slots.landing(slot)]));
            assert!(spans[0].offset >= user && spans[0].offset - user < SLOT);
            assert!(spans.windows(2).all(|pair| pair[0].end() <= pair[1].offset));
            assert!(spans.iter().all(|span| span.offset.is_multiple_of(WORD) && span.end() <= slots.end()));
            assert_eq!(Slots::none(user).end(), user);
        }
    }

    #[test]
    fn an_rts_fits_the_shortest_message_wherever_it_lies() {
        for offset in 0..16 {
            let span = Span::new(offset, SHORTEST);
            let rts = rts_in(span);
            assert!(rts.offset.is_multiple_of(WORD) && rts.offset >= offset && rts.end() <= span.end());
        }
    }

    #[test]
    fn tags_name_slot_and_direction() {
        let tags: std::collections::BTreeSet<_> = (0..100).map(to_receiver).chain([TO_SENDER]).collect();
        assert_eq!(tags.len(), 101);
        let most = ((1 << 24) - 1, u32::MAX as usize);
        assert_eq!(unpack(pack(most.0, most.1)), most);
        assert_eq!(pack(most.0, most.1) >> VALUE_BITS, 0);
    }
}
