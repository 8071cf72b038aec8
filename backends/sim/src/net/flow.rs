//! What endpoints know: messages being sent, flows that carry them, and, where packets can be lost, what is to be sent
//! again.
//!
//! A flow is a pair of endpoints and a class. Its messages take turns packet by packet, as do the flows of an endpoint.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::control::State;
use super::time::LONGEST_PS;
use crate::hash::Mixer;

/// A message, from its start until it is delivered and acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The caller's name for it.
    pub(crate) token: u64,
    pub(crate) flow: u32,
    pub(crate) bytes: u32,
    pub(crate) packets: u32,
    /// Packets sent once, arrived, acknowledged.
    pub(crate) sent: u32,
    pub(crate) arrived: u32,
    pub(crate) acknowledged: u32,
    /// Arrived and not yet acknowledged: packets, bytes on the wire.
    pub(crate) unsaid: (u32, u32),
    pub(crate) unsaid_flags: u8,
    pub(crate) delivered: bool,
    /// Whether the caller wants to know that it was acknowledged.
    pub(crate) tell_sender: bool,
    pub(crate) generation: u16,
    /// Which packets arrived, where some may arrive twice.
    pub(crate) seen: Option<Box<[u64]>>,
}

/// A pair of endpoints and a class.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) class: u8,
    /// Among those that its endpoint serves in turn.
    pub(crate) in_ring: bool,
    /// A wake-up for the end of its pause is on its way.
    pub(crate) timed: bool,
    /// Bytes on the wire that are not acknowledged.
    pub(crate) under_way: u64,
    /// When the next packet may start.
    pub(crate) next_at: u64,
    /// Messages with packets to send.
    pub(crate) messages: VecDeque<u32>,
    pub(crate) control: State,
    pub(crate) loss: Option<Box<Loss>>,
}

/// A packet that was sent and has not been heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) message: u32,
    pub(crate) index: u32,
    pub(crate) size: u32,
    pub(crate) stamp: u64,
    /// Acknowledged, or given up on.
    pub(crate) settled: bool,
}

/// What a flow remembers where packets are dropped.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    /// In the order they were sent.
    pub(crate) sent: VecDeque<Sent>,
    /// To be sent again: message and packet.
    pub(crate) again: VecDeque<(u32, u32)>,
    /// Smoothed round trip and its deviation.
    pub(crate) srtt: u64,
    pub(crate) deviation: u64,
    /// Times the wait was doubled.
    pub(crate) doubled: u32,
    /// When something was last heard, or the first packet sent after silence.
    pub(crate) heard_at: u64,
    pub(crate) timed: bool,
}

/// Before anything was heard, silence may last this many times the least wait.
const FIRST_WAIT: u64 = 5;

impl Loss {
    /// How long silence may last; `least` is the shortest wait that makes sense here.
    pub(crate) fn patience(&self, least: u64) -> u64 {
        let plain = if self.srtt == 0 { FIRST_WAIT * least } else { (self.srtt + 4 * self.deviation).max(least) };
        plain.saturating_mul(1 << self.doubled.min(8)).min(LONGEST_PS)
    }

    pub(crate) fn measure(&mut self, rtt: u64) {
        if self.srtt == 0 {
            (self.srtt, self.deviation) = (rtt, rtt / 2);
        } else {
            self.deviation = (3 * self.deviation + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
    }
}

/// Messages by number; a number is used again under another generation.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) all: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    pub(crate) fn add(&mut self, mut message: Message) -> u32 {
        match self.free.pop() {
            Some(id) => {
                message.generation = self.all[id as usize].generation.wrapping_add(1);
                self.all[id as usize] = message;
                id
            }
            None => {
                self.all.push(message);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub(crate) fn remove(&mut self, id: u32) {
        // Packets of it that are still under way must not be taken for a later message's.
        let message = &mut self.all[id as usize];
        message.generation = message.generation.wrapping_add(1);
        message.seen = None;
        self.free.push(id);
    }

    pub(crate) fn live(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

/// All flows.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub(crate) all: Vec<Flow>,
    index: HashMap<u64, u32, BuildHasherDefault<Mixer>>,
}

impl Flows {
    /// The flow from `src` to `dst` in a class, made if there is none.
    pub(crate) fn of(&mut self, src: u32, dst: u32, class: u8, new: impl FnOnce() -> (State, bool)) -> u32 {
        let key = u64::from(class) << 56 | u64::from(src) << 28 | u64::from(dst);
        let next = self.all.len() as u32;
        let flow = *self.index.entry(key).or_insert(next);
        if flow == next {
            let (control, lossy) = new();
            self.all.push(Flow {
                src,
                dst,
                class,
                in_ring: false,
                timed: false,
                under_way: 0,
                next_at: 0,
                messages: VecDeque::new(),
                control,
                loss: lossy.then(Box::default),
            });
        }
        flow
    }
}

impl Flow {
    /// The message and the packet to send next, if there is one.
    #[inline]
    pub(crate) fn next(&self, messages: &[Message]) -> Option<(u32, u32)> {
        if let Some(&again) = self.loss.as_ref().and_then(|loss| loss.again.front()) {
            return Some(again);
        }
        self.messages.front().map(|&id| (id, messages[id as usize].sent))
    }

    /// Notes that what [`Flow::next`] gave is sent.
    #[inline]
    pub(crate) fn advance(&mut self, messages: &mut [Message]) {
        if let Some(loss) = &mut self.loss
            && loss.again.pop_front().is_some()
        {
            return;
        }
        let Some(id) = self.messages.pop_front() else { return };
        let message = &mut messages[id as usize];
        message.sent += 1;
        if message.sent < message.packets {
            self.messages.push_back(id);
        }
    }
}
