//! Chooses how the ranks come together and what they measure. The only place that knows which backends are compiled in.

mod tcp;
mod variant;

// The one place of src that asks for features: an absent backend is a module that says so.
#[cfg(feature = "libfabric")]
mod libfabric;
#[cfg(not(feature = "libfabric"))]
#[path = "libfabric_absent.rs"]
mod libfabric;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "mpi_absent.rs"]
mod mpi;
#[cfg(feature = "verbs")]
mod verbs;
#[cfg(not(feature = "verbs"))]
#[path = "verbs_absent.rs"]
mod verbs;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailback_tcp::bootstrap::variables;
use tailback_tcp::{JoinConfig, Secret};
use tailback_transport::{Bootstrap, Error, Monitor, Result as TransportResult, Transport};

use crate::cli::TransportOptions;
use crate::lab::LabSpec;
use crate::local;
use crate::models::study::StudyRequest;
use crate::session::Request;

pub use variant::{Variant, variants};

/// What a command asks of a backend, and does with the job it is given.
pub trait Work {
    /// How the network under test is reached.
    fn transport(&self) -> &TransportOptions;

    /// How long a rank may make no progress.
    fn stall_limit(&self) -> Option<Duration>;

    /// Raised once the user wants this work to end in order; `None` where a signal simply ends the ranks.
    fn interrupt(&self) -> Option<Arc<AtomicBool>>;

    /// Does the work as one rank of a job and gives the exit code. Errors end the whole job.
    fn run<N: Networks>(&self, networks: &mut N, monitor: &Arc<Monitor>) -> u8;
}

/// The networks under test of one job, opened one at a time, so that none of them competes with another.
pub trait Networks {
    /// Who is here, whatever network is open.
    type Bootstrap: Bootstrap;

    /// Outside of [`Networks::open`].
    fn bootstrap(&mut self) -> &mut Self::Bootstrap;

    /// What the runs go over, in order. At least one.
    fn variants(&self) -> &[Variant];

    /// Opens a network, hands it to `visitor`, and closes it. Collective over the job.
    fn open<V: Visitor>(&mut self, variant: Variant, visitor: V) -> TransportResult<V::Output>;
}

/// What is done with an open network.
pub trait Visitor {
    /// What it leaves.
    type Output;

    /// Does it.
    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Self::Output;
}

/// A network under test, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// Plain sockets
    Tcp,
    /// The MPI library this binary was built with
    Mpi,
    /// Endpoints of a libfabric provider
    Libfabric,
    /// Queue pairs of InfiniBand or RoCE
    Verbs,
}

impl Backend {
    /// Whether its messages follow a protocol of ours.
    fn is_raw(self) -> bool {
        self != Backend::Mpi
    }

    /// Whether ranks can open it here; asked before any rank starts.
    fn check(self, options: &TransportOptions) -> Result<(), String> {
        match self {
            Backend::Tcp | Backend::Mpi => Ok(()),
            Backend::Libfabric => libfabric::check(&options.fabric),
            Backend::Verbs => verbs::check(options),
        }
    }

    /// Whether it can run on the emulated cluster, whose network is made of the kernel's own interfaces.
    pub fn fits_lab(self) -> bool {
        self != Backend::Verbs
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Tcp => "tcp",
            Backend::Mpi => "mpi",
            Backend::Libfabric => "libfabric",
            Backend::Verbs => "verbs",
        })
    }
}

/// Opens a raw network between ranks that came together somehow and share `secret`. A further raw backend is a further
/// line here, in [`Backend`] and in [`available`].
fn open_raw<B: Bootstrap, V: Visitor>(
    variant: Variant,
    options: &TransportOptions,
    bootstrap: &mut B,
    secret: &Secret,
    visitor: V,
) -> TransportResult<V::Output> {
    match variant.backend {
        Backend::Tcp => {
            let mut transport = variant.over(tcp::open(options, bootstrap, secret)?);
            Ok(visitor.visit(bootstrap, &mut transport))
        }
        Backend::Libfabric => libfabric::open(variant, options, bootstrap, visitor),
        Backend::Verbs => verbs::open(variant, options, bootstrap, visitor),
        Backend::Mpi => Err(Error::Setup(needs_mpi_launcher())),
    }
}

fn needs_mpi_launcher() -> String {
    format!("--transport mpi needs an MPI launcher, such as mpirun ({})", mpi::state())
}

/// The compiled-in backends and what each can do here: a line, or several. Libfabric is the system's, or `libfabric`.
pub fn available(libfabric: Option<&Path>) -> Vec<(&'static str, String)> {
    vec![
        ("tcp", "ready: plain sockets, nothing to install".into()),
        ("mpi", mpi::state()),
        ("libfabric", libfabric::state(libfabric)),
        ("verbs", verbs::state()),
    ]
}

/// What launcher, if any, this process sees.
pub fn job_seen() -> String {
    match find_job() {
        Ok(Job::Tailback(config)) => format!("rank {} of {}, started by {}", config.rank, config.size, config.launcher),
        Ok(Job::Mpi(launcher)) => format!("started by {launcher}"),
        Ok(Job::Refused) => "unusable: there is no job secret".into(),
        Ok(Job::None) => "no launcher: commands that measure start ranks on this machine".into(),
        Err(error) => format!("unusable: {error}"),
    }
}

/// Runs the request in the job this process belongs to, or starts one.
pub fn start(request: &Request) -> Result<u8, String> {
    in_job(request, || local::run(request))
}

/// The same in an emulated cluster of this shape; in a rank of it, the request itself.
pub fn start_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    in_job(request, || local::run_in_lab(request, spec))
}

/// A study in the job this process belongs to, or as plain ranks on this machine.
pub fn start_study(request: &StudyRequest) -> Result<u8, String> {
    in_job(request, || local::run_study(request))
}

enum Job {
    /// Tailback's own variables, or Slurm's.
    Tailback(Box<JoinConfig>),
    /// An MPI launcher's.
    Mpi(String),
    None,
    /// Unusable, as another rank says.
    Refused,
}

/// Tailback's own variables come first, since someone set them for us; then MPI's, then Slurm's without MPI.
fn find_job() -> Result<Job, String> {
    if std::env::var_os(variables::RANK).is_none()
        && let Some(launcher) = mpi::launcher()
    {
        return Ok(Job::Mpi(launcher));
    }
    let config = match JoinConfig::from_env() {
        Ok(config) => config,
        // A secret that was forgotten is missing everywhere: once is enough to say so.
        Err(_) if !has_secret() && !speaks_for_all() => return Ok(Job::Refused),
        Err(error) => return Err(error.to_string()),
    };
    Ok(config.map_or(Job::None, |config| Job::Tailback(Box::new(config))))
}

fn in_job<W: Work>(request: &W, alone: impl FnOnce() -> Result<u8, String>) -> Result<u8, String> {
    let job = find_job()?;
    let default = if matches!(job, Job::Mpi(_)) { Backend::Mpi } else { Backend::Tcp };
    let variants = match variants(request.transport(), default) {
        Ok(variants) if !matches!(job, Job::Mpi(_)) && variants.iter().any(|v| v.backend == Backend::Mpi) => {
            Err(needs_mpi_launcher())
        }
        Ok(variants) => usable(request.transport(), &variants).map(|()| variants),
        mistaken => mistaken,
    };
    let variants = match variants {
        Ok(variants) => variants,
        // Every rank finds the same mistake.
        Err(_) if !speaks_for_all() => return Ok(2),
        Err(message) => return Err(message),
    };
    match job {
        Job::Refused => Ok(2),
        Job::Tailback(config) => tcp::over_own_bootstrap(request, *config, variants),
        Job::Mpi(launcher) => mpi::over_mpi(request, &launcher, variants),
        Job::None => alone(),
    }
}

/// Whether what was asked for is there, and meant for what was asked for.
fn usable(options: &TransportOptions, variants: &[Variant]) -> Result<(), String> {
    let used = |backend: Backend| variants.iter().any(|variant| variant.backend == backend);
    if options.fabric.is_given() && !used(Backend::Libfabric) {
        return Err("--provider and --domain are for --transport libfabric".into());
    }
    if options.verbs.is_given() && !used(Backend::Verbs) {
        return Err("--port, --gid-index and --service-level are for --transport verbs".into());
    }
    if options.fabric.traffic_class.is_some() && !used(Backend::Libfabric) && !used(Backend::Verbs) {
        return Err("--traffic-class is for --transport libfabric and verbs".into());
    }
    variants.iter().try_for_each(|variant| variant.backend.check(options))
}

fn has_secret() -> bool {
    [variables::SECRET, variables::SECRET_FILE].iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether this process is the one to report a mistake that every rank of the job makes alike.
pub fn speaks_for_all() -> bool {
    // Whoever starts ranks counts them in one of these.
    const RANK: [&str; 4] = [variables::RANK, "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
    let rank = RANK.iter().find_map(|name| std::env::var(name).ok()?.parse::<u32>().ok());
    rank.is_none_or(|rank| rank == 0)
}
