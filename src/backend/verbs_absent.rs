//! What is said of verbs by a binary without them.

use tailback_bootstrap::Secret;
use tailback_transport::{Bootstrap, Error, Result as TransportResult};

use super::{Network, Settings};
use crate::engine::OpenNetwork;

const ABSENT: &str = "not in this binary: build with --features verbs";

pub(super) fn state() -> String {
    ABSENT.into()
}

pub(super) fn check(_settings: &Settings) -> Result<(), String> {
    Err(format!("--transport verbs is {ABSENT}"))
}

pub(super) fn open(
    _network: Network,
    _settings: &Settings,
    _bootstrap: &mut dyn Bootstrap,
    _secret: &Secret,
) -> TransportResult<Box<dyn OpenNetwork>> {
    Err(Error::Setup(ABSENT.into()))
}
