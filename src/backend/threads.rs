//! MPI's thread levels by name, in every binary: also one without MPI knows the option.

use std::fmt;
use std::str::FromStr;

/// What MPI is told of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ThreadLevel {
    /// As in most MPI programs; our watcher thread is there all the same, and never calls MPI.
    #[default]
    Single,
    Funneled,
    Serialized,
    Multiple,
}

impl ThreadLevel {
    /// All of them, with what each says.
    pub const ALL: [(ThreadLevel, &'static str); 4] = [
        (ThreadLevel::Single, "One thread, as in most MPI programs"),
        (ThreadLevel::Funneled, "Several threads, of which the first calls MPI"),
        (ThreadLevel::Serialized, "Several threads, of which one at a time calls MPI"),
        (ThreadLevel::Multiple, "Any thread calls MPI at any time"),
    ];

    /// As the user types it.
    pub fn word(self) -> &'static str {
        match self {
            ThreadLevel::Single => "single",
            ThreadLevel::Funneled => "funneled",
            ThreadLevel::Serialized => "serialized",
            ThreadLevel::Multiple => "multiple",
        }
    }
}

impl fmt::Display for ThreadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ThreadLevel {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = ThreadLevel::ALL.into_iter().find(|(level, _)| level.word() == word);
        known.map(|(level, _)| level).ok_or_else(|| format!("unknown thread level '{word}'"))
    }
}
