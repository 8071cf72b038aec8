//! What is said of the suite by a binary without it.

use tailback_transport::{Error, Result, Transport};

use super::{Expected, Hpcc, Settings};
use crate::models::measure::{Repeated, StudyJob};

const ABSENT: &str = "hpcc is not in this binary: build with --features hpcc";

/// Says what is missing.
pub fn check() -> std::result::Result<(), String> {
    Err(ABSENT.into())
}

/// Says what is missing.
pub fn measure<T: Transport>(_: StudyJob<'_>, _: &mut T, _: &Settings) -> Result<Repeated<Hpcc>> {
    Err(Error::Setup(ABSENT.into()))
}

/// Says what is missing.
pub fn estimate<T: Transport>(_: StudyJob<'_>, _: &mut T, _: &Settings) -> Result<Expected> {
    Err(Error::Setup(ABSENT.into()))
}
