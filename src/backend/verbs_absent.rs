//! What is said of verbs by a binary without them.

use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Error, Result as TransportResult};

use super::{Network, Settings, Visitor};

const ABSENT: &str = "not in this binary: build with --features verbs";

pub(super) fn state() -> String {
    ABSENT.into()
}

pub(super) fn check(_settings: &Settings) -> Result<(), String> {
    Err(format!("--transport verbs is {ABSENT}"))
}

pub(super) fn open<B: Bootstrap, V: Visitor>(
    _network: Network,
    _settings: &Settings,
    _bootstrap: &mut B,
    _secret: &Secret,
    _visitor: V,
) -> TransportResult<V::Output> {
    Err(Error::Setup(ABSENT.into()))
}
