//! What happens at endpoints: messages are cut into packets, packets become messages, and what arrived is acknowledged.

use super::control::Heard;
use super::packet::{NONE, Packet, flag};
use super::time::NO_TIME;
use super::{Happened, Network, kind};

impl Network {
    /// A message is at its network port, which begins with one at a time.
    pub(super) fn post(&mut self, id: u32) {
        let src = self.flows.all[self.messages.all[id as usize].flow as usize].src as usize;
        let start = self.send_free[src].max(self.now);
        self.send_free[src] = (start + self.machine.nic.gap.0).min(NO_TIME);
        if start > self.now {
            self.events.push(start, kind::READY, id, 0);
        } else {
            self.ready(id);
        }
    }

    /// The network port begins with a message.
    pub(super) fn ready(&mut self, id: u32) {
        let flow = self.messages.all[id as usize].flow;
        self.flows.all[flow as usize].messages.push_back(id);
        self.enlist(flow);
    }

    /// A flow may be able to send.
    pub(super) fn enlist(&mut self, flow: u32) {
        let state = &mut self.flows.all[flow as usize];
        if state.in_ring || state.timed {
            return;
        }
        state.in_ring = true;
        let (src, class) = (state.src, usize::from(state.class));
        self.rings[src as usize * self.machine.switch.classes + class].push_back(flow);
        self.serve(src);
    }

    pub(super) fn has_flows(&self, endpoint: u32) -> bool {
        let classes = self.machine.switch.classes;
        let first = endpoint as usize * classes;
        self.rings[first..first + classes].iter().any(|ring| !ring.is_empty())
    }

    /// Makes the next data packet of an endpoint, if one of its flows may send: packet and queue.
    pub(super) fn inject(&mut self, endpoint: u32) -> Option<(u32, u8)> {
        let classes = self.machine.switch.classes;
        for class in 0..classes {
            let queue = ((class + 1) * self.ports.channels) as u8;
            let ring = endpoint as usize * classes + class;
            // Every turn takes a flow out of the ring, or returns.
            while let Some(&flow) = self.rings[ring].front() {
                let Some((message, index, size)) = self.permitted(flow) else {
                    self.rings[ring].pop_front();
                    self.flows.all[flow as usize].in_ring = false;
                    continue;
                };
                if !self.ports.may_send(endpoint, queue, size) {
                    break;
                }
                self.rings[ring].rotate_left(1);
                return Some((self.make(flow, message, index, size), queue));
            }
        }
        None
    }

    /// The packet that a flow may send now; a flow that must pause is woken at the pause's end.
    #[inline]
    fn permitted(&mut self, flow: u32) -> Option<(u32, u32, u32)> {
        let state = &mut self.flows.all[flow as usize];
        let (id, index) = state.next(&self.messages.all)?;
        let message = &self.messages.all[id as usize];
        let payload = self.machine.packet.payload.0 as u32;
        let size = self.machine.packet.header.0 as u32 + (message.bytes - index * payload).min(payload);
        if state.under_way > 0 && state.under_way + u64::from(size) > state.control.allowance(&self.common) {
            return None;
        }
        if state.next_at > self.now {
            state.timed = true;
            self.events.push(state.next_at, kind::FLOW, flow, 0);
            return None;
        }
        Some((id, index, size))
    }

    #[inline]
    fn make(&mut self, flow: u32, message: u32, index: u32, size: u32) -> u32 {
        let state = &mut self.flows.all[flow as usize];
        state.advance(&mut self.messages.all);
        state.under_way += u64::from(size);
        let pause = state.control.pause(&self.common, self.now, size);
        state.next_at = self.now + pause;
        let (src, dst, class) = (state.src, state.dst, state.class + 1);
        if state.loss.is_some() {
            self.remember(flow, message, index, size);
        }
        self.work.injected += 1;
        self.packets.add(Packet {
            next: NONE,
            link: NONE,
            message,
            index,
            size,
            covers: 0,
            src,
            dst,
            gate: NONE,
            detour: NONE,
            stamp: self.now,
            tail: 0,
            queue: 0,
            class,
            stage: 0,
            flags: 0,
            generation: self.messages.all[message as usize].generation,
        })
    }

    /// A packet is at its endpoint.
    pub(super) fn receive(&mut self, id: u32) {
        let packet = self.packets[id];
        self.packets.remove(id);
        self.work.arrived += 1;
        if packet.is(flag::ACK) {
            return self.heard(&packet);
        }
        let message = &mut self.messages.all[packet.message as usize];
        if message.generation != packet.generation {
            // A copy of a packet of a message that is long over.
            return;
        }
        let again = message.seen.as_mut().is_some_and(|seen| {
            let (word, bit) = (packet.index as usize / 64, 1 << (packet.index % 64));
            let again = seen[word] & bit != 0;
            seen[word] |= bit;
            again
        });
        message.unsaid_flags |= packet.flags & (flag::MARKED | flag::ENDPOINT);
        message.unsaid.0 += 1;
        message.unsaid.1 += packet.size;
        message.arrived += u32::from(!again);
        let whole = message.arrived == message.packets;
        if whole && !again {
            let free = &mut self.receive_free[packet.dst as usize];
            let start = (*free).max(self.now);
            *free = (start + self.machine.nic.gap.0).min(NO_TIME);
            self.events.push(start + self.machine.nic.latency.0, kind::DELIVER, packet.message, 0);
        }
        if whole || message.unsaid.0 as usize >= self.machine.packet.ack_every {
            self.acknowledge(&packet);
        }
    }

    /// Answers for what arrived of a message since the last answer.
    fn acknowledge(&mut self, of: &Packet) {
        let message = &mut self.messages.all[of.message as usize];
        let (count, covers) = std::mem::take(&mut message.unsaid);
        let flags = std::mem::take(&mut message.unsaid_flags) | flag::ACK;
        // Where packets can be lost, the answer names the packet; elsewhere it counts.
        let index = if message.seen.is_some() { of.index } else { count };
        let class = if self.machine.packet.ack_in_data_class { of.class } else { 0 };
        let id = self.packets.add(Packet {
            next: NONE,
            link: NONE,
            index,
            size: self.machine.packet.ack.0 as u32,
            covers,
            src: of.dst,
            dst: of.src,
            gate: NONE,
            detour: NONE,
            tail: 0,
            queue: 0,
            class,
            stage: 0,
            flags,
            ..*of
        });
        self.work.injected += 1;
        let queue = class * self.ports.channels as u8;
        self.ports.append(&mut self.packets, of.dst, queue, id);
        self.serve(of.dst);
    }

    /// An acknowledgement is back.
    fn heard(&mut self, ack: &Packet) {
        let message = &mut self.messages.all[ack.message as usize];
        if message.generation != ack.generation {
            return;
        }
        let flow = message.flow;
        let state = &mut self.flows.all[flow as usize];
        let (src, dst) = (state.src, state.dst);
        let heard = Heard {
            now: self.now,
            bytes: ack.covers,
            marked: ack.is(flag::MARKED),
            endpoint: ack.is(flag::ENDPOINT),
            rtt: self.now - ack.stamp,
            base: if self.graph.attach[src as usize] == self.graph.attach[dst as usize] {
                self.common.near
            } else {
                self.common.base
            },
        };
        state.control.acknowledged(&self.common, heard);
        let count = if state.loss.is_some() {
            let Some(count) = self.settle(flow, ack) else { return };
            count
        } else {
            state.under_way -= u64::from(ack.covers);
            ack.index
        };
        let message = &mut self.messages.all[ack.message as usize];
        message.acknowledged += count;
        if message.acknowledged == message.packets {
            if message.tell_sender && message.delivered {
                self.events.push(self.now + self.machine.nic.latency.0, kind::ACKNOWLEDGED, ack.message, 0);
            } else if message.delivered {
                self.messages.remove(ack.message);
            }
        }
        self.enlist(flow);
    }

    /// A message is handed to its receiver.
    pub(super) fn deliver(&mut self, id: u32) {
        let message = &mut self.messages.all[id as usize];
        message.delivered = true;
        self.happened.push_back(Happened::Delivered(message.token));
        if message.acknowledged == message.packets {
            if message.tell_sender {
                self.events.push(self.now + self.machine.nic.latency.0, kind::ACKNOWLEDGED, id, 0);
            } else {
                self.messages.remove(id);
            }
        }
    }
}
