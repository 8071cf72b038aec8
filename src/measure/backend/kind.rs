//! The networks under test by name. A further backend begins with a line here.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// A network under test, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Plain sockets
    Tcp,
    /// The MPI library this binary was built with
    Mpi,
    /// Endpoints of a libfabric provider
    #[value(alias = "ofi")]
    Libfabric,
    /// Queue pairs of InfiniBand or RoCE
    #[value(aliases = ["ib", "infiniband", "roce"])]
    Verbs,
    /// The simulated network of a --machine: ranks are part of this process, times are virtual
    Sim,
}

impl Backend {
    /// As labels of runs and phases call it: figures of a simulated network say so wherever they stand.
    pub fn network(self) -> String {
        if self == Backend::Sim { "simulated".to_owned() } else { self.to_string() }
    }

    /// Whether its messages follow a protocol of ours.
    pub fn is_raw(self) -> bool {
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
        f.write_str(self.to_possible_value().expect("none is hidden").get_name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        <Backend as ValueEnum>::from_str(word, false).map_err(|_| format!("unknown transport '{word}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::PhaseId;

    #[test]
    fn a_phase_over_any_network_reads_back() {
        for backend in Backend::value_variants() {
            let over = Some(format!("{}, eager", backend.network()));
            let phase = PhaseId { test: "lat 8 B".into(), over, ..PhaseId::default() };
            assert_eq!(PhaseId::from(phase.to_string()), phase, "its name belongs to `PhaseId::NETWORKS`");
        }
    }
}
