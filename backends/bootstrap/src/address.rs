//! Which of this host's addresses carries the data, on each rail.
//!
//! The user names an interface or an address per rail. Else loopback and every interface that is up are candidates, in the system's
//! order, for the choice of local ends that all backends have ([`crate::local_ports`]). An address that another
//! host has too, as bridges of containers do, leads nowhere. The choice and its reason go into the description.

use std::net::{IpAddr, Ipv4Addr};

use if_addrs::{IfAddr, IfOperStatus, Interface};

use tailback_transport::{Bootstrap, Error, Result};

use crate::hosts::machine;
use crate::local_ports::{self, Chosen, LocalPort, Reach};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The address.
    pub address: IpAddr,
    /// The interface that has it.
    pub interface: String,
    /// Why this one.
    pub reason: String,
    /// The interface of every rank.
    pub record: String,
}

/// The interfaces and addresses that the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Interfaces, one per rail; empty for no selection.
    pub interfaces: Vec<String>,
    /// Local addresses, likewise.
    pub addresses: Vec<IpAddr>,
}

impl Selection {
    /// Whether anything was chosen.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.interfaces.is_empty() || !self.addresses.is_empty()
    }

    /// Whether it has one for every rail, each another; else what is wrong.
    pub fn check(&self, rails: usize) -> std::result::Result<(), String> {
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        for (option, names) in [("--data-interface", &self.interfaces), ("--data-address", &addresses)] {
            if !names.is_empty() && names.len() != rails {
                let (list, count) = (names.join(","), names.len());
                return Err(format!(
                    "{option} {list} names {count} for {rails} rails: each rail has its own (--rails)"
                ));
            }
            if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
                return Err(format!("{option} names {} twice: each rail has its own", names[at]));
            }
        }
        Ok(())
    }
}

/// Chooses this rank's data address. Collective, whatever was asked for.
pub fn choose(bootstrap: &mut dyn Bootstrap, selection: &Selection) -> Result<Choice> {
    let chosen = choose_rails(bootstrap, selection, 1)?;
    chosen.into_iter().next().ok_or_else(|| Error::Setup("no address to reach other hosts with".into()))
}

/// Chooses one for each of so many rails.
pub fn choose_rails(bootstrap: &mut dyn Bootstrap, selection: &Selection, rails: usize) -> Result<Vec<Choice>> {
    let here =
        if_addrs::get_if_addrs().map_err(|source| Error::Io { operation: "list interfaces", peer: None, source })?;
    selection.check(rails).map_err(Error::Setup)?;
    let named = |at: usize| selection.interfaces.get(at).map(String::as_str);
    let candidates = match (&selection.interfaces[..], &selection.addresses[..]) {
        ([], []) => by_default(&here),
        (names, []) => names.iter().map(|name| by_name(&here, name)).collect::<Result<_>>()?,
        (_, addresses) => (addresses.iter().enumerate())
            .map(|(at, &address)| by_address(&here, address, named(at)))
            .collect::<Result<_>>()?,
    };
    let asked = selection.is_given();
    let chosen =
        local_ports::choose_rails(bootstrap, &candidates, &[], asked, rails, "choose addresses of one family")?;
    let mut choices = Vec::new();
    for Chosen { index, reason, reach, record, .. } in chosen {
        let Candidate { address, interface, .. } = candidates[index].clone();
        if reach <= Reach::Local {
            let there = listing(&here);
            return Err(Error::Setup(match asked {
                true => format!(
                    "{address} on {interface} leads to no other host: it is loopback's, or another host has it too; there are: {there}"
                ),
                false => format!("no address to reach other hosts with; there are: {there}"),
            }));
        }
        choices.push(Choice { address, interface, reason, record });
    }
    Ok(choices)
}

/// An address and its network.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    interface: String,
    address: IpAddr,
    /// Bits of the network.
    prefix: u8,
    /// The machine and its network namespace, in which one address is one address, whatever hosts are called.
    machine: String,
}

impl Candidate {
    fn bits(&self) -> u32 {
        u32::from(self.prefix)
    }

    /// The part of an address that a network has in common.
    fn network(&self, address: IpAddr) -> u128 {
        let bits = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        bits.checked_shr(width(address).saturating_sub(self.bits())).unwrap_or(0)
    }
}

/// How many bits an address of this family has.
fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl LocalPort for Candidate {
    fn encode(&self) -> String {
        format!("{}/{} on {} in {}", self.address, self.prefix, self.interface, self.machine)
    }

    fn decode(line: &str) -> Option<Self> {
        let (network, rest) = line.split_once(" on ")?;
        let (interface, machine) = rest.split_once(" in ")?;
        let (address, prefix) = network.split_once('/')?;
        Some(Candidate {
            interface: interface.to_owned(),
            machine: machine.to_owned(),
            address: address.parse().ok()?,
            prefix: prefix.parse().ok()?,
        })
    }

    fn reach(&self, other: &Self) -> Reach {
        match (self.address, other.address) {
            (mine, theirs) if mine.is_ipv4() != theirs.is_ipv4() => Reach::Never,
            _ if self.machine == other.machine => Reach::Near,
            (mine, theirs) if mine.is_loopback() || theirs.is_loopback() || mine == theirs => Reach::Local,
            // The address of a point-to-point link or of a loopback device is a network of its own.
            (mine, theirs) if self.bits() < width(mine) && self.network(mine) == self.network(theirs) => Reach::Near,
            _ => Reach::Routed,
        }
    }

    fn name(&self) -> String {
        self.interface.clone()
    }

    fn describe(&self) -> String {
        format!("{} on {}", self.address, self.interface)
    }
}

fn by_name(here: &[Interface], name: &str) -> Result<Candidate> {
    let of_name = || here.iter().filter(|i| i.name == name);
    let found = of_name().find(|i| i.ip().is_ipv4()).or_else(|| of_name().find(|i| usable(i)));
    match found {
        Some(i) => Ok(candidate(i)),
        None => Err(Error::Setup(format!(
            "no interface \"{name}\" with an address on this host; there are: {}",
            listing(here)
        ))),
    }
}

fn by_address(here: &[Interface], address: IpAddr, name: Option<&str>) -> Result<Candidate> {
    // All of 127.0.0.0/8 belongs to loopback, though only 127.0.0.1 is listed.
    let owns = |i: &Interface| i.ip() == address || (i.is_loopback() && address.is_loopback());
    match here.iter().find(|i| owns(i) && name.is_none_or(|name| name == i.name)) {
        Some(i) => Ok(Candidate { address, ..candidate(i) }),
        None => {
            let of = name.map(|name| format!(" on interface \"{name}\"")).unwrap_or_default();
            Err(Error::Setup(format!("no address {address}{of} on this host; there are: {}", listing(here))))
        }
    }
}

/// Loopback, which ranks of one host use, then every IPv4 address of an interface that is up, then every IPv6 address of
/// one.
fn by_default(here: &[Interface]) -> Vec<Candidate> {
    let loopback =
        Candidate { interface: "lo".into(), address: IpAddr::V4(Ipv4Addr::LOCALHOST), prefix: 8, machine: machine() };
    // What is not up is of unknown status to the library: the kernel says only which ones run.
    let up = |i: &&Interface| !i.is_loopback() && usable(i) && i.oper_status == IfOperStatus::Up;
    let of = |is_v4: bool| here.iter().filter(up).filter(move |i| i.ip().is_ipv4() == is_v4).map(candidate);
    std::iter::once(loopback).chain(of(true)).chain(of(false)).collect()
}

fn candidate(i: &Interface) -> Candidate {
    let prefix = match &i.addr {
        IfAddr::V4(address) => address.prefixlen,
        IfAddr::V6(address) => address.prefixlen,
    };
    Candidate { interface: i.name.clone(), address: i.ip(), prefix, machine: machine() }
}

/// Link-local IPv6 needs a scope that a plain address does not carry.
fn usable(i: &Interface) -> bool {
    match i.ip() {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    }
}

fn listing(here: &[Interface]) -> String {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for i in here.iter().filter(|i| usable(i)) {
        match all.iter_mut().find(|(name, _)| *name == i.name) {
            Some((_, addresses)) => addresses.push(i.ip().to_string()),
            None => all.push((&i.name, vec![i.ip().to_string()])),
        }
    }
    all.iter().map(|(name, addresses)| format!("{name} ({})", addresses.join(", "))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use if_addrs::{IfOperStatus, Ifv4Addr, Ifv6Addr};

    use super::*;

    fn interface(name: &str, ip: [u8; 4], prefixlen: u8) -> Interface {
        let netmask = Ipv4Addr::from_bits(u32::MAX << (32 - prefixlen));
        let addr = IfAddr::V4(Ifv4Addr { ip: ip.into(), netmask, prefixlen, broadcast: None });
        Interface { name: name.into(), addr, index: None, oper_status: IfOperStatus::Up, is_p2p: false }
    }

    fn host() -> Vec<Interface> {
        vec![
            interface("lo", [127, 0, 0, 1], 8),
            interface("c0", [192, 168, 5, 1], 24),
            interface("d0", [10, 0, 0, 1], 16),
        ]
    }

    #[test]
    fn every_rail_has_an_interface_of_its_own() {
        let check = |names: &[&str], rails| {
            let interfaces = names.iter().map(|name| (*name).to_owned()).collect();
            Selection { interfaces, addresses: Vec::new() }.check(rails)
        };
        assert_eq!((check(&[], 2), check(&["d0", "d1"], 2), check(&["d0"], 1)), (Ok(()), Ok(()), Ok(())));
        for (names, rails, expected) in [
            (&["d0"][..], 2, "--data-interface d0 names 1 for 2 rails"),
            (&["d0", "d1"], 1, "--data-interface d0,d1 names 2 for 1 rails"),
            (&["d0", "d0"], 2, "--data-interface names d0 twice"),
        ] {
            let said = check(names, rails).expect_err("not one each");
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn an_unknown_interface_is_an_error_that_lists_the_known_ones() {
        let error = by_name(&host(), "ib7").expect_err("no such interface").to_string();
        assert!(error.contains("\"ib7\"") && error.contains("d0 (10.0.0.1)"), "{error}");
        assert_eq!(by_name(&host(), "d0").expect("it is there").address, IpAddr::from([10, 0, 0, 1]));
    }

    #[test]
    fn an_address_belongs_to_this_host() {
        let chosen = by_address(&host(), IpAddr::from([127, 9, 9, 9]), None).expect("loopback");
        assert_eq!((chosen.interface.as_str(), chosen.address), ("lo", IpAddr::from([127, 9, 9, 9])));
        assert!(by_address(&host(), IpAddr::from([10, 0, 0, 2]), None).is_err());
        assert!(by_address(&host(), IpAddr::from([10, 0, 0, 1]), Some("c0")).is_err());
    }

    #[test]
    fn loopback_and_interfaces_that_are_up_are_candidates() {
        let mut here = host();
        here[1].oper_status = IfOperStatus::Unknown;
        let names: Vec<String> = by_default(&here).iter().map(LocalPort::name).collect();
        assert_eq!(names, ["lo", "d0"], "as the library has what is down");
        let v6 = |text: &str| {
            let addr = IfAddr::V6(Ifv6Addr {
                ip: text.parse().unwrap(),
                netmask: Ipv6Addr::UNSPECIFIED,
                prefixlen: 64,
                broadcast: None,
            });
            Interface { addr, ..interface("d1", [0; 4], 8) }
        };
        here.splice(0..0, [v6("fd77::1"), v6("fe80::1")]);
        let addresses: Vec<String> = by_default(&here).iter().map(|of| of.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1", "10.0.0.1", "fd77::1"], "link-local ones need a scope");
    }

    #[test]
    fn an_address_reaches_its_network_and_leads_nowhere_if_others_have_it_too() {
        let reach = |a: &str, b: &str| {
            let of = |line: &str| Candidate::decode(line).expect("a candidate");
            let (a, b) = (format!("{a} in m"), format!("{b} in n"));
            assert_eq!(of(&a).encode(), a);
            assert_eq!(of(&a).reach(&of(&a)), Reach::Near, "pretended hosts");
            of(&a).reach(&of(&b))
        };
        assert_eq!(reach("10.0.0.1/16 on d0", "10.0.7.7/16 on d0"), Reach::Near);
        assert_eq!(reach("192.168.5.1/24 on c0", "172.16.0.1/24 on c0"), Reach::Routed);
        assert_eq!(reach("172.17.0.1/16 on docker0", "172.17.0.1/16 on docker0"), Reach::Local);
        assert_eq!(reach("127.0.0.1/8 on lo", "10.0.0.1/16 on d0"), Reach::Local);
        assert_eq!(reach("10.0.0.1/32 on d0", "10.0.0.2/32 on d0"), Reach::Routed);
        assert_eq!(reach("2001:db8::1/64 on d0", "2001:db8::7/64 on d0"), Reach::Near);
        assert_eq!(reach("2001:db8::1/64 on d0", "2001:db8:1::7/64 on d0"), Reach::Routed);
        assert_eq!(reach("fd77::1/0 on d0", "fd78::1/0 on d0"), Reach::Near);
        assert_eq!(reach("2001:db8::1/64 on d0", "10.0.0.1/16 on d0"), Reach::Never);
    }
}
