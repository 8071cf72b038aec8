//! What travels on an authenticated connection: a header of 32 bytes, little-endian, then `length` bytes of payload
//! for the kinds that carry one.
//!
//! Decoding parses: a [`Header`] that exists is well formed, its length within [`MAX_LENGTH`] and its range free of
//! overflow. Whether the group, the member and the range exist is for the engine to check, which knows them.

use tailback_engine::Lane;
use tailback_engine::matching::Word;
use tailback_transport::Tag;

/// Bytes of an encoded header.
pub const HEADER: usize = 32;

/// The longest message, put or get.
pub const MAX_LENGTH: u64 = 1 << 32;

/// What a header announces or asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A two-sided message; payload follows.
    Send { lane: Lane, tag: Tag },
    /// Bytes for the receiver's segment; payload follows.
    Put { offset: u64 },
    /// Asks for bytes of the receiver's segment.
    Get { offset: u64 },
    /// Answers the oldest open `Get` of this group; payload follows.
    GetReply,
    /// Asks for a `FlushAck` once every earlier put of this group is in the segment.
    Flush { counter: u64 },
    /// Answers the `Flush` with this counter.
    FlushAck { counter: u64 },
    /// Answers a `Get` or `Flush` for a group that the receiver has dropped.
    Refused,
    /// About all messages between the two ranks; of no group.
    Word(Word),
}

/// A parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What this is.
    pub message: Message,
    /// The sender's position in the group.
    pub from: u32,
    /// The group's id.
    pub group: u64,
    /// Bytes of payload, or bytes asked for by a `Get`; zero for the rest.
    pub length: u64,
}

impl Header {
    /// Bytes that follow this header on the connection.
    pub fn payload(&self) -> usize {
        match self.message {
            Message::Send { .. } | Message::Put { .. } | Message::GetReply => self.length as usize,
            _ => 0,
        }
    }

    /// The header's bytes on the wire.
    pub fn encode(&self) -> [u8; HEADER] {
        let (kind, lane, word) = match self.message {
            Message::Send { lane, tag } => (1, lane as u8, u64::from(tag.0)),
            Message::Put { offset } => (2, 0, offset),
            Message::Get { offset } => (3, 0, offset),
            Message::GetReply => (4, 0, 0),
            Message::Flush { counter } => (5, 0, counter),
            Message::FlushAck { counter } => (6, 0, counter),
            Message::Refused => (7, 0, 0),
            Message::Word(Word::Pause) => (8, 0, 0),
            Message::Word(Word::Resume) => (8, 0, 1),
        };
        let mut bytes = [0; HEADER];
        bytes[0] = kind;
        bytes[1] = lane;
        bytes[4..8].copy_from_slice(&self.from.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.group.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..32].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    /// Parses a header; the error says what is wrong with it.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, &'static str> {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (group, length, word) = (u64_at(8), u64_at(16), u64_at(24));
        if bytes[2] != 0 || bytes[3] != 0 || (bytes[0] != 1 && bytes[1] != 0) {
            return Err("reserved bytes of the header are not zero");
        }
        if length > MAX_LENGTH {
            return Err("length beyond the largest message");
        }
        let message = match bytes[0] {
            1 => Message::Send {
                lane: lane(bytes[1])?,
                tag: Tag(u32::try_from(word).map_err(|_| "tag beyond 32 bits")?),
            },
            2 | 3 if word.checked_add(length).is_none() => return Err("range wraps around"),
            2 => Message::Put { offset: word },
            3 => Message::Get { offset: word },
            4 if word == 0 => Message::GetReply,
            5 if length == 0 => Message::Flush { counter: word },
            6 if length == 0 => Message::FlushAck { counter: word },
            7 if length == 0 && word == 0 => Message::Refused,
            8 if length == 0 && word == 0 => Message::Word(Word::Pause),
            8 if length == 0 && word == 1 => Message::Word(Word::Resume),
            4..=8 => return Err("fields set that this kind of header does not have"),
            _ => return Err("unknown kind of header"),
        };
        Ok(Header { message, from: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]), group, length })
    }
}

fn lane(byte: u8) -> Result<Lane, &'static str> {
    Lane::ALL.get(usize::from(byte)).copied().ok_or("unknown lane")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = (Message, u64)> {
        let sized = 0..=MAX_LENGTH;
        prop_oneof![
            (0..Lane::COUNT as u8, any::<u32>(), sized.clone())
                .prop_map(|(l, tag, n)| (Message::Send { lane: lane(l).expect("a lane"), tag: Tag(tag) }, n)),
            (0..1u64 << 48, sized.clone()).prop_map(|(offset, n)| (Message::Put { offset }, n)),
            (0..1u64 << 48, sized.clone()).prop_map(|(offset, n)| (Message::Get { offset }, n)),
            sized.prop_map(|n| (Message::GetReply, n)),
            any::<u64>().prop_map(|counter| (Message::Flush { counter }, 0)),
            any::<u64>().prop_map(|counter| (Message::FlushAck { counter }, 0)),
            Just((Message::Refused, 0)),
            Just((Message::Word(Word::Pause), 0)),
            Just((Message::Word(Word::Resume), 0)),
        ]
    }

    proptest! {
        #[test]
        fn every_header_survives_the_wire((message, length) in messages(), from: u32, group: u64) {
            let header = Header { message, from, group, length };
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
        }

        #[test]
        fn arbitrary_bytes_parse_to_what_encodes_to_them_or_to_an_error(bytes: [u8; HEADER], kind in 0..10u8, small: bool) {
            let mut bytes = bytes;
            bytes[0] = kind;
            if small {
                bytes[1..4].fill(0);
                bytes[20..].fill(0);
            }
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
                prop_assert!(header.length <= MAX_LENGTH);
            }
        }
    }

    #[test]
    fn lengths_and_ranges_are_bounded() {
        let mut bytes = Header { message: Message::GetReply, from: 0, group: 1, length: 0 }.encode();
        bytes[16..24].copy_from_slice(&(MAX_LENGTH + 1).to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err("length beyond the largest message"));
        let wrapping = Header { message: Message::Put { offset: u64::MAX }, from: 0, group: 1, length: 1 }.encode();
        assert_eq!(Header::decode(&wrapping), Err("range wraps around"));
    }
}
