//! The network: packets in queues on virtual time, driven by events. One thread, no clock, no allocation per packet once
//! its tables have grown.
//!
//! Callers start messages with [`Network::send`], let time pass with [`Network::step`], and take what happened from
//! [`Network::happened`]. Time is in picoseconds.
//!
//! Model of a switch: a packet that arrives is put into the queue of the port it leaves by, and keeps the room it takes
//! at the input until it leaves. So an input whose buffer is full of packets for a busy port holds back everything behind
//! it on that link and virtual channel: congestion spreads as it does in lossless networks. The crossbar itself is never
//! the narrow place.
//!
//! Invariants, checked by [`Network::audit`]: without drops every packet sent arrives, and when nothing is under way
//! every credit is home.

mod audit;
mod control;
mod dragonfly;
mod endpoint;
mod events;
mod fattree;
mod fault;
mod flow;
mod graph;
mod looks;
mod loss;
mod packet;
mod port;
mod router;
mod switch;
mod time;
mod view;
mod watch;

use std::collections::VecDeque;

use crate::machine::{FlowControl, Machine, Switching};
use crate::rng::Rng;
use control::Common;
use events::Events;
use flow::{Flows, Message, Messages};
use graph::{Graph, Node};
use packet::Packets;
use port::Ports;
use router::Router;
use watch::Watch;

pub use audit::Audit;
pub use port::Counters;
pub use time::LONGEST_PS;
pub(crate) use time::NO_TIME;
pub use watch::{Crowd, PhaseCounters, PortReport, Sample, Tree};

/// The kinds of events.
mod kind {
    /// A packet's head (or, where that is the rule, its tail) is at the end of its link.
    pub(super) const ARRIVE: u8 = 0;
    /// A port looks again.
    pub(super) const WAKE: u8 = 1;
    /// A message reaches its network port.
    pub(super) const POST: u8 = 2;
    /// The network port begins with a message.
    pub(super) const READY: u8 = 3;
    /// A flow's pause is over.
    pub(super) const FLOW: u8 = 4;
    /// A flow may have been silent for too long.
    pub(super) const SILENCE: u8 = 5;
    /// A pause, or its end, reaches a port.
    pub(super) const PAUSE: u8 = 6;
    /// A message is handed to its receiver.
    pub(super) const DELIVER: u8 = 7;
    /// A sender hears that all of its message arrived.
    pub(super) const ACKNOWLEDGED: u8 = 8;
    /// A time that the caller asked for.
    pub(super) const TIMER: u8 = 9;
}

/// What a caller hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// All bytes of the message are at the receiver.
    Delivered(u64),
    /// The sender knows that they are.
    Acknowledged(u64),
    /// A time that [`Network::at`] was given has come.
    Timer(u64),
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    /// From this endpoint (a network port of a node).
    pub from: u32,
    /// To this one, which may be the same.
    pub to: u32,
    /// Traffic class, from 0.
    pub class: u8,
    /// Payload.
    pub bytes: u32,
    /// The caller's name for it.
    pub token: u64,
    /// Whether the caller wants [`Happened::Acknowledged`].
    pub acknowledge: bool,
}

/// How much work was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Events handled.
    pub events: u64,
    /// Packets over links: every packet counts once per link.
    pub hops: u64,
    /// Packets that left an endpoint, acknowledgements included.
    pub injected: u64,
    /// Packets that reached one.
    pub arrived: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// A simulated network.
#[derive(Debug)]
pub struct Network {
    now: u64,
    limit: u64,
    out_of_time: bool,
    events: Events,
    graph: Graph,
    router: Router,
    ports: Ports,
    packets: Packets,
    messages: Messages,
    flows: Flows,
    /// Per endpoint and class: flows that may send.
    rings: Vec<VecDeque<u32>>,
    /// Per endpoint: when it may begin with a next message, and hand over a next one.
    send_free: Vec<u64>,
    receive_free: Vec<u64>,
    happened: VecDeque<Happened>,
    timers: Vec<u64>,
    free_timers: Vec<u32>,
    rng: Rng,
    common: Common,
    machine: Machine,
    work: Work,
    watch: Watch,
}

/// The longest round trip of a full packet and its acknowledgement through an empty network, over so many links between
/// switches each way.
fn round_trip(machine: &Machine, graph: &Graph, whole: u32, hops: u32) -> u64 {
    let cut_through = machine.switch.switching == Switching::CutThrough;
    let of = |between: bool| {
        let wires = graph.wires.iter().filter(|wire| between == is_between_switches(wire));
        let once = wires.map(|wire| {
            let [data, ack] = [u64::from(whole), machine.packet.ack.0].map(|bytes| wire.rate.ps(bytes));
            (2 * (wire.latency + machine.switch.latency.0), data + ack)
        });
        once.fold((0, 0), |most, this| (most.0.max(this.0), most.1.max(this.1)))
    };
    let ((host, host_bytes), (hop, hop_bytes)) = (of(false), of(true));
    let hops = u64::from(hops);
    let bytes = if cut_through { host_bytes.max(hop_bytes) } else { 2 * host_bytes + hops * hop_bytes };
    2 * host + hops * hop + bytes
}

fn is_between_switches(wire: &graph::Wire) -> bool {
    matches!((wire.from, wire.to), (Node::Switch(_), Node::Switch(_)))
}

impl Network {
    /// An empty network. The same machine, seed and calls give the same events.
    ///
    /// # Errors
    /// If the machine makes no sense.
    pub fn new(machine: &Machine, seed: u64) -> Result<Self, crate::machine::MachineError> {
        machine.validate()?;
        let (mut graph, router) = router::build(machine);
        let (endpoints, packet) = (graph.endpoints as usize, &machine.packet);
        let line = graph.wires[0].rate;
        let whole = (packet.payload.0 + packet.header.0) as u32;
        let [near, base] = [0, router::diameter(machine)].map(|hops| round_trip(machine, &graph, whole, hops));
        // Whoever slows down when the network is full knows what the links are meant to be.
        fault::apply(&mut graph, machine);
        let ports = Ports::new(machine, &graph);
        // Most events are about as far away as a packet takes over a link.
        let slowest = graph.wires.iter().map(|wire| wire.rate.ps(u64::from(whole))).max().unwrap_or(1);
        Ok(Network {
            now: 0,
            limit: LONGEST_PS,
            out_of_time: false,
            events: Events::new(slowest),
            ports,
            router,
            packets: Packets::default(),
            messages: Messages::default(),
            flows: Flows::default(),
            rings: vec![VecDeque::new(); endpoints * machine.switch.classes],
            send_free: vec![0; endpoints],
            receive_free: vec![0; endpoints],
            happened: VecDeque::new(),
            timers: Vec::new(),
            free_timers: Vec::new(),
            rng: Rng::new(seed),
            common: Common { spec: machine.control.clone(), line, packet: whole, base, near },
            work: Work::default(),
            watch: Watch::new(graph.wires.len()),
            machine: machine.clone(),
            graph,
        })
    }

    /// The time of the last event.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// What this network was made from.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How much was done so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// Starts a message at time `at`, which is not before now. Later than [`LONGEST_PS`], it is never sent.
    ///
    /// # Panics
    /// If an endpoint or the class does not exist.
    pub fn send(&mut self, at: u64, send: Send) {
        let endpoints = self.graph.endpoints;
        assert!(send.from < endpoints && send.to < endpoints, "{send:?} is not among {endpoints} endpoints");
        assert!(usize::from(send.class) < self.machine.switch.classes, "{send:?}: there is no such class");
        let common = &self.common;
        let lossy = self.machine.switch.flow_control == FlowControl::Drop;
        let flow = self.flows.of(send.from, send.to, send.class, || (control::State::new(common), lossy));
        let packets = u64::from(send.bytes).div_ceil(self.machine.packet.payload.0).max(1) as u32;
        let id = self.messages.add(Message {
            token: send.token,
            flow,
            bytes: send.bytes,
            packets,
            sent: 0,
            arrived: 0,
            acknowledged: 0,
            unsaid: (0, 0),
            unsaid_flags: 0,
            delivered: false,
            tell_sender: send.acknowledge,
            generation: 0,
            seen: lossy.then(|| vec![0; packets.div_ceil(64) as usize].into()),
        });
        self.events.push(at.clamp(self.now, NO_TIME) + self.machine.nic.latency.0, kind::POST, id, 0);
    }

    /// Asks for [`Happened::Timer`] with this token at time `at`.
    pub fn at(&mut self, at: u64, token: u64) {
        let timer = match self.free_timers.pop() {
            Some(timer) => timer,
            None => {
                self.timers.push(0);
                (self.timers.len() - 1) as u32
            }
        };
        self.timers[timer as usize] = token;
        self.events.push(at.max(self.now), kind::TIMER, timer, 0);
    }

    /// Takes the next thing that a caller is to hear of.
    pub fn happened(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    /// Lets nothing happen after `limit_ps`, which is [`LONGEST_PS`] at first and at most. What was to happen later is lost.
    pub fn set_time_limit(&mut self, limit_ps: u64) {
        self.limit = limit_ps.min(LONGEST_PS);
    }

    /// See [`Network::set_time_limit`].
    #[must_use]
    pub fn time_limit(&self) -> u64 {
        self.limit
    }

    /// Whether something is to happen after the time limit: [`Network::step`] does no more then.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.out_of_time
    }

    /// Handles the next event; false when there is none before the time limit.
    #[inline]
    pub fn step(&mut self) -> bool {
        let Some(event) = self.events.pop() else { return false };
        debug_assert!(event.time >= self.now);
        if event.time > self.limit {
            self.out_of_time = true;
            return false;
        }
        if event.time >= self.watch.next_look {
            self.look(event.time);
        }
        self.now = event.time;
        self.work.events += 1;
        match event.kind() {
            kind::ARRIVE => self.arrive(event.a),
            kind::WAKE => {
                let port = &mut self.ports.all[event.a as usize];
                if port.wake_at == self.now {
                    port.wake_at = port::NEVER;
                    self.serve(event.a);
                }
            }
            kind::POST => self.post(event.a),
            kind::READY => self.ready(event.a),
            kind::FLOW => {
                self.flows.all[event.a as usize].timed = false;
                self.enlist(event.a);
            }
            kind::SILENCE => self.silence(event.a),
            kind::PAUSE => self.pause(event.a, event.b),
            kind::DELIVER => self.deliver(event.a),
            kind::ACKNOWLEDGED => {
                let token = self.messages.all[event.a as usize].token;
                self.happened.push_back(Happened::Acknowledged(token));
                self.messages.remove(event.a);
            }
            _ => {
                self.happened.push_back(Happened::Timer(self.timers[event.a as usize]));
                self.free_timers.push(event.a);
            }
        }
        true
    }

    /// Lets everything under way come to its end.
    pub fn run(&mut self) {
        while self.step() {}
    }

    fn stores_whole_packets(&self) -> bool {
        self.machine.switch.switching == Switching::StoreAndForward
    }
}
