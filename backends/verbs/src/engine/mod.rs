//! One rank's engine: every pair, every group's segment, all progress. Shared by the groups of a transport, so that any
//! call of any group serves all peers. Single-threaded; there is no progress thread.
//!
//! - `groups`: segments, matching. `peer`: one other rank. These hold state and post nothing.
//! - `connect`: pairs are made when ranks first talk, by greetings over datagrams. `pump`: posts what waits.
//!   `arrive`: what messages mean. `progress`: completions, waiting, and what is wrong.
//! - `post`: the operations that [`crate::VerbsGroup`] offers.

mod arrive;
mod connect;
mod groups;
mod peer;
mod post;
mod progress;
mod pump;

use std::time::{Duration, Instant};

use tailback_transport::{Error, Rank, Result, WaitMode};

use self::groups::Groups;
use self::peer::{Peer, Route};
use crate::endpoint::Endpoint;
use crate::ffi::Completion;
use crate::wire::Address;

pub(crate) use self::groups::Slot;

/// Request numbers: bit 63 says receive, bit 62 datagram, bits 32 to 61 are the peer, the rest counts.
const RECEIVE: u64 = 1 << 63;
const DATAGRAM: u64 = 1 << 62;

/// How many completions are taken at once.
const BATCH: usize = 16;

/// How long a rank that ends waits for what it sent to arrive: long enough for the device to say it once more. A peer
/// that ended first does not answer at all.
const LINGER: Duration = Duration::from_millis(400);

/// See the module.
#[derive(Debug)]
pub(crate) struct Engine {
    me: Rank,
    endpoint: Endpoint,
    wait: WaitMode,
    peers: Vec<Peer>,
    /// Ranks with a pair that is not known to be connected at both ends.
    connecting: Vec<usize>,
    links: u32,
    groups: Groups,
    batch: [Completion; BATCH],
    /// Whether an event was asked for and not taken.
    armed: bool,
    port_down: Option<Instant>,
    /// Buffers for payloads that come before they are wanted.
    spare: Vec<Vec<u8>>,
    rounds: u32,
    /// The call under way, for errors.
    operation: &'static str,
}

/// How many completions the queue of a job of `size` ranks should hold.
pub(crate) fn completions_wanted(size: usize) -> u32 {
    let peers = u32::try_from(size.saturating_sub(1)).unwrap_or(u32::MAX);
    peers.saturating_mul(COMPLETIONS_PER_LINK)
}

/// Completions that one pair can cause at a time.
pub(crate) const COMPLETIONS_PER_LINK: u32 = peer::COMPLETIONS;

impl Engine {
    /// The engine of rank `me`; `addresses` has every rank's, in rank order.
    pub(crate) fn new(me: Rank, endpoint: Endpoint, addresses: &[Address], wait: WaitMode) -> Engine {
        Engine {
            me,
            endpoint,
            wait,
            peers: addresses.iter().map(|&address| Peer::new(address)).collect(),
            connecting: Vec::new(),
            links: 0,
            groups: Groups::default(),
            batch: [Completion::empty(); BATCH],
            armed: false,
            port_down: None,
            spare: Vec::new(),
            rounds: 0,
            operation: "start-up",
        }
    }

    /// The error for an operation that needs a lost peer.
    fn lost(&self, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "no connection".into(),
        };
        Error::PeerLost { operation: self.operation, peer: Rank::from(peer), detail }
    }

    /// The pair with `peer` is unusable: an error if anything still needs it, else noted for whoever will.
    fn lose(&mut self, peer: usize, detail: String) -> Result<()> {
        if matches!(self.peers[peer].route, Route::Linked(_)) {
            self.links -= 1;
        }
        self.connecting.retain(|&other| other != peer);
        let state = &mut self.peers[peer];
        state.route = Route::Lost(detail);
        if state.open > 0 {
            return Err(self.lost(peer));
        }
        state.out.clear();
        Ok(())
    }

    fn protocol(&self, peer: usize, detail: impl Into<String>) -> Error {
        Error::Protocol { operation: self.operation, peer: Some(Rank::from(peer)), detail: detail.into() }
    }

    fn usage(&self, detail: impl Into<String>) -> Error {
        Error::Usage { operation: self.operation, detail: detail.into() }
    }
}

impl Drop for Engine {
    /// What this rank said last has to arrive, although nobody here waits for it any more.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let limit = Instant::now() + LINGER;
        for peer in 0..self.peers.len() {
            self.peers[peer].open = 0;
            if self.say_farewell(peer).is_err() {
                return;
            }
        }
        while self.has_under_way() && Instant::now() < limit {
            if self.progress(tailback_transport::Idle::Wait).is_err() {
                return;
            }
        }
    }
}

fn receive_id(peer: Rank, buffer: u32) -> u64 {
    RECEIVE | u64::from(peer.0) << 32 | u64::from(buffer)
}

fn send_id(peer: usize, number: u32) -> u64 {
    (peer as u64) << 32 | u64::from(number)
}

/// For a greeting that leaves.
pub(crate) fn datagram_send_id(place: u32) -> u64 {
    DATAGRAM | u64::from(place)
}

/// For a greeting that arrives.
pub(crate) fn datagram_receive_id(buffer: u32) -> u64 {
    RECEIVE | DATAGRAM | u64::from(buffer)
}
