//! Which of libfabric's offers carries the data.
//!
//! libfabric orders its offers, best first. The user's provider, domain and traffic class narrow them down. Among those
//! with Internet addresses the data address decides, as for plain sockets. Whatever remains first is taken.

use std::net::IpAddr;

use tailback_transport::{Error, Result};

use crate::ffi::{Fabric, Info, Query};
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
pub struct Wishes {
    /// The provider, `tcp;ofi_rxm` for example.
    pub provider: Option<String>,
    /// The domain: a device or interface.
    pub domain: Option<String>,
    /// The traffic class.
    pub traffic_class: Option<TrafficClass>,
    /// The local address, for providers that use the Internet's.
    pub source: Option<Source>,
    /// As if receives could not name their sender, for tests of what is done then.
    pub undirected: bool,
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
pub(crate) fn choose(fabric: &Fabric, wishes: &Wishes) -> Result<Choice> {
    let query = Query {
        provider: wishes.provider.as_deref(),
        domain: wishes.domain.as_deref(),
        usable: true,
        traffic_class: wishes.traffic_class.map_or(0, TrafficClass::number),
        ..Query::default()
    };
    let mut found = None;
    for (rma, directed) in WANTED.into_iter().filter(|(_, directed)| !(wishes.undirected && *directed)) {
        let query = Query { rma, directed, ..query.clone() };
        let offers = usable(fabric, &query)?;
        if !offers.is_empty() {
            found = Some((query, offers));
            break;
        }
    }
    let Some((query, offers)) = found else { return Err(Error::Setup(why_none(fabric, wishes)?)) };
    let (at, reason) = pick(&offers, wishes)?;
    let info = offers.into_iter().nth(at).expect("picked from the list");
    let (provider, domain) = (info.offer.provider.clone(), info.offer.domain.clone());
    let exact = Query { provider: Some(&provider), domain: Some(&domain), ..query };
    let info = address(fabric, &exact, info, wishes)?;
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
fn pick(offers: &[Info], wishes: &Wishes) -> Result<(usize, String)> {
    let provider = &offers[0].offer.provider;
    let of_provider = || offers.iter().enumerate().filter(|(_, info)| info.offer.provider == *provider);
    if wishes.domain.is_some() {
        return Ok((0, "as asked for".into()));
    }
    let Some(source) = &wishes.source else { return Ok((0, "libfabric's first".into())) };
    if let Some((at, _)) = of_provider().find(|(_, info)| info.offer.address == Some(source.address)) {
        return Ok((at, source.reason.clone()));
    }
    let addressed = of_provider().any(|(_, info)| info.offer.address.is_some());
    match (addressed, source.asked, source.address.is_loopback()) {
        // All of 127.0.0.0/8 is this host's, though only 127.0.0.1 is listed.
        (true, true, true) => {
            let loopback = of_provider().find(|(_, info)| info.offer.address.is_some_and(|a| a.is_loopback()));
            loopback
                .map(|(at, _)| (at, source.reason.clone()))
                .ok_or_else(|| Error::Setup(no_address(provider, source.address, offers)))
        }
        (true, true, false) => Err(Error::Setup(no_address(provider, source.address, offers))),
        (true, false, _) => Ok((0, format!("libfabric's first; none has {}", source.address))),
        (false, _, _) => Ok((0, "libfabric's first; this provider does not use Internet addresses".into())),
    }
}

/// The same offer with the local address or name to use.
fn address(fabric: &Fabric, exact: &Query<'_>, info: Info, wishes: &Wishes) -> Result<Info> {
    let name;
    let query = if info.offer.is_named() {
        shared_memory::sweep();
        name = shared_memory::name();
        Query { name: Some(&name), ..exact.clone() }
    } else {
        match (&wishes.source, info.offer.address) {
            (Some(source), Some(listed)) if source.asked && source.address != listed && wishes.domain.is_none() => {
                Query { source: Some(source.address), ..exact.clone() }
            }
            _ => return Ok(info),
        }
    };
    let again = usable(fabric, &query)?.into_iter().next();
    again.ok_or_else(|| Error::Setup(format!("{} refuses the local address that it is to use", info.offer.provider)))
}

fn no_address(provider: &str, address: IpAddr, offers: &[Info]) -> String {
    let mut there: Vec<String> = offers
        .iter()
        .filter(|info| info.offer.provider == provider)
        .filter_map(|info| Some(format!("{} ({})", info.offer.domain, info.offer.address?)))
        .collect();
    there.dedup();
    format!("libfabric's provider {provider} has no domain with address {address}; there are: {}", there.join(", "))
}

/// What stands in the way.
fn why_none(fabric: &Fabric, wishes: &Wishes) -> Result<String> {
    let provider = wishes.provider.as_deref();
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
    let asked = of("of provider", &wishes.provider) + &of("on domain", &wishes.domain);
    let class = wishes.traffic_class.map(|class| format!(" with traffic class {class}")).unwrap_or_default();
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
