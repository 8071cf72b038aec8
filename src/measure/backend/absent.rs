//! What is said of backends by a binary without them.
#![allow(dead_code, missing_docs)]

pub(super) mod sim;
pub mod simulator;

macro_rules! absent {
    ($backend:ident, $feature:literal) => {
        pub(in crate::backend) mod $backend {
            use std::path::Path;

            use tailback_bootstrap::Secret;
            use tailback_transport::{Bootstrap, Error, Result as TransportResult};

            use crate::backend::{Network, Settings};
            use crate::engine::OpenNetwork;

            const ABSENT: &str = concat!("not in this binary: build with --features ", $feature);

            pub(in crate::backend) fn state(_library: Option<&Path>) -> String {
                ABSENT.into()
            }

            pub(in crate::backend) fn check(settings: &Settings) -> Result<(), String> {
                let default =
                    if settings.transports.is_empty() { ", the default without an MPI launcher," } else { "" };
                Err(format!(concat!("--transport ", $feature, "{} is {}"), default, ABSENT))
            }

            pub(in crate::backend) fn open(
                _network: Network,
                _settings: &Settings,
                _bootstrap: &mut dyn Bootstrap,
                _secret: &Secret,
            ) -> TransportResult<Box<dyn OpenNetwork>> {
                Err(Error::Setup(ABSENT.into()))
            }

            pub(in crate::backend) fn make_room(_ranks: usize) {}
        }
    };
}

absent!(tcp, "tcp");
absent!(libfabric, "libfabric");
absent!(verbs, "verbs");

pub(super) mod mpi {
    use crate::backend::{Variant, Work};

    /// Set by the launchers of Open MPI, Hydra, PMI, PMIx, PALS and jsrun.
    const TRACES: [&str; 5] = ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "JSM_NAMESPACE_SIZE"];

    pub(in crate::backend) fn state() -> String {
        "not in this binary: build with --features mpi".into()
    }

    /// The variable that shows an MPI launcher: without MPI, its ranks would each start a job of their own. Slurm sets PMI
    /// variables too, but its tasks can join without MPI.
    pub(in crate::backend) fn launcher() -> Option<String> {
        if std::env::var_os("SLURM_PROCID").is_some() {
            return None;
        }
        let shown = TRACES.iter().find(|name| std::env::var_os(name).is_some());
        shown.map(|name| format!("an MPI launcher ({name} is set)"))
    }

    pub(in crate::backend) fn over_mpi(_: &Work<'_>, launcher: &str, _: Vec<Variant>) -> Result<u8, String> {
        Err(format!("started by {launcher}, but this binary has no MPI: build it with --features mpi"))
    }
}
