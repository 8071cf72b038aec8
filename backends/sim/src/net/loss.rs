//! Packets that were dropped, and how their senders find out: later packets are heard of, or nothing is for too long.

use super::flow::Sent;
use super::packet::Packet;
use super::{Network, kind};
use crate::machine::Routing;

/// A packet is given up when this many sent after it were heard of, where packets keep their order.
const LATER: usize = 3;
/// And where they do not.
const LATER_UNORDERED: usize = 64;

impl Network {
    /// Notes a packet that is sent.
    pub(super) fn remember(&mut self, flow: u32, message: u32, index: u32, size: u32) {
        let now = self.now;
        let least = self.machine.packet.least_silence.0;
        let Some(loss) = self.flows.all[flow as usize].loss.as_mut() else { return };
        if loss.sent.is_empty() {
            loss.heard_at = now;
        }
        loss.sent.push_back(Sent { message, index, size, stamp: now, settled: false });
        if !loss.timed {
            loss.timed = true;
            self.events.push(now + loss.patience(least), kind::SILENCE, flow, 0);
        }
    }

    /// An acknowledgement names a packet: how many of its message were settled by it, none if it was settled before. What
    /// was sent well before it and is not heard of was lost.
    pub(super) fn settle(&mut self, flow: u32, ack: &Packet) -> Option<u32> {
        let later = match self.machine.routing {
            Routing::Minimal | Routing::Ecmp => LATER,
            Routing::Spray | Routing::Valiant | Routing::Adaptive { .. } => LATER_UNORDERED,
        };
        let now = self.now;
        let state = &mut self.flows.all[flow as usize];
        let loss = state.loss.as_mut()?;
        loss.measure(now - ack.stamp);
        (loss.heard_at, loss.doubled) = (now, 0);
        let named = |sent: &Sent| sent.message == ack.message && sent.index == ack.index;
        let mut count = 0;
        let mut under_way = state.under_way;
        // Copies of it that are under way too need not be waited for; those under way before this answer's are what it
        // may tell the loss of.
        let mut place = None;
        for (at, sent) in loss.sent.iter_mut().enumerate().filter(|(_, sent)| named(sent)) {
            if sent.stamp == ack.stamp {
                place = Some(at);
            }
            if !sent.settled {
                sent.settled = true;
                under_way -= u64::from(sent.size);
                count = 1;
            }
        }
        // It may have been given up and be waiting to be sent again.
        if let Some(at) = loss.again.iter().position(|&(message, index)| (message, index) == (ack.message, ack.index)) {
            loss.again.remove(at);
            count = 1;
        }
        let mut lost = false;
        for at in 0..place.unwrap_or(0).saturating_sub(later - 1) {
            let sent = &mut loss.sent[at];
            if !sent.settled {
                sent.settled = true;
                under_way -= u64::from(sent.size);
                loss.again.push_back((sent.message, sent.index));
                lost = true;
            }
        }
        while loss.sent.front().is_some_and(|sent| sent.settled) {
            loss.sent.pop_front();
        }
        state.under_way = under_way;
        if lost {
            state.control.lost(&self.common, now, false);
        }
        if count == 0 {
            // A second answer for the same packet: what it carried was counted.
            self.enlist(flow);
            return None;
        }
        Some(count)
    }

    /// Looks whether a flow has been silent for too long; if so, everything under way counts as lost.
    pub(super) fn silence(&mut self, flow: u32) {
        let least = self.machine.packet.least_silence.0;
        let state = &mut self.flows.all[flow as usize];
        let Some(loss) = state.loss.as_mut() else { return };
        loss.timed = false;
        if loss.sent.is_empty() {
            return;
        }
        let due = loss.heard_at + loss.patience(least);
        if due > self.now {
            loss.timed = true;
            return self.events.push(due, kind::SILENCE, flow, 0);
        }
        for sent in loss.sent.drain(..).filter(|sent| !sent.settled) {
            loss.again.push_back((sent.message, sent.index));
            state.under_way -= u64::from(sent.size);
        }
        loss.doubled += 1;
        loss.heard_at = self.now;
        state.control.lost(&self.common, self.now, true);
        self.enlist(flow);
    }
}
