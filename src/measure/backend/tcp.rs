//! Plain sockets, under any bootstrap.

use std::path::Path;

use tailback_bootstrap::Secret;
use tailback_tcp::TcpConfig;
use tailback_transport::{Bootstrap, Error, Result, traffic_class};

use super::{Network, Settings};
use crate::engine::OpenNetwork;

/// It needs no library.
pub(super) fn state(_library: Option<&Path>) -> String {
    "ready: plain sockets, nothing to install".into()
}

/// Whether the options mean something.
pub(super) fn check(settings: &Settings) -> std::result::Result<(), String> {
    class(settings)?;
    settings.addresses().check(settings.rails())?;
    settings.congestion_control.as_deref().map_or(Ok(()), tailback_tcp::has_congestion_control)
}

fn class(settings: &Settings) -> std::result::Result<u8, String> {
    settings.traffic_class.as_deref().map_or(Ok(0), traffic_class)
}

/// Opens the network, for ranks that share `secret`. Collective over the job.
pub(super) fn open(
    network: Network,
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    secret: &Secret,
) -> Result<Box<dyn OpenNetwork>> {
    let config = TcpConfig {
        addresses: settings.addresses(),
        rails: settings.rails(),
        wait: settings.wait,
        traffic_class: class(settings).map_err(Error::Setup)?,
        congestion_control: settings.congestion_control.clone(),
        secret: secret.clone(),
    };
    Ok(network.over(tailback_tcp::open(bootstrap, &config)?))
}
