//! Which device, port and address to use: what the user named, or the first that works; else what is wrong with each.

use std::fs;
use std::rc::Rc;

use tailback_transport::{Error, Result};

use crate::ffi::{self, Context, Limits, LinkLayer, Port};
use crate::transport::VerbsConfig;

/// What to do where there is no device.
const NO_DEVICE: &str = "no RDMA device: load the adapter's driver (packages rdma-core and ibverbs-providers), or make a \
                         Soft-RoCE device: rdma link add rxe0 type rxe netdev INTERFACE";

/// An open device with the port and the address that carry the data.
#[derive(Debug)]
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
    /// Why this device and port.
    pub(crate) reason: &'static str,
}

impl Choice {
    /// Opens what the user named, or the first active port.
    pub(crate) fn make(config: &VerbsConfig) -> Result<Choice> {
        let names = ffi::device_names()?;
        if names.is_empty() {
            return Err(Error::Setup(NO_DEVICE.into()));
        }
        if let Some(name) = config.device.as_ref().filter(|&name| !names.contains(name)) {
            return Err(Error::Setup(format!("there is no RDMA device {name}: there is {}", names.join(", "))));
        }
        let mut refused = Vec::new();
        for name in names.iter().filter(|&name| config.device.as_ref().is_none_or(|wanted| wanted == name)) {
            match Self::on_device(config, name)? {
                Ok(choice) => return Ok(choice),
                Err(reasons) => refused.extend(reasons),
            }
        }
        Err(Error::Setup(format!("no usable RDMA port: {}", refused.join("; "))))
    }

    /// The first usable port of a device, or what is wrong with each.
    fn on_device(config: &VerbsConfig, name: &str) -> Result<std::result::Result<Choice, Vec<String>>> {
        let context = Context::open(name)?;
        let limits = context.limits()?;
        let mut refused = Vec::new();
        if let Some(port) = config.port.filter(|&port| port == 0 || port > limits.ports) {
            return Ok(Err(vec![format!("{name} has no port {port}: it has {}", limits.ports)]));
        }
        for number in (1..=limits.ports).filter(|&number| config.port.is_none_or(|wanted| wanted == number)) {
            let port = context.port(number)?;
            if !port.is_active() {
                refused.push(format!("port {number} of {name} is {}", port.state_text()));
                continue;
            }
            match address(&context, &port, config.gid_index) {
                Err(reason) => refused.push(reason),
                Ok((gid_index, gid, gid_type)) => {
                    return Ok(Ok(Choice {
                        context,
                        limits,
                        port,
                        gid_index,
                        gid,
                        gid_type,
                        service_level: config.service_level,
                        traffic_class: config.traffic_class,
                        reason: if config.device.is_some() { "as asked for" } else { "the first active port" },
                    }));
                }
            }
        }
        Ok(Err(refused))
    }
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
        let mapped = self.gid[..10] == [0; 10] && self.gid[10..12] == [0xff; 2];
        let link_local = self.gid[0] == 0xfe && self.gid[1] & 0xc0 == 0x80;
        match (v2, mapped, link_local) {
            (true, true, _) => Some(4),
            (true, false, false) => Some(3),
            (true, false, true) => Some(2),
            (false, _, _) if self.kind.is_empty() => None,
            (false, _, _) => Some(1),
        }
    }
}

/// The entry of the port's table to use. On RoCE: version 2 with an IPv4 address if there is one.
fn address(context: &Context, port: &Port, wanted: Option<u8>) -> std::result::Result<(u8, [u8; 16], String), String> {
    let place = || format!("port {} of {}", port.number, context.name);
    let entries = entries(context, port);
    let chosen = match (wanted, port.link_layer) {
        (Some(index), _) => {
            let known = || entries.iter().map(|entry| entry.index.to_string()).collect::<Vec<_>>().join(", ");
            let found = entries.iter().find(|entry| entry.index == index);
            found.ok_or_else(|| format!("{} has no address (GID) at index {index}, only at {}", place(), known()))?
        }
        (None, LinkLayer::InfiniBand) => entries.first().ok_or_else(|| format!("{} has no address (GID)", place()))?,
        (None, LinkLayer::Ethernet) => best(&entries).ok_or_else(|| {
            format!("{} has no RoCE address (GID): give its network interface an IP address", place())
        })?,
    };
    Ok((chosen.index, chosen.gid, chosen.kind.clone()))
}

fn best(entries: &[Entry]) -> Option<&Entry> {
    // The first of the best: max_by_key would give the last.
    let top = entries.iter().filter_map(Entry::merit).max()?;
    entries.iter().find(|entry| entry.merit() == Some(top))
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

/// A GID as people write it; an IPv4 address where it holds one.
pub(crate) fn gid_text(gid: &[u8; 16]) -> String {
    std::net::Ipv6Addr::from(*gid).to_string()
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
            if let Ok((index, gid, _)) = address(&context, &port, None) {
                line += &format!(", GID {index} {}", gid_text(&gid));
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
        let gid: std::net::Ipv6Addr = gid.parse().expect("an address");
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
        assert_eq!(best(&entries).map(|entry| entry.index), Some(3));
        assert_eq!(best(&entries[..3]).map(|entry| entry.index), Some(1));
        assert_eq!(best(&entries[..1]).map(|entry| entry.index), Some(0));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn mapped_addresses_are_shown_as_such() {
        assert_eq!(gid_text(&entry(0, "::ffff:10.1.0.1", "").gid), "::ffff:10.1.0.1");
    }
}
