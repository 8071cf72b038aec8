//! The wire under the engine: every pair, what is posted on it and what arrives. Serves all peers in any call.
//!
//! - `ids`, `work`, `link`, `endpoint`: request numbers, what is to be posted, one pair, this rank's end. `window`,
//!   `buffers`: how much may be under way to a peer, and where it arrives.
//! - `connect`: pairs are made when ranks first talk, by greetings over datagrams. `pump`: posts what waits.
//!   `arrive`: what messages mean. `progress`: completions, waiting, and what is wrong.

mod arrive;
mod buffers;
mod connect;
mod endpoint;
mod ids;
mod link;
mod progress;
mod pump;
mod window;
mod work;

use std::fmt;
use std::time::{Duration, Instant};

use tailback_bootstrap::Secret;
use tailback_engine::Segment;
use tailback_engine::matching::{
    FlowControl, GroupLookup, GroupMember, Ledger, MessageRequest, Rails, Wire, WireTypes,
};
use tailback_host::{Idle, WaitMode};
use tailback_transport::{Description, Error, Rank, Result, Span};

use self::link::{Peer, Route};
use self::work::{AccessKind, Key, RemoteSegment, Work};
use crate::ffi::{self, Completion, Regions};
use crate::header::{Address, Header, Message, POSITIONS};

pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::window::Sizes;

/// How many completions are taken at once.
const BATCH: usize = 16;

/// See the module.
pub struct VerbsWire {
    rails: Rails,
    /// One per rail.
    endpoints: Vec<Endpoint>,
    secret: Secret,
    wait: WaitMode,
    peers: Vec<Peer>,
    /// Peers with a pair that is not known to be connected at both ends.
    connecting: Vec<usize>,
    /// Bytes by which windows have grown, the buffers of the widest, and why they grow no more.
    grown: usize,
    widest: u32,
    narrow: Option<String>,
    batch: [Completion; BATCH],
    rounds: u32,
}

impl WireTypes for VerbsWire {
    type Registration = Regions;
    type RemoteSegment = RemoteSegment;
    type Request = Header;
}

/// The ledger of a rank that talks over pairs.
type VerbsLedger = Ledger<VerbsWire>;

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
    fn windows_text(&self) -> String {
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
    fn rank(&self, peer: usize) -> Rank {
        Rank::from(self.rails.rank(peer))
    }

    /// The error for an operation that needs a lost peer.
    fn lost(&self, ledger: &VerbsLedger, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "no connection".into(),
        };
        ledger.lost(peer, detail)
    }

    /// The pair with `peer` is unusable: an error if anything still needs it, else noted for whoever will.
    fn lose(&mut self, ledger: &VerbsLedger, peer: usize, seen: &str) -> Result<()> {
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
        if ledger.needs(peer) {
            return Err(self.lost(ledger, peer));
        }
        let state = &mut self.peers[peer];
        state.out.clear();
        state.queued = 0;
        Ok(())
    }

    /// What was seen of a peer that is gone, and how this rank's own port on that rail is: the same words whichever way that a
    /// link fails is noticed first.
    fn evidence(&self, rail: usize, seen: &str) -> String {
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

/// Calls with nothing to wait for serve peers once in so many.
const POLL_EVERY: u32 = 16;

/// How long a rank that ends waits for what it sent to arrive: long enough for the device to say it once more. A peer
/// that ended first does not answer at all.
const LINGER: Duration = Duration::from_millis(400);

impl Wire for VerbsWire {
    const LONGEST: usize = usize::MAX;
    const MEMBERS: usize = POSITIONS;

    fn describe(&self, description: &mut Description) {
        for (rail, endpoint) in self.endpoints.iter().enumerate() {
            let key = Description::rail_key(rail, "completion_queue_entries");
            description.details.insert(key, endpoint.queue_text());
        }
        description.details.insert("eager_windows".into(), self.windows_text());
    }

    fn segment(&mut self, len: usize) -> Result<Segment<Regions>> {
        ffi::shared(self.endpoints.iter().map(|of| &of.domain), len)
    }

    /// Queues a message and posts as much of it as goes.
    #[inline]
    fn send(&mut self, ledger: &mut Ledger<Self>, peer: usize, request: MessageRequest) -> Result<()> {
        if self.send_at_once(ledger, peer, &request)? {
            return Ok(());
        }
        self.reach(ledger, peer)?;
        ledger.begin_send(peer, &request);
        self.submit(ledger, peer, Work::Send { request, at: 0, begun: false })
    }

    #[inline]
    fn waiting(&self, peer: usize) -> usize {
        self.peers[peer].queued
    }

    fn send_flow_control(&mut self, ledger: &mut Ledger<Self>, peer: usize, control: FlowControl) -> Result<()> {
        self.submit(
            ledger,
            peer,
            Work::Say(Header { message: Message::FlowControl(control), from: 0, group: 0, length: 0 }),
        )
    }

    /// Queues an RDMA write.
    #[inline]
    fn put(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        GroupMember { slot, member: to }: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.access(ledger, peer, GroupMember { slot, member: to }, AccessKind::Put, local, remote)?;
        let seat = ledger.rails.seat(to.0, peer);
        ledger.groups.at_mut(slot).members[seat].remote.unfenced |= local.len > 0;
        Ok(())
    }

    /// Queues an RDMA read.
    #[inline]
    fn get(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        target: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.access(ledger, peer, target, AccessKind::Get, local, remote)
    }

    /// Sends a fence if a put was made since the last.
    #[inline]
    fn ask_flush(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        GroupMember { slot, member: to }: GroupMember,
    ) -> Result<()> {
        let seat = ledger.rails.seat(to.0, peer);
        if std::mem::take(&mut ledger.groups.at_mut(slot).members[seat].remote.unfenced) {
            self.queue(ledger, peer, GroupMember { slot, member: to }, Work::Fence { slot, member: to.0 })?;
        }
        let lost = matches!(self.peers[peer].route, Route::Lost(_)) && ledger.needs(peer);
        if lost { Err(self.lost(ledger, peer)) } else { Ok(()) }
    }

    #[inline]
    fn accesses(there: &RemoteSegment) -> u64 {
        there.accesses
    }

    #[inline]
    fn completed(there: &RemoteSegment) -> u64 {
        there.completed
    }

    #[inline]
    fn progress(&mut self, ledger: &mut Ledger<Self>, idle: Idle) -> Result<()> {
        self.advance(ledger, idle)
    }

    fn poll_peer(&mut self, ledger: &mut Ledger<Self>, peer: usize) -> Result<()> {
        self.poll(ledger, self.rails.rail(peer)).map(drop)
    }

    #[inline]
    fn poll_sometimes(&mut self, ledger: &mut Ledger<Self>) -> Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(POLL_EVERY) {
            return self.advance(ledger, Idle::Return);
        }
        Ok(())
    }

    fn serve(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        found: GroupLookup,
        request: Header,
        _: &[u8],
    ) -> Result<()> {
        self.request(ledger, peer, found, request)?;
        self.pump(ledger, peer)
    }

    #[inline]
    fn loss(&self, peer: usize) -> Option<&str> {
        match &self.peers[peer].route {
            Route::Lost(detail) => Some(detail),
            _ => None,
        }
    }

    /// What is being held is a few buffers: it goes on being held until it is whole.
    #[inline]
    fn on_recv_posted(&mut self, _: &mut Ledger<Self>, _: usize) -> Result<()> {
        Ok(())
    }

    /// Only what waits for an answer: work that is queued already still needs to know where to go.
    fn forget(there: &mut RemoteSegment) -> usize {
        match &mut there.key {
            Key::Asked(work) => work.drain(..).count(),
            Key::Known { .. } | Key::Unknown => 0,
        }
    }

    /// What this rank said last has to arrive, although nobody here waits for it any more.
    fn close(&mut self, ledger: &mut Ledger<Self>) {
        let limit = Instant::now() + LINGER;
        if (0..self.peers.len()).any(|peer| self.say_farewell(ledger, peer).is_err()) {
            return;
        }
        while self.has_under_way() && Instant::now() < limit {
            if self.advance(ledger, Idle::Wait).is_err() {
                return;
            }
        }
    }
}

impl VerbsWire {
    /// Queues a put or a get.
    #[inline]
    fn access(
        &mut self,
        ledger: &mut VerbsLedger,
        peer: usize,
        GroupMember { slot, member }: GroupMember,
        kind: AccessKind,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        if local.len > 0 && self.access_at_once(ledger, peer, GroupMember { slot, member }, kind, local, remote)? {
            return Ok(());
        }
        self.reach(ledger, peer)?;
        if local.len == 0 {
            return Ok(());
        }
        let work = Work::Access { kind, slot, member: member.0, local, remote, at: 0 };
        self.queue(ledger, peer, GroupMember { slot, member }, work)
    }

    /// Queues work on a member's segment, once it is known where that is.
    fn queue(
        &mut self,
        ledger: &mut VerbsLedger,
        peer: usize,
        GroupMember { slot, member }: GroupMember,
        work: Work,
    ) -> Result<()> {
        ledger.begin_access(peer, slot);
        let seat = ledger.rails.seat(member.0, peer);
        let group = ledger.groups.at_mut(slot);
        let (id, rank) = (group.id, group.rank);
        let there = &mut group.members[seat].remote;
        there.begin();
        match &mut there.key {
            Key::Known { .. } => self.submit(ledger, peer, work),
            Key::Asked(waiting) => {
                waiting.push(work);
                Ok(())
            }
            Key::Unknown => {
                there.key = Key::Asked(vec![work]);
                let request = Header { message: Message::KeyRequest, from: rank, group: id, length: 0 };
                self.submit(ledger, peer, Work::Say(request))
            }
        }
    }
}
