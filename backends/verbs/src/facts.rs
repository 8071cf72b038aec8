//! What the result file keeps about the network under this transport.

use std::collections::BTreeMap;

use tailback_host::WaitMode;
use tailback_transport::Description;

use crate::choose::rate_text;
use crate::config::VerbsConfig;
use crate::ffi::LinkLayer;
use crate::gid::gid_text;
use crate::wire::Endpoint;

/// The description of a transport with these ends, one per rail. What is said of the first rail has no number.
pub(crate) fn describe(
    endpoints: &[Endpoint],
    config: &VerbsConfig,
    wait: WaitMode,
    wait_reason: String,
) -> Description {
    let mut details = BTreeMap::from(
        [
            ("service_level", config.service_level.to_string()),
            ("traffic_class", config.traffic_class.to_string()),
            ("rc_timeout_ms", format!("{:.3}", config.tries.timeout_ms())),
            ("rnr_retries", config.tries.not_ready_retries.to_string()),
            ("buffer_bytes", config.buffers.bytes.to_string()),
            ("wait", wait.to_string()),
            ("wait_reason", wait_reason),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    for (rail, endpoint) in endpoints.iter().enumerate() {
        let facts = of_rail(endpoint).into_iter();
        details.extend(facts.map(|(name, value)| (Description::rail_key(rail, name), value)));
    }
    Description { backend: "verbs".into(), library: library_version(), details }
}

/// What is said of each.
fn of_rail(endpoint: &Endpoint) -> Vec<(&'static str, String)> {
    let Endpoint { choice, sizes, .. } = endpoint;
    let port = &choice.port;
    let layer = match port.link_layer {
        LinkLayer::InfiniBand => "InfiniBand",
        LinkLayer::Ethernet => "Ethernet",
    };
    let mut facts = vec![
        ("device", choice.context.name.clone()),
        ("device_reason", choice.reason.clone()),
        ("devices", choice.record.clone()),
        ("port", port.number.to_string()),
        ("firmware", choice.limits.firmware.clone()),
        ("link_layer", layer.to_owned()),
        ("path_mtu_bytes", port.mtu_bytes().to_string()),
        ("gid", gid_text(&choice.gid)),
        ("gid_index", choice.gid_index.to_string()),
        ("rc_retries", choice.patience.retries.to_string()),
        ("credits", sizes.most.to_string()),
    ];
    facts.extend(rate_text(port).map(|rate| ("link_rate", rate)));
    // In tenths of Gbit/s.
    facts.extend(port.rate.map(|tenths| ("link_speed_mbit_per_s", (100 * tenths).to_string())));
    facts.extend(choice.unlike.clone().map(|unlike| ("unlike_devices", unlike)));
    if !choice.gid_type.is_empty() {
        facts.push(("gid_type", choice.gid_type.clone()));
    }
    facts
}

/// The kernel decides as much as the library, which does not tell its version.
fn library_version() -> String {
    let uname = rustix::system::uname();
    format!("libibverbs, {} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}
