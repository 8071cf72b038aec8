//! Ports: queues, credits, pauses, and what was counted.
//!
//! A packet waits in a queue of the port it leaves by, and occupies room of the buffer behind the port it came from,
//! until it leaves. With credits a port knows that room (`credit`) and never sends more than fits; what it gets back
//! travels as long as the link is. Returned credits are noted with the time of their arrival and counted when someone
//! looks: only a port that has nothing else to wait for is woken by them.
//!
//! A queue is numbered class x channels + channel; class 0 is for acknowledgements.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::graph::{Graph, Node};
use super::packet::{NONE, Packets};
use crate::machine::{FlowControl, Machine, Rate};

/// Sends nothing: no time that is ever reached.
pub(crate) const NEVER: u64 = u64::MAX;

/// A port, without its queues.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) rate: Rate,
    /// From here to the output of the next switch.
    pub(crate) latency: u64,
    /// Part of the packets that are lost on the link.
    pub(crate) loss: f64,
    pub(crate) to: Node,
    /// The last byte sent leaves then.
    pub(crate) busy_until: u64,
    /// The wake-up that counts; others are stale.
    pub(crate) wake_at: u64,
    /// Non-empty queues.
    pub(crate) pending: u32,
    /// Channel to be served first.
    pub(crate) turn: u8,
    /// Waits for room at the other end.
    pub(crate) starved: bool,
    /// Bytes in all queues.
    pub(crate) queued: u64,
    pub(crate) stalled_since: u64,
    /// Credits on their way back: when, for which queue, how many.
    pub(crate) returning: VecDeque<(u64, u8, u32)>,
    pub(crate) count: Counters,
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time with something to send and no room for it at the other end, in picoseconds.
    pub stalled_ps: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets dropped, or lost on the link.
    pub drops: u64,
    /// The longest queue, in bytes.
    pub longest: u64,
}

/// One queue of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    tail: u32,
    /// What waits may be more than 32 bits count: thousands of inputs, each with a buffer.
    pub(crate) bytes: u64,
    /// Room at the other end.
    pub(crate) credit: u32,
    /// What is in the buffer at the other end, where pauses are used.
    pub(crate) held: u64,
    /// Whether the other end asked for a pause, and whether that has arrived here.
    pub(crate) asked: bool,
    pub(crate) paused: bool,
}

/// All ports.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) all: Vec<Port>,
    pub(crate) queues: Vec<Queue>,
    /// Virtual channels.
    pub(crate) channels: usize,
    /// Queues of a port.
    pub(crate) per_port: usize,
    pub(crate) flow_control: FlowControl,
    /// Room of one queue's buffer.
    pub(crate) room: u32,
}

impl Ports {
    pub(crate) fn new(machine: &Machine, graph: &Graph) -> Self {
        let channels = machine.channels();
        let per_port = (machine.switch.classes + 1) * channels;
        let flow_control = machine.switch.flow_control;
        let share = match flow_control {
            FlowControl::Drop => 1,
            FlowControl::Credit | FlowControl::Pause => channels as u64,
        };
        let room = (machine.switch.buffer.0 / share) as u32;
        // What is known to be large is not grown into, which would take twice the memory.
        let all = Vec::with_capacity(graph.wires.len());
        let queues = Vec::with_capacity(per_port * graph.wires.len());
        let mut ports = Ports { all, queues, channels, per_port, flow_control, room };
        for wire in &graph.wires {
            // An endpoint takes everything: it has memory, and its port is never the narrow place twice.
            let (credit, through) = match wire.to {
                Node::Endpoint(_) => (u32::MAX, 0),
                Node::Switch(_) => (room, machine.switch.latency.0),
            };
            let queue = Queue { head: NONE, tail: NONE, bytes: 0, credit, held: 0, asked: false, paused: false };
            ports.queues.resize(ports.queues.len() + per_port, queue);
            ports.all.push(Port {
                rate: wire.rate,
                latency: wire.latency + through,
                loss: wire.loss,
                to: wire.to,
                busy_until: 0,
                wake_at: NEVER,
                pending: 0,
                turn: 0,
                starved: false,
                queued: 0,
                stalled_since: NEVER,
                returning: VecDeque::new(),
                count: Counters::default(),
            });
        }
        ports
    }

    #[inline]
    pub(crate) fn queue(&mut self, port: u32, queue: u8) -> &mut Queue {
        &mut self.queues[port as usize * self.per_port + queue as usize]
    }

    /// Appends a packet.
    #[inline]
    pub(crate) fn append(&mut self, packets: &mut Packets, port: u32, queue: u8, id: u32) {
        let size = u64::from(packets[id].size);
        packets[id].next = NONE;
        let entry = self.queue(port, queue);
        let last = entry.tail;
        entry.tail = id;
        entry.bytes += size;
        match last {
            NONE => entry.head = id,
            last => packets[last].next = id,
        }
        let port = &mut self.all[port as usize];
        port.pending |= 1 << queue;
        port.queued += size;
        port.count.longest = port.count.longest.max(port.queued);
    }

    /// Takes the first packet of a queue that has one.
    #[inline]
    pub(crate) fn take(&mut self, packets: &Packets, port: u32, queue: u8) -> u32 {
        let entry = self.queue(port, queue);
        let id = entry.head;
        let packet = &packets[id];
        entry.head = packet.next;
        entry.bytes -= u64::from(packet.size);
        let empty = packet.next == NONE;
        if empty {
            entry.tail = NONE;
        }
        let port = &mut self.all[port as usize];
        port.queued -= u64::from(packet.size);
        port.pending &= !(u32::from(empty) << queue);
        id
    }

    /// Counts the credits that have come back by now.
    #[inline]
    pub(crate) fn collect(&mut self, port: u32, now: u64) {
        while let Some(&(at, queue, bytes)) = self.all[port as usize].returning.front() {
            if at > now {
                break;
            }
            self.all[port as usize].returning.pop_front();
            self.queue(port, queue).credit += bytes;
        }
    }

    /// Whether `bytes` may be sent from a queue.
    #[inline]
    pub(crate) fn may_send(&self, port: u32, queue: u8, bytes: u32) -> bool {
        let entry = &self.queues[port as usize * self.per_port + queue as usize];
        entry.credit >= bytes && !entry.paused
    }

    /// The queue to serve next: the lowest class that can send, its channels in turn.
    #[inline]
    pub(crate) fn select(&mut self, packets: &Packets, port: u32) -> Option<u8> {
        let (mut pending, turn) = (u64::from(self.all[port as usize].pending), u32::from(self.all[port as usize].turn));
        let channels = self.channels as u32;
        let every = (1 << channels) - 1;
        let mut first = 0;
        while pending != 0 {
            // This class's channels, the one whose turn it is first.
            let waiting = pending & every;
            let mut left = (waiting >> turn | waiting << (channels - turn)) & every;
            while left != 0 {
                let channel = turn + left.trailing_zeros();
                let channel = if channel >= channels { channel - channels } else { channel };
                left &= left - 1;
                let queue = (first + channel) as u8;
                let head = self.queues[port as usize * self.per_port + queue as usize].head;
                if self.may_send(port, queue, packets[head].size) {
                    self.all[port as usize].turn = if channel + 1 == channels { 0 } else { channel as u8 + 1 };
                    return Some(queue);
                }
            }
            pending >>= channels;
            first += channels;
        }
        None
    }

    /// How full the way through a port is: what waits here, and what is held at the other end.
    #[inline]
    pub(crate) fn backlog(&mut self, port: u32, queue: u8, now: u64) -> u64 {
        if self.flow_control != FlowControl::Credit {
            return self.all[port as usize].queued;
        }
        self.collect(port, now);
        let used = self.room.saturating_sub(self.queue(port, queue).credit);
        self.all[port as usize].queued + u64::from(used)
    }
}
