//! What the user may say about the library and the provider.

use std::path::PathBuf;

use tailback_host::WaitMode;

use crate::choose::DomainSelection;

/// How to open a [`LibfabricTransport`](crate::LibfabricTransport). Every rank passes its own.
#[derive(Clone, Debug, Default)]
pub struct LibfabricConfig {
    /// The library. None: the one that the system's loader finds.
    pub path: Option<PathBuf>,
    /// What narrows libfabric's offers down.
    pub selection: DomainSelection,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
}
