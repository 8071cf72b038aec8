//! One error type for every backend.
//!
//! An error says which operation failed and with which peer; the binary adds this rank, its host and the phase. Peers
//! are ranks of the whole job, so that a message means the same thing on every rank. Errors are for things that end
//! the job: nothing here is retried by a caller.

use std::io;

use crate::{Operation, Rank};

/// What can go wrong in a backend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer's process, host or link is gone.
    #[error("{operation}: rank {peer} is gone ({detail})")]
    PeerLost {
        /// The operation that noticed.
        operation: &'static str,
        /// The peer, as a rank of the whole job.
        peer: Rank,
        /// What was seen, for example "connection closed".
        detail: String,
    },
    /// A system call failed.
    #[error("{operation}{}: {source}", peer.map(|p| format!(" with rank {p}")).unwrap_or_default())]
    Io {
        /// The operation under way.
        operation: &'static str,
        /// The peer, where one is known.
        peer: Option<Rank>,
        /// The system's answer.
        source: io::Error,
    },
    /// A library call returned an error code.
    #[error("{call}{}: {message} (code {code})", peer.map(|p| format!(" with rank {p}")).unwrap_or_default())]
    Library {
        /// The function that failed, by its name in the library.
        call: &'static str,
        /// The peer, where one is known.
        peer: Option<Rank>,
        /// The library's own code.
        code: i64,
        /// The library's own words.
        message: String,
    },
    /// Bytes arrived that no correct peer sends.
    #[error("{operation}{}: {detail}", peer.map(|p| format!(" with rank {p}")).unwrap_or_default())]
    Protocol {
        /// The operation under way.
        operation: &'static str,
        /// The peer, where one is known.
        peer: Option<Rank>,
        /// What was wrong.
        detail: String,
    },
    /// Something did not happen in time.
    #[error("{operation}: no answer within {seconds:.1} s: {detail}")]
    Timeout {
        /// The operation under way.
        operation: &'static str,
        /// The limit that passed.
        seconds: f64,
        /// Who or what was waited for, and what to try.
        detail: String,
    },
    /// The backend cannot do this; [`crate::Capabilities`] said so before the run.
    #[error("{operation} is not supported here: {reason}")]
    Unsupported {
        /// The operation asked for.
        operation: Operation,
        /// Why, and what to use instead.
        reason: String,
    },
    /// The caller named memory or members that do not exist.
    #[error("{operation}: {detail}")]
    Usage {
        /// The operation asked for.
        operation: &'static str,
        /// What was wrong with the arguments.
        detail: String,
    },
    /// The set-up is wrong: environment, addresses, secret, library.
    #[error("{0}")]
    Setup(String),
}

/// A backend's result.
pub type Result<T> = std::result::Result<T, Error>;
