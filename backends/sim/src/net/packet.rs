//! Packets under way, in a slab: a packet is a number, its state one cache line, and a number is used again.
//!
//! One line per packet rather than one array per field: an event looks at most fields of one packet, and at no field of
//! many.

/// No packet, port, message or group.
pub(crate) const NONE: u32 = u32::MAX;

/// What is true of a packet.
pub(crate) mod flag {
    /// It acknowledges others.
    pub(crate) const ACK: u8 = 1;
    /// It saw a long queue; on an acknowledgement, what it acknowledges did.
    pub(crate) const MARKED: u8 = 2;
    /// The long queue was the one in front of its endpoint.
    pub(crate) const ENDPOINT: u8 = 4;
    /// Its way was chosen.
    pub(crate) const ROUTED: u8 = 8;
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Behind it in the queue it waits in.
    pub(crate) next: u32,
    /// The port it was sent from last: it occupies room at the other end of that link.
    pub(crate) link: u32,
    /// The message it belongs to, or acknowledges a part of.
    pub(crate) message: u32,
    /// Its place in the message; on an acknowledgement, how many packets it is for.
    pub(crate) index: u32,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// On an acknowledgement, the bytes on the wire of what it acknowledges.
    pub(crate) covers: u32,
    /// Endpoints.
    pub(crate) src: u32,
    pub(crate) dst: u32,
    /// The link chosen out of this group.
    pub(crate) gate: u32,
    /// The group or the switch of a detour.
    pub(crate) detour: u32,
    /// When it left its source; on an acknowledgement, when what it acknowledges did.
    pub(crate) stamp: u64,
    /// When its last byte is where its first one is known to be.
    pub(crate) tail: u64,
    /// The queue it was in at `link`.
    pub(crate) queue: u8,
    pub(crate) class: u8,
    /// Crossings so far: the virtual channel.
    pub(crate) stage: u8,
    pub(crate) flags: u8,
    /// Tells a message from an earlier one of the same number.
    pub(crate) generation: u16,
}

impl Packet {
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// All packets.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    all: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub(crate) fn add(&mut self, packet: Packet) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.all[id as usize] = packet;
                id
            }
            None => {
                self.all.push(packet);
                (self.all.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    /// How many are under way.
    pub(crate) fn live(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

impl std::ops::Index<u32> for Packets {
    type Output = Packet;

    #[inline]
    fn index(&self, id: u32) -> &Packet {
        &self.all[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Packets {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.all[id as usize]
    }
}
