//! Pairs come to be when two ranks first talk, so that an incast of n ranks makes n pairs and not n squared.
//!
//! Datagrams carry greetings ([`Hello`]), sealed with the job's key; others, and those that a rank did not send from where it
//! said that it is, are dropped without a word. A rank that wants to talk makes its end and says so; the other makes its own,
//! connects it and answers; then the first does. Each says so again until it knows the other to be connected, and only
//! then posts anything. Greetings that cross, come twice or are lost change nothing.

use std::time::{Duration, Instant};

use tailback_transport::{Rank, Result};

use super::link::{Connection, Route};
use super::window::GROWN_LIMIT;
use super::{VerbsLedger, VerbsWire};
use crate::ffi::{Completion, Peer};
use crate::header::Hello;

/// When a greeting is said again: first soon, then ever more seldom.
const AGAIN_FIRST: Duration = Duration::from_millis(10);
const AGAIN_LAST: Duration = Duration::from_millis(300);

/// How long a peer may take to answer: it answers in any call of the transport, but it may have other things to do first.
const PATIENCE: Duration = Duration::from_secs(60);

impl VerbsWire {
    /// Makes sure that work for `peer` will be posted some time.
    pub(super) fn reach(&mut self, ledger: &VerbsLedger, peer: usize) -> Result<()> {
        match self.peers[peer].route {
            Route::Linked(_) => Ok(()),
            Route::Lost(_) => Err(self.lost(ledger, peer)),
            Route::Idle => {
                self.link(peer)?;
                self.greet(ledger.me, peer)
            }
        }
    }

    /// Makes this rank's end.
    fn link(&mut self, peer: usize) -> Result<()> {
        let rank = self.rank(peer);
        let endpoint = &mut self.endpoints[self.rails.rail(peer)];
        endpoint.make_room(endpoint.sizes.completions(), rank)?;
        let link = Connection::new(endpoint, &self.peers[peer].address, peer, rank)?;
        endpoint.links += 1;
        self.peers[peer].route = Route::Linked(Box::new(link));
        self.connecting.push(peer);
        Ok(())
    }

    /// A peer has spent its last credit: it gets more buffers, as far as there may be more. Without them it goes on as before,
    /// so what is in the way is kept for the result file and is no error.
    #[cold]
    pub(super) fn widen(&mut self, peer: usize) -> Result<()> {
        let rank = self.rank(peer);
        let endpoint = &mut self.endpoints[self.rails.rail(peer)];
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        let Some(by) = link.window.growth().filter(|_| self.narrow.is_none()) else { return Ok(()) };
        let bytes = by as usize * endpoint.sizes.buffer;
        if self.grown + bytes > GROWN_LIMIT {
            self.narrow = Some(format!("{} MiB for all peers", GROWN_LIMIT >> 20));
            return Ok(());
        }
        if let Err(error) = endpoint.make_room(by, rank) {
            self.narrow = Some(error.to_string());
            return Ok(());
        }
        if let Err(error) = link.grow(&endpoint.domain, by) {
            endpoint.give_room(by);
            self.narrow = Some(error.to_string());
            return Ok(());
        }
        self.grown += bytes;
        self.widest = self.widest.max(link.window.size());
        Ok(())
    }

    /// Says where this end is and what it knows of the other.
    fn greet(&mut self, me: Rank, peer: usize) -> Result<()> {
        let to = self.rank(peer);
        let own = self.peers[self.rails.peer(me.index(), self.rails.rail(peer))].address;
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let hello = Hello {
            from: me.0,
            to: to.0,
            pair: link.pair.number(),
            first: link.first,
            connected: link.connected,
            heard: link.heard,
        };
        link.greeted = Some(Instant::now());
        link.greetings += 1;
        self.endpoints[link.rail].greet(&hello, &self.secret, (&own, &state.address), &link.handle)
    }

    /// A greeting has arrived on a rail, from a rank or from a stranger.
    pub(super) fn take_hello(
        &mut self,
        ledger: &mut VerbsLedger,
        (rail, buffer): (usize, u32),
        completion: &Completion,
    ) -> Result<()> {
        let Some(greeting) = self.endpoints[rail].take_greeting(buffer, completion)? else { return Ok(()) };
        let hello = greeting.hello;
        if hello.to != ledger.me.0 || hello.from == ledger.me.0 || hello.from as usize >= ledger.ranks() {
            return Ok(());
        }
        let peer = self.rails.peer(hello.from as usize, rail);
        let own = &self.peers[self.rails.peer(ledger.me.index(), rail)].address;
        if !greeting.is_from(&self.secret, &self.peers[peer].address, own) {
            return Ok(());
        }
        match self.peers[peer].route {
            Route::Lost(_) => return Ok(()),
            Route::Idle => self.link(peer)?,
            Route::Linked(_) => {}
        }
        self.connect(peer, &hello)?;
        if hello.connected {
            self.hear(ledger, peer)?;
        }
        if hello.heard { Ok(()) } else { self.greet(ledger.me, peer) }
    }

    /// Connects this end to the one that a greeting names.
    fn connect(&mut self, peer: usize, hello: &Hello) -> Result<()> {
        let endpoint = &self.endpoints[self.rails.rail(peer)];
        let (address, mine) = (self.peers[peer].address, endpoint.address());
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        if link.connected {
            return Ok(());
        }
        link.pair.connect(&Peer {
            path: endpoint.path(&address),
            number: hello.pair,
            first_in: hello.first,
            first_out: link.first,
            mtu: u32::from(address.mtu.min(mine.mtu)),
            reads_out: endpoint.reads_out(address.reads),
            reads_in: mine.reads,
            patience: endpoint.choice.patience,
        })?;
        link.connected = true;
        Ok(())
    }

    /// The peer's end is connected: what waits for it can go.
    pub(super) fn hear(&mut self, ledger: &mut VerbsLedger, peer: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        if link.heard || !link.connected {
            return Ok(());
        }
        link.heard = true;
        self.connecting.retain(|&other| other != peer);
        self.pump(ledger, peer)
    }

    /// Says again what may have been lost; gives up on who never answers.
    pub(super) fn remind(&mut self, ledger: &mut VerbsLedger) -> Result<()> {
        let now = Instant::now();
        for at in (0..self.connecting.len()).rev() {
            let Some(&peer) = self.connecting.get(at) else { continue };
            let Route::Linked(link) = &self.peers[peer].route else { continue };
            let pause = (AGAIN_FIRST * 2u32.pow(link.greetings.min(5))).min(AGAIN_LAST);
            if now - link.since > PATIENCE {
                let seen = format!("no answer to {} greetings in {} s", link.greetings, PATIENCE.as_secs());
                self.lose(ledger, peer, &seen)?;
            } else if link.greeted.is_none_or(|last| now - last >= pause) {
                self.greet(ledger.me, peer)?;
            }
        }
        Ok(())
    }

    /// How long a rank may sleep.
    pub(super) fn nap(&self) -> Duration {
        if self.connecting.is_empty() { Duration::from_millis(100) } else { AGAIN_FIRST }
    }
}
