//! All pairs of a rank.

use std::fmt;

use tailback_bootstrap::Secret;
use tailback_engine::matching::{Kinds, Ledger, Rails};
use tailback_host::WaitMode;
use tailback_transport::{Error, Rank, Result};

use super::endpoint::Endpoint;
use super::link::{Peer, Route};
use super::work::Far;
use crate::ffi::{Completion, Regions};
use crate::header::{Address, Header};

/// How many completions are taken at once.
const BATCH: usize = 16;

/// See [`super`].
pub struct VerbsWire {
    pub(super) rails: Rails,
    /// One per rail.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) secret: Secret,
    pub(super) wait: WaitMode,
    pub(super) peers: Vec<Peer>,
    /// Peers with a pair that is not known to be connected at both ends.
    pub(super) connecting: Vec<usize>,
    /// Bytes by which windows have grown, the buffers of the widest, and why they grow no more.
    pub(super) grown: usize,
    pub(super) widest: u32,
    pub(super) narrow: Option<String>,
    pub(super) batch: [Completion; BATCH],
    pub(super) rounds: u32,
}

impl Kinds for VerbsWire {
    type Registration = Regions;
    type Far = Far;
    type Request = Header;
}

/// The books of a rank that talks over pairs.
pub(super) type Books = Ledger<VerbsWire>;

impl VerbsWire {
    /// The wire of a rank with these ends, one per rail; `addresses` has every rank's, in rank order.
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        addresses: &[Vec<Address>],
        secret: Secret,
        wait: WaitMode,
    ) -> VerbsWire {
        let rails = Rails::new(endpoints.len());
        // A number that is nobody's has an address that nobody asks for.
        let address = |peer: usize| addresses[rails.rank(peer)][rails.rail(peer).min(rails.count() - 1)];
        VerbsWire {
            rails,
            grown: 0,
            widest: endpoints.iter().map(|of| of.sizes.first).max().unwrap_or_default(),
            narrow: None,
            endpoints,
            secret,
            wait,
            peers: (0..rails.peers(addresses.len())).map(|peer| Peer::new(address(peer))).collect(),
            connecting: Vec::new(),
            batch: [Completion::empty(); BATCH],
            rounds: 0,
        }
    }

    /// The buffers that were registered for peers' messages so far, on all rails.
    pub(super) fn windows_text(&self) -> String {
        let sizes = || self.endpoints.iter().map(|of| of.sizes);
        let first = sizes().map(|of| of.first).min().unwrap_or_default();
        let most = sizes().map(|of| of.most).max().unwrap_or_default();
        let made = |of: &Endpoint| (of.links * (of.sizes.first + of.sizes.spare)) as usize * of.sizes.buffer;
        let all = self.endpoints.iter().map(made).sum::<usize>() + self.grown;
        let limit = self.narrow.as_ref().map_or(String::new(), |reason| format!("; no more: {reason}"));
        format!(
            "{first} to {most} buffers a peer, the widest {}; {} KiB for {} connections{limit}",
            self.widest,
            all >> 10,
            self.links()
        )
    }

    /// Connections on all rails.
    fn links(&self) -> u32 {
        self.endpoints.iter().map(|of| of.links).sum()
    }

    /// The peer's rank.
    pub(super) fn rank(&self, peer: usize) -> Rank {
        Rank::from(self.rails.rank(peer))
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
        let rail = self.rails.rail(peer);
        let detail = self.evidence(rail, seen);
        if let Route::Linked(link) = &self.peers[peer].route {
            let endpoint = &mut self.endpoints[rail];
            let grown = link.window.size() - endpoint.sizes.first;
            self.grown -= grown as usize * endpoint.sizes.buffer;
            endpoint.links -= 1;
            endpoint.give_room(endpoint.sizes.completions() + grown);
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

    /// What was seen of a peer that is gone, and how this rank's own port on that rail is: the same words whichever way that a
    /// link fails is noticed first.
    pub(super) fn evidence(&self, rail: usize, seen: &str) -> String {
        let endpoint = &self.endpoints[rail];
        let place = match self.rails.count() {
            1 => endpoint.place(),
            _ => format!("rail {rail}, {}", endpoint.place()),
        };
        match endpoint.choice.context.port(endpoint.choice.port.number) {
            Ok(port) => format!("{seen}; {place} is {}", port.state_text()),
            Err(error) => format!("{seen}; {place} does not answer: {error}"),
        }
    }
}

impl fmt::Debug for VerbsWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsWire").field("links", &self.links()).finish_non_exhaustive()
    }
}
