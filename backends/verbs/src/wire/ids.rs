//! Request numbers: bit 63 says receive, bit 62 datagram, bits 32 to 61 are the peer, the rest counts.

use tailback_transport::Rank;

pub(super) const RECEIVE: u64 = 1 << 63;
pub(super) const DATAGRAM: u64 = 1 << 62;

/// For a buffer that a message arrives in.
#[inline]
pub(super) fn receive(peer: Rank, buffer: u32) -> u64 {
    RECEIVE | u64::from(peer.0) << 32 | u64::from(buffer)
}

/// For a request to a peer.
#[inline]
pub(super) fn send(peer: usize, number: u32) -> u64 {
    (peer as u64) << 32 | u64::from(number)
}

/// For a greeting that leaves.
pub(super) fn datagram_send(place: u32) -> u64 {
    DATAGRAM | u64::from(place)
}

/// For a greeting that arrives.
pub(super) fn datagram_receive(buffer: u32) -> u64 {
    RECEIVE | DATAGRAM | u64::from(buffer)
}

/// The peer and the number of a request that is no datagram.
#[inline]
pub(super) fn parts(id: u64) -> (usize, u32) {
    ((id >> 32 & 0x3fff_ffff) as usize, id as u32)
}
