//! Conservation: nothing is lost that may not be, and what was lent is given back.

use super::Network;
use super::graph::Node;
use super::port::NEVER;
use crate::machine::FlowControl;

/// What was found when nothing is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Packets that left an endpoint.
    pub injected: u64,
    /// Packets that reached one.
    pub arrived: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Everything that is not as it should be.
    pub faults: Vec<String>,
}

impl Audit {
    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Network {
    /// Checks the accounts. Called when [`Network::step`] has nothing left to do.
    #[must_use]
    pub fn audit(&mut self) -> Audit {
        let work = self.work;
        let mut faults = Vec::new();
        if work.injected != work.arrived + work.dropped {
            faults.push(format!("{} sent, {} arrived, {} dropped", work.injected, work.arrived, work.dropped));
        }
        if work.dropped > 0 && self.ports.flow_control != FlowControl::Drop {
            faults.push(format!("{} packets dropped by a network that drops none", work.dropped));
        }
        if self.packets.live() > 0 {
            faults.push(format!("{} packets are still under way", self.packets.live()));
        }
        if self.messages.live() > 0 {
            faults.push(format!("{} messages are not complete", self.messages.live()));
        }
        for (at, flow) in self.flows.all.iter().enumerate().filter(|(_, flow)| flow.under_way > 0) {
            faults.push(format!("flow {at} from {} to {} has {} bytes under way", flow.src, flow.dst, flow.under_way));
        }
        for port in 0..self.ports.all.len() as u32 {
            self.audit_port(port, &mut faults);
        }
        Audit { injected: work.injected, arrived: work.arrived, dropped: work.dropped, faults }
    }

    fn audit_port(&mut self, port: u32, faults: &mut Vec<String>) {
        self.ports.collect(port, NEVER);
        let state = &self.ports.all[port as usize];
        if state.queued > 0 || state.pending != 0 {
            faults.push(format!("port {port} has {} bytes queued", state.queued));
        }
        let room = if matches!(state.to, Node::Endpoint(_)) { u32::MAX } else { self.ports.room };
        for queue in 0..self.ports.per_port as u8 {
            let entry = self.ports.queue(port, queue);
            if entry.credit != room || entry.held > 0 || entry.paused {
                faults.push(format!("port {port}, queue {queue}: {entry:?}, room {room}"));
            }
        }
    }
}
