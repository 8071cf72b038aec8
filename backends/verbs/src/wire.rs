//! What ranks say to each other: headers of messages on a pair, and the greetings that connect one.
//!
//! A message is a header and its payload, cut into buffers: the first begins with the header, the others are payload
//! alone. A pair carries one message at a time, so that needs no more words. The immediate data of every buffer is the
//! number of buffers that its sender has freed; a buffer of no bytes says only that. Numbers are little-endian.

use tailback_transport::{Lane, Tag};

/// Bytes of a header.
pub(crate) const HEADER: usize = 32;

/// What a header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A message of the user's; the payload follows.
    Send { lane: Lane, tag: Tag },
    /// Where is your segment?
    KeyRequest,
    /// There, and this is its key.
    Key { address: u64, key: u32 },
    /// The group that was asked about is gone.
    Refused,
}

/// The beginning of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) message: Message,
    /// The sender's position in the group.
    pub(crate) from: u32,
    pub(crate) group: u64,
    /// Bytes of payload.
    pub(crate) length: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let (kind, lane, word, number) = match self.message {
            Message::Send { lane, tag } => (1, lane as u8, tag.0, self.length),
            Message::KeyRequest => (2, 0, 0, 0),
            Message::Key { address, key } => (3, 0, key, address),
            Message::Refused => (4, 0, 0, 0),
        };
        (bytes[0], bytes[1]) = (kind, lane);
        bytes[4..8].copy_from_slice(&self.from.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.group.to_le_bytes());
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        bytes[24..28].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Header> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let lane = Lane::ALL.get(usize::from(bytes[1])).copied();
        let (message, length) = match bytes[0] {
            1 => (Message::Send { lane: lane?, tag: Tag(word(24)) }, long(16)),
            2 => (Message::KeyRequest, 0),
            3 => (Message::Key { address: long(16), key: word(24) }, 0),
            4 => (Message::Refused, 0),
            _ => return None,
        };
        Some(Header { message, from: word(4), group: long(8), length })
    }
}

/// Bytes of a [`Hello`].
pub(crate) const HELLO: usize = 32;

const HELLO_MARK: u32 = 0x5442_5601;

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
const ADDRESS: usize = 32;

/// Where a rank is found, told to all at start-up.
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
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ADDRESS];
        bytes[..16].copy_from_slice(&self.gid);
        bytes[16..18].copy_from_slice(&self.lid.to_le_bytes());
        (bytes[18], bytes[19], bytes[20]) = (u8::from(self.ethernet), self.mtu, self.reads);
        bytes[24..28].copy_from_slice(&self.number.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Address> {
        let bytes: &[u8; ADDRESS] = bytes.get(..ADDRESS)?.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut gid = [0; 16];
        gid.copy_from_slice(&bytes[..16]);
        Some(Address {
            gid,
            lid: u16::from_le_bytes([bytes[16], bytes[17]]),
            ethernet: bytes[18] != 0,
            mtu: bytes[19],
            reads: bytes[20],
            number: word(24),
            key: word(28),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_back() {
        let messages = [
            (Message::Send { lane: Lane::Protocol, tag: Tag(u32::MAX) }, 6_553_600),
            (Message::KeyRequest, 0),
            (Message::Key { address: 0x7fff_1234_5678_9000, key: 0xdead_beef }, 0),
            (Message::Refused, 0),
        ];
        for (message, length) in messages {
            let header = Header { message, from: 70_000, group: u64::MAX - 1, length };
            assert_eq!(Header::decode(&header.encode()), Some(header));
        }
        assert_eq!(Header::decode(&[9; HEADER]), None);
    }

    #[test]
    fn hellos_and_addresses_are_read_back() {
        for (connected, heard) in [(false, false), (true, false), (true, true)] {
            let hello = Hello { from: 3, to: 4, pair: 0xff_ffff, first: 0x12_3456, connected, heard };
            assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        }
        assert_eq!(Hello::decode(&[0; HELLO]), None);
        let address =
            Address { gid: [7; 16], lid: 12, ethernet: true, mtu: 3, reads: 16, number: 0xabcdef, key: 0x8000_0001 };
        assert_eq!(Address::decode(&address.encode()), Some(address));
        assert_eq!(Address::decode(&[0; 3]), None);
    }
}
