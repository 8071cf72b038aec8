//! What controls are told: by acknowledgements, and about the network once.

use crate::machine::{Control, Rate};

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) now: u64,
    /// Bytes on the wire that arrived.
    pub(crate) bytes: u32,
    /// A queue on the way was long.
    pub(crate) marked: bool,
    /// The queue in front of the endpoint was long.
    pub(crate) endpoint: bool,
    /// From departure to now.
    pub(crate) rtt: u64,
    /// The same through an empty network.
    pub(crate) base: u64,
}

/// What all flows of a network share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) spec: Control,
    /// The rate of a network port.
    pub(crate) line: Rate,
    /// A full packet on the wire.
    pub(crate) packet: u32,
    /// The longest round trip through an empty network.
    pub(crate) base: u64,
    /// The same between endpoints of one switch.
    pub(crate) near: u64,
}
