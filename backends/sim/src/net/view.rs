//! What a switch sees when it chooses a port, and the choice among equal ones.

use super::packet::Packet;
use super::port::Ports;
use crate::machine::Routing;
use crate::rng::{Rng, mix};

/// What a decision may look at.
pub(crate) struct View<'a> {
    pub(crate) ports: &'a mut Ports,
    pub(crate) rng: &'a mut Rng,
    pub(crate) now: u64,
    pub(crate) routing: Routing,
}

impl View<'_> {
    /// One of `count` parallel ports from `base` on.
    #[inline]
    pub(crate) fn pick(&mut self, base: u32, count: u32, packet: &Packet) -> u32 {
        if count == 1 {
            return base;
        }
        match self.routing {
            Routing::Minimal => base + packet.dst % count,
            Routing::Ecmp => {
                let pair = u64::from(packet.src) << 32 | u64::from(packet.dst);
                base + (mix(pair ^ u64::from(base) << 20) % u64::from(count)) as u32
            }
            Routing::Spray | Routing::Valiant => base + self.rng.below(count),
            Routing::Adaptive { .. } => self.least(base, count, packet),
        }
    }

    /// The emptiest of them; among equals one at random, or all would go to the first.
    #[inline]
    fn least(&mut self, base: u32, count: u32, packet: &Packet) -> u32 {
        let queue = self.queue(packet);
        let start = self.rng.below(count);
        let mut best = (u64::MAX, base);
        for step in 0..count {
            let at = start + step;
            let port = base + if at >= count { at - count } else { at };
            let backlog = self.ports.backlog(port, queue, self.now);
            if backlog < best.0 {
                best = (backlog, port);
                if backlog == 0 {
                    break;
                }
            }
        }
        best.1
    }

    /// How full the way through a port is for this packet.
    pub(crate) fn backlog(&mut self, port: u32, packet: &Packet) -> u64 {
        let queue = self.queue(packet);
        self.ports.backlog(port, queue, self.now)
    }

    /// The queue of a packet at whatever port it leaves by.
    #[inline]
    pub(crate) fn queue(&self, packet: &Packet) -> u8 {
        packet.class * self.ports.channels as u8 + packet.stage
    }
}
