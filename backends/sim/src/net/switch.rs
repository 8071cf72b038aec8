//! What happens at switches and ports: packets arrive, wait and leave; room is taken and given back.

use super::graph::Node;
use super::packet::{NONE, flag};
use super::port::NEVER;
use super::time::NO_TIME;
use super::view::View;
use super::{Network, kind};
use crate::machine::{Control, FlowControl};

impl Network {
    /// A packet is at the end of its link.
    #[inline]
    pub(super) fn arrive(&mut self, id: u32) {
        let link = self.packets[id].link;
        match self.ports.all[link as usize].to {
            Node::Endpoint(_) => self.receive(id),
            Node::Switch(at) => {
                if self.ports.flow_control == FlowControl::Pause {
                    self.hold(id);
                }
                let mut view =
                    View { ports: &mut self.ports, rng: &mut self.rng, now: self.now, routing: self.machine.routing };
                let (port, queue) = self.router.route(&self.graph, at, &mut self.packets[id], &mut view);
                self.enqueue(id, port, queue);
            }
        }
    }

    /// Puts a packet into a queue of a switch, marks it if the queue is long, drops it if there is no room.
    fn enqueue(&mut self, id: u32, port: u32, queue: u8) {
        let (size, length) = (self.packets[id].size, self.ports.queue(port, queue).bytes);
        if self.ports.flow_control == FlowControl::Drop && length + u64::from(size) > u64::from(self.ports.room) {
            self.ports.all[port as usize].count.drops += 1;
            self.work.dropped += 1;
            self.packets.remove(id);
            return;
        }
        self.mark(id, port, length);
        self.ports.append(&mut self.packets, port, queue, id);
        self.serve(port);
    }

    #[inline]
    fn mark(&mut self, id: u32, port: u32, length: u64) {
        if let Control::Pair(pair) = &self.common.spec
            && length > pair.threshold.0
            && matches!(self.ports.all[port as usize].to, Node::Endpoint(_))
        {
            self.packets[id].flags |= flag::ENDPOINT;
        }
        let Some(ecn) = self.machine.switch.ecn else { return };
        if length <= ecn.from.0 {
            return;
        }
        let part = (length - ecn.from.0) as f64 / (ecn.to.0 - ecn.from.0).max(1) as f64;
        if length > ecn.to.0 || self.rng.unit() < part * ecn.probability {
            self.packets[id].flags |= flag::MARKED;
            self.ports.all[port as usize].count.marks += 1;
        }
    }

    /// Sends from a port if it is free, has something, and there is room for it.
    pub(super) fn serve(&mut self, port: u32) {
        let state = &self.ports.all[port as usize];
        if self.now < state.busy_until {
            return self.wake(port, state.busy_until);
        }
        self.ports.collect(port, self.now);
        let chosen = match self.ports.select(&self.packets, port) {
            Some(queue) => Some((self.ports.take(&self.packets, port, queue), queue)),
            None if port < self.graph.endpoints => self.inject(port),
            None => None,
        };
        let Some((id, queue)) = chosen else { return self.stall(port) };
        self.transmit(port, queue, id);
        if self.has_more(port) {
            self.wake(port, self.ports.all[port as usize].busy_until);
        }
    }

    fn has_more(&self, port: u32) -> bool {
        self.ports.all[port as usize].pending != 0 || (port < self.graph.endpoints && self.has_flows(port))
    }

    /// Makes sure that a port looks again at `at`.
    #[inline]
    pub(super) fn wake(&mut self, port: u32, at: u64) {
        let state = &mut self.ports.all[port as usize];
        if at < state.wake_at {
            state.wake_at = at;
            self.events.push(at, kind::WAKE, port, 0);
        }
    }

    /// A port could not send: if it wanted to, it waits for room.
    fn stall(&mut self, port: u32) {
        if !self.has_more(port) {
            return;
        }
        let state = &mut self.ports.all[port as usize];
        if state.stalled_since == NEVER {
            state.stalled_since = self.now;
        }
        state.starved = true;
        if let Some(&(at, ..)) = state.returning.front() {
            self.wake(port, at);
        }
    }

    #[inline]
    fn transmit(&mut self, port: u32, queue: u8, id: u32) {
        let packet = &mut self.packets[id];
        let state = &mut self.ports.all[port as usize];
        // A packet that is still arriving cannot leave faster than it comes.
        let once = state.rate.ps(u64::from(packet.size));
        let mut end = (self.now + once).max(packet.tail);
        let (mut lost, mut again) = (false, false);
        while state.loss > 0.0 && self.rng.unit() < state.loss {
            state.count.drops += 1;
            if self.ports.flow_control == FlowControl::Drop {
                lost = true;
                break;
            }
            // Where nothing may be lost, the link itself sends again what its other end did not get, in order: nothing else
            // passes it until that is known.
            end = (end + 2 * state.latency + once).min(NO_TIME);
            again = true;
        }
        state.busy_until = end;
        state.starved = false;
        if state.stalled_since != NEVER {
            state.count.stalled_ps += self.now - state.stalled_since;
            state.stalled_since = NEVER;
        }
        state.count.bytes += u64::from(packet.size);
        state.count.packets += 1;
        let (from, was, size, latency) = (packet.link, packet.queue, packet.size, state.latency);
        (packet.link, packet.queue, packet.tail) = (port, queue, end + latency);
        let to_endpoint = matches!(state.to, Node::Endpoint(_));
        if self.ports.flow_control == FlowControl::Credit && !to_endpoint {
            self.ports.queue(port, queue).credit -= size;
        }
        // What was sent again comes whole.
        let head = if to_endpoint || again || self.stores_whole_packets() { end } else { self.now };
        self.work.hops += 1;
        if lost {
            self.work.dropped += 1;
            self.packets.remove(id);
        } else {
            self.events.push(head + latency, kind::ARRIVE, id, 0);
        }
        if from != NONE {
            self.give_back(from, was, size);
        }
    }

    /// A packet left the buffer behind `port`.
    #[inline]
    fn give_back(&mut self, port: u32, queue: u8, size: u32) {
        let state = &mut self.ports.all[port as usize];
        let at = self.now + state.latency;
        match self.ports.flow_control {
            FlowControl::Credit => {
                state.returning.push_back((at, queue, size));
                if state.starved {
                    self.wake(port, at);
                }
            }
            FlowControl::Pause => {
                let half = u64::from(self.ports.room / 2);
                let entry = self.ports.queue(port, queue);
                entry.held -= u64::from(size);
                if entry.asked && entry.held <= half {
                    entry.asked = false;
                    self.events.push(at, kind::PAUSE, port, u32::from(queue));
                }
            }
            FlowControl::Drop => {}
        }
    }

    /// A packet takes room in the buffer behind its link; a full buffer asks for a pause. What is sent before the pause
    /// arrives is taken too: real buffers have headroom for it.
    fn hold(&mut self, id: u32) {
        let packet = &self.packets[id];
        let (link, queue, size, room) = (packet.link, packet.queue, packet.size, self.ports.room);
        let entry = self.ports.queue(link, queue);
        entry.held += u64::from(size);
        if !entry.asked && entry.held > u64::from(room) {
            entry.asked = true;
            let at = self.now + self.ports.all[link as usize].latency;
            self.events.push(at, kind::PAUSE, link, u32::from(queue) | PAUSED);
        }
    }

    /// A pause (or its end) reaches the port that is to keep it.
    pub(super) fn pause(&mut self, port: u32, what: u32) {
        self.ports.queue(port, what as u8).paused = what & PAUSED != 0;
        self.serve(port);
    }
}

/// In a pause's event: it begins.
const PAUSED: u32 = 1 << 8;
