//! What the networks under test are told, as plain values. Where they come from (a command line, a file, a test) is not
//! this module's business; messages name the options a user would change.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tailback_sim::machine::Machine;
use tailback_tcp::WaitMode;
use tailback_tcp::address::Wish;
use tailback_transport::Protocol;
use tailback_transport::near::DeviceWish;
use tailback_transport::pages::HugePages;

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
    /// Whether the memory of messages should have huge pages, over raw networks.
    pub huge_pages: HugePages,
    /// What MPI is told of threads; its default if nothing is said.
    pub mpi_thread: Option<ThreadLevel>,
    /// How many of its ends a rank uses at once, over plain sockets and verbs; 0 and 1 are one.
    pub rails: u8,
    /// Interfaces for measured traffic, one per rail; empty for no wish.
    pub data_interface: Vec<String>,
    /// Local addresses for measured traffic, likewise.
    pub data_address: Vec<IpAddr>,
    /// What only libfabric has.
    pub fabric: FabricSettings,
    /// What only verbs have.
    pub verbs: VerbsSettings,
    /// Class of all packets, over raw networks.
    pub traffic_class: Option<String>,
    /// TCP's congestion control, over plain sockets; the system's if nothing is said.
    pub congestion_control: Option<String>,
    /// What a role's ranks have of their own, before what all have.
    pub roles: Roles,
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

/// What the ranks of a role have of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleSettings {
    /// The class of their packets.
    pub class: Option<String>,
    /// Their TCP's congestion control.
    pub congestion_control: Option<String>,
}

/// The roles that can differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Roles {
    pub canary: RoleSettings,
    pub congestor: RoleSettings,
}

impl Roles {
    /// What was given, as tables and result files name it.
    pub fn details(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("canary class", &self.canary.class),
            ("congestor class", &self.congestor.class),
            ("canary congestion control", &self.canary.congestion_control),
            ("congestor congestion control", &self.congestor.congestion_control),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}

impl Settings {
    /// How many rails there are to be.
    pub(super) fn rails(&self) -> usize {
        usize::from(self.rails.max(1))
    }

    /// Where plain sockets are to go.
    pub(super) fn wish(&self) -> Wish {
        Wish { interfaces: self.data_interface.clone(), addresses: self.data_address.clone() }
    }

    /// The settings of a rank of a role.
    pub(super) fn of_role(&self, role: &RoleSettings) -> Settings {
        let own = |own: &Option<String>, all: &Option<String>| own.clone().or_else(|| all.clone());
        Settings {
            traffic_class: own(&role.class, &self.traffic_class),
            congestion_control: own(&role.congestion_control, &self.congestion_control),
            ..self.clone()
        }
    }

    /// The same for every role that can differ.
    pub(super) fn of_roles(&self) -> [Settings; 2] {
        [&self.roles.canary, &self.roles.congestor].map(|role| self.of_role(role))
    }
}

/// Which of libfabric's networks.
#[derive(Clone, Debug, Default)]
pub struct FabricSettings {
    /// The provider.
    pub provider: Option<String>,
    /// The provider's domains, devices or interfaces, of which each rank takes one.
    pub domain: Option<DeviceWish>,
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
    /// Which devices; each rank takes one of them, or a port for each rail.
    pub device: Option<DeviceWish>,
    /// Its port, from 1.
    pub port: Option<u8>,
    /// Which of the port's addresses.
    pub gid_index: Option<u8>,
    /// The service level, on RoCE the priority.
    pub service_level: Option<u8>,
    /// How long a device waits for an answer.
    pub rc_timeout: Option<Duration>,
    /// How often it then sends again.
    pub rc_retries: Option<u8>,
    /// How often it asks again a peer without a buffer.
    pub rnr_retries: Option<u8>,
    /// The longest packet, in bytes.
    pub path_mtu: Option<u32>,
    /// Buffers that one peer may fill at most.
    pub credits: Option<u32>,
    /// The size of a buffer.
    pub buffer_bytes: Option<usize>,
}

impl VerbsSettings {
    /// An option that was given and that only verbs have; the device may come from an environment that is everyone's.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            ("--port", self.port.is_some()),
            ("--gid-index", self.gid_index.is_some()),
            ("--service-level", self.service_level.is_some()),
            ("--rc-timeout", self.rc_timeout.is_some()),
            ("--rc-retries", self.rc_retries.is_some()),
            ("--rnr-retries", self.rnr_retries.is_some()),
            ("--path-mtu", self.path_mtu.is_some()),
            ("--credits", self.credits.is_some()),
            ("--buffer-bytes", self.buffer_bytes.is_some()),
        ];
        all.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}
