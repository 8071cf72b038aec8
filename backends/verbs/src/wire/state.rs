//! All pairs of a rank.

use std::fmt;
use std::time::Instant;

use tailback_transport::matching::{Kinds, Ledger};
use tailback_transport::{Error, Result, WaitMode};

use super::endpoint::Endpoint;
use super::link::{Peer, Route};
use super::window::Sizes;
use super::work::Far;
use crate::ffi::{Completion, Region};
use crate::header::{Address, Header};

/// How many completions are taken at once.
const BATCH: usize = 16;

/// See [`super`].
pub struct VerbsWire {
    pub(super) endpoint: Endpoint,
    pub(super) wait: WaitMode,
    pub(super) peers: Vec<Peer>,
    /// Ranks with a pair that is not known to be connected at both ends.
    pub(super) connecting: Vec<usize>,
    pub(super) links: u32,
    /// Bytes by which windows have grown, the buffers of the widest, and why they grow no more.
    pub(super) grown: usize,
    pub(super) widest: u32,
    pub(super) narrow: Option<String>,
    pub(super) batch: [Completion; BATCH],
    /// Whether an event was asked for and not taken.
    pub(super) armed: bool,
    pub(super) port_down: Option<Instant>,
    pub(super) rounds: u32,
}

impl Kinds for VerbsWire {
    type Registration = Region;
    type Far = Far;
    type Request = Header;
}

/// The books of a rank that talks over pairs.
pub(super) type Books = Ledger<VerbsWire>;

impl VerbsWire {
    /// The wire of a rank with that end; `addresses` has every rank's, in rank order.
    pub(crate) fn new(endpoint: Endpoint, addresses: &[Address], wait: WaitMode) -> VerbsWire {
        VerbsWire {
            grown: 0,
            widest: endpoint.sizes.first,
            narrow: None,
            endpoint,
            wait,
            peers: addresses.iter().map(|&address| Peer::new(address)).collect(),
            connecting: Vec::new(),
            links: 0,
            batch: [Completion::empty(); BATCH],
            armed: false,
            port_down: None,
            rounds: 0,
        }
    }

    /// The completion queue and the connections made so far.
    pub(crate) fn queue_text(&self) -> String {
        self.endpoint.queue_text(self.links)
    }

    /// The buffers that were registered for peers' messages so far.
    pub(crate) fn windows_text(&self) -> String {
        let Sizes { buffer, first, most, spare, .. } = self.endpoint.sizes;
        let all = (self.links * (first + spare)) as usize * buffer + self.grown;
        let limit = self.narrow.as_ref().map_or(String::new(), |reason| format!("; no more: {reason}"));
        format!(
            "{first} to {most} buffers a peer, the widest {}; {} KiB for {} connections{limit}",
            self.widest,
            all >> 10,
            self.links
        )
    }

    /// The error for an operation that needs a lost peer.
    pub(super) fn lost(&self, books: &Books, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "no connection".into(),
        };
        books.lost(peer, detail)
    }

    /// The pair with `peer` is unusable: an error if anything still needs it, else noted for whoever will.
    pub(super) fn lose(&mut self, books: &Books, peer: usize, seen: &str) -> Result<()> {
        let detail = self.evidence(seen);
        if let Route::Linked(link) = &self.peers[peer].route {
            let grown = link.window.size() - self.endpoint.sizes.first;
            self.links -= 1;
            self.grown -= grown as usize * self.endpoint.sizes.buffer;
            self.endpoint.give_room(self.endpoint.sizes.completions() + grown);
        }
        self.connecting.retain(|&other| other != peer);
        let state = &mut self.peers[peer];
        state.route = Route::Lost(detail);
        if books.needs(peer) {
            return Err(self.lost(books, peer));
        }
        let state = &mut self.peers[peer];
        state.out.clear();
        state.queued = 0;
        Ok(())
    }

    /// What was seen of a peer that is gone, and how this rank's own port is: the same words whichever way that a link
    /// fails is noticed first.
    pub(super) fn evidence(&self, seen: &str) -> String {
        let place = self.endpoint.place();
        match self.endpoint.choice.context.port(self.endpoint.choice.port.number) {
            Ok(port) => format!("{seen}; {place} is {}", port.state_text()),
            Err(error) => format!("{seen}; {place} does not answer: {error}"),
        }
    }
}

impl fmt::Debug for VerbsWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsWire").field("links", &self.links).finish_non_exhaustive()
    }
}
