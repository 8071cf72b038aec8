//! What is counted and looked at while a phase runs: every port's counters, the queues over time, and the congestion tree
//! of the worst moment.
//!
//! Looks are taken at times that are multiples of an interval, before the first event at or after them. The interval
//! doubles when there are too many looks, so a long phase costs no more memory than a short one.

use std::cmp::Reverse;

use super::Network;
use super::graph::{self, Node};
use super::packet::NONE;
use super::port::{Counters, NEVER};
use super::watch::{Crowd, PhaseCounters, PortReport, Sample, Tree};

/// Looks kept of a phase.
const MOST_LOOKS: usize = 1024;
/// Ports in a tree.
const MOST_CROWDS: usize = 64;
/// Feeders named of each.
const MOST_FEEDERS: usize = 8;

impl Network {
    /// Begins a phase, with looks at the queues every `interval_ps` at first.
    pub fn begin_phase(&mut self, name: &str, interval_ps: u64) {
        self.settle_stalls();
        for (before, port) in self.watch.before.iter_mut().zip(&mut self.ports.all) {
            port.count.longest = port.queued;
            *before = port.count;
        }
        let interval = interval_ps.max(1);
        self.watch.phase = Some((name.to_owned(), self.now));
        (self.watch.interval, self.watch.next_look) = (interval, self.now);
        self.watch.samples.clear();
        self.watch.tree = None;
    }

    /// The name of the phase under way.
    #[must_use]
    pub fn phase(&self) -> Option<&str> {
        self.watch.phase.as_ref().map(|(name, _)| name.as_str())
    }

    /// Ends the phase under way, if there is one.
    pub fn end_phase(&mut self) -> Option<PhaseCounters> {
        let (name, from_ps) = self.watch.phase.take()?;
        self.settle_stalls();
        self.watch.next_look = NEVER;
        let mut ports = Vec::new();
        for (at, (before, port)) in self.watch.before.iter().zip(&self.ports.all).enumerate() {
            let now = port.count;
            let counters = Counters {
                bytes: now.bytes - before.bytes,
                packets: now.packets - before.packets,
                stalled_ps: now.stalled_ps - before.stalled_ps,
                marks: now.marks - before.marks,
                drops: now.drops - before.drops,
                longest: now.longest,
            };
            if counters.packets + counters.drops > 0 {
                let wire = &self.graph.wires[at];
                let [from, to] = [wire.from, wire.to].map(|node| self.node_name(node));
                ports.push(PortReport { from, to, counters });
            }
        }
        let (samples, tree) = (std::mem::take(&mut self.watch.samples), self.watch.tree.take());
        Some(PhaseCounters { name, from_ps, to_ps: self.now, ports, samples, tree })
    }

    /// Counts stalls up to now.
    fn settle_stalls(&mut self) {
        for port in self.ports.all.iter_mut().filter(|port| port.stalled_since != NEVER) {
            port.count.stalled_ps += self.now - port.stalled_since;
            port.stalled_since = self.now;
        }
    }

    /// Looks at all queues before the first event at or after a look's time.
    #[cold]
    pub(super) fn look(&mut self, at: u64) {
        let mut sample = Sample { at_ps: self.watch.next_look, queued: 0, longest: 0, stalled: 0 };
        for port in &self.ports.all {
            sample.queued += port.queued;
            sample.longest = sample.longest.max(port.queued);
            sample.stalled += u32::from(port.stalled_since != NEVER);
        }
        let worst = self.watch.tree.as_ref().map_or(0, |tree| tree.queued);
        // A little worse is the same tree again.
        if sample.queued > worst + worst / 8 {
            self.watch.tree = Some(self.tree(sample));
        }
        self.watch.samples.push(sample);
        if self.watch.samples.len() == MOST_LOOKS {
            let mut keep = false;
            self.watch.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.watch.interval *= 2;
        }
        // Nothing changed in the looks that are skipped: there was no event.
        let behind = at.saturating_sub(self.watch.next_look) / self.watch.interval;
        self.watch.next_look += (behind + 1) * self.watch.interval;
    }

    fn tree(&self, sample: Sample) -> Tree {
        let mut crowded: Vec<u32> = (0..self.ports.all.len() as u32)
            .filter(|&port| self.ports.all[port as usize].queued > 2 * u64::from(self.common.packet))
            .collect();
        crowded.sort_by_key(|&port| (Reverse(self.ports.all[port as usize].queued), port));
        crowded.truncate(MOST_CROWDS);
        let crowds = crowded.into_iter().map(|port| self.crowd(port)).collect();
        Tree { at_ps: sample.at_ps, queued: sample.queued, crowds }
    }

    fn crowd(&self, port: u32) -> Crowd {
        let mut feeders: Vec<(u32, u64)> = Vec::new();
        let first = port as usize * self.ports.per_port;
        for queue in &self.ports.queues[first..first + self.ports.per_port] {
            let mut at = queue.head;
            while at != NONE {
                let packet = &self.packets[at];
                match feeders.iter_mut().find(|(link, _)| *link == packet.link) {
                    Some((_, bytes)) => *bytes += u64::from(packet.size),
                    None => feeders.push((packet.link, packet.size.into())),
                }
                at = packet.next;
            }
        }
        feeders.sort_by_key(|&(link, bytes)| (Reverse(bytes), link));
        feeders.truncate(MOST_FEEDERS);
        let named = feeders.into_iter().filter(|&(link, _)| link != NONE);
        let state = &self.ports.all[port as usize];
        Crowd {
            port: self.port_name(port),
            queued: state.queued,
            blocked: state.stalled_since != NEVER,
            feeders: named.map(|(link, bytes)| (self.port_name(link), bytes)).collect(),
        }
    }

    fn port_name(&self, port: u32) -> String {
        let wire = &self.graph.wires[port as usize];
        format!("{} -> {}", self.node_name(wire.from), self.node_name(wire.to))
    }

    /// The switch that an endpoint hangs on, as reports name it.
    #[must_use]
    pub fn switch_of(&self, endpoint: usize) -> String {
        self.node_name(Node::Switch(self.graph.attach[endpoint]))
    }

    fn node_name(&self, node: Node) -> String {
        graph::name(node, &self.machine.topology)
    }
}
