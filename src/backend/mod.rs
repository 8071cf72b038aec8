//! Chooses how the ranks come together and what they measure. The only place that knows which backends are compiled in.

mod tcp;

// The one place of src that asks for features: an absent backend is a module that says so.
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "mpi_absent.rs"]
mod mpi;

use std::sync::Arc;
use std::time::Duration;

use tailback_tcp::JoinConfig;
use tailback_tcp::bootstrap::variables;
use tailback_transport::{Bootstrap, Monitor, Transport};

use crate::cli::TransportOptions;
use crate::lab::LabSpec;
use crate::local;
use crate::models::study::StudyRequest;
use crate::session::Request;

/// What a command asks of a backend, and does with the job it is given.
pub trait Work {
    /// How the network under test is reached.
    fn transport(&self) -> &TransportOptions;

    /// How long a rank may make no progress.
    fn stall_limit(&self) -> Option<Duration>;

    /// Does the work as one rank of a job and gives the exit code. Errors end the whole job.
    fn run<B: Bootstrap, T: Transport>(&self, bootstrap: &mut B, transport: &mut T, monitor: &Arc<Monitor>) -> u8;
}

/// A network under test, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// Plain sockets
    Tcp,
    /// The MPI library this binary was built with
    Mpi,
}

/// The compiled-in backends and what each can do here.
pub fn available() -> Vec<(&'static str, String)> {
    vec![("tcp", "ready: plain sockets, nothing to install".into()), ("mpi", mpi::state())]
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
    match (find_job()?, request.transport().transport) {
        (Job::Refused, _) => Ok(2),
        (Job::Tailback(config), None | Some(Backend::Tcp)) => tcp::over_own_bootstrap(request, *config),
        (Job::Tailback(_), Some(Backend::Mpi)) | (Job::None, Some(Backend::Mpi)) => {
            Err(format!("--transport mpi needs an MPI launcher, such as mpirun ({})", mpi::state()))
        }
        (Job::Mpi(launcher), None | Some(Backend::Mpi)) => mpi::over_mpi(request, &launcher),
        (Job::Mpi(launcher), Some(Backend::Tcp)) => mpi::tcp_over_mpi_bootstrap(request, &launcher),
        (Job::None, None | Some(Backend::Tcp)) => alone(),
    }
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
