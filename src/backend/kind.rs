//! The networks under test by name. A further backend begins with a line here.

use std::fmt;
use std::str::FromStr;

/// A network under test, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain sockets.
    Tcp,
    /// The MPI library this binary was built with.
    Mpi,
    /// Endpoints of a libfabric provider.
    Libfabric,
    /// Queue pairs of InfiniBand or RoCE.
    Verbs,
    /// A simulated network, on virtual time.
    Sim,
}

impl Backend {
    /// All of them, with what each is.
    pub const ALL: [(Backend, &'static str); 5] = [
        (Backend::Tcp, "Plain sockets"),
        (Backend::Mpi, "The MPI library this binary was built with"),
        (Backend::Libfabric, "Endpoints of a libfabric provider"),
        (Backend::Verbs, "Queue pairs of InfiniBand or RoCE"),
        (Backend::Sim, "The simulated network of a --machine: ranks are part of this process, times are virtual"),
    ];

    /// As the user types it.
    pub fn word(self) -> &'static str {
        match self {
            Backend::Tcp => "tcp",
            Backend::Mpi => "mpi",
            Backend::Libfabric => "libfabric",
            Backend::Verbs => "verbs",
            Backend::Sim => "sim",
        }
    }

    /// Whether its messages follow a protocol of ours.
    pub(super) fn is_raw(self) -> bool {
        self != Backend::Mpi
    }

    /// Why a rank cannot use several of its ends at once, where it cannot.
    pub(super) fn without_rails(self) -> Option<&'static str> {
        match self {
            Backend::Tcp | Backend::Verbs => None,
            Backend::Mpi => Some("MPI decides by itself which adapters it uses"),
            Backend::Libfabric => Some("a rank has one endpoint of libfabric's"),
            Backend::Sim => Some("a simulated rank has the port that the machine gives it"),
        }
    }

    /// Whether it can run on the emulated cluster, whose network is made of the kernel's own interfaces.
    pub fn fits_lab(self) -> bool {
        !matches!(self, Backend::Verbs | Backend::Sim)
    }

    /// Whether the emulated cluster can tell its packets apart by their traffic class.
    pub fn is_marked_in_lab(self) -> bool {
        self == Backend::Tcp
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Backend::ALL.into_iter().find(|(backend, _)| backend.word() == word);
        known.map(|(backend, _)| backend).ok_or_else(|| format!("unknown transport '{word}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::PhaseId;

    #[test]
    fn phases_of_every_network_are_told_apart() {
        assert!(Backend::ALL.iter().all(|(backend, _)| PhaseId::NETWORKS.contains(&backend.word())));
    }
}
