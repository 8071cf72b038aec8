//! The user's wish that the job ends, while ranks still look for each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a rank goes on joining once it knows of the wish. By then every rank knows, so that nobody takes one that
/// has ended for lost; and a job whose ranks are all there ends in order instead.
const GRACE: Duration = Duration::from_secs(1);

/// A flag that the caller raises when the user wants the job to end. A rank that then still waits for others ends
/// without a word, and one lost while joining is no news: this is why it ended. Later it is the caller who ends in order.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    noticed: Arc<OnceLock<Instant>>,
}

impl Interrupt {
    /// Follows `raised`.
    #[must_use]
    pub fn new(raised: Arc<AtomicBool>) -> Self {
        Interrupt { raised, noticed: Arc::default() }
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Whether to wait no longer for ranks that have not joined.
    pub(crate) fn is_over(&self) -> bool {
        self.is_raised() && self.noticed.get_or_init(Instant::now).elapsed() >= GRACE
    }
}
