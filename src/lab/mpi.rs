//! What MPI launchers and libraries are told so that they work in a lab: one rank per host in turn, started through the
//! lab's stand-in for ssh, launcher's traffic on the control network and messages on the data network.
//!
//! All of it goes through environment variables that the launchers read and ignore when they are another's, so no
//! launcher needs to be recognised. A variable that the user has set is left alone.

use std::ffi::OsString;

use super::cluster::Lab;

/// Variables with a fixed value.
const FIXED: [(&str, &str); 28] = [
    // Open MPI up to 4.
    ("OMPI_MCA_plm", "rsh"),
    ("OMPI_MCA_plm_rsh_no_tree_spawn", "1"),
    ("OMPI_MCA_oob_tcp_if_include", "c0"),
    ("OMPI_MCA_rmaps_base_mapping_policy", "node"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    // Inside a user namespace everyone is root; as root the user has asked for it.
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    // Open MPI from 5, whose launcher is PRRTE.
    ("PRTE_MCA_plm", "ssh"),
    ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
    ("PRTE_MCA_prte_if_include", "c0"),
    ("PRTE_MCA_rmaps_default_mapping_policy", "node"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    // Open MPI's library.
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_osc", "^ucx"),
    ("OMPI_MCA_btl", "^openib,ofi,uct,usnic"),
    ("OMPI_MCA_btl_tcp_if_include", "d0"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    // Hydra, the launcher of MPICH.
    ("HYDRA_LAUNCHER", "ssh"),
    ("HYDRA_IFACE", "c0"),
    ("HYDRA_BINDING", "none"),
    // MPICH over libfabric or UCX. Naming libfabric's domain alone would not bind the interface.
    ("MPIR_CVAR_CH4_NETMOD", "ofi"),
    ("FI_PROVIDER", "tcp"),
    ("FI_TCP_IFACE", "d0"),
    ("UCX_TLS", "tcp,self"),
    ("UCX_NET_DEVICES", "d0"),
    ("UCX_WARN_UNUSED_ENV_VARS", "n"),
];
/// Variables that take the path of the lab's stand-in for ssh.
const SSH: [&str; 3] = ["OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC"];
/// Variables that take the path of the list of hosts.
pub const HOST_LISTS: [&str; 3] =
    ["OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"];

impl Lab {
    /// The variables under which `mpirun`, started on one of the hosts, uses all of them.
    #[must_use]
    pub fn mpi_environment(&self) -> Vec<(&'static str, OsString)> {
        let path = |suffix: &str| OsString::from(self.registry.file(&self.spec().name, suffix));
        let fixed = FIXED.iter().map(|(name, value)| (*name, OsString::from(value)));
        let ssh = SSH.iter().map(|name| (*name, path(".ssh")));
        let hosts = HOST_LISTS.iter().map(|name| (*name, path(".names")));
        fixed.chain(ssh).chain(hosts).filter(|(name, _)| std::env::var_os(name).is_none()).collect()
    }
}
