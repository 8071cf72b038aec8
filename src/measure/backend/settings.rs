//! What the networks under test are told: plain values, which are options of the commands that measure. What a backend has of
//! its own is a struct of its own.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use tailback_bootstrap::address::Selection;
use tailback_engine::Protocol;
use tailback_engine::matching::MOST_RAILS;
use tailback_host::WaitMode;
use tailback_host::near::DeviceSelection;
use tailback_host::pages::HugePages;

use super::Backend;
use super::simulator::machine::Machine;
use crate::units;

/// The networks under test and how they are reached.
#[derive(Clone, Debug, Default, Args)]
// Studies have settings too, and clap groups options by the name of their struct.
#[group(skip)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct Settings {
    /// The network under test; several go into one result, a run in turns on every placement, a study one after the other
    /// [default: mpi under an MPI launcher, else tcp]
    #[arg(long = "transport", id = "transport", value_enum, value_name = "LIST", value_delimiter = ',')]
    pub transports: Vec<Backend>,

    /// How messages above the eager threshold travel over raw transports: eager (at once), put (RTS, CTS, put, FIN) or
    /// get (RTS, get, FIN); a run for each that is named [default: eager]
    #[arg(long = "protocol", id = "protocol", value_name = "LIST", value_delimiter = ',')]
    pub protocols: Vec<Protocol>,

    /// Run each of them so often, as if they were different: whatever is then told apart is noise
    #[arg(long, value_name = "N", hide = true, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub copies: u8,

    /// With put and get: messages of at most this size are sent eagerly [default: 1KiB]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub eager_threshold: Option<usize>,

    /// How a rank waits: spin, pause (spin, and let the other thread of a core go first), yield or block; MPI ranks that block
    /// look again after naps, as MPI cannot sleep until something arrives [default: block when ranks outnumber the
    /// processor's threads, pause when they outnumber its cores, else spin]
    #[arg(long, value_name = "MODE", env = "TAILBACK_WAIT", hide_env_values = true)]
    pub wait: Option<WaitMode>,

    /// With raw transports: the memory of messages in huge pages, reserved ones (vm.nr_hugepages) or else transparent ones.
    /// What there was is in the result; with =require the job ends where there are none
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_value = "no",
        default_missing_value = "try",
        hide_default_value = true
    )]
    pub huge_pages: HugePages,

    /// With MPI: the thread level it is asked for; at every level one thread calls it [default: single]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub mpi_thread: Option<ThreadLevel>,

    /// With tcp and verbs: how many of its interfaces or ports a rank uses at once, with a connection to a peer over each. A
    /// message of more than 64 KiB is cut into a part for each, a shorter one goes over one of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = rails())]
    pub rails: u8,

    /// Interface for measured traffic; with --rails one for each, in their order, with commas
    #[arg(
        long,
        value_name = "NAME",
        env = "TAILBACK_DATA_IF",
        hide_env_values = true,
        value_delimiter = ',',
        conflicts_with = "data_address"
    )]
    pub data_interface: Vec<String>,

    /// Local address for measured traffic; with --rails one for each
    #[arg(long, value_name = "ADDRESS", env = "TAILBACK_DATA_ADDR", hide_env_values = true, value_delimiter = ',')]
    pub data_address: Vec<IpAddr>,

    #[command(flatten)]
    pub fabric: FabricOptions,

    /// Class of all packets. With tcp and verbs: dscp:N, or the whole byte; with libfabric: best-effort, low-latency,
    /// dedicated-access, bulk-data, scavenger, network-control or dscp:N; with sim: a class of the machine's, of which 0 is
    /// served first [default: the provider's, else 0]
    #[arg(long, value_name = "CLASS")]
    pub traffic_class: Option<String>,

    #[command(flatten)]
    pub library: LibfabricPath,

    #[command(flatten)]
    pub verbs: VerbsOptions,

    /// With sim: the machine to simulate, a shipped one (see `tailback machine list`) or a TOML file
    #[arg(long, value_name = "NAME_OR_FILE", value_parser = machine)]
    pub machine: Option<Arc<Machine>>,

    /// End the job when a rank makes no progress for this long [default: 60s plus four budgets; none for congest]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub stall_limit: Option<Duration>,

    /// The congestors' networks.
    #[arg(skip)]
    pub congestors: CongestorNetworks,

    /// TCP's congestion control, over plain sockets; the system's if nothing is said.
    #[arg(skip)]
    pub congestion_control: Option<String>,

    /// What a role's ranks have of their own, before what all have.
    #[arg(skip)]
    pub roles: Roles,
}

/// What MPI is told of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ThreadLevel {
    /// One thread, as in most MPI programs
    // Our watcher thread is there all the same, and never calls MPI.
    #[default]
    Single,
    /// Several threads, of which the first calls MPI
    Funneled,
    /// Several threads, of which one at a time calls MPI
    Serialized,
    /// Any thread calls MPI at any time
    Multiple,
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
    #[allow(dead_code, reason = "not every build has a backend with addresses")]
    pub(super) fn addresses(&self) -> Selection {
        Selection { interfaces: self.data_interface.clone(), addresses: self.data_address.clone() }
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
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct FabricOptions {
    /// With libfabric: the provider, as `tailback info` names it [default: the first that can serve]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// With libfabric: which of the provider's domains (devices or interfaces) ranks take: auto, round-robin, or names, as
    /// --device [default: the one of the data address, else auto]
    #[arg(long, value_name = "DOMAINS")]
    pub domain: Option<DeviceSelection>,
}

impl FabricOptions {
    /// Whether something was chosen that only libfabric has.
    pub(super) fn is_given(&self) -> bool {
        self.provider.is_some() || self.domain.is_some()
    }
}

/// Where libfabric is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct LibfabricPath {
    /// The libfabric to load [default: the system's]
    #[arg(long, value_name = "FILE", env = "TAILBACK_LIBFABRIC", hide_env_values = true)]
    pub libfabric_path: Option<PathBuf>,
}

/// Which of the RDMA devices, and how.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct VerbsOptions {
    /// With verbs: which devices ranks take: auto (near a rank's cores, equals dealt out over the ranks of a host),
    /// round-robin (all, dealt out), or names as `tailback info` shows them, with commas; as many as --rails are one for each,
    /// in their order [default: auto]
    #[arg(long, value_name = "DEVICES", env = "TAILBACK_DEVICE", hide_env_values = true)]
    pub device: Option<DeviceSelection>,

    /// With verbs: the device's port, from 1 [default: the first that is active; with --rails all that are]
    #[arg(long, value_name = "N")]
    pub port: Option<u8>,

    /// With verbs: which of the port's addresses (GIDs) [default: on RoCE, version 2 with an IPv4 address]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u8>,

    /// With verbs: the service level, on RoCE the priority, of all packets [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..16))]
    pub service_level: Option<u8>,

    /// With verbs: how long the adapter waits for an answer before it sends again; it takes the nearest power of two times
    /// 4.096 us [default: 1s, as UCX]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub rc_timeout: Option<Duration>,

    /// With verbs: how often it sends again [default: 7, as UCX; 6 on Soft-RoCE, where 7 has no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..8))]
    pub rc_retries: Option<u8>,

    /// With verbs: how often it asks again a peer that has no buffer, 7 is no limit; credits keep that from happening
    /// [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..8))]
    pub rnr_retries: Option<u8>,

    /// With verbs: the longest packet: 256, 512, 1024, 2048 or 4096 [default: the longest that both ports take]
    #[arg(long, value_name = "BYTES", value_parser = path_mtu)]
    pub path_mtu: Option<u32>,

    /// With verbs: maximum receive buffers per peer; there are 16, and twice as many whenever the peer has run
    /// out [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=8192))]
    pub credits: Option<u32>,

    /// With verbs: the size of a buffer, 512 B to 1 MiB; a longer message takes several [default: 8KiB]
    #[arg(long, value_name = "BYTES", value_parser = buffer_bytes)]
    pub buffer_bytes: Option<usize>,
}

impl VerbsOptions {
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

/// How many rails there can be.
fn rails() -> impl TypedValueParser<Value = u8> {
    clap::value_parser!(u8).range(1..=MOST_RAILS as i64)
}

/// A size that packets can have.
fn path_mtu(text: &str) -> Result<u32, String> {
    let known = [256, 512, 1024, 2048, 4096];
    let wrong = || format!("invalid path MTU '{text}': expected 256, 512, 1024, 2048 or 4096");
    units::bytes(text)
        .ok()
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|of| known.contains(of))
        .ok_or_else(wrong)
}

/// A size that buffers can have.
fn buffer_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("invalid buffer size '{text}': expected 512 B to 1 MiB");
    units::bytes(text).ok().filter(|bytes| (512..=1 << 20).contains(bytes)).ok_or_else(wrong)
}

/// A shipped machine, or a file's.
fn machine(name_or_file: &str) -> Result<Arc<Machine>, String> {
    Machine::load(name_or_file).map(Arc::new).map_err(|error| error.to_string())
}
