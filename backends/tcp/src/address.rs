//! Which of this host's addresses carries the data.
//!
//! The user names an interface or an address. Else: loopback when all ranks share one host; else the first interface,
//! in the system's order, that has an address in a network of every other host; else the first that is up and not
//! loopback. The choice and its reason go into the description.

use std::net::{IpAddr, Ipv4Addr};

use if_addrs::{IfAddr, Interface};

use tailback_transport::{Bootstrap, Error, Result};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The address.
    pub address: IpAddr,
    /// The interface that has it.
    pub interface: String,
    /// Why this one.
    pub reason: String,
}

/// Chooses this rank's data address. Collective, whatever was asked for.
pub fn choose(bootstrap: &mut impl Bootstrap, interface: Option<&str>, address: Option<IpAddr>) -> Result<Choice> {
    let here =
        if_addrs::get_if_addrs().map_err(|source| Error::Io { operation: "list interfaces", peer: None, source })?;
    let offers = bootstrap.allgather(offer(bootstrap.host(), &here).as_bytes())?;
    match (interface, address) {
        (Some(name), None) => by_name(&here, name),
        (name, Some(address)) => by_address(&here, address, name),
        (None, None) => by_default(&here, bootstrap.host(), &offers),
    }
}

fn by_name(here: &[Interface], name: &str) -> Result<Choice> {
    let of_name = || here.iter().filter(|i| i.name == name);
    let found = of_name().find(|i| i.ip().is_ipv4()).or_else(|| of_name().find(|i| usable(i)));
    match found {
        Some(i) => Ok(choice(i, "as asked for")),
        None => Err(Error::Setup(format!(
            "no interface \"{name}\" with an address on this host; there are: {}",
            listing(here)
        ))),
    }
}

fn by_address(here: &[Interface], address: IpAddr, name: Option<&str>) -> Result<Choice> {
    // All of 127.0.0.0/8 belongs to loopback, though only 127.0.0.1 is listed.
    let owns = |i: &Interface| i.ip() == address || (i.is_loopback() && address.is_loopback());
    match here.iter().find(|i| owns(i) && name.is_none_or(|name| name == i.name)) {
        Some(i) => Ok(Choice { address, ..choice(i, "as asked for") }),
        None => {
            let of = name.map(|name| format!(" on interface \"{name}\"")).unwrap_or_default();
            Err(Error::Setup(format!("no address {address}{of} on this host; there are: {}", listing(here))))
        }
    }
}

fn by_default(here: &[Interface], host: &str, offers: &[Vec<u8>]) -> Result<Choice> {
    let others: Vec<Vec<Ipv4Addr>> =
        offers.iter().map(|o| parse(o)).filter(|(h, _)| h != host).map(|(_, addresses)| addresses).collect();
    if others.is_empty() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        return Ok(Choice { address, interface: "lo".into(), reason: "all ranks share one host".into() });
    }
    let candidates = || here.iter().filter(|i| !i.is_loopback() && i.ip().is_ipv4());
    let shared = |i: &&Interface| others.iter().all(|host| host.iter().any(|&address| in_network(i, address)));
    if let Some(i) = candidates().find(shared) {
        return Ok(choice(i, "the first that shares a network with every other host"));
    }
    candidates()
        .next()
        .map(|i| choice(i, "the first that is not loopback; none shares a network with every host"))
        .ok_or_else(|| Error::Setup(format!("no IPv4 address to reach other hosts with; there are: {}", listing(here))))
}

fn choice(i: &Interface, reason: &str) -> Choice {
    Choice { address: i.ip(), interface: i.name.clone(), reason: reason.into() }
}

/// Link-local IPv6 needs a scope that a plain address does not carry.
fn usable(i: &Interface) -> bool {
    match i.ip() {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    }
}

fn in_network(i: &Interface, address: Ipv4Addr) -> bool {
    match &i.addr {
        IfAddr::V4(own) => {
            let mask = own.netmask.to_bits();
            mask != u32::MAX && own.ip.to_bits() & mask == address.to_bits() & mask
        }
        IfAddr::V6(_) => false,
    }
}

fn listing(here: &[Interface]) -> String {
    let mut all: Vec<String> = here.iter().filter(|i| usable(i)).map(|i| format!("{} ({})", i.name, i.ip())).collect();
    all.dedup();
    all.join(", ")
}

/// What other ranks need to know: the host, then its addresses.
fn offer(host: &str, here: &[Interface]) -> String {
    let addresses = here.iter().filter(|i| !i.is_loopback() && i.ip().is_ipv4());
    addresses.fold(host.to_owned(), |text, i| format!("{text}\n{}", i.ip()))
}

fn parse(offer: &[u8]) -> (String, Vec<Ipv4Addr>) {
    let text = String::from_utf8_lossy(offer);
    let mut lines = text.lines();
    let host = lines.next().unwrap_or_default().to_owned();
    (host, lines.filter_map(|line| line.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use if_addrs::{IfOperStatus, Ifv4Addr};

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
    fn the_default_reaches_every_host() {
        let near = b"a\n192.168.5.1\n10.0.0.1".to_vec();
        let far = b"b\n10.0.7.7".to_vec();
        let strange = b"c\n172.16.0.1".to_vec();
        let default = |offers: &[Vec<u8>]| by_default(&host(), "a", offers).expect("some address").interface;
        assert_eq!(default(&[near.clone(), near.clone()]), "lo");
        assert_eq!(default(&[near.clone(), far.clone()]), "d0");
        assert_eq!(default(&[near, far, strange]), "c0");
    }
}
