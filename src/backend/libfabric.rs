//! Endpoints of a libfabric provider, under any bootstrap.

use std::fmt::Write as _;
use std::path::Path;

use tailback_libfabric::{LibfabricConfig, LibfabricTransport, Source, Wishes, survey};
use tailback_tcp::address;
use tailback_transport::{Bootstrap, Error, Result as TransportResult};

use super::{Variant, Visitor};
use crate::cli::{FabricOptions, TransportOptions};

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

/// Whether there is a library, and the options mean something.
pub(super) fn check(options: &FabricOptions) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    wishes(options, None).map_err(text)?;
    tailback_libfabric::check(options.library.libfabric_path.as_deref()).map_err(text)
}

/// Opens the network and hands it to `visitor`. Collective over the job.
pub(super) fn open<B: Bootstrap, V: Visitor>(
    variant: Variant,
    options: &TransportOptions,
    bootstrap: &mut B,
    visitor: V,
) -> TransportResult<V::Output> {
    // Providers that use the Internet's addresses take the same way as plain sockets.
    let choice = address::choose(bootstrap, options.data_interface.as_deref(), options.data_address)?;
    let asked = options.data_interface.is_some() || options.data_address.is_some();
    let source = Source { address: choice.address, asked, reason: choice.reason };
    let config = LibfabricConfig {
        path: options.fabric.library.libfabric_path.clone(),
        wishes: wishes(&options.fabric, Some(source))?,
        wait: options.wait,
    };
    let mut transport = variant.over(LibfabricTransport::open(bootstrap, &config)?);
    Ok(visitor.visit(bootstrap, &mut transport))
}

fn wishes(options: &FabricOptions, source: Option<Source>) -> TransportResult<Wishes> {
    let traffic_class = options.traffic_class.as_deref().map(str::parse).transpose()?;
    let (provider, domain) = (options.provider.clone(), options.domain.clone());
    Ok(Wishes { provider, domain, traffic_class, source, undirected: false })
}
