//! The lab's network as data: who has which name and address, which ports are shaped, and the batches that make it.
//!
//! Nothing here touches the system. Names and addresses are unique within a lab by construction, and need be no more
//! than that: all of them live in the lab's own network namespaces, so a second lab uses the same ones.

use std::fmt::Write;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::degrade::Quality;
use super::spec::{BYPASS, DSCP, LabSpec};
use crate::units::Rate;

const DATA: [u8; 3] = [10, 77, 0];
const CONTROL: [u8; 3] = [10, 78, 0];
/// The classes of a port that sorts its packets: those that pass by, those that are lost, the link that all bands share, the first band.
const PASSING: usize = 5;
const LOST: usize = 6;
const LINK: usize = 1;
const FIRST_BAND: usize = 0x10;
/// What keeps the rate of a port whose queue marks packets.
const MARKING: usize = 0x20;
/// What keeps packets of a port that is late.
const LATE: usize = 0x30;
/// The kernel knows no more.
const LEAST_PRIORITY: usize = 7;
/// A bridge forgets an address after this many hundredths of a second (a day): a forgotten address is flooded, which
/// would put one host's traffic on another's port.
const AGEING: u32 = 8_640_000;

/// A host of the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name: `h0`, `h1`, ...
    pub name: String,
    /// The leaf switch it hangs on.
    pub leaf: usize,
    /// Its address on the data network, the one that is measured (interface `d0`).
    pub data: Ipv4Addr,
    /// Its address on the control network, for launching and bootstrap (interface `c0`).
    pub control: Ipv4Addr,
}

impl Host {
    /// What ranks on it are told of the topology.
    #[must_use]
    pub fn group(&self) -> String {
        format!("leaf{}", self.leaf)
    }
}

/// Where a port's device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// In the namespace of the switches.
    Switch,
    /// In the namespace of the host with this index.
    Host(usize),
}

/// A device that sends onto a data link, and so has a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub namespace: Namespace,
    pub device: String,
    /// Who sends through it: a host or a switch.
    pub from: String,
    /// Who receives from it.
    pub to: String,
    pub quality: Quality,
}

/// What the ports of the data network do with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shaping {
    /// Nothing: only the processor is the limit.
    Off,
    /// A rate and a queue.
    On,
    /// The same, but packets of the class [`BYPASS`] pass by: neither rate nor queue is theirs. The others have the
    /// very queues they have with [`Shaping::On`].
    Bypass,
}

/// The network of one valid [`LabSpec`].
#[derive(Clone, Debug)]
pub struct Topology {
    spec: LabSpec,
    hosts: Vec<Host>,
}

impl Topology {
    /// The network that `spec`, which must be valid, describes.
    #[must_use]
    pub fn new(spec: &LabSpec) -> Self {
        let address = |net: [u8; 3], index: usize| {
            Ipv4Addr::new(net[0], net[1], net[2], u8::try_from(index + 1).expect("at most 250 hosts"))
        };
        let hosts = (0..spec.hosts)
            .map(|index| Host {
                name: format!("h{index}"),
                leaf: spec.leaf_of(index),
                data: address(DATA, index),
                control: address(CONTROL, index),
            })
            .collect();
        Topology { spec: spec.clone(), hosts }
    }

    /// The hosts, in order.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    fn switches(&self) -> Vec<String> {
        let leaves = (0..self.spec.leaves).map(|leaf| format!("leaf{leaf}"));
        leaves.chain((self.spec.leaves > 2).then(|| "spine".to_owned())).collect()
    }

    /// Every port of the data network.
    pub(super) fn ports(&self) -> Vec<Port> {
        let mut ports = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let (leaf, rate) = (format!("leaf{}", host.leaf), self.spec.link_rate);
            let (name, device) = (host.name.clone(), format!("d-{}", host.name));
            ports.push(self.port(Namespace::Switch, device, leaf.clone(), name.clone(), rate));
            ports.push(self.port(Namespace::Host(index), "d0".to_owned(), name, leaf, rate));
        }
        for [a, b] in self.spec.trunks() {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let device = format!("{from}-{to}");
                let rate = self.spec.spine_rate();
                ports.push(self.port(Namespace::Switch, device, from.clone(), to.clone(), rate));
            }
        }
        ports
    }

    fn port(&self, namespace: Namespace, device: String, from: String, to: String, rate: Rate) -> Port {
        let quality = self.spec.quality(&from, &to, rate);
        Port { namespace, device, from, to, quality }
    }

    /// `ip -batch` lines for the namespace of the switches; `holders` are the processes that hold the hosts.
    pub(super) fn switch_batch(&self, holders: &[u32]) -> String {
        let mut batch = String::new();
        let bridge = format!("type bridge stp_state 0 forward_delay 0 mcast_snooping 0 ageing_time {AGEING}");
        for switch in self.switches().iter().map(String::as_str).chain(["control"]) {
            line(&mut batch, format_args!("link add {switch} {bridge}"));
            line(&mut batch, format_args!("link set {switch} addrgenmode none up"));
        }
        for (index, (host, holder)) in self.hosts.iter().zip(holders).enumerate() {
            for (port, far, net, switch) in
                [("d", "d0", DATA, format!("leaf{}", host.leaf)), ("c", "c0", CONTROL, "control".to_owned())]
            {
                let (name, mac) = (&host.name, mac(net, index));
                let peer = format!("peer name {far} address {mac} netns {holder}");
                line(&mut batch, format_args!("link add {port}-{name} type veth {peer}"));
                line(&mut batch, format_args!("link set {port}-{name} addrgenmode none master {switch} up"));
            }
        }
        for [a, b] in self.spec.trunks() {
            line(&mut batch, format_args!("link add {a}-{b} type veth peer name {b}-{a}"));
            line(&mut batch, format_args!("link set {a}-{b} addrgenmode none master {a} up"));
            line(&mut batch, format_args!("link set {b}-{a} addrgenmode none master {b} up"));
        }
        batch
    }

    /// `ip -batch` lines for the namespace of host `index`.
    ///
    /// Neighbours are fixed: a request for an address would itself wait, or be lost, in a full queue.
    pub(super) fn host_batch(&self, index: usize) -> String {
        let mut batch = String::from("link set lo up\n");
        let host = &self.hosts[index];
        let nets = [("d0", DATA, host.data), ("c0", CONTROL, host.control)];
        for (device, net, address) in nets {
            line(&mut batch, format_args!("link set {device} addrgenmode none"));
            line(&mut batch, format_args!("addr add {address}/24 brd + dev {device}"));
            line(&mut batch, format_args!("link set {device} up"));
            for (peer, other) in self.hosts.iter().enumerate().filter(|(peer, _)| *peer != index) {
                let to = if device == "d0" { other.data } else { other.control };
                line(&mut batch, format_args!("neigh add {to} lladdr {} nud permanent dev {device}", mac(net, peer)));
            }
        }
        batch + &self.data_route(index)
    }

    /// The line among them that says how TCP behaves on the data network.
    pub(super) fn data_route(&self, index: usize) -> String {
        let [a, b, c] = DATA;
        let LabSpec { congestion_control, rto_min_ms, ecn, .. } = &self.spec;
        // Without it only a congestion control that cannot do without asks for marks.
        let features = if *ecn { " features ecn" } else { "" };
        let source = self.hosts[index].data;
        format!(
            "route replace {a}.{b}.{c}.0/24 dev d0 src {source} congctl {congestion_control} rto_min {rto_min_ms}ms{features}\n"
        )
    }

    /// `tc -batch` lines that shape (or unshape) the ports of one namespace, which are as `from` says.
    pub(super) fn shaping_batch(&self, namespace: Namespace, from: Shaping, to: Shaping) -> String {
        let mut batch = String::new();
        for port in self.ports().iter().filter(|port| port.namespace == namespace) {
            let device = &port.device;
            if from != Shaping::Off {
                line(&mut batch, format_args!("qdisc del dev {device} root"));
            }
            if to == Shaping::Off {
                continue;
            }
            let at = late(&mut batch, port);
            if to == Shaping::On && self.spec.bands.is_empty() && port.quality.loss == 0 {
                self.queue(&mut batch, port, &at);
            } else {
                self.sorted(&mut batch, port, &at, to == Shaping::Bypass);
            }
        }
        batch
    }

    /// A rate and a queue, for everyone alike.
    fn queue(&self, batch: &mut String, port: &Port, at: &str) {
        let (device, bits, burst) = (&port.device, port.quality.rate.bits(), LabSpec::burst(port.quality.rate));
        let (limit, marks) = (self.spec.queue_bytes, self.marks(port.quality.rate));
        // The queue that marks stands inside of what keeps the rate.
        let handle = if marks.is_some() { format!("handle {MARKING:x}: ") } else { String::new() };
        line(batch, format_args!("qdisc add dev {device} {at} {handle}tbf rate {bits}bit burst {burst} limit {limit}"));
        if let Some(marks) = marks {
            line(batch, format_args!("qdisc add dev {device} parent {MARKING:x}:1 {marks}"));
        }
    }

    /// A queue that marks packets, if one is wanted: all of them above one length, by what waits now and not by its mean, as
    /// dctcp asks for. Packets that cannot be marked are dropped when it is full, as anywhere.
    fn marks(&self, rate: Rate) -> Option<String> {
        const PACKET: u64 = 1000;
        let (above, limit, bits) = (self.spec.mark_above()?, self.spec.queue_bytes, rate.bits());
        let (most, burst) = (above + 1, above / PACKET + 1);
        Some(format!(
            "red limit {limit} min {above} max {most} avpkt {PACKET} burst {burst} bandwidth {bits}bit probability 1 ecn nodrop"
        ))
    }

    /// Packets by their class: those that are lost, those that pass by, if some may, and each band's into a queue of its own.
    fn sorted(&self, batch: &mut String, port: &Port, at: &str, bypass: bool) {
        // Beyond what this machine moves.
        const NO_LIMIT: &str = "rate 100gbit quantum 60000";
        let (device, bands) = (&port.device, &self.spec.bands);
        let last = FIRST_BAND + bands.len();
        line(batch, format_args!("qdisc add dev {device} {at} handle 1: htb default {last:x}"));
        let mut class = |parent: &str, id: usize, what: &str| {
            line(batch, format_args!("class add dev {device} parent {parent} classid 1:{id:x} htb {what}"));
        };
        if port.quality.loss > 0 {
            class("1:", LOST, &format!("{NO_LIMIT} prio 0"));
        }
        if bypass {
            class("1:", PASSING, &format!("{NO_LIMIT} prio 0"));
        }
        if bands.is_empty() {
            class("1:", last, &format!("{NO_LIMIT} prio 1"));
        } else {
            // A band within its own part need not wait for what the others have borrowed.
            let (rate, burst) = (port.quality.rate.bits(), LabSpec::burst(port.quality.rate));
            let own = rate / (bands.len() as u64 + 1);
            let bursts = format!("burst {burst} cburst {burst} quantum {burst}");
            class("1:", LINK, &format!("rate {rate}bit {bursts}"));
            for at in 0..=bands.len() {
                let what = format!("rate {own}bit ceil {rate}bit {bursts} prio {}", at.min(LEAST_PRIORITY));
                class(&format!("1:{LINK:x}"), FIRST_BAND + at, &what);
            }
        }
        for at in 0..=bands.len() {
            let parent = format!("parent 1:{:x}", FIRST_BAND + at);
            if bands.is_empty() {
                self.queue(batch, port, &parent);
                continue;
            }
            let plain = || format!("bfifo limit {}", self.spec.queue_bytes);
            let queue = self.marks(port.quality.rate).unwrap_or_else(plain);
            line(batch, format_args!("qdisc add dev {device} {parent} {queue}"));
        }
        lossy(batch, port);
        let passing = bypass.then_some((BYPASS, PASSING));
        let sorted = bands.iter().enumerate().map(|(at, class)| (class & DSCP, FIRST_BAND + at));
        for (class, id) in passing.into_iter().chain(sorted) {
            let what = format!("u32 match ip tos {class:#04x} {DSCP:#04x} flowid 1:{id:x}");
            line(batch, format_args!("filter add dev {device} parent 1: protocol ip {what}"));
        }
    }

    /// The hosts' own `/etc/hosts`. Names mean control addresses: launchers use names, measurements use addresses.
    pub(super) fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n");
        for host in &self.hosts {
            line(&mut text, format_args!("{} {}", host.control, host.name));
            line(&mut text, format_args!("{} {}-data", host.data, host.name));
        }
        text
    }
}

/// Keeps every packet of a port that is late, and says where what comes then stands.
fn late(batch: &mut String, port: &Port) -> String {
    // In packets: more than any queue of a lab has.
    const LIMIT: usize = 1_000_000;
    let (device, delay_us) = (&port.device, port.quality.delay_us);
    if delay_us == 0 {
        return "root".to_owned();
    }
    line(batch, format_args!("qdisc add dev {device} root handle {LATE:x}: netem delay {delay_us}us limit {LIMIT}"));
    format!("parent {LATE:x}:1")
}

/// Loses packets by lot, whatever their class: a program of four instructions asks the kernel for a random number. The sender
/// is not told, as by a queue of its own that is full.
fn lossy(batch: &mut String, port: &Port) {
    // In classic BPF, a load from here is a random number of 32 bits.
    const RANDOM: u32 = 0xffff_f000 + 56;
    if port.quality.loss == 0 {
        return;
    }
    let below = (u64::from(port.quality.loss) << 32) / 1_000_000;
    let device = &port.device;
    line(batch, format_args!("qdisc add dev {device} parent 1:{LOST:x} blackhole"));
    let program = format!("4,32 0 0 {RANDOM},53 1 0 {below},6 0 0 {},6 0 0 0", u32::MAX);
    let what = format!("prio 1 bpf bytecode \"{program}\" flowid 1:{LOST:x}");
    line(batch, format_args!("filter add dev {device} parent 1: protocol all {what}"));
}

/// A hardware address that says which network and host it belongs to.
fn mac(net: [u8; 3], index: usize) -> String {
    format!("02:{:02x}:{:02x}:00:00:{:02x}", net[0], net[1], index + 1)
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn topology(hosts: usize, leaves: usize) -> Topology {
        let spec = LabSpec { hosts, leaves, ..LabSpec::default() };
        spec.validate().expect("valid");
        Topology::new(&spec)
    }

    fn all_unique<T: Eq + std::hash::Hash>(items: impl IntoIterator<Item = T>) -> bool {
        let mut seen = HashSet::new();
        items.into_iter().all(|item| seen.insert(item))
    }

    #[test]
    fn two_leaves_share_one_link_and_more_have_a_spine() {
        let trunks = |leaves| {
            let ports = topology(9, leaves).ports();
            ports.into_iter().map(|port| port.device).filter(|device| !device.starts_with('d')).collect::<Vec<_>>()
        };
        assert_eq!(trunks(1), [""; 0]);
        assert_eq!(trunks(2), ["leaf0-leaf1", "leaf1-leaf0"]);
        let three = ["leaf0-spine", "spine-leaf0", "leaf1-spine", "spine-leaf1", "leaf2-spine", "spine-leaf2"];
        assert_eq!(trunks(3), three);
    }

    #[test]
    fn shaping_is_what_tc_takes() {
        let topology = topology(2, 1);
        let on = "qdisc add dev d0 root tbf rate 200000000bit burst 16384 limit 131072\n";
        assert_eq!(topology.shaping_batch(Namespace::Host(1), Shaping::Off, Shaping::On), on);
        let off = "qdisc del dev d-h0 root\nqdisc del dev d-h1 root\n";
        assert_eq!(topology.shaping_batch(Namespace::Switch, Shaping::On, Shaping::Off), off);
        let bypass = topology.shaping_batch(Namespace::Host(0), Shaping::On, Shaping::Bypass);
        assert!(bypass.starts_with("qdisc del dev d0 root\nqdisc add dev d0 root handle 1: htb"), "{bypass}");
        assert!(bypass.contains("parent 1:10 tbf rate 200000000bit burst 16384 limit 131072"), "{bypass}");
        assert!(bypass.contains("match ip tos 0xfc 0xfc flowid 1:5"), "{bypass}");
    }

    #[test]
    fn broken_links_are_slow_late_or_lossy() {
        let degraded = |texts: &[&str]| {
            let degraded = texts.iter().map(|text| text.parse().unwrap()).collect();
            let spec = LabSpec { hosts: 4, degraded, ..LabSpec::default() };
            spec.validate().expect("valid");
            Topology::new(&spec)
        };
        let shaped = |topology: &Topology, of, to| topology.shaping_batch(of, Shaping::Off, to);
        let slow = degraded(&["h1:send.rate=50%", "leaf0-leaf1:rate=10%"]);
        assert!(
            shaped(&slow, Namespace::Host(1), Shaping::On)
                .contains("root tbf rate 100000000bit burst 16384 limit 131072")
        );
        let switch = shaped(&slow, Namespace::Switch, Shaping::On);
        for expected in [
            "dev d-h1 root tbf rate 200000000bit",
            "dev leaf0-leaf1 root tbf rate 10000000bit",
            "dev leaf1-leaf0 root tbf rate 10000000bit",
        ] {
            assert!(switch.contains(expected), "{expected}: {switch}");
        }
        let late = degraded(&["h1:delay=2ms"]);
        for (to, inner) in [(Shaping::On, "tbf rate 200000000bit"), (Shaping::Bypass, "handle 1: htb default 10")] {
            let batch = shaped(&late, Namespace::Host(1), to);
            let head = format!(
                "qdisc add dev d0 root handle 30: netem delay 2000us limit 1000000\nqdisc add dev d0 parent 30:1 {inner}"
            );
            assert!(batch.starts_with(&head), "{batch}");
        }
        let lossy = degraded(&["h1:send.loss=25%"]);
        assert!(!shaped(&lossy, Namespace::Switch, Shaping::On).contains("blackhole"));
        for to in [Shaping::On, Shaping::Bypass] {
            let batch = shaped(&lossy, Namespace::Host(1), to);
            for expected in [
                "class add dev d0 parent 1: classid 1:6 htb rate 100gbit quantum 60000 prio 0\n",
                "qdisc add dev d0 parent 1:6 blackhole\n",
                "filter add dev d0 parent 1: protocol all prio 1 bpf bytecode \"4,32 0 0 4294963256,53 1 0 1073741824,6 0 0 4294967295,6 0 0 0\" flowid 1:6\n",
                "parent 1:10 tbf rate 200000000bit",
            ] {
                assert!(batch.contains(expected), "{expected}: {batch}");
            }
        }
    }

    #[test]
    fn queues_that_mark_stand_inside_of_the_rate() {
        let marking = |bands: &[u8]| {
            let spec = LabSpec { hosts: 2, leaves: 1, ecn: true, bands: bands.to_vec(), ..LabSpec::default() };
            spec.validate().expect("valid");
            Topology::new(&spec)
        };
        let red = "red limit 131072 min 32768 max 32769 avpkt 1000 burst 33 bandwidth 200000000bit probability 1 ecn nodrop\n";
        let batch = marking(&[]).shaping_batch(Namespace::Host(0), Shaping::Off, Shaping::On);
        let tbf = "qdisc add dev d0 root handle 20: tbf rate 200000000bit burst 16384 limit 131072\n";
        assert_eq!(batch, format!("{tbf}qdisc add dev d0 parent 20:1 {red}"));
        let bypass = marking(&[]).shaping_batch(Namespace::Host(0), Shaping::On, Shaping::Bypass);
        assert!(
            bypass.contains(&format!("parent 20:1 {red}")) && bypass.contains("parent 1:10 handle 20: tbf"),
            "{bypass}"
        );
        let banded = marking(&[0xb8]).shaping_batch(Namespace::Host(0), Shaping::Off, Shaping::On);
        assert!(banded.contains(&format!("parent 1:10 {red}")) && !banded.contains("bfifo"), "{banded}");
        assert!(marking(&[]).host_batch(0).contains("congctl cubic rto_min 50ms features ecn\n"));
        assert!(!topology(2, 1).host_batch(0).contains("ecn"));
    }

    #[test]
    fn bands_have_queues_and_parts_of_the_link_and_an_order() {
        let spec = LabSpec { hosts: 2, leaves: 1, bands: vec![0xb8, 0x2a], ..LabSpec::default() };
        spec.validate().expect("valid");
        let batch = Topology::new(&spec).shaping_batch(Namespace::Host(0), Shaping::Off, Shaping::On);
        for expected in [
            "root handle 1: htb default 12\n",
            "parent 1: classid 1:1 htb rate 200000000bit burst 16384",
            "parent 1:1 classid 1:10 htb rate 66666666bit ceil 200000000bit burst 16384 cburst 16384 quantum 16384 prio 0",
            "classid 1:12 htb rate 66666666bit ceil 200000000bit burst 16384 cburst 16384 quantum 16384 prio 2",
            "parent 1:12 bfifo limit 131072\n",
            "match ip tos 0xb8 0xfc flowid 1:10\n",
            "match ip tos 0x28 0xfc flowid 1:11\n",
        ] {
            assert!(batch.contains(expected), "{expected}: {batch}");
        }
        assert!(!batch.contains("1:5 ") && !batch.contains("tbf"), "{batch}");
        for wrong in [vec![0xb8, 0xb9], vec![BYPASS], (0..16).map(|at| at << 2).collect()] {
            assert!(LabSpec { bands: wrong.clone(), ..spec.clone() }.validate().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn names_and_addresses_are_unique((hosts, leaves) in (1usize..=250).prop_flat_map(|h| (Just(h), 1..=h))) {
            let topology = topology(hosts, leaves);
            prop_assert_eq!(topology.hosts().len(), hosts);
            prop_assert!(all_unique(topology.hosts().iter().map(|host| host.name.as_str())));
            prop_assert!(all_unique(topology.hosts().iter().flat_map(|host| [host.data, host.control])));
            prop_assert!(all_unique((0..hosts).flat_map(|index| [mac(DATA, index), mac(CONTROL, index)])));
            let ports = topology.ports();
            prop_assert!(ports.iter().all(|port| port.device.len() <= 15));
            let switch = ports.iter().filter(|port| port.namespace == Namespace::Switch).map(|port| port.device.as_str());
            prop_assert!(all_unique(switch.chain(topology.switches().iter().map(String::as_str)).chain(["control"])));
        }

        #[test]
        fn leaves_differ_by_at_most_one_host((hosts, leaves) in (1usize..=250).prop_flat_map(|h| (Just(h), 1..=h))) {
            let topology = topology(hosts, leaves);
            let mut counts = vec![0usize; leaves];
            topology.hosts().iter().for_each(|host| counts[host.leaf] += 1);
            let (least, most) = (counts.iter().min(), counts.iter().max());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{counts:?}");
        }

        #[test]
        fn every_host_knows_every_other(hosts in 1usize..40) {
            let topology = topology(hosts, 1);
            for index in 0..hosts {
                let batch = topology.host_batch(index);
                prop_assert_eq!(batch.matches("neigh add").count(), 2 * (hosts - 1));
            }
        }
    }
}
