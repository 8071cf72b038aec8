//! What is said of libfabric by a binary without it.

use std::path::Path;

use tailback_transport::{Bootstrap, Error, Result as TransportResult};

use super::{Network, Settings};
use crate::engine::OpenNetwork;

const ABSENT: &str = "not in this binary: build with --features libfabric";

pub(super) fn state(_path: Option<&Path>) -> String {
    ABSENT.into()
}

pub(super) fn make_room(_ranks: usize) {}

pub(super) fn check(_settings: &Settings) -> Result<(), String> {
    Err(format!("--transport libfabric is {ABSENT}"))
}

pub(super) fn open(
    _network: Network,
    _settings: &Settings,
    _bootstrap: &mut dyn Bootstrap,
) -> TransportResult<Box<dyn OpenNetwork>> {
    Err(Error::Setup(ABSENT.into()))
}
