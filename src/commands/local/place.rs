//! Where ranks run when there is no launcher.

use crate::backend::{Backend, Settings};

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
    settings.transports.iter().copied().find(|backend| !backend.fits_lab())
}
