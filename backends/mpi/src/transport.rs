//! [`Transport`] over MPI: makes groups and says which MPI, in which settings, they run on.

use std::env;
use std::rc::Rc;

use mpi::environment;
use tailback_host::Clock;
use tailback_transport::{Capabilities, Description, Operation, Rank, Result, Transport};

use crate::ffi::Model;
use crate::group::MpiGroup;
use crate::onesided;
use crate::session::{Session, level};

/// Variables that change how MPI libraries and the fabrics under them behave.
const SETTINGS: [&str; 12] = [
    "OMPI_MCA_",
    "PRTE_MCA_",
    "PMIX_MCA_",
    "UCX_",
    "FI_",
    "MPIR_CVAR_",
    "MPICH_",
    "I_MPI_",
    "MV2_",
    "PSM2_",
    "PSM3_",
    "CXI_",
];

/// Those that launchers set on their own account: addresses and process ids, not choices.
const NOISE: [&str; 10] = [
    "OMPI_MCA_orte_",
    "OMPI_MCA_ess",
    "OMPI_MCA_pmix",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_PREFIXES",
    "OMPI_MCA_shmem_RUNTIME",
    "OMPI_MCA_rmaps_",
    "PMIX_MCA_psec",
    "PMIX_MCA_mca_base_component_show_load_errors",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
];

/// The MPI library as the network under test.
pub struct MpiTransport {
    session: Rc<Session>,
    clock: Clock,
}

impl MpiTransport {
    pub(crate) fn new(session: Rc<Session>) -> Self {
        MpiTransport { session, clock: Clock::start() }
    }
}

impl Transport for MpiTransport {
    type Group = MpiGroup;

    fn capabilities(&self) -> Capabilities {
        match &self.session.windows {
            Ok(_) => Capabilities::all(),
            Err(reason) => {
                let reason = format!("{} cannot make a window here: {reason}", self.session.library);
                Capabilities::all().without(Operation::Put, reason.as_str()).without(Operation::Get, reason)
            }
        }
    }

    fn describe(&self) -> Description {
        let session = &self.session;
        let mut description =
            Description { backend: "mpi".into(), library: session.library.clone(), ..Default::default() };
        let mut say = |key: &str, value: String| description.details.insert(key.into(), value);
        let full = environment::library_version().unwrap_or_default();
        say("library_version", full.lines().next().unwrap_or_default().trim().into());
        let (major, minor) = environment::version();
        say("standard", format!("MPI {major}.{minor}"));
        say("thread_level", level(session.threads.provided).into());
        say("thread_level_asked", level(session.threads.asked).into());
        let launcher = session.launcher.as_ref().map_or_else(|| "none".into(), ToString::to_string);
        say("launcher", launcher);
        let rma = match &session.windows {
            Ok(Model::Unified) => "windows, unified memory model".into(),
            Ok(Model::Separate) => "windows, separate memory model".into(),
            Err(reason) => format!("none: {reason}"),
        };
        say("one_sided", rma);
        let service = session.service.get();
        if let Some(remark) = service.and_then(|&service| onesided::remark(&session.library, service)) {
            say("one_sided_emulated", remark);
        }
        say("wait", session.wait.0.to_string());
        say("wait_reason", session.wait.1.clone());
        for (key, value) in env::vars_os() {
            let (key, value) = (key.to_string_lossy(), value.to_string_lossy());
            if is_setting(&key) {
                say(&key, value.into_owned());
            }
        }
        description
    }

    fn try_one_sided(&mut self) -> Result<()> {
        self.session.try_one_sided()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<MpiGroup> {
        MpiGroup::new(&self.session, &self.clock, members, segment)
    }
}

fn is_setting(name: &str) -> bool {
    SETTINGS.iter().any(|prefix| name.starts_with(prefix)) && !NOISE.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_kept_and_the_launchers_own_variables_are_not() {
        let kept = ["OMPI_MCA_btl", "UCX_TLS", "FI_PROVIDER", "MPIR_CVAR_CH4_NETMOD", "I_MPI_FABRICS"];
        assert!(kept.iter().all(|name| is_setting(name)));
        let left = ["OMPI_MCA_orte_local_daemon_uri", "PMIX_MCA_psec", "OMPI_COMM_WORLD_SIZE", "HOME"];
        assert!(!left.iter().any(|name| is_setting(name)));
    }
}
