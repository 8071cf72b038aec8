//! Where ranks run when there is no launcher.

use crate::backend::{Backend, CongestorNetworks, Settings};

/// What was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// How many ranks; the place's own number if none is given.
    pub ranks: Option<usize>,
    /// Plain ranks rather than the emulated cluster.
    pub no_lab: bool,
}

/// A network under test that the emulated cluster does not have.
pub(super) fn outside_lab(settings: &Settings) -> Option<Backend> {
    named(settings).find(|backend| !backend.fits_lab())
}

/// A network under test whose packets cannot be told apart in the emulated cluster.
pub(super) fn unmarked(settings: &Settings) -> Option<Backend> {
    named(settings).find(|backend| !backend.is_marked_in_lab())
}

/// Whether the hosts of the emulated cluster have what was asked for; the user may know of interfaces that it does not.
pub(super) fn fits_hosts(settings: &Settings) -> Result<(), String> {
    if settings.rails > 1 && settings.data_interface.is_empty() && settings.data_address.is_empty() {
        return Err(format!(
            "--rails {}: a host of the emulated cluster has one interface for data, d0: name others with --data-interface, or run \
             with --no-lab or a launcher",
            settings.rails
        ));
    }
    Ok(())
}

/// Those the user named; without any it is tcp.
fn named(settings: &Settings) -> impl Iterator<Item = Backend> {
    let congestors = match &settings.congestors {
        CongestorNetworks::Over(backends) => &backends[..],
        CongestorNetworks::Same | CongestorNetworks::Crossed => &[],
    };
    settings.transports.iter().chain(congestors).copied()
}
