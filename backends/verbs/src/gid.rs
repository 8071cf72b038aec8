//! The addresses of a port, which verbs call GIDs: which of them can be used, and what they tell.

use std::fs;
use std::net::Ipv6Addr;

use crate::ffi::{Context, LinkLayer, Port};

/// An entry of a port's table of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) index: u8,
    pub(crate) gid: [u8; 16],
    /// As the kernel calls it.
    pub(crate) kind: String,
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
pub(crate) fn addresses(context: &Context, port: &Port, wanted: Option<u8>) -> Result<Vec<Entry>, String> {
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

/// Whether an address stands for one of IPv4.
pub(crate) fn is_mapped(gid: &[u8; 16]) -> bool {
    gid[..10] == [0; 10] && gid[10..12] == [0xff; 2]
}

/// Whether a datagram with this global header, or what stands in its place on RoCE, was sent from the address `gid`.
pub(crate) fn sent_from(header: &[u8; 40], gid: &[u8; 16]) -> bool {
    // Of RoCE over IPv4 the last 20 bytes are the packet's own header, and the others anything.
    header[8..24] == *gid || (is_mapped(gid) && header[20] >> 4 == 4 && header[32..36] == gid[12..])
}

/// Whether it is of one link only.
pub(crate) fn is_link_local(gid: &[u8; 16]) -> bool {
    gid[0] == 0xfe && gid[1] & 0xc0 == 0x80
}

/// The part of an address that hosts of one network share: the subnet on InfiniBand, 64 bits of IPv6, 24 of IPv4.
pub(crate) fn network(gid: &[u8; 16]) -> &[u8] {
    if is_mapped(gid) { &gid[..15] } else { &gid[..8] }
}

/// A GID as people write it; an IPv4 address where it holds one.
pub(crate) fn gid_text(gid: &[u8; 16]) -> String {
    Ipv6Addr::from(*gid).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, gid: &str, kind: &str) -> Entry {
        let gid: Ipv6Addr = gid.parse().expect("an address");
        Entry { index, gid: gid.octets(), kind: kind.into() }
    }

    #[test]
    fn the_sender_is_told_from_the_global_header() {
        let gid: [u8; 16] = std::array::from_fn(|i| i as u8 + 1);
        let mut header = [0xee; 40];
        header[8..24].copy_from_slice(&gid);
        assert!(sent_from(&header, &gid));
        header[23] ^= 1;
        assert!(!sent_from(&header, &gid));
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7];
        let mut header = [0xee; 40];
        header[20] = 0x45;
        header[32..36].copy_from_slice(&[192, 0, 2, 7]);
        assert!(sent_from(&header, &mapped));
        header[35] = 8;
        assert!(!sent_from(&header, &mapped), "a neighbour");
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
}
