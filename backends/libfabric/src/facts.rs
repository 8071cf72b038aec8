//! What the result file keeps about the network under this transport, and what `tailback info` shows.

use std::collections::BTreeMap;
use std::fs;

use tailback_engine::tagged::Blocking;
use tailback_host::WaitMode;
use tailback_transport::{Description, Result};

use crate::choose::{self, Choice};
use crate::config::LibfabricConfig;
use crate::ffi::{Fabric, Query};
use crate::load::load;
use crate::offer::Offer;

/// How ranks wait, and why, and how much may be under way meanwhile.
pub(crate) struct Waiting {
    pub mode: WaitMode,
    pub reason: String,
    pub blocking: Blocking,
    /// How many operations may be in flight: sends and one-sided ones, receives.
    pub room: [usize; 2],
    /// The length of the completion queue that was asked for; 0 where that is left to the provider.
    pub completions: usize,
}

/// The description of an open transport.
pub(crate) fn describe(
    fabric: &Fabric,
    choice: &Choice,
    config: &LibfabricConfig,
    waiting: &Waiting,
    domains: String,
) -> Description {
    let offer = &choice.info.offer;
    let how = match (waiting.mode, waiting.blocking) {
        (WaitMode::Block, Blocking::Queue) => "block (asleep in the completion queue)".into(),
        (WaitMode::Block, Blocking::None) => "block (short naps: this provider's queue cannot be slept on)".into(),
        (mode, _) => mode.to_string(),
    };
    let flush = if choice.delivery_complete {
        "puts complete at the target (FI_DELIVERY_COMPLETE)"
    } else {
        "a byte is read back after the puts"
    };
    let by = if choice.directed { "sender and a tag" } else { "a tag with the sender in it" };
    let mut details = BTreeMap::from(
        [
            ("provider", offer.provider.clone()),
            ("provider_version", version(offer.provider_version)),
            ("fabric", offer.fabric.clone()),
            ("domain", offer.domain.clone()),
            ("domain_reason", choice.reason.clone()),
            ("domains", domains),
            ("wire_protocol", offer.protocol.clone()),
            (
                "memory_registration",
                if offer.mr_mode.is_empty() { "none needed".into() } else { offer.mr_mode.clone() },
            ),
            ("inject_bytes", offer.inject.to_string()),
            ("largest_message_bytes", offer.largest_message.to_string()),
            ("matching", format!("by the provider: {by} of {} bits", offer.tag_bits)),
            ("queue_entries", format!("{} to send, {} to receive", waiting.room[0], waiting.room[1])),
            (
                "completion_queue_entries",
                match waiting.completions {
                    0 => "left to the provider".into(),
                    asked => format!("{asked} asked for"),
                },
            ),
            ("wait", how),
            ("wait_reason", waiting.reason.clone()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let mut add = |key: &str, value: Option<String>| value.map(|value| details.insert(key.to_owned(), value));
    add("flush", offer.has_rma().then(|| flush.into()));
    add("address", offer.address.map(|address| address.to_string()));
    add("device", offer.device.clone());
    add("link_speed_mbit_per_s", link_speed(offer).map(|speed| speed.to_string()));
    add("traffic_class", config.selection.traffic_class.map(|class| class.to_string()));
    add("library_path", config.path.as_ref().map(|path| path.display().to_string()));
    Description { backend: "libfabric".into(), library: format!("libfabric {}", fabric.version()), details }
}

/// The provider's word, or else that of the interface that the domain is named after.
fn link_speed(offer: &Offer) -> Option<u64> {
    let of_interface = || {
        let text = fs::read_to_string(format!("/sys/class/net/{}/speed", offer.domain)).ok()?;
        text.trim().parse::<u64>().ok().filter(|&speed| speed > 0)
    };
    offer.link_speed.map(|bits| bits / 1_000_000).or_else(of_interface)
}

fn version(packed: u32) -> String {
    let (major, minor) = libfabric_sys::parts(packed);
    format!("{major}.{minor}")
}

/// A provider as `tailback info` shows it.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name, with its layers.
    pub name: String,
    /// What it can be used on; empty when it cannot be used.
    pub domains: Vec<String>,
    /// What is worth knowing about it; when it cannot be used, why.
    pub remark: String,
}

/// The library's version and its providers, usable ones first.
pub fn survey(path: Option<&std::path::Path>) -> Result<(String, Vec<Provider>)> {
    let fabric = load(path)?;
    let mut providers: Vec<Provider> = Vec::new();
    // What is asked for in full first: some capabilities are only mentioned by providers that were asked for them.
    let in_full = choose::WANTED.map(|(rma, directed)| Query { usable: true, rma, directed, ..Query::default() });
    for query in in_full.into_iter().chain([Query::default()]) {
        for info in fabric.query(&query)? {
            note(&mut providers, &info.offer, query.usable);
        }
    }
    for (name, _) in fabric.providers()? {
        let known = providers.iter().any(|provider| provider.name.split(';').any(|layer| layer == name));
        // Layers and hooks are no providers of their own.
        if !known && !name.starts_with("ofi_") {
            providers.push(Provider { name, domains: Vec::new(), remark: "finds no device here".into() });
        }
    }
    providers.sort_by_key(|provider| provider.domains.is_empty());
    Ok((fabric.version(), providers))
}

/// Adds an offer to what is known of its provider.
fn note(providers: &mut Vec<Provider>, offer: &Offer, asked_in_full: bool) {
    let at = providers.iter().position(|provider| provider.name == offer.provider);
    if asked_in_full && offer.obstacle().is_none() {
        let at = at.unwrap_or_else(|| {
            let rma = if offer.has_rma() { "messages, put, get" } else { "messages; no put, no get" };
            let remark = format!("{rma}; {}", offer.protocol);
            providers.push(Provider { name: offer.provider.clone(), domains: Vec::new(), remark });
            providers.len() - 1
        });
        if !providers[at].domains.contains(&offer.domain) {
            providers[at].domains.push(offer.domain.clone());
        }
    } else if at.is_none() {
        let remark = offer.obstacle().unwrap_or_else(|| "refuses what is asked for together".into());
        providers.push(Provider { name: offer.provider.clone(), domains: Vec::new(), remark });
    }
}
