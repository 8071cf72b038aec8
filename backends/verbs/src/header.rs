//! What ranks say to each other: headers of messages on a pair, and the greetings that connect one.
//!
//! A message is a header and its payload, cut into buffers: the first begins with the header, the others are payload
//! alone. A pair carries one message at a time, so that needs no more words. The immediate data of every buffer is the
//! number of buffers that its sender has freed; a buffer of no bytes says only that. Numbers are little-endian.
//!
//! A header has two words of 64 bits. The first has the kind (4 bits), the lane (4), the sender's position in the group
//! (24), and the tag, or the key of a segment (32); the second has the group. A message that is longer than its first
//! buffer has its length in a third word, and a segment's key has the address there. All devices that are emulated, and
//! some that are not, take longer for every byte: a short message has no more of them than it needs.

use tailback_engine::Lane;
use tailback_engine::matching::Word;
use tailback_transport::Tag;

/// Bytes of the header of a message that is whole in its first buffer.
pub(crate) const HEADER: usize = 16;
/// Bytes of any header, at most.
pub(crate) const LONG_HEADER: usize = 24;
/// A group's members have positions below this.
pub(crate) const POSITIONS: usize = 1 << 24;

/// What a header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A message of the user's; the payload follows.
    Send { lane: Lane, tag: Tag },
    /// Where is your segment?
    KeyRequest,
    /// There, and this is its key.
    Key { address: u64, key: u32 },
    /// The group that was asked about is gone.
    Refused,
    /// About all messages between the two ranks; of no group.
    Word(Word),
}

/// The beginning of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(crate) message: Message,
    /// The sender's position in the group, below [`POSITIONS`].
    pub(crate) from: u32,
    pub(crate) group: u64,
    /// Bytes of payload.
    pub(crate) length: u64,
}

const SEND: u64 = 1;
const KEY_REQUEST: u64 = 2;
const KEY: u64 = 3;
const REFUSED: u64 = 4;
const LONG_SEND: u64 = 5;
const PAUSE: u64 = 6;
const RESUME: u64 = 7;

impl Header {
    /// The header as bytes, and how many of them count, at the head of a buffer with room for `buffer` bytes in all.
    #[inline]
    pub(crate) fn encode(&self, buffer: usize) -> ([u8; LONG_HEADER], usize) {
        let (kind, lane, word, number) = match self.message {
            Message::Send { lane, tag } if HEADER as u64 + self.length <= buffer as u64 => {
                (SEND, lane as u64, tag.0, None)
            }
            Message::Send { lane, tag } => (LONG_SEND, lane as u64, tag.0, Some(self.length)),
            Message::KeyRequest => (KEY_REQUEST, 0, 0, None),
            Message::Key { address, key } => (KEY, 0, key, Some(address)),
            Message::Refused => (REFUSED, 0, 0, None),
            Message::Word(Word::Pause) => (PAUSE, 0, 0, None),
            Message::Word(Word::Resume) => (RESUME, 0, 0, None),
        };
        let first = kind | lane << 4 | u64::from(self.from) << 8 | u64::from(word) << 32;
        let mut bytes = [0; LONG_HEADER];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.group.to_le_bytes());
        bytes[16..].copy_from_slice(&number.unwrap_or(0).to_le_bytes());
        (bytes, if number.is_some() { LONG_HEADER } else { HEADER })
    }

    /// The header at the head of a buffer in which `filled` bytes arrived, and how many of them are its own.
    #[inline]
    pub(crate) fn decode(bytes: &[u8; LONG_HEADER], filled: usize) -> Option<(Header, usize)> {
        let number = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let (first, group) = (number(0), number(8));
        let (from, word) = ((first >> 8) as u32 & (POSITIONS as u32 - 1), (first >> 32) as u32);
        let lane = || Lane::ALL.get((first >> 4 & 0xf) as usize).copied();
        let payload = filled.checked_sub(HEADER)? as u64;
        let (message, length, size) = match first & 0xf {
            SEND => (Message::Send { lane: lane()?, tag: Tag(word) }, payload, HEADER),
            LONG_SEND => (Message::Send { lane: lane()?, tag: Tag(word) }, number(16), LONG_HEADER),
            KEY_REQUEST => (Message::KeyRequest, 0, HEADER),
            KEY => (Message::Key { address: number(16), key: word }, 0, LONG_HEADER),
            REFUSED => (Message::Refused, 0, HEADER),
            PAUSE => (Message::Word(Word::Pause), 0, HEADER),
            RESUME => (Message::Word(Word::Resume), 0, HEADER),
            _ => return None,
        };
        (size <= filled).then_some((Header { message, from, group, length }, size))
    }
}

/// Bytes of a [`Hello`]; its seal follows.
pub(crate) const HELLO: usize = 24;

const HELLO_MARK: u32 = 0x5442_5603;

/// How two ranks connect their pairs, by datagrams that may be lost or doubled. Every hello has all that the receiver
/// needs, and each rank has one pair for the other: so it does not matter who asks first, or whether both do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The sender's pair, and the number of the first packet it will send.
    pub(crate) pair: u32,
    pub(crate) first: u32,
    /// The sender's end is connected.
    pub(crate) connected: bool,
    /// The sender knows that the receiver's end is. While it does not, it wants an answer.
    pub(crate) heard: bool,
}

impl Hello {
    pub(crate) fn encode(&self) -> [u8; HELLO] {
        let flags = u32::from(self.connected) | u32::from(self.heard) << 1;
        let mut bytes = [0; HELLO];
        let words = [HELLO_MARK, self.from, self.to, self.pair, self.first, flags];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HELLO]) -> Option<Hello> {
        let word = |i: usize| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let (connected, heard) = (word(5) & 1 != 0, word(5) & 2 != 0);
        let hello = Hello { from: word(1), to: word(2), pair: word(3), first: word(4), connected, heard };
        (word(0) == HELLO_MARK).then_some(hello)
    }
}

/// Bytes of an [`Address`].
pub(crate) const ADDRESS: usize = 56;

/// Where a rank is found on one rail, told to all at start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    pub(crate) ethernet: bool,
    /// `ibv_mtu`.
    pub(crate) mtu: u8,
    /// Reads it serves for one peer at a time.
    pub(crate) reads: u8,
    /// Its pair for datagrams, and what a datagram must show.
    pub(crate) number: u32,
    pub(crate) key: u32,
    /// Bytes of a buffer that it has for a peer's messages, and how many of them at most.
    pub(crate) buffer: u32,
    pub(crate) credits: u32,
    /// Fresh for every job and port.
    pub(crate) nonce: [u8; 16],
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ADDRESS];
        bytes[..16].copy_from_slice(&self.gid);
        bytes[16..18].copy_from_slice(&self.lid.to_le_bytes());
        (bytes[18], bytes[19], bytes[20]) = (u8::from(self.ethernet), self.mtu, self.reads);
        bytes[24..28].copy_from_slice(&self.number.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.key.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.buffer.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.credits.to_le_bytes());
        bytes[40..].copy_from_slice(&self.nonce);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Address> {
        let bytes: &[u8; ADDRESS] = bytes.get(..ADDRESS)?.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (mut gid, mut nonce) = ([0; 16], [0; 16]);
        gid.copy_from_slice(&bytes[..16]);
        nonce.copy_from_slice(&bytes[40..]);
        // A header and something behind it have to fit, and there has to be a buffer.
        let (buffer, credits) = (word(32), word(36));
        (buffer as usize > LONG_HEADER && credits > 0).then_some(Address {
            gid,
            lid: u16::from_le_bytes([bytes[16], bytes[17]]),
            ethernet: bytes[18] != 0,
            mtu: bytes[19],
            reads: bytes[20],
            number: word(24),
            key: word(28),
            buffer,
            credits,
            nonce,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_back() {
        let send = Message::Send { lane: Lane::Protocol, tag: Tag(u32::MAX) };
        let cases = [
            (send, 0, HEADER),
            (send, 100 - HEADER as u64, HEADER),
            (send, 101 - HEADER as u64, LONG_HEADER),
            (send, 6_553_600, LONG_HEADER),
            (Message::KeyRequest, 0, HEADER),
            (Message::Key { address: 0x7fff_1234_5678_9000, key: 0xdead_beef }, 0, LONG_HEADER),
            (Message::Refused, 0, HEADER),
            (Message::Word(Word::Pause), 0, HEADER),
            (Message::Word(Word::Resume), 0, HEADER),
        ];
        for (message, length, size) in cases {
            for from in [0, 70_000, POSITIONS as u32 - 1] {
                let header = Header { message, from, group: u64::MAX - 1, length };
                let (bytes, taken) = header.encode(100);
                assert_eq!(taken, size, "{header:?}");
                let filled = 100.min(taken + length as usize);
                assert_eq!(Header::decode(&bytes, filled), Some((header, size)));
                assert_eq!(Header::decode(&bytes, size - 1), None, "{header:?} cut short");
            }
        }
    }

    #[test]
    fn what_is_no_header_is_not_taken_for_one() {
        for filled in [0, 1, HEADER, LONG_HEADER, 8192] {
            assert_eq!(Header::decode(&[0; LONG_HEADER], filled), None);
            assert_eq!(Header::decode(&[9; LONG_HEADER], filled), None);
            let mut no_lane = [0; LONG_HEADER];
            no_lane[0] = 0xf1;
            assert_eq!(Header::decode(&no_lane, filled), None);
        }
    }

    #[test]
    fn hellos_and_addresses_are_read_back() {
        for (connected, heard) in [(false, false), (true, false), (true, true)] {
            let hello = Hello { from: 3, to: 4, pair: 0xff_ffff, first: 0x12_3456, connected, heard };
            assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        }
        assert_eq!(Hello::decode(&[0; HELLO]), None);
        let address = Address {
            gid: [7; 16],
            lid: 12,
            ethernet: true,
            mtu: 3,
            reads: 16,
            number: 0xabcdef,
            key: 0x8000_0001,
            buffer: 8192,
            credits: 256,
            nonce: [9; 16],
        };
        assert_eq!(Address::decode(&address.encode()), Some(address));
        assert_eq!(Address::decode(&[0; 3]), None);
        for wrong in [Address { buffer: LONG_HEADER as u32, ..address }, Address { credits: 0, ..address }] {
            assert_eq!(Address::decode(&wrong.encode()), None);
        }
    }
}
