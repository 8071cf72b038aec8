//! What the ranks of a job share: the network, their clocks, groups, and what is under way between them.
//!
//! A rank's clock may be ahead of the network's, because its own work takes time that nobody else sees; it is never
//! behind when the rank runs. What a rank starts, starts at its own time. Ranks run one at a time, to their next wait,
//! in the order in which they were woken: nothing here depends on the real clock, or on addresses.

use std::collections::VecDeque;
use std::sync::Arc;

use tailback_engine::Lane;
use tailback_transport::{Error, Rank, Result};

use super::channel::{Channels, Key};
use super::groups::Groups;
use super::meeting::Meeting;
use super::segment::{Extract, Known};
use crate::machine::{Link, Machine, Ps};
use crate::net::{Happened, NO_TIME, Network, PhaseCounters, Send};

use tailback_transport::Span;

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing: it runs, or is about to.
    No,
    /// Anything that concerns it.
    News,
    /// The end of everything on a lane of a group.
    Lane { group: u32, lane: Lane },
    /// The end of everything between it and a member of a group.
    Peer { group: u32, peer: u32 },
    /// The network's clock.
    Time,
    /// The other ranks, in a call of the bootstrap.
    Meeting(&'static str),
}

/// One rank.
#[derive(Debug)]
pub(super) struct RankState {
    pub(super) clock: u64,
    /// Something completed since the rank last looked.
    pub(super) news: bool,
    pub(super) waiting: Waiting,
    pub(super) done: bool,
    /// What is to be reported at its next call.
    pub(super) error: Option<Error>,
}

/// Something under way in the network.
#[derive(Debug)]
enum Op {
    Free,
    Send {
        key: Key,
        number: u64,
        payload: Option<Extract>,
        span: Span,
        complete: bool,
    },
    Put(Access),
    /// The request of a get, on its way to who has the bytes.
    Ask(Access),
    /// The bytes, on their way back.
    Answer(Access),
}

/// A put or a get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) group: u32,
    /// Positions of who asked and of whose memory it is about.
    pub(super) origin: u32,
    pub(super) target: u32,
    pub(super) local: Span,
    pub(super) remote: usize,
}

/// In a timer's token: it is for a rank, not for something under way.
const FOR_RANK: u64 = 1 << 63;

/// Why the job cannot go on.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Who is to blame; nobody if all wait for each other.
    pub(super) rank: Option<Rank>,
    pub(super) reason: String,
}

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    pub(super) network: Network,
    pub(super) ranks: Vec<RankState>,
    pub(super) everyone: Arc<[Rank]>,
    pub(super) ready: VecDeque<u32>,
    pub(super) groups: Groups,
    pub(super) channels: Channels,
    pub(super) known: Known,
    pub(super) meeting: Meeting,
    pub(super) failure: Option<Failure>,
    pub(super) phases: Vec<PhaseCounters>,
    pub(super) machine: Machine,
    pub(super) per_node: usize,
    /// The traffic class of what each rank starts.
    pub(super) class: Vec<u8>,
    ops: Vec<Op>,
    free: Vec<u32>,
    /// Of every node: what faults leave of its processor's speed, and of its memory's.
    speeds: Vec<(f64, f64)>,
}

impl World {
    pub(super) fn new(network: Network, size: usize, per_node: usize) -> Self {
        let speeds = (0..size.div_ceil(per_node)).map(|node| network.machine().speed_of(node)).collect();
        let rank = || RankState { clock: 0, news: false, waiting: Waiting::No, done: false, error: None };
        World {
            machine: network.machine().clone(),
            network,
            ranks: (0..size).map(|_| rank()).collect(),
            everyone: (0..size).map(Rank::from).collect(),
            ready: (0..size as u32).collect(),
            groups: Groups::default(),
            channels: Channels::default(),
            known: Known::default(),
            meeting: Meeting::new(size),
            failure: None,
            phases: Vec::new(),
            per_node,
            class: vec![0; size],
            ops: Vec::new(),
            free: Vec::new(),
            speeds,
        }
    }

    pub(super) fn node(&self, rank: Rank) -> usize {
        rank.index() / self.per_node
    }

    /// How long a rank's processor takes for what a whole one does in `ps`.
    pub(super) fn work(&self, rank: Rank, ps: u64) -> u64 {
        let (processor, _) = self.speeds[self.node(rank)];
        if processor == 1.0 { ps } else { (ps as f64 / processor) as u64 }
    }

    fn endpoint(&self, rank: Rank) -> u32 {
        let nics = self.machine.nodes.nics;
        (self.node(rank) * nics + rank.index() % self.per_node % nics) as u32
    }

    /// Every call of a rank begins here.
    pub(super) fn enter(&mut self, operation: &'static str, rank: Rank) -> Result<()> {
        if let Some(error) = self.ranks[rank.index()].error.take() {
            return Err(error);
        }
        // A rank that never waits takes time too.
        if self.ranks[rank.index()].clock > self.network.time_limit() && self.failure.is_none() {
            let reason = self.out_of_time();
            self.fail(None, &reason);
        }
        match &self.failure {
            None => Ok(()),
            Some(Failure { rank: Some(peer), reason }) => {
                Err(Error::PeerLost { operation, peer: *peer, detail: reason.clone() })
            }
            Some(Failure { rank: None, reason }) => {
                let seconds = self.network.now() as f64 * 1e-12;
                Err(Error::Timeout { operation, seconds, detail: reason.clone() })
            }
        }
    }

    /// What to say when the virtual time is over.
    pub(super) fn out_of_time(&self) -> String {
        let limit = Ps(self.network.time_limit());
        format!("the job takes more than {limit} of virtual time, the limit of this simulation")
    }

    /// Ends the job; the first failure counts. Everyone who waits is woken to find out.
    pub(super) fn fail(&mut self, rank: Option<Rank>, reason: &str) {
        if self.failure.is_none() {
            self.failure = Some(Failure { rank, reason: reason.to_owned() });
        }
        for rank in 0..self.ranks.len() {
            let state = &mut self.ranks[rank];
            if state.waiting != Waiting::No && !state.done {
                state.waiting = Waiting::No;
                self.ready.push_back(rank as u32);
            }
        }
    }

    /// Lets the next thing happen in the network; false when nothing is to come.
    pub(super) fn step(&mut self) -> bool {
        if !self.network.step() {
            return false;
        }
        while let Some(happened) = self.network.happened() {
            match happened {
                Happened::Timer(token) if token & FOR_RANK != 0 => {
                    let rank = (token & !FOR_RANK) as usize;
                    if self.ranks[rank].waiting == Waiting::Time {
                        self.wake(rank);
                    }
                }
                // A message inside a node.
                Happened::Timer(token) => {
                    self.delivered(token as u32);
                    self.acknowledged(token as u32);
                }
                Happened::Delivered(token) => self.delivered(token as u32),
                Happened::Acknowledged(token) => self.acknowledged(token as u32),
            }
        }
        true
    }

    pub(super) fn wake(&mut self, rank: usize) {
        let now = self.network.now();
        let state = &mut self.ranks[rank];
        state.waiting = Waiting::No;
        state.clock = state.clock.max(now);
        self.ready.push_back(rank as u32);
    }

    /// Wakes a rank when the network's clock reaches the rank's.
    pub(super) fn wake_in_time(&mut self, rank: Rank) {
        self.ranks[rank.index()].waiting = Waiting::Time;
        let clock = self.ranks[rank.index()].clock;
        self.network.at(clock, FOR_RANK | u64::from(rank.0));
    }

    /// Something of a member of a group completed: `cost` of its processor's time later it knows.
    fn tell(&mut self, group: u32, member: u32, cost: u64) {
        let rank = self.groups.rank(group, member).index();
        let now = self.network.now();
        let cost = self.work(Rank::from(rank), cost);
        let state = &mut self.ranks[rank];
        state.clock = (state.clock.max(now) + cost).min(NO_TIME);
        state.news = true;
        let wanted = match state.waiting {
            Waiting::News => true,
            Waiting::Lane { group: own, lane } => own == group && self.groups.member(group, member).is_complete(lane),
            Waiting::Peer { group: own, peer } => own == group && self.groups.member(group, member).is_flushed(peer),
            Waiting::No | Waiting::Time | Waiting::Meeting(_) => false,
        };
        if wanted {
            self.wake(rank);
        }
    }

    fn add(&mut self, op: Op) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.ops[id as usize] = op;
                id
            }
            None => {
                self.ops.push(op);
                (self.ops.len() - 1) as u32
            }
        }
    }

    /// Puts bytes on their way between two ranks, starting at time `at`.
    fn carry(&mut self, at: u64, from: Rank, to: Rank, bytes: usize, op: Op, group: u32) {
        let token = u64::from(self.add(op));
        self.groups.hold(group);
        if self.node(from) == self.node(to) {
            let Link { rate, latency } = self.machine.nodes.memory;
            // A processor copies, from memory to memory.
            let (processor, memory) = self.speeds[self.node(from)];
            let copy = (rate.ps(bytes as u64) as f64 / processor.min(memory)) as u64;
            return self.network.at(at.saturating_add(latency.0).saturating_add(copy), token);
        }
        let class = self.class[from.index()];
        let (from, to) = (self.endpoint(from), self.endpoint(to));
        let bytes = u32::try_from(bytes).expect("a segment of 4 GiB was refused");
        self.network.send(at, Send { from, to, class, bytes, token, acknowledge: true });
    }

    /// Starts a message; short ones are copied and thereby complete for the sender.
    pub(super) fn post_send(&mut self, key: Key, span: Span) {
        let (from, to) = (self.groups.rank(key.group, key.from), self.groups.rank(key.group, key.to));
        let number = self.channels.send(key);
        let at = self.spend(from, self.machine.nic.send_overhead.0);
        let complete = span.len as u64 <= self.machine.nic.eager_limit.0;
        let member = self.groups.member(key.group, key.from);
        let payload = complete.then(|| member.segment.extract(span));
        member.sends[key.lane as usize] += u32::from(!complete);
        self.ranks[from.index()].news |= complete;
        self.carry(at, from, to, span.len, Op::Send { key, number, payload, span, complete }, key.group);
    }

    /// Posts a receive.
    pub(super) fn post_receive(&mut self, key: Key, span: Span) {
        self.groups.member(key.group, key.to).receives[key.lane as usize] += 1;
        if let Some((span, extract)) = self.channels.receive(key, span) {
            self.match_up(key, span, extract);
        }
    }

    pub(super) fn post_put(&mut self, access: Access) {
        let (origin, target) = self.ends(access);
        let at = self.spend(origin, self.machine.nic.send_overhead.0);
        self.groups.member(access.group, access.origin).outstanding(access.target, 1);
        self.carry(at, origin, target, access.local.len, Op::Put(access), access.group);
    }

    pub(super) fn post_get(&mut self, access: Access) {
        let (origin, target) = self.ends(access);
        let at = self.spend(origin, self.machine.nic.send_overhead.0);
        self.groups.member(access.group, access.origin).outstanding(access.target, 1);
        self.carry(at, origin, target, 0, Op::Ask(access), access.group);
    }

    fn ends(&self, access: Access) -> (Rank, Rank) {
        (self.groups.rank(access.group, access.origin), self.groups.rank(access.group, access.target))
    }

    /// Takes time of a rank's processor; the time when it is over.
    fn spend(&mut self, rank: Rank, cost: u64) -> u64 {
        let cost = self.work(rank, cost);
        let clock = &mut self.ranks[rank.index()].clock;
        *clock += cost;
        *clock
    }

    /// The bytes of something under way are at the other end.
    fn delivered(&mut self, id: u32) {
        match &mut self.ops[id as usize] {
            Op::Send { key, number, payload, span, .. } => {
                let (key, number, span, payload) = (*key, *number, *span, payload.take());
                let source = self.groups.member(key.group, key.from);
                let extract = payload.unwrap_or_else(|| source.segment.extract(span));
                if let Some((span, extract)) = self.channels.arrive(key, number, extract) {
                    self.match_up(key, span, extract);
                }
            }
            Op::Put(access) => {
                let access = *access;
                let extract = self.groups.member(access.group, access.origin).segment.extract(access.local);
                let target = self.groups.member(access.group, access.target);
                target.segment.insert(&mut self.known, access.remote, extract);
            }
            Op::Ask(access) => {
                // The network port answers by itself.
                let access = *access;
                let (origin, target) = self.ends(access);
                let now = self.network.now();
                self.carry(now, target, origin, access.local.len, Op::Answer(access), access.group);
            }
            Op::Answer(access) => {
                let access = *access;
                let far = Span::new(access.remote, access.local.len);
                let extract = self.groups.member(access.group, access.target).segment.extract(far);
                let origin = self.groups.member(access.group, access.origin);
                origin.segment.insert(&mut self.known, access.local.offset, extract);
                origin.outstanding(access.target, -1);
                self.tell(access.group, access.origin, self.machine.nic.receive_overhead.0);
            }
            Op::Free => unreachable!("what is under way is not free"),
        }
    }

    /// Who sent it knows.
    fn acknowledged(&mut self, id: u32) {
        let op = std::mem::replace(&mut self.ops[id as usize], Op::Free);
        self.free.push(id);
        let group = match op {
            Op::Send { key, complete, .. } => {
                if !complete {
                    self.groups.member(key.group, key.from).sends[key.lane as usize] -= 1;
                    self.tell(key.group, key.from, 0);
                }
                key.group
            }
            Op::Put(access) => {
                self.groups.member(access.group, access.origin).outstanding(access.target, -1);
                self.tell(access.group, access.origin, 0);
                access.group
            }
            Op::Ask(access) | Op::Answer(access) => access.group,
            Op::Free => unreachable!("what is under way is not free"),
        };
        self.release(group);
    }

    /// A message met its receive.
    fn match_up(&mut self, key: Key, span: Span, extract: Extract) {
        let sender = self.groups.rank(key.group, key.from);
        let receiver = self.groups.rank(key.group, key.to).index();
        let member = self.groups.member(key.group, key.to);
        member.receives[key.lane as usize] -= 1;
        if extract.len() == span.len {
            member.segment.insert(&mut self.known, span.offset, extract);
        } else {
            let detail = format!("a message of {} bytes met a receive of {}", extract.len(), span.len);
            let error = Error::Protocol { operation: "recv", peer: Some(sender), detail };
            self.ranks[receiver].error.get_or_insert(error);
        }
        self.tell(key.group, key.to, self.machine.nic.receive_overhead.0);
    }

    /// A member, or something under way, has no more use for a group.
    pub(super) fn release(&mut self, group: u32) {
        if self.groups.release(group) {
            self.channels.forget(group);
        }
    }
}
