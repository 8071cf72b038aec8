//! Queue pairs of InfiniBand or RoCE, under any bootstrap.

use std::path::Path;

use tailback_bootstrap::Secret;
use tailback_transport::{Bootstrap, Result as TransportResult, traffic_class};
use tailback_verbs::{Buffers, Tries, VerbsConfig};

use super::{Network, Settings};
use crate::engine::OpenNetwork;

/// The devices and their ports, or what is missing.
pub(super) fn state(_library: Option<&Path>) -> String {
    match tailback_verbs::devices() {
        Ok(lines) => format!("ready: libibverbs, with these ports:\n  {}", lines.join("\n  ")),
        Err(missing) => format!("not usable: {missing}"),
    }
}

/// Whether there is a library and a device, and the options mean something.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    class(settings)?;
    settings.verbs.device.clone().unwrap_or_default().check(settings.rails())?;
    tailback_verbs::devices().map(|_| ())
}

/// Opens the network. Collective over the job.
pub(super) fn open(
    network: Network,
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    secret: &Secret,
) -> TransportResult<Box<dyn OpenNetwork>> {
    let config = config(settings, secret).map_err(tailback_transport::Error::Setup)?;
    Ok(network.over(tailback_verbs::open(bootstrap, &config)?))
}

fn class(settings: &Settings) -> Result<u8, String> {
    settings.traffic_class.as_deref().map_or(Ok(0), traffic_class)
}

fn config(settings: &Settings, secret: &Secret) -> Result<VerbsConfig, String> {
    Ok(VerbsConfig {
        device: settings.verbs.device.clone().unwrap_or_default(),
        rails: settings.rails(),
        port: settings.verbs.port,
        gid_index: settings.verbs.gid_index,
        service_level: settings.verbs.service_level.unwrap_or_default(),
        traffic_class: class(settings)?,
        tries: Tries {
            timeout: settings.verbs.rc_timeout.unwrap_or(Tries::default().timeout),
            retries: settings.verbs.rc_retries,
            not_ready_retries: settings.verbs.rnr_retries.unwrap_or(Tries::default().not_ready_retries),
        },
        path_mtu: settings.verbs.path_mtu,
        buffers: Buffers {
            bytes: settings.verbs.buffer_bytes.unwrap_or(Buffers::default().bytes),
            credits: settings.verbs.credits.unwrap_or(Buffers::default().credits),
        },
        wait: settings.wait,
        secret: secret.clone(),
    })
}
