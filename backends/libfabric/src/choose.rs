//! Which of libfabric's offers carries the data.
//!
//! libfabric orders its offers, best first. The user's provider, domain and traffic class narrow them down. Among those
//! with Internet addresses the data address decides, as for plain sockets; domains of devices are dealt out over the ranks of a
//! host, near ones first. Whatever remains first is taken.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tailback_host::near::{DeviceSelection, Seat};
use tailback_transport::{Error, Result};

use crate::ffi::{Fabric, Info, Query};
use crate::offer::Offer;
use crate::shared_memory;
use crate::traffic_class::TrafficClass;

/// The local address for data.
#[derive(Clone, Debug)]
pub struct Source {
    /// The address.
    pub address: IpAddr,
    /// Whether the user named it, or its interface.
    pub asked: bool,
    /// Why this one.
    pub reason: String,
}

/// What narrows the offers down.
#[derive(Clone, Debug, Default)]
pub struct DomainSelection {
    /// The provider, `tcp;ofi_rxm` for example.
    pub provider: Option<String>,
    /// The domains: devices or interfaces, of which each rank takes one.
    pub domain: Option<DeviceSelection>,
    /// The traffic class.
    pub traffic_class: Option<TrafficClass>,
    /// The local address, for providers that use the Internet's.
    pub source: Option<Source>,
    /// As if receives could not name their sender, for tests of what is done then.
    pub undirected: bool,
}

impl DomainSelection {
    /// The domain, where the user named exactly one.
    fn only_domain(&self) -> Option<&str> {
        match &self.domain {
            Some(DeviceSelection::Named(names)) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }
}

/// One-sided operations and directed receives, in order of preference. Without the former a provider serves all kernels
/// but those that need them; without the latter the sender goes into the tag.
pub(crate) const WANTED: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

/// The offer taken.
pub(crate) struct Choice {
    pub info: Info,
    /// Whether puts can complete when the target has them.
    pub delivery_complete: bool,
    /// Whether receives name their sender.
    pub directed: bool,
    /// Why this domain.
    pub reason: String,
}

/// Takes an offer, or says why there is none.
pub(crate) fn choose(fabric: &Fabric, selection: &DomainSelection, seat: &Seat) -> Result<Choice> {
    let query = Query {
        provider: selection.provider.as_deref(),
        domain: selection.only_domain(),
        usable: true,
        traffic_class: selection.traffic_class.map_or(0, TrafficClass::number),
        ..Query::default()
    };
    let mut found = None;
    for (rma, directed) in WANTED.into_iter().filter(|(_, directed)| !(selection.undirected && *directed)) {
        let query = Query { rma, directed, ..query.clone() };
        let mut offers = usable(fabric, &query)?;
        offers.retain(|Info { offer, .. }| {
            selection.domain.as_ref().is_none_or(|selection| selection.allows(&offer.domain))
        });
        if !offers.is_empty() {
            found = Some((query, offers));
            break;
        }
    }
    let Some((query, offers)) = found else { return Err(Error::Setup(why_none(fabric, selection)?)) };
    let listed: Vec<&Offer> = offers.iter().map(|info| &info.offer).collect();
    let (at, reason) = pick(&listed, selection, seat, |offer| seat.is_near(&folder(offer)))?;
    let info = offers.into_iter().nth(at).expect("picked from the list");
    let (provider, domain) = (info.offer.provider.clone(), info.offer.domain.clone());
    let exact = Query { provider: Some(&provider), domain: Some(&domain), ..query };
    let info = address(fabric, &exact, info, selection)?;
    let directed = exact.directed && info.offer.is_directed();
    let delivering = usable(fabric, &Query { delivery_complete: true, ..exact })?;
    let delivery_complete = delivering.iter().any(|other| {
        other.offer.fabric == info.offer.fabric && other.offer.address == info.offer.address || other.offer.is_named()
    });
    Ok(Choice { info, delivery_complete, directed, reason })
}

fn usable(fabric: &Fabric, query: &Query<'_>) -> Result<Vec<Info>> {
    let mut offers = fabric.query(query).map_err(Error::from)?;
    // Layered providers look at some hints only.
    offers.retain(|Info { offer, .. }| {
        offer.obstacle().is_none()
            && query.domain.is_none_or(|domain| offer.domain == domain)
            && (query.traffic_class == 0 || offer.traffic_class == query.traffic_class)
    });
    Ok(offers)
}

/// The position of the offer to take, and why.
fn pick(
    offers: &[&Offer],
    selection: &DomainSelection,
    seat: &Seat,
    is_near: impl Fn(&Offer) -> bool,
) -> Result<(usize, String)> {
    let provider = &offers[0].provider;
    let of_provider = || offers.iter().enumerate().filter(|(_, offer)| offer.provider == *provider);
    if selection.only_domain().is_some() {
        return Ok((0, "as asked for".into()));
    }
    if let Some(selection) = &selection.domain {
        return Ok((dealt(offers, selection, seat, is_near), format!("{selection}, place {} on its host", seat.index)));
    }
    let addressed = of_provider().any(|(_, offer)| offer.address.is_some());
    let of_devices = !addressed && !offers[0].is_named();
    let Some(source) = selection.source.as_ref().filter(|_| !of_devices) else {
        let at = if of_devices { dealt(offers, &DeviceSelection::Auto, seat, is_near) } else { 0 };
        let place =
            if of_devices { format!("auto, place {} on its host", seat.index) } else { "libfabric's first".into() };
        return Ok((at, place));
    };
    if let Some((at, _)) = of_provider().find(|(_, offer)| offer.address == Some(source.address)) {
        return Ok((at, source.reason.clone()));
    }
    match (addressed, source.asked, source.address.is_loopback()) {
        // All of 127.0.0.0/8 is this host's, though only 127.0.0.1 is listed.
        (true, true, true) => {
            let loopback = of_provider().find(|(_, offer)| offer.address.is_some_and(|a| a.is_loopback()));
            loopback
                .map(|(at, _)| (at, source.reason.clone()))
                .ok_or_else(|| Error::Setup(no_address(provider, source.address, offers)))
        }
        (true, true, false) => Err(Error::Setup(no_address(provider, source.address, offers))),
        (true, false, _) => Ok((0, format!("libfabric's first; none has {}", source.address))),
        (false, _, _) => Ok((0, "libfabric's first; this provider does not use Internet addresses".into())),
    }
}

/// The first provider's offer that is dealt to a rank in this seat: among domains of the first one's kind, near ones before far
/// ones. A domain that stands for the provider's own choice is taken as it is.
fn dealt(offers: &[&Offer], selection: &DeviceSelection, seat: &Seat, is_near: impl Fn(&Offer) -> bool) -> usize {
    let first = offers[0];
    if *selection == DeviceSelection::Auto && first.domain.contains("autoselect") {
        return 0;
    }
    let of_provider = (0..offers.len()).filter(|&at| offers[at].provider == first.provider).collect();
    // Ranks on different domains talk to each other: without a word of the user's they are of one fabric.
    let fabric = |at: usize| (*selection == DeviceSelection::Auto).then(|| offers[at].fabric.clone());
    let kind = |&at: &usize| (fabric(at), offers[at].link_speed);
    let near = |&at: &usize| *selection == DeviceSelection::RoundRobin || is_near(offers[at]);
    seat.deal(of_provider, 1, |&at| offers[at].domain.clone(), kind, near).first().copied().unwrap_or_default()
}

/// Where the kernel tells of the device behind a domain.
fn folder(offer: &Offer) -> PathBuf {
    // verbs' domains and EFA's have a word for the kind of endpoint behind the device.
    let name = offer.device.as_deref().or(offer.domain.split('-').next()).unwrap_or_default();
    let class = if name.starts_with("cxi") { "cxi" } else { "infiniband" };
    let of_class = |class: &str| Path::new("/sys/class").join(class).join(name).join("device");
    if of_class(class).exists() { of_class(class) } else { of_class("net") }
}

/// The same offer with the local address or name to use.
fn address(fabric: &Fabric, exact: &Query<'_>, info: Info, selection: &DomainSelection) -> Result<Info> {
    let name;
    let query = if info.offer.is_named() {
        shared_memory::sweep();
        name = shared_memory::name();
        Query { name: Some(&name), ..exact.clone() }
    } else {
        match (&selection.source, info.offer.address) {
            (Some(source), Some(listed)) if source.asked && source.address != listed && selection.domain.is_none() => {
                Query { source: Some(source.address), ..exact.clone() }
            }
            _ => return Ok(info),
        }
    };
    let again = usable(fabric, &query)?.into_iter().next();
    again.ok_or_else(|| Error::Setup(format!("{} refuses the local address that it is to use", info.offer.provider)))
}

fn no_address(provider: &str, address: IpAddr, offers: &[&Offer]) -> String {
    let mut there: Vec<String> = offers
        .iter()
        .filter(|offer| offer.provider == provider)
        .filter_map(|offer| Some(format!("{} ({})", offer.domain, offer.address?)))
        .collect();
    there.dedup();
    format!("libfabric's provider {provider} has no domain with address {address}; there are: {}", there.join(", "))
}

/// What stands in the way.
fn why_none(fabric: &Fabric, selection: &DomainSelection) -> Result<String> {
    let provider = selection.provider.as_deref();
    let any = fabric.query(&Query { provider, ..Query::default() }).map_err(Error::from)?;
    let mut obstacles: Vec<String> =
        any.iter().filter_map(|info| Some(format!("{} {}", info.offer.provider, info.offer.obstacle()?))).collect();
    obstacles.dedup();
    let mut served = Vec::new();
    for (rma, directed) in WANTED {
        served.extend(usable(fabric, &Query { provider, usable: true, rma, directed, ..Query::default() })?);
    }
    let of =
        |what: &str, name: &Option<String>| name.as_ref().map(|name| format!(" {what} {name}")).unwrap_or_default();
    let domain = selection.domain.as_ref().map(ToString::to_string);
    let asked = of("of provider", &selection.provider) + &of("on domain", &domain);
    let class = selection.traffic_class.map(|class| format!(" with traffic class {class}")).unwrap_or_default();
    let mut text = format!("libfabric has no usable endpoint{asked}{class}");
    if !served.is_empty() {
        let mut domains: Vec<String> =
            served.iter().map(|info| format!("{} on {}", info.offer.provider, info.offer.domain)).collect();
        domains.sort();
        domains.dedup();
        text += &format!("; without that, there are: {}", domains.join(", "));
    } else if !obstacles.is_empty() {
        text += &format!(": {}", obstacles.join("; "));
    } else {
        let all: Vec<String> = fabric.providers().unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        text += &format!("; it has these providers: {all}");
    }
    if let Some(filter) = std::env::var("FI_PROVIDER").ok().filter(|filter| !filter.is_empty()) {
        text += &format!("; FI_PROVIDER={filter} hides all others: unset it, or choose by --provider");
    }
    Ok(text + " (see `tailback info`)")
}

#[cfg(test)]
mod tests {
    use libfabric_sys::{FI_DIRECTED_RECV, FI_READ, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA, FI_TAGGED, FI_WRITE};

    use super::*;
    use crate::offer::EndpointType;

    const RECORDED: &str = include_str!("../tests/data/offers.txt");

    /// What a recorded machine offers, with what this backend cannot use.
    fn machine(name: &str) -> Vec<Offer> {
        let of_machine = RECORDED.lines().skip_while(|line| *line != format!("machine {name}")).skip(1);
        let offers: Vec<Offer> = of_machine.take_while(|line| !line.is_empty()).map(offer).collect();
        assert!(!offers.is_empty(), "{name}");
        offers
    }

    fn offer(line: &str) -> Offer {
        let (provider, rest) = line.split_once(' ').unwrap();
        let word = |key: &str| rest.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let bits = |cap: &str| match cap {
            "tagged" => u64::from(FI_TAGGED),
            "rma" => u64::from(FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
            "directed" => FI_DIRECTED_RECV,
            "" => 0,
            other => panic!("{other}"),
        };
        Offer {
            provider: provider.into(),
            provider_version: 0,
            fabric: word("fabric").unwrap().into(),
            domain: word("domain").unwrap().into(),
            endpoint: match word("type").unwrap() {
                "rdm" => EndpointType::Rdm,
                "msg" => EndpointType::Msg,
                _ => EndpointType::Dgram,
            },
            protocol: String::new(),
            address: word("address").map(|text| text.parse().unwrap()),
            address_format: 0,
            caps: word("caps").unwrap().split(',').map(bits).sum(),
            mr_mode: String::new(),
            unserved_mr_mode: 0,
            mode: 0,
            ordered: word("order") == Some("sas"),
            tag_bits: 48,
            largest_message: 1 << 30,
            inject: 64,
            traffic_class: 0,
            link_speed: word("speed").map(|gbit| gbit.parse::<u64>().unwrap() * 1_000_000_000),
            device: None,
        }
    }

    /// The domains that ranks take, by their place on the host; near are those that `near` says.
    fn taken(name: &str, selection: Option<&str>, near: fn(&str) -> bool) -> Vec<String> {
        let all = machine(name);
        let domain: Option<DeviceSelection> = selection.map(|text| text.parse().unwrap());
        let usable =
            |offer: &&Offer| offer.obstacle().is_none() && domain.as_ref().is_none_or(|of| of.allows(&offer.domain));
        let offers: Vec<&Offer> = all.iter().filter(usable).collect();
        let selection = DomainSelection { domain: domain.clone(), ..DomainSelection::default() };
        let seat = |index| Seat { index, cores: Vec::new() };
        let pick = |index| pick(&offers, &selection, &seat(index), |offer| near(&offer.domain)).unwrap().0;
        (0..4).map(|index| offers[pick(index)].domain.clone()).collect()
    }

    #[test]
    fn the_cards_of_slingshot_are_dealt_out_near_ones_first() {
        assert_eq!(taken("cxi", None, |_| true), ["cxi0", "cxi1", "cxi2", "cxi3"]);
        assert_eq!(taken("cxi", None, |name| name >= "cxi2"), ["cxi2", "cxi3", "cxi2", "cxi3"]);
        assert_eq!(taken("cxi", Some("round-robin"), |_| false), ["cxi0", "cxi1", "cxi2", "cxi3"]);
        assert_eq!(taken("cxi", Some("cxi3,cxi1"), |_| true), ["cxi1", "cxi3", "cxi1", "cxi3"]);
        assert_eq!(taken("cxi", Some("cxi2"), |_| true), ["cxi2"; 4]);
        let [cxi, .., tcp] = &machine("cxi")[..] else { panic!("several") };
        assert!(cxi.sizes_its_queue() && !tcp.sizes_its_queue());
    }

    #[test]
    fn of_efa_the_fabric_with_tags_is_taken() {
        assert_eq!(taken("efa", None, |_| true)[..2], ["rdmap0s6-rdm", "rdmap32s6-rdm"]);
        let direct = &machine("efa")[0];
        let why = direct.obstacle().expect("it cannot be used");
        assert!(why.contains("tagged messages") && why.contains("in order"), "{why}");
        let datagrams = machine("efa").pop().and_then(|offer| offer.obstacle()).unwrap();
        assert!(datagrams.contains("unreliable datagrams only"), "{datagrams}");
    }

    #[test]
    fn networks_that_may_be_apart_are_mixed_only_when_asked_to() {
        assert_eq!(taken("psm3", None, |_| true), ["irdma0"; 4]);
        assert_eq!(taken("psm3", None, |name| name == "irdma1"), ["irdma0"; 4], "the first one's network, far or not");
        assert_eq!(taken("psm3", Some("irdma1"), |_| true), ["irdma1"; 4]);
        assert_eq!(taken("psm3", Some("round-robin"), |_| true), ["irdma0", "irdma1", "irdma0", "irdma1"]);
    }

    #[test]
    fn where_addresses_are_the_internets_the_data_address_decides() {
        let obstacle = machine("verbs")[0].obstacle().unwrap();
        assert!(obstacle.contains("verbs;ofi_rxm adds reliable datagrams"), "{obstacle}");
        let at = |name: &str, address: &str, asked| {
            let all = machine(name);
            let offers: Vec<&Offer> = all.iter().filter(|offer| offer.obstacle().is_none()).collect();
            let source = Source { address: address.parse().unwrap(), asked, reason: "asked".into() };
            let selection = DomainSelection { source: Some(source), ..DomainSelection::default() };
            pick(&offers, &selection, &Seat::default(), |_| true).map(|(at, _)| offers[at].domain.clone())
        };
        assert_eq!(at("verbs", "10.5.0.8", false).unwrap(), "mlx5_1");
        assert_eq!(at("tcp", "192.168.1.2", true).unwrap(), "eno1");
        assert_eq!(at("tcp", "127.0.0.9", true).unwrap(), "lo", "all of 127/8 is the loopback's");
        let why = at("tcp", "10.9.9.9", true).unwrap_err().to_string();
        assert!(why.contains("no domain with address 10.9.9.9; there are: eno1 (192.168.1.2)"), "{why}");
    }
}
