//! The library, or what to install.

use std::path::Path;

use libfabric_sys::LoadError;

use tailback_transport::{Error, Result};

use crate::ffi::Fabric;

/// Whether the library can be used, and if not, what to do.
///
/// # Errors
/// If it cannot be loaded.
pub fn check(path: Option<&Path>) -> Result<()> {
    load(path).map(|_| ())
}

/// Loads the library, or says what to do.
pub(crate) fn load(path: Option<&Path>) -> Result<Fabric> {
    Fabric::load(path).map_err(|error| match error {
        LoadError::Missing { .. } => Error::Setup(format!(
            "{error}: install libfabric (Debian: libfabric1, Fedora and others: libfabric), or name the file with \
             --libfabric-path or TAILBACK_LIBFABRIC"
        )),
        other => Error::Setup(other.to_string()),
    })
}
