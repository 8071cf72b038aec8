//! Why ranks do not come together, for those who wait and for those who let them in.

use std::time::Duration;

use tailback_transport::Error;

/// How often the living are looked after while someone is waited for.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Why joining failed.
#[derive(Debug)]
pub(crate) enum Setback {
    /// This rank has to say so.
    Mine(Error),
    /// Another rank says so.
    Theirs,
}

impl From<Error> for Setback {
    fn from(error: Error) -> Self {
        Setback::Mine(error)
    }
}

pub(crate) type JoinResult<T> = Result<T, Setback>;
