//! Endpoints of a libfabric provider, under any bootstrap.

use std::fmt::Write as _;
use std::path::Path;

use tailback_bootstrap::{Secret, address};
use tailback_libfabric::{DomainSelection, LibfabricConfig, Source, survey};
use tailback_transport::{Bootstrap, Error, Result as TransportResult};

use super::{Network, Settings};
use crate::engine::OpenNetwork;

/// The library and its providers, usable ones first; or what is missing.
pub(super) fn state(path: Option<&Path>) -> String {
    let (version, providers) = match survey(path) {
        Ok(found) => found,
        Err(error) => return format!("not usable: {error}"),
    };
    let mut text = format!("libfabric {version}, with these providers:");
    let width = providers.iter().map(|provider| provider.name.len()).max().unwrap_or(0);
    for provider in providers {
        let (name, remark) = (&provider.name, &provider.remark);
        let _ = match provider.domains.is_empty() {
            false => write!(text, "\n  {name:<width$}  on {}: {remark}", provider.domains.join(", ")),
            true => write!(text, "\n  {name:<width$}  cannot serve: {remark}"),
        };
    }
    text
}

/// Tells providers of a job of `ranks`, which some must hear before anything else happens in the process.
pub(super) fn make_room(ranks: usize) {
    tailback_libfabric::make_room(ranks);
}

/// Whether there is a library, and the options mean something.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    selection(settings, None).map_err(text)?;
    tailback_libfabric::check(settings.library.libfabric_path.as_deref()).map_err(text)
}

/// Opens the network. Collective over the job.
pub(super) fn open(
    network: Network,
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    _secret: &Secret,
) -> TransportResult<Box<dyn OpenNetwork>> {
    // Providers that use the Internet's addresses take the same way as plain sockets.
    let addresses = settings.addresses();
    let choice = address::choose(bootstrap, &addresses)?;
    let source = Source { address: choice.address, asked: addresses.is_given(), reason: choice.reason };
    let config = LibfabricConfig {
        path: settings.library.libfabric_path.clone(),
        selection: selection(settings, Some(source))?,
        wait: settings.wait,
    };
    Ok(network.over(tailback_libfabric::open(bootstrap, &config)?))
}

fn selection(settings: &Settings, source: Option<Source>) -> TransportResult<DomainSelection> {
    let traffic_class = settings.traffic_class.as_deref().map(str::parse).transpose()?;
    let (provider, domain) = (settings.fabric.provider.clone(), settings.fabric.domain.clone());
    Ok(DomainSelection { provider, domain, traffic_class, source, undirected: false })
}
