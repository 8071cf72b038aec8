//! Options that choose and set up the network under test, and where ranks run without a launcher.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tailback_sim::machine::Machine;
use tailback_tcp::WaitMode;
use tailback_transport::Protocol;
use tailback_transport::matching::MOST_RAILS;
use tailback_transport::near::DeviceWish;
use tailback_transport::pages::HugePages;

use crate::backend::{Backend, CongestorNetworks, FabricSettings, Roles, Settings, ThreadLevel, VerbsSettings};
use crate::commands::Place;
use crate::plan::units;

/// The network under test.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct TransportOptions {
    /// Without a launcher: how many ranks to start on this machine [default: one per host of the lab, else 10; with sim
    /// what the --machine has]
    #[arg(short = 'n', long, value_name = "N")]
    pub ranks: Option<usize>,

    /// Without a launcher: plain ranks on this machine rather than the emulated cluster
    #[arg(long, env = "TAILBACK_NO_LAB", hide_env = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_lab: bool,

    /// The network under test; several go into one result, a run in turns on every placement, a study one after the other
    /// [default: mpi under an MPI launcher, else tcp]
    #[arg(long, value_parser = backends(), value_name = "LIST", value_delimiter = ',')]
    pub transport: Vec<Backend>,

    /// How messages above the eager threshold travel over raw transports: eager (at once), put (RTS, CTS, put, FIN) or
    /// get (RTS, get, FIN); a run for each that is named [default: eager]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub protocol: Vec<Protocol>,

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
    #[arg(long, value_parser = thread_levels(), value_name = "LEVEL")]
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

    #[command(flatten)]
    pub verbs: VerbsOptions,

    /// With sim: the machine to simulate, a shipped one (see `tailback machine list`) or a TOML file
    #[arg(long, value_name = "NAME_OR_FILE", value_parser = machine)]
    pub machine: Option<Arc<Machine>>,

    /// End the job when a rank makes no progress for this long [default: 60s plus four budgets; none for congest]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub stall_limit: Option<Duration>,
}

/// Which of libfabric's networks; and what verbs share with it.
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
    pub domain: Option<DeviceWish>,

    /// Class of all packets. With tcp and verbs: dscp:N, or the whole byte; with libfabric: best-effort, low-latency,
    /// dedicated-access, bulk-data, scavenger, network-control or dscp:N; with sim: a class of the machine's, of which 0 is
    /// served first [default: the provider's, else 0]
    #[arg(long, value_name = "CLASS")]
    pub traffic_class: Option<String>,

    #[command(flatten)]
    pub library: LibfabricPath,
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
    pub device: Option<DeviceWish>,

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

    /// With verbs: how often it sends again [default: 7, as UCX; 6 on Soft-RoCE, which takes 7 for ever]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..8))]
    pub rc_retries: Option<u8>,

    /// With verbs: how often it asks again a peer that has no buffer, 7 for ever; credits keep that from happening
    /// [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..8))]
    pub rnr_retries: Option<u8>,

    /// With verbs: the longest packet: 256, 512, 1024, 2048 or 4096 [default: the longest that both ports take]
    #[arg(long, value_name = "BYTES", value_parser = path_mtu)]
    pub path_mtu: Option<u32>,

    /// With verbs: how many buffers of a rank's one peer may fill at most; there are 16, and twice as many whenever the peer
    /// has run out [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=8192))]
    pub credits: Option<u32>,

    /// With verbs: the size of a buffer, 512 B to 1 MiB; a longer message takes several [default: 8KiB]
    #[arg(long, value_name = "BYTES", value_parser = buffer_bytes)]
    pub buffer_bytes: Option<usize>,
}

impl TransportOptions {
    /// As plain values: where ranks run, and how they reach the network under test.
    pub fn settings(self) -> (Place, Settings) {
        let place = Place { ranks: self.ranks, no_lab: self.no_lab };
        let FabricOptions { provider, domain, traffic_class, library } = self.fabric;
        let VerbsOptions {
            device,
            port,
            gid_index,
            service_level,
            rc_timeout,
            rc_retries,
            rnr_retries,
            path_mtu,
            credits,
            buffer_bytes,
        } = self.verbs;
        let settings = Settings {
            transports: self.transport,
            congestors: CongestorNetworks::Same,
            protocols: self.protocol,
            copies: self.copies,
            eager_threshold: self.eager_threshold,
            wait: self.wait,
            huge_pages: self.huge_pages,
            mpi_thread: self.mpi_thread,
            rails: self.rails,
            data_interface: self.data_interface,
            data_address: self.data_address,
            fabric: FabricSettings { provider, domain, library: library.libfabric_path },
            verbs: VerbsSettings {
                device,
                port,
                gid_index,
                service_level,
                rc_timeout,
                rc_retries,
                rnr_retries,
                path_mtu,
                credits,
                buffer_bytes,
            },
            traffic_class,
            congestion_control: None,
            roles: Roles::default(),
            machine: self.machine,
            stall_limit: self.stall_limit,
        };
        (place, settings)
    }
}

/// A word of `--congestor-transport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestorTransport {
    /// The canaries'.
    Same,
    /// A transport of its own.
    Over(Backend),
}

impl FromStr for CongestorTransport {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "same" => Ok(CongestorTransport::Same),
            word => word.parse().map(CongestorTransport::Over),
        }
    }
}

/// The congestors' networks, as plain values. Without a word, two networks make a 2x2 design.
pub(super) fn congestor_networks(words: &[CongestorTransport]) -> Result<CongestorNetworks, String> {
    match words {
        [] => Ok(CongestorNetworks::Crossed),
        [CongestorTransport::Same] => Ok(CongestorNetworks::Same),
        words => {
            let backend = |word: &CongestorTransport| match word {
                CongestorTransport::Over(backend) => Ok(*backend),
                CongestorTransport::Same => Err("--congestor-transport same stands alone".to_owned()),
            };
            words.iter().map(backend).collect::<Result<_, _>>().map(CongestorNetworks::Over)
        }
    }
}

/// How many rails there can be.
fn rails() -> impl TypedValueParser<Value = u8> {
    clap::value_parser!(u8).range(1..=MOST_RAILS as i64)
}

/// A size that packets can have.
fn path_mtu(text: &str) -> Result<u32, String> {
    let known = [256, 512, 1024, 2048, 4096];
    let wrong = || format!("'{text}' is no size of packets: write 256, 512, 1024, 2048 or 4096");
    units::bytes(text)
        .ok()
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|of| known.contains(of))
        .ok_or_else(wrong)
}

/// A size that buffers can have.
fn buffer_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("'{text}' is no size of buffers: write 512 B to 1 MiB");
    units::bytes(text).ok().filter(|bytes| (512..=1 << 20).contains(bytes)).ok_or_else(wrong)
}

/// A shipped machine, or a file's.
fn machine(name_or_file: &str) -> Result<Arc<Machine>, String> {
    Machine::load(name_or_file).map(Arc::new).map_err(|error| error.to_string())
}

/// Backends by name, with a line on each in the long help.
fn backends() -> impl TypedValueParser<Value = Backend> {
    let value = |(backend, what): (Backend, &'static str)| PossibleValue::new(backend.word()).help(what);
    PossibleValuesParser::new(Backend::ALL.map(value)).map(|word| word.parse().expect("one of the possible values"))
}

/// MPI's thread levels by name, likewise.
fn thread_levels() -> impl TypedValueParser<Value = ThreadLevel> {
    let value = |(level, what): (ThreadLevel, &'static str)| PossibleValue::new(level.word()).help(what);
    PossibleValuesParser::new(ThreadLevel::ALL.map(value)).map(|word| word.parse().expect("one of the possible values"))
}
