//! What a test may break on purpose.

use std::time::Duration;

use tailback_engine::Lane;
use tailback_transport::{Operation, Rank, Tag};

/// Bytes under way between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// How they travel: [`Operation::TwoSided`], [`Operation::Put`] or [`Operation::Get`].
    pub operation: Operation,
    /// The rank of the job whose memory they come from.
    pub from: Rank,
    /// The rank of the job whose memory they go to.
    pub to: Rank,
    /// Lane and tag of a message; a put or a get has none.
    pub label: Option<(Lane, Tag)>,
}

/// Faults of a job; called from all ranks' threads.
pub trait Fault: Send + Sync {
    /// How long `rank` is to sleep before it does `operation` ("send", "recv", "wait", "progress", "put", "get", "flush",
    /// "group").
    fn delay(&self, rank: Rank, operation: &'static str) -> Duration {
        let _ = (rank, operation);
        Duration::ZERO
    }

    /// Changes bytes under way.
    fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
        let _ = (transfer, payload);
    }

    /// Whether a flush is said to be done without being.
    fn skips_flush(&self) -> bool {
        false
    }
}
