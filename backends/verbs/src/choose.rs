//! Which device, port and address to use: what the user named, or all that work, for the choice of local ends that all
//! backends have ([`tailback_transport::ends`]); else what is wrong with each.

use std::fs;
use std::net::Ipv6Addr;
use std::rc::Rc;

use tailback_transport::ends::{self, End, Reach};
use tailback_transport::near::{DeviceWish, Seat};
use tailback_transport::{Bootstrap, Error, Result};

use crate::config::VerbsConfig;
use crate::ffi::{self, Context, Limits, LinkLayer, Patience, Port};

/// What to do where there is no device.
const NO_DEVICE: &str = "no RDMA device: load the adapter's driver (packages rdma-core and ibverbs-providers), or make a \
                         Soft-RoCE device: rdma link add rxe0 type rxe netdev INTERFACE";

/// An open device with a port and an address that can carry the data.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) context: Rc<Context>,
    pub(crate) limits: Limits,
    pub(crate) port: Port,
    pub(crate) gid_index: u8,
    pub(crate) gid: [u8; 16],
    /// "RoCE v2" and the like; empty on InfiniBand.
    pub(crate) gid_type: String,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    pub(crate) patience: Patience,
    /// Why this device, port and address.
    pub(crate) reason: String,
    /// The device and port of every rank.
    pub(crate) record: String,
    /// Which rank has another device than its twin on the first host.
    pub(crate) unlike: Option<String>,
}

impl Choice {
    /// Chooses among what the user named, or all active ports. Collective over the job.
    pub(crate) fn make(bootstrap: &mut impl Bootstrap, config: &VerbsConfig) -> Result<Choice> {
        let seat = Seat::find(bootstrap)?;
        let (candidates, obstacles) = Self::candidates(config)?;
        let near = |of: &Choice| config.device == DeviceWish::RoundRobin || seat.is_near(&of.context.folder());
        let candidates = seat.deal(candidates, |of| of.context.name.clone(), |of| of.kind(&config.device), near);
        let ends: Vec<Place> = candidates.iter().map(Place::of).collect();
        let asked = matches!(&config.device, DeviceWish::Named(names) if names.len() == 1);
        let advice = "choose devices of one kind with --device";
        let chosen = ends::choose(bootstrap, &ends, &obstacles, asked, advice)?;
        let Some(choice) = candidates.into_iter().nth(chosen.index) else {
            return Err(Error::Setup(NO_DEVICE.into()));
        };
        let reason = match &config.device {
            DeviceWish::Named(names) if names.len() == 1 => chosen.reason,
            wish => format!("{wish}, place {} on its host; {}", seat.index, chosen.reason),
        };
        Ok(Choice { reason, record: chosen.record, unlike: chosen.unlike, ..choice })
    }

    /// What devices have to have in common to be equals. Ranks on different ones talk to each other, so without a word of the
    /// user's they are of one network, as far as addresses tell.
    fn kind(&self, wish: &DeviceWish) -> (bool, Option<u32>, Vec<u8>) {
        let ethernet = self.port.link_layer == LinkLayer::Ethernet;
        let network = match wish {
            DeviceWish::Auto => network(&self.gid),
            DeviceWish::RoundRobin | DeviceWish::Named(_) => &[],
        };
        (ethernet, self.port.rate, network.to_vec())
    }

    /// Opens what the user named, or every device: the addresses that work, best first on each port; and what is wrong with the
    /// other ports.
    fn candidates(config: &VerbsConfig) -> Result<(Vec<Choice>, Vec<String>)> {
        let names = ffi::device_names()?;
        if names.is_empty() {
            return Err(Error::Setup(NO_DEVICE.into()));
        }
        if let [name, ..] = &config.device.missing(&names)[..] {
            return Err(Error::Setup(format!("there is no RDMA device {name}: there is {}", names.join(", "))));
        }
        let (mut usable, mut refused) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| config.device.allows(name)) {
            Self::on_device(config, name, &mut usable, &mut refused)?;
        }
        if usable.is_empty() {
            return Err(Error::Setup(format!("no usable RDMA port: {}", refused.join("; "))));
        }
        Ok((usable, refused))
    }

    /// The usable ports of a device with their addresses, and what is wrong with the others.
    fn on_device(config: &VerbsConfig, name: &str, usable: &mut Vec<Choice>, refused: &mut Vec<String>) -> Result<()> {
        let context = Context::open(name)?;
        let limits = context.limits()?;
        if let Some(port) = config.port.filter(|&port| port == 0 || port > limits.ports) {
            refused.push(format!("{name} has no port {port}: it has {}", limits.ports));
            return Ok(());
        }
        for number in (1..=limits.ports).filter(|&number| config.port.is_none_or(|wanted| wanted == number)) {
            let mut port = context.port(number)?;
            if !port.is_active() {
                refused.push(format!("port {number} of {name} is {}", port.state_text()));
                continue;
            }
            if let Some(mtu) = config.path_mtu {
                if mtu > port.mtu_bytes() {
                    refused.push(format!("port {number} of {name} takes no packets above {}", port.mtu_bytes()));
                    continue;
                }
                port.limit_mtu(mtu);
            }
            match addresses(&context, &port, config.gid_index) {
                Err(reason) => refused.push(reason),
                Ok(entries) => usable.extend(entries.into_iter().map(|entry| Choice {
                    context: Rc::clone(&context),
                    limits: limits.clone(),
                    port,
                    gid_index: entry.index,
                    gid: entry.gid,
                    gid_type: entry.kind,
                    service_level: config.service_level,
                    traffic_class: config.traffic_class,
                    patience: Patience {
                        timeout: config.tries.timeout_code(),
                        retries: config.tries.retries_on(name),
                        not_ready_retries: config.tries.not_ready_retries,
                    },
                    reason: String::new(),
                    record: String::new(),
                    unlike: None,
                })),
            }
        }
        Ok(())
    }
}

/// A port and an address, as other ranks need to know them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    device: String,
    port: u8,
    ethernet: bool,
    gid: [u8; 16],
}

impl Place {
    fn of(choice: &Choice) -> Place {
        Place {
            device: choice.context.name.clone(),
            port: choice.port.number,
            ethernet: choice.port.link_layer == LinkLayer::Ethernet,
            gid: choice.gid,
        }
    }

    /// Whether the address stands for one of IPv4, or is of one link only.
    fn family(&self) -> (bool, bool) {
        (is_mapped(&self.gid), is_link_local(&self.gid))
    }
}

impl End for Place {
    fn encode(&self) -> String {
        let layer = if self.ethernet { "RoCE" } else { "InfiniBand" };
        format!("{} port {} {layer} {}", self.device, self.port, gid_text(&self.gid))
    }

    fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [device, "port", port, layer, gid] = words[..] else { return None };
        let gid: Ipv6Addr = gid.parse().ok()?;
        Some(Place { device: device.into(), port: port.parse().ok()?, ethernet: layer == "RoCE", gid: gid.octets() })
    }

    /// RoCE takes addresses of one family and does not tell their networks; InfiniBand has subnets.
    fn reach(&self, other: &Self) -> Reach {
        match (self.ethernet, other.ethernet) {
            (true, true) if self.family() == other.family() => Reach::Near,
            (false, false) if self.gid[..8] == other.gid[..8] => Reach::Near,
            (false, false) => Reach::Routed,
            _ => Reach::Never,
        }
    }

    fn name(&self) -> String {
        format!("{} port {}", self.device, self.port)
    }
}

fn is_mapped(gid: &[u8; 16]) -> bool {
    gid[..10] == [0; 10] && gid[10..12] == [0xff; 2]
}

fn is_link_local(gid: &[u8; 16]) -> bool {
    gid[0] == 0xfe && gid[1] & 0xc0 == 0x80
}

/// An entry of a port's table of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    index: u8,
    gid: [u8; 16],
    /// As the kernel calls it.
    kind: String,
}

impl Entry {
    /// How good an address is for RoCE; None where routers and peers may not know it.
    fn merit(&self) -> Option<u32> {
        let v2 = self.kind == "RoCE v2";
        match (v2, is_mapped(&self.gid), is_link_local(&self.gid)) {
            (true, true, _) => Some(4),
            (true, false, false) => Some(3),
            (true, false, true) => Some(2),
            (false, _, _) if self.kind.is_empty() => None,
            (false, _, _) => Some(1),
        }
    }
}

/// The entries of the port's table that can be used, best first. On RoCE: version 2 with an IPv4 address if there is one.
fn addresses(context: &Context, port: &Port, wanted: Option<u8>) -> std::result::Result<Vec<Entry>, String> {
    let place = || format!("port {} of {}", port.number, context.name);
    let entries = entries(context, port);
    let usable: Vec<Entry> = match (wanted, port.link_layer) {
        (Some(index), _) => entries.iter().filter(|entry| entry.index == index).cloned().collect(),
        (None, LinkLayer::InfiniBand) => entries.iter().take(1).cloned().collect(),
        (None, LinkLayer::Ethernet) => by_merit(&entries),
    };
    match (usable.is_empty(), wanted, port.link_layer) {
        (false, ..) => Ok(usable),
        (true, Some(index), _) => {
            let known = entries.iter().map(|entry| entry.index.to_string()).collect::<Vec<_>>().join(", ");
            Err(format!("{} has no address (GID) at index {index}, only at {known}", place()))
        }
        (true, None, LinkLayer::InfiniBand) => Err(format!("{} has no address (GID)", place())),
        (true, None, LinkLayer::Ethernet) => {
            Err(format!("{} has no RoCE address (GID): give its network interface an IP address", place()))
        }
    }
}

/// The best first, in the table's order among equals.
fn by_merit(entries: &[Entry]) -> Vec<Entry> {
    let mut usable: Vec<Entry> = entries.iter().filter(|entry| entry.merit().is_some()).cloned().collect();
    usable.sort_by_key(|entry| std::cmp::Reverse(entry.merit()));
    usable
}

/// The entries in use.
fn entries(context: &Context, port: &Port) -> Vec<Entry> {
    let count = u8::try_from(port.gids).unwrap_or(u8::MAX);
    let used = (0..count).filter_map(|index| {
        let gid = context.gid(port.number, index.into()).ok().filter(|gid| *gid != [0; 16])?;
        Some(Entry { index, gid, kind: kind(&context.name, port.number, index) })
    });
    used.collect()
}

fn kind(device: &str, port: u8, index: u8) -> String {
    let path = format!("/sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/{index}");
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The part of an address that hosts of one network share: the subnet on InfiniBand, 64 bits of IPv6, 24 of IPv4.
fn network(gid: &[u8; 16]) -> &[u8] {
    if is_mapped(gid) { &gid[..15] } else { &gid[..8] }
}

/// A GID as people write it; an IPv4 address where it holds one.
pub(crate) fn gid_text(gid: &[u8; 16]) -> String {
    Ipv6Addr::from(*gid).to_string()
}

/// The devices and ports of this machine, a line each; or what is missing.
pub(crate) fn list() -> std::result::Result<Vec<String>, String> {
    let names = ffi::device_names().map_err(|error| error.to_string())?;
    if names.is_empty() {
        return Err(NO_DEVICE.into());
    }
    let mut lines = Vec::new();
    for name in names {
        match ports(&name) {
            Ok(of_device) => lines.extend(of_device),
            Err(error) => lines.push(format!("{name}: {error}")),
        }
    }
    Ok(lines)
}

fn ports(name: &str) -> Result<Vec<String>> {
    let context = Context::open(name)?;
    let limits = context.limits()?;
    (1..=limits.ports)
        .map(|number| {
            let port = context.port(number)?;
            let layer = match port.link_layer {
                LinkLayer::InfiniBand => "InfiniBand",
                LinkLayer::Ethernet => "RoCE",
            };
            let mut line = format!("{name} port {number}: {}, {layer}", port.state_text());
            if let Some(rate) = rate_text(&port) {
                line += &format!(", {rate}");
            }
            line += &format!(", MTU {}, firmware {}", port.mtu_bytes(), limits.firmware);
            if let Some(entry) = addresses(&context, &port, None).ok().and_then(|all| all.into_iter().next()) {
                line += &format!(", GID {} {}", entry.index, gid_text(&entry.gid));
            }
            Ok(line)
        })
        .collect()
}

/// The link's rate.
pub(crate) fn rate_text(port: &Port) -> Option<String> {
    port.rate.map(|tenths| format!("{}.{} Gbit/s", tenths / 10, tenths % 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, gid: &str, kind: &str) -> Entry {
        let gid: Ipv6Addr = gid.parse().expect("an address");
        Entry { index, gid: gid.octets(), kind: kind.into() }
    }

    #[test]
    fn version_2_with_an_ipv4_address_comes_first() {
        let entries = [
            entry(0, "fe80::1", "IB/RoCE v1"),
            entry(1, "fe80::1", "RoCE v2"),
            entry(2, "::ffff:10.0.0.1", "IB/RoCE v1"),
            entry(3, "::ffff:10.0.0.1", "RoCE v2"),
            entry(4, "::ffff:10.0.0.2", "RoCE v2"),
            entry(5, "2001:db8::1", "RoCE v2"),
        ];
        let order = |entries: &[Entry]| by_merit(entries).iter().map(|entry| entry.index).collect::<Vec<_>>();
        assert_eq!(order(&entries), [3, 4, 5, 1, 0, 2]);
        assert_eq!(order(&entries[..3]), [1, 0, 2]);
        assert_eq!(order(&entries[..1]), [0]);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn mapped_addresses_are_shown_as_such() {
        assert_eq!(gid_text(&entry(0, "::ffff:10.1.0.1", "").gid), "::ffff:10.1.0.1");
    }

    #[test]
    fn addresses_tell_of_networks() {
        let same = |a: &str, b: &str| network(&entry(0, a, "").gid) == network(&entry(0, b, "").gid);
        assert!(same("::ffff:10.1.0.1", "::ffff:10.1.0.9") && !same("::ffff:10.1.0.1", "::ffff:10.1.1.1"));
        assert!(same("fe80::1", "fe80::2") && !same("fe80::1", "fec0::1"));
    }

    #[test]
    fn ports_of_one_kind_reach_each_other() {
        let reach = |a: &str, b: &str| {
            let of = |line| Place::decode(line).expect("a port");
            assert_eq!(of(a).encode(), a);
            of(a).reach(&of(b))
        };
        let v4 = "rxe0 port 1 RoCE ::ffff:10.1.0.1";
        assert_eq!(reach(v4, "rxe1 port 1 RoCE ::ffff:10.1.0.2"), Reach::Near);
        assert_eq!(reach(v4, "rxe1 port 1 RoCE fe80::1"), Reach::Never);
        assert_eq!(reach(v4, "mlx5_0 port 1 InfiniBand fe80::1"), Reach::Never);
        let ib = "mlx5_0 port 2 InfiniBand fe80::1";
        assert_eq!(reach(ib, "mlx5_1 port 1 InfiniBand fe80::2"), Reach::Near);
        assert_eq!(reach(ib, "mlx5_1 port 1 InfiniBand fec0::2"), Reach::Routed);
        assert_eq!(Place::decode("rxe0"), None);
    }
}
