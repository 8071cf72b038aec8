//! What the networks under test are told, as plain values. Where they come from (a command line, a file, a test) is not
//! this module's business; messages name the options a user would change.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tailback_sim::machine::Machine;
use tailback_tcp::WaitMode;
use tailback_transport::Protocol;

use super::{Backend, ThreadLevel};

/// The networks under test and how they are reached.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The networks, in order; empty for the launcher's own.
    pub transports: Vec<Backend>,
    /// The congestors' networks.
    pub congestors: CongestorNetworks,
    /// How longer messages travel over raw networks, each a run of its own; empty for the default.
    pub protocols: Vec<Protocol>,
    /// How often each of them is run, for a look at what equals differ by; 0 and 1 are once.
    pub copies: u8,
    /// Up to this many bytes every message is eager.
    pub eager_threshold: Option<usize>,
    /// How a rank waits.
    pub wait: Option<WaitMode>,
    /// What MPI is told of threads; its default if nothing is said.
    pub mpi_thread: Option<ThreadLevel>,
    /// Interface for measured traffic.
    pub data_interface: Option<String>,
    /// Local address for measured traffic.
    pub data_address: Option<IpAddr>,
    /// What only libfabric has.
    pub fabric: FabricSettings,
    /// What only verbs have.
    pub verbs: VerbsSettings,
    /// Class of all packets, over raw networks.
    pub traffic_class: Option<String>,
    /// Classes by role, before that of all.
    pub role_classes: RoleClasses,
    /// The machine to simulate.
    pub machine: Option<Arc<Machine>>,
    /// End the job when a rank makes no progress for this long.
    pub stall_limit: Option<Duration>,
}

/// Which network the congestors use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CongestorNetworks {
    /// The canaries'.
    #[default]
    Same,
    /// With two networks, each in turn, which makes a 2x2 design; else the canaries'.
    Crossed,
    /// These, in turn.
    Over(Vec<Backend>),
}

/// The traffic class of each role's packets, where it has one of its own.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct RoleClasses {
    pub canary: Option<String>,
    pub congestor: Option<String>,
}

impl RoleClasses {
    /// Those that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &String> {
        self.canary.iter().chain(&self.congestor)
    }
}

impl Settings {
    /// The settings of a rank whose packets have a class of their own.
    pub(super) fn with_class(&self, class: Option<&str>) -> Settings {
        let own = class.map(str::to_owned);
        Settings { traffic_class: own.or_else(|| self.traffic_class.clone()), ..self.clone() }
    }
}

/// Which of libfabric's networks.
#[derive(Clone, Debug, Default)]
pub struct FabricSettings {
    /// The provider.
    pub provider: Option<String>,
    /// The provider's domain, a device or interface.
    pub domain: Option<String>,
    /// The library to load; the system's if none is given.
    pub library: Option<PathBuf>,
}

impl FabricSettings {
    /// Whether something was chosen that only libfabric has.
    pub(super) fn is_given(&self) -> bool {
        self.provider.is_some() || self.domain.is_some()
    }
}

/// Which of the RDMA devices, and how.
#[derive(Clone, Debug, Default)]
pub struct VerbsSettings {
    /// The device.
    pub device: Option<String>,
    /// Its port, from 1.
    pub port: Option<u8>,
    /// Which of the port's addresses.
    pub gid_index: Option<u8>,
    /// The service level, on RoCE the priority.
    pub service_level: Option<u8>,
}

impl VerbsSettings {
    /// Whether something was chosen that only verbs have; the device may come from an environment that is everyone's.
    pub(super) fn is_given(&self) -> bool {
        self.port.is_some() || self.gid_index.is_some() || self.service_level.is_some()
    }
}
