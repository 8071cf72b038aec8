//! What crossed each port of the data network, and what its queue did: read outside timed phases, kept per phase.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Lab;
use super::error::{Error, Result};
use super::topology::{Namespace, Port};

/// One port's counters since the lab came up. Take the difference of two readings with [`PortCounters::since`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortCounters {
    /// Who sends through the port: a host or a switch.
    pub from: String,
    /// Who receives from it.
    pub to: String,
    /// Bytes sent, from the device: counted with and without shaping.
    pub bytes: u64,
    /// Packets sent, from the device. The kernel may hand several wire packets over as one.
    pub packets: u64,
    /// The queue of a shaped port; `None` without shaping, where there is no queue.
    pub queue: Option<QueueCounters>,
    /// What only a simulated port can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedCounters>,
}

/// Where a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    /// Between a node and its switch, either way: what one node sends and receives.
    Endpoint,
    /// Between switches: what passes on its way.
    Router,
}

impl PortKind {
    /// All of them.
    pub const ALL: [PortKind; 2] = [PortKind::Endpoint, PortKind::Router];

    /// As plots and tables name it.
    pub fn word(self) -> &'static str {
        match self {
            PortKind::Endpoint => "endpoint",
            PortKind::Router => "router",
        }
    }
}

/// Whether a name is a node's, and not a switch's: `h3` of a lab, `nic3` of a simulated machine.
pub fn is_node(name: &str) -> bool {
    let number = ["h", "nic"].iter().find_map(|prefix| name.strip_prefix(prefix));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a simulated port counts beside bytes and drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedCounters {
    /// Virtual time with something to send and no room for it at the other end.
    pub stalled_ns: u64,
    /// Packets marked because the queue was long.
    pub marks: u64,
    /// The longest queue.
    pub longest_queue_bytes: u64,
}

/// What a port's queue did; of a port with bands, all its queues together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounters {
    /// Bytes that left the queue.
    pub bytes: u64,
    /// Wire packets that left the queue.
    pub packets: u64,
    /// Packets dropped because it was full.
    pub drops: u64,
    /// Packets marked because it was long.
    #[serde(default)]
    pub marks: u64,
    /// Packets lost on purpose, of a link that is degraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// How often it had to wait for its rate.
    pub overlimits: u64,
    /// Bytes in it at the time of reading.
    pub backlog_bytes: u64,
    /// Packets in it at the time of reading.
    pub backlog_packets: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl PortCounters {
    /// Where it is.
    pub fn kind(&self) -> PortKind {
        if is_node(&self.from) || is_node(&self.to) { PortKind::Endpoint } else { PortKind::Router }
    }

    /// What happened from `earlier` to this reading; backlogs are this reading's. A queue that was taken away and put
    /// back in between counts from its return.
    #[must_use]
    pub fn since(&self, earlier: &PortCounters) -> PortCounters {
        let queue = self.queue.as_ref().map(|now| match &earlier.queue {
            Some(then) if now.bytes >= then.bytes && now.overlimits >= then.overlimits => QueueCounters {
                bytes: now.bytes - then.bytes,
                packets: now.packets.saturating_sub(then.packets),
                drops: now.drops.saturating_sub(then.drops),
                marks: now.marks.saturating_sub(then.marks),
                lost: now.lost.saturating_sub(then.lost),
                overlimits: now.overlimits - then.overlimits,
                ..now.clone()
            },
            _ => now.clone(),
        });
        PortCounters {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            packets: self.packets.saturating_sub(earlier.packets),
            queue,
            ..self.clone()
        }
    }
}

impl PortCounters {
    /// Packets that it marked, emulated or simulated.
    pub fn marks(&self) -> u64 {
        self.simulated.map_or(0, |of| of.marks) + self.queue.as_ref().map_or(0, |queue| queue.marks)
    }

    /// Adds what happened on the same port in another phase.
    pub fn add(&mut self, other: &PortCounters) {
        self.bytes += other.bytes;
        self.packets += other.packets;
        if let (Some(sum), Some(other)) = (&mut self.simulated, other.simulated) {
            sum.stalled_ns += other.stalled_ns;
            sum.marks += other.marks;
            sum.longest_queue_bytes = sum.longest_queue_bytes.max(other.longest_queue_bytes);
        }
        if let (Some(sum), Some(other)) = (&mut self.queue, &other.queue) {
            sum.bytes += other.bytes;
            sum.packets += other.packets;
            sum.drops += other.drops;
            sum.marks += other.marks;
            sum.lost += other.lost;
            sum.overlimits += other.overlimits;
            (sum.backlog_bytes, sum.backlog_packets) = (other.backlog_bytes, other.backlog_packets);
        }
    }
}

impl Lab {
    /// Reads every port's counters, in an order that does not change while the lab is up.
    ///
    /// # Errors
    /// If `tc` or `ip` fails or says something unexpected.
    pub fn counters(&self) -> Result<Vec<PortCounters>> {
        const READ: [&str; 3] = ["sh", "-c", "tc -s -j qdisc show && echo && ip -s -j link show"];
        let namespaces = self.namespaces();
        let jobs: Vec<_> =
            namespaces.iter().map(|&namespace| (self.holder(namespace), &READ[..], String::new())).collect();
        let outputs = self.system.run_in(&jobs)?;
        let mut readings = Vec::new();
        for (namespace, output) in namespaces.iter().zip(&outputs) {
            readings.push((*namespace, Reading::parse(output)?));
        }
        self.topology.ports().iter().map(|port| find(&readings, port)).collect()
    }
}

fn find(readings: &[(Namespace, Reading)], port: &Port) -> Result<PortCounters> {
    let reading = readings.iter().find(|(namespace, _)| *namespace == port.namespace).map(|(_, reading)| reading);
    let sent = reading.and_then(|reading| reading.sent.get(&port.device)).ok_or_else(|| Error::Command {
        what: "reading counters".to_owned(),
        detail: format!("no device {} on the way from {} to {}", port.device, port.from, port.to),
    })?;
    let queue = reading.and_then(|reading| reading.queues.get(&port.device)).cloned();
    let (from, to) = (port.from.clone(), port.to.clone());
    Ok(PortCounters { from, to, bytes: sent.bytes, packets: sent.packets, queue, simulated: None })
}

/// The devices of one namespace.
#[derive(Debug, Default, PartialEq)]
struct Reading {
    queues: HashMap<String, QueueCounters>,
    sent: HashMap<String, Sent>,
}

impl Reading {
    /// Reads the output of `tc`, an empty line, and the output of `ip`.
    fn parse(output: &str) -> Result<Self> {
        let wrong = |detail: String| Error::Command { what: "reading counters".to_owned(), detail };
        let (tc, ip) = output.split_once("\n\n").ok_or_else(|| wrong(format!("unexpected output {output:?}")))?;
        let qdiscs: Vec<Qdisc> = serde_json::from_str(tc).map_err(|error| wrong(format!("tc: {error}")))?;
        let links: Vec<Link> = serde_json::from_str(ip).map_err(|error| wrong(format!("ip: {error}")))?;
        let mut queues: HashMap<String, QueueCounters> = HashMap::new();
        let rated: HashSet<String> = qdiscs.iter().filter(|of| of.kind == "tbf").map(|of| of.dev.clone()).collect();
        for of in qdiscs.iter().filter(|of| of.kind == "blackhole") {
            queues.entry(of.dev.clone()).or_default().lost += of.drops;
        }
        // A port with bands has one for each, and what sorts packets into them, which is none. One that marks inside of what
        // keeps the rate is the same queue once more.
        for qdisc in qdiscs.into_iter().filter(|qdisc| ["tbf", "bfifo", "red"].contains(&qdisc.kind.as_str())) {
            let inside = qdisc.kind == "red" && rated.contains(&qdisc.dev);
            let sum = queues.entry(qdisc.dev).or_default();
            sum.marks += qdisc.marked;
            if inside {
                continue;
            }
            sum.bytes += qdisc.bytes;
            sum.packets += qdisc.packets;
            sum.drops += qdisc.drops;
            sum.overlimits += qdisc.overlimits;
            sum.backlog_bytes += qdisc.backlog;
            sum.backlog_packets += qdisc.qlen;
        }
        let sent = links.into_iter().map(|link| (link.ifname, link.stats64.tx));
        Ok(Reading { queues, sent: sent.collect() })
    }
}

#[derive(Deserialize)]
struct Qdisc {
    kind: String,
    dev: String,
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    backlog: u64,
    qlen: u64,
    #[serde(default)]
    marked: u64,
}

#[derive(Deserialize)]
struct Link {
    ifname: String,
    stats64: Stats,
}

#[derive(Deserialize)]
struct Stats {
    tx: Sent,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Sent {
    bytes: u64,
    packets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TC: &str = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{},"bytes":0,"packets":0,
        "drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0},{"kind":"tbf","handle":"8001:","dev":"d0","root":true,
        "refcnt":3,"options":{"rate":25000000,"burst":16375,"lat":4587},"bytes":1500,"packets":2,"drops":3,"overlimits":4,
        "requeues":0,"backlog":5000,"qlen":6}]"#;
    const IP: &str = r#"[{"ifname":"lo","flags":[],"stats64":{"rx":{"bytes":1,"packets":1},"tx":{"bytes":1,"packets":1}}},
        {"ifname":"d0","mtu":1500,"stats64":{"rx":{"bytes":9,"packets":9},"tx":{"bytes":1400,"packets":1}}}]"#;

    #[test]
    fn the_tools_words_are_understood() {
        let reading = Reading::parse(&format!("{TC}\n\n{IP}\n")).expect("parses");
        let queue = QueueCounters {
            bytes: 1500,
            packets: 2,
            drops: 3,
            marks: 0,
            lost: 0,
            overlimits: 4,
            backlog_bytes: 5000,
            backlog_packets: 6,
        };
        assert_eq!(reading.queues, HashMap::from([("d0".to_owned(), queue)]));
        assert_eq!(reading.sent["d0"], Sent { bytes: 1400, packets: 1 });
    }

    #[test]
    fn the_queues_of_a_port_with_bands_are_added_up() {
        let of = |kind: &str, bytes: u64| {
            format!(
                r#"{{"kind":"{kind}","dev":"d0","bytes":{bytes},"packets":1,"drops":2,"overlimits":3,"backlog":4,"qlen":5}}"#
            )
        };
        let tc = format!(
            "[{}]",
            [of("htb", 30), of("bfifo", 10), of("blackhole", 0).replace("\"drops\":2", "\"drops\":7"), of("bfifo", 20)]
                .join(",")
        );
        let reading = Reading::parse(&format!("{tc}\n\n{IP}\n")).expect("parses");
        let expected = QueueCounters {
            bytes: 30,
            packets: 2,
            drops: 4,
            marks: 0,
            lost: 7,
            overlimits: 6,
            backlog_bytes: 8,
            backlog_packets: 10,
        };
        assert_eq!(reading.queues["d0"], expected);
    }

    #[test]
    fn a_queue_that_marks_is_counted_once() {
        let red = r#"{"kind":"red","handle":"8002:","dev":"d0","parent":"20:1","options":{"limit":131072,"min":32768},"bytes":1500,
            "packets":2,"drops":3,"overlimits":9,"requeues":0,"backlog":5000,"qlen":6,"marked":9,"early":0,"pdrop":3,"other":0}"#;
        let marks = |tc: &str| Reading::parse(&format!("{tc}\n\n{IP}\n")).expect("parses").queues["d0"].clone();
        let inside = marks(&TC.replace("\"qlen\":6}]", &format!("\"qlen\":6}},{red}]")));
        assert_eq!((inside.marks, inside.drops, inside.overlimits, inside.bytes), (9, 3, 4, 1500));
        let alone = marks(&format!("[{red}]"));
        assert_eq!((alone.marks, alone.drops, alone.bytes), (9, 3, 1500));
    }

    #[test]
    fn other_words_are_an_error() {
        for output in ["", "[]", "[]\n\n{}", "no\n\n[]"] {
            assert!(Reading::parse(output).is_err(), "{output:?}");
        }
    }

    #[test]
    fn differences_count_what_happened_between() {
        let port = |bytes, queue: Option<[u64; 4]>| PortCounters {
            from: "h0".into(),
            to: "leaf0".into(),
            bytes,
            packets: bytes / 10,
            queue: queue.map(|[bytes, drops, overlimits, backlog_bytes]| QueueCounters {
                bytes,
                packets: bytes / 10,
                drops,
                marks: 2 * drops,
                lost: 3 * drops,
                overlimits,
                backlog_bytes,
                backlog_packets: 1,
            }),
            simulated: None,
        };
        let difference = port(1000, Some([900, 8, 7, 60])).since(&port(400, Some([300, 5, 2, 50])));
        assert_eq!(difference, port(600, Some([600, 3, 5, 60])));
        let renewed = port(1000, Some([90, 1, 1, 0])).since(&port(400, Some([300, 5, 2, 50])));
        assert_eq!(renewed.queue, port(0, Some([90, 1, 1, 0])).queue);
        assert_eq!(port(10, None).since(&port(4, Some([1, 1, 1, 1]))).queue, None);
    }
}
