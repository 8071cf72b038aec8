//! Request numbers: bit 63 says receive, bit 62 datagram, bits 32 to 61 are the peer, or a datagram's rail, the rest counts.

pub(super) const RECEIVE: u64 = 1 << 63;
pub(super) const DATAGRAM: u64 = 1 << 62;

/// For a buffer that a message arrives in.
#[inline]
pub(super) fn receive(peer: usize, buffer: u32) -> u64 {
    RECEIVE | (peer as u64) << 32 | u64::from(buffer)
}

/// For a request to a peer.
#[inline]
pub(super) fn send(peer: usize, number: u32) -> u64 {
    (peer as u64) << 32 | u64::from(number)
}

/// For a greeting that leaves on a rail.
pub(super) fn datagram_send(rail: usize, place: u32) -> u64 {
    DATAGRAM | (rail as u64) << 32 | u64::from(place)
}

/// For a greeting that arrives on a rail.
pub(super) fn datagram_receive(rail: usize, buffer: u32) -> u64 {
    RECEIVE | DATAGRAM | (rail as u64) << 32 | u64::from(buffer)
}

/// The peer, or a datagram's rail, and the number of a request.
#[inline]
pub(super) fn parts(id: u64) -> (usize, u32) {
    ((id >> 32 & 0x3fff_ffff) as usize, id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_whose_they_are() {
        let peer = (1 << 30) - 1;
        assert_eq!([receive(peer, 7), send(peer, u32::MAX)].map(parts), [(peer, 7), (peer, u32::MAX)]);
        assert_eq!([datagram_send(7, 63), datagram_receive(1, 255)].map(parts), [(7, 63), (1, 255)]);
        assert_eq!(datagram_receive(7, 0) & (RECEIVE | DATAGRAM), RECEIVE | DATAGRAM);
        assert_eq!((receive(peer, 0) & DATAGRAM, send(peer, 0) & (RECEIVE | DATAGRAM)), (0, 0));
    }
}
