//! What a backend can do, said before the run starts, and what it says about itself for the result file.

use std::collections::BTreeMap;
use std::fmt;

/// An operation that a backend may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Matched send and receive.
    TwoSided,
    /// One-sided write.
    Put,
    /// One-sided read.
    Get,
    /// Sum of doubles over the group.
    Allreduce,
}

impl Operation {
    /// All of them, in the order they are listed to users.
    pub const ALL: [Operation; 4] = [Operation::TwoSided, Operation::Put, Operation::Get, Operation::Allreduce];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::TwoSided => "send/recv",
            Operation::Put => "put",
            Operation::Get => "get",
            Operation::Allreduce => "allreduce",
        })
    }
}

/// Whether an operation can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot, and why.
    No(String),
}

/// The operations a transport has, each missing one with its reason.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    missing: BTreeMap<Operation, String>,
}

impl Capabilities {
    /// Everything is supported.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The same without `operation`, for this reason.
    #[must_use]
    pub fn without(mut self, operation: Operation, reason: impl Into<String>) -> Self {
        self.missing.insert(operation, reason.into());
        self
    }

    /// Whether `operation` can be used, and if not, why.
    #[must_use]
    pub fn of(&self, operation: Operation) -> Support {
        match self.missing.get(&operation) {
            None => Support::Yes,
            Some(reason) => Support::No(reason.clone()),
        }
    }
}

/// What a transport says about itself, kept in the result file.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The backend's name as the user types it: `tcp`, `mpi`, `libfabric`, `verbs`.
    pub backend: String,
    /// Name and version of the library under it, empty when there is none.
    pub library: String,
    /// Everything else worth keeping: provider, device, address, link speed, wait mode.
    pub details: BTreeMap<String, String>,
}

impl Description {
    /// How many local ends a rank uses at once.
    #[must_use]
    pub fn rails(&self) -> usize {
        self.details.get("rails").and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// What it says about one of them.
    #[must_use]
    pub fn of_rail(&self, rail: usize, name: &str) -> Option<String> {
        self.details.get(&Self::rail_key(rail, name)).cloned()
    }

    /// The name of a detail that is about one of them: the first is not numbered.
    #[must_use]
    pub fn rail_key(rail: usize, name: &str) -> String {
        if rail == 0 { name.to_owned() } else { format!("rail_{rail}_{name}") }
    }
}
