//! What a machine must satisfy to be built.

use super::spec::{Control, FlowControl, Machine, Routing, Topology};

/// Ranks, switches and ports are counted in 32 bits, and port numbers are kept small enough for packets to hold.
const MOST_PORTS: usize = 1 << 24;

/// Virtual channels times classes that a port's masks hold.
const MOST_QUEUES: usize = 32;

type Complaint = (&'static str, String);

impl Machine {
    /// Network ports of all nodes.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        self.nodes.count * self.nodes.nics
    }

    /// How many network ports of nodes the topology has room for.
    #[must_use]
    pub fn room(&self) -> usize {
        match &self.topology {
            Topology::Single(_) | Topology::Leaves(_) => MOST_PORTS,
            Topology::FatTree(tree) => tree.pods * tree.leaves * tree.ports_per_leaf,
            Topology::Dragonfly(fly) => fly.groups * fly.rows * fly.columns * fly.ports_per_switch,
        }
    }

    /// Virtual channels that keep the routing free of deadlock: one per crossing to another group.
    #[must_use]
    pub fn channels(&self) -> usize {
        match (&self.topology, self.routing) {
            (Topology::Dragonfly(_), Routing::Valiant | Routing::Adaptive { .. }) => 3,
            (Topology::Dragonfly(_), _) => 2,
            _ => 1,
        }
    }

    pub(super) fn check(&self) -> Result<(), Complaint> {
        self.check_nodes()?;
        self.check_topology()?;
        self.check_switch()?;
        self.check_control()
    }

    fn check_nodes(&self) -> Result<(), Complaint> {
        let nodes = &self.nodes;
        positive("nodes.count", nodes.count)?;
        positive("nodes.nics", nodes.nics)?;
        positive("nodes.ranks_per_node", nodes.ranks_per_node)?;
        let (asked, room) = (self.endpoints(), self.room());
        if asked > room {
            let detail = format!("{asked} network ports of nodes, but the topology has room for {room}");
            return Err(("nodes.count", detail));
        }
        Ok(())
    }

    fn check_topology(&self) -> Result<(), Complaint> {
        match &self.topology {
            Topology::Single(_) => {}
            Topology::Leaves(leaves) => {
                positive("topology.leaves", leaves.leaves)?;
                if leaves.leaves > self.endpoints() {
                    return Err(("topology.leaves", "more leaves than nodes".into()));
                }
            }
            Topology::FatTree(tree) => {
                for (key, value) in [
                    ("topology.pods", tree.pods),
                    ("topology.leaves", tree.leaves),
                    ("topology.ports_per_leaf", tree.ports_per_leaf),
                    ("topology.spines", tree.spines),
                    ("topology.leaf_links", tree.leaf_links),
                ] {
                    positive(key, value)?;
                }
                if (tree.pods > 1) != (tree.cores_per_spine > 0) {
                    let detail = "several pods are joined by cores, and one pod needs none".to_owned();
                    return Err(("topology.cores_per_spine", detail));
                }
            }
            Topology::Dragonfly(fly) => {
                for (key, value) in [
                    ("topology.groups", fly.groups),
                    ("topology.rows", fly.rows),
                    ("topology.columns", fly.columns),
                    ("topology.ports_per_switch", fly.ports_per_switch),
                    ("topology.row_links", fly.row_links),
                    ("topology.column_links", fly.column_links),
                    ("topology.global_links", fly.global_links),
                ] {
                    positive(key, value)?;
                }
                if fly.global_links > usize::from(u16::MAX) {
                    return Err(("topology.global_links", format!("at most {} between two groups", u16::MAX)));
                }
            }
        }
        if self.routing == Routing::Valiant && !matches!(self.topology, Topology::Dragonfly(_)) {
            return Err(("routing.kind", "valiant is for a dragonfly; elsewhere spray does what it does".into()));
        }
        Ok(())
    }

    fn check_switch(&self) -> Result<(), Complaint> {
        let (switch, packet) = (&self.switch, &self.packet);
        positive("switch.classes", switch.classes)?;
        positive("packet.ack_every", packet.ack_every)?;
        let queues = (switch.classes + 1) * self.channels();
        if queues > MOST_QUEUES {
            let detail = format!("{queues} queues at a port; at most {MOST_QUEUES}");
            return Err(("switch.classes", detail));
        }
        let whole = packet.payload.0 + packet.header.0;
        if packet.payload.0 == 0 || packet.header.0 == 0 || packet.ack.0 == 0 || whole > 1 << 20 {
            return Err(("packet.payload", "packets have 1 byte to 1 MiB, a header, and an acknowledgement".into()));
        }
        let least = 2 * whole * self.channels() as u64;
        if switch.buffer.0 < least {
            let detail = format!(
                "{} bytes: two packets of {whole} bytes in each of {} channels need {least}",
                switch.buffer.0,
                self.channels()
            );
            return Err(("switch.buffer", detail));
        }
        if switch.buffer.0 > 1 << 30 {
            return Err(("switch.buffer", "at most 1 GiB".into()));
        }
        if switch.flow_control == FlowControl::Drop && packet.ack_every != 1 {
            return Err(("packet.ack_every", "where packets are dropped, each is acknowledged".into()));
        }
        if let Some(ecn) = switch.ecn
            && (ecn.from > ecn.to || !(0.0..=1.0).contains(&ecn.probability))
        {
            return Err(("switch.ecn", "from is at most to, and a probability is 0 to 1".into()));
        }
        Ok(())
    }

    fn check_control(&self) -> Result<(), Complaint> {
        let marks = self.switch.ecn.is_some();
        let fraction = |value: f64| value > 0.0 && value < 1.0;
        match &self.control {
            Control::None if self.switch.flow_control == FlowControl::Drop => {
                Err(("control.kind", "where packets are dropped, someone must slow down: use window or swift".into()))
            }
            Control::Dcqcn(_) if !marks => Err(("control.kind", "dcqcn needs switch.ecn".into())),
            Control::Dcqcn(dcqcn) if !fraction(dcqcn.g) => Err(("control.g", "between 0 and 1".into())),
            Control::Window(window) if !fraction(window.g) => Err(("control.g", "between 0 and 1".into())),
            Control::Window(_) if !marks && self.switch.flow_control != FlowControl::Drop => {
                Err(("control.kind", "a window needs switch.ecn or drops to learn of congestion".into()))
            }
            Control::Swift(swift) if swift.target.0 == 0 => Err(("control.target", "a delay above zero".into())),
            Control::Pair(pair) if !fraction(pair.cut) => Err(("control.cut", "between 0 and 1".into())),
            _ => Ok(()),
        }
    }
}

fn positive(key: &'static str, value: usize) -> Result<(), Complaint> {
    if value > 0 { Ok(()) } else { Err((key, "at least one".into())) }
}
