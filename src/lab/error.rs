//! What can go wrong with a lab. Every message is one line that says what to try, where there is something to try.

use std::io;
use std::path::{Path, PathBuf};

/// One line that says why there can be no lab.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Reason(pub(super) String);

/// A lab's error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description of the lab makes no sense.
    #[error("{0}")]
    Spec(String),
    /// This machine or this user cannot have a lab.
    #[error("no lab here: {0}")]
    Unavailable(#[from] Reason),
    /// A lab with this name is there already.
    #[error(
        "lab {name} is up already ({detail}); end it with `tailback lab down --name {name}` or choose another --name"
    )]
    AlreadyUp {
        /// The lab's name.
        name: String,
        /// How many hosts it has, and since which process.
        detail: String,
    },
    /// There is no lab with this name.
    #[error("lab {name} is not up; start it with `tailback lab up --name {name}`")]
    NotUp {
        /// The lab's name.
        name: String,
    },
    /// The lab's processes are gone, or some of them.
    #[error("lab {name} is damaged: {detail}; clean up with `tailback lab down --name {name}`")]
    Damaged {
        /// The lab's name.
        name: String,
        /// What is missing.
        detail: String,
    },
    /// No such host.
    #[error("lab {lab} has no host {host}; its hosts are {known}")]
    UnknownHost {
        /// The lab's name.
        lab: String,
        /// What was asked for.
        host: String,
        /// The names there are.
        known: String,
    },
    /// A command of the system failed.
    #[error("{what} failed: {detail}")]
    Command {
        /// What it was to do.
        what: String,
        /// Its own words, or its exit status.
        detail: String,
    },
    /// Something did not happen in time.
    #[error("{what}: nothing within {seconds} s")]
    Timeout {
        /// What was waited for.
        what: String,
        /// The limit.
        seconds: u64,
    },
    /// The user does not want it any more.
    #[error("interrupted before lab {name} was up")]
    Interrupted {
        /// The lab's name.
        name: String,
    },
    /// A command makes no sense from where it was called.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// Names the file an [`io::Error`] is about.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::File { path: path.to_owned(), source }
    }

    /// Names the program an [`io::Error`] is about.
    pub(crate) fn command(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Command { what: what.into(), detail: error.to_string() }
    }
}

/// A lab's result.
pub type Result<T> = std::result::Result<T, Error>;
