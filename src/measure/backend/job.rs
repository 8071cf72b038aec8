//! Which job this process belongs to, and the work done in it.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use tailback_bootstrap::launch::heed_signals;
use tailback_bootstrap::variables;
use tailback_bootstrap::{Interrupt, JoinConfig, TcpBootstrap};
use tailback_host::pages;
use tailback_transport::{Error, Monitor};

use super::agree::run_agreed;
use super::network::{Ranks, raw};
use super::sim::SimulatedJobs;
use super::{Backend, JobSize, Networks, Settings, Variant, Work, libfabric, mpi, sim, variants};

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
        Err(_) if !has_secret() && !is_reporting_rank() => return Ok(Job::Refused),
        Err(error) => return Err(error.to_string()),
    };
    Ok(config.map_or(Job::None, |config| Job::Tailback(Box::new(config))))
}

/// Does the work in the job this process belongs to; where it belongs to none, `alone` is called.
pub fn in_job(work: &Work<'_>, alone: impl FnOnce() -> Result<u8, String>) -> Result<u8, String> {
    let job = find_job()?;
    let default = if matches!(job, Job::Mpi(_)) { Backend::Mpi } else { Backend::Tcp };
    let variants = match variants(work.settings, default) {
        Ok(variants) if backends(&variants).any(|backend| backend == Backend::Sim) => {
            by_itself(&job, &variants).and_then(|()| usable(work.settings, &variants)).map(|()| variants)
        }
        Ok(variants) if !matches!(job, Job::Mpi(_)) && backends(&variants).any(|backend| backend == Backend::Mpi) => {
            Err(needs_mpi_launcher())
        }
        Ok(variants) => {
            // Libraries are loaded to see whether they are there, and some take signals for themselves meanwhile.
            if matches!(job, Job::None) {
                heed_signals();
            }
            usable(work.settings, &variants).map(|()| variants)
        }
        mistaken => mistaken,
    };
    let variants = match variants {
        Ok(variants) => variants,
        // Every rank finds the same mistake.
        Err(_) if !is_reporting_rank() => return Ok(2),
        Err(message) => return Err(message),
    };
    pages::request(work.settings.huge_pages);
    match job {
        Job::Refused => Ok(2),
        Job::Tailback(config) => over_own_bootstrap(work, *config, variants),
        Job::Mpi(launcher) => mpi::over_mpi(work, &launcher, variants),
        Job::None => alone(),
    }
}

/// Ranks that found each other through Tailback's own bootstrap.
fn over_own_bootstrap(work: &Work<'_>, mut config: JoinConfig, variants: Vec<Variant>) -> Result<u8, String> {
    let text = |error: Error| error.to_string();
    config.stall_limit = work.stall_limit;
    config.interrupt = Some(Interrupt::new((work.interrupt)()));
    let secret = config.secret.clone();
    let monitor = Arc::new(Monitor::new());
    let mut bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    let ranks = Ranks::Real { secret, mpi: None };
    let mut networks = Networks { bootstrap: &mut bootstrap, settings: work.settings, variants, ranks };
    let code = run_agreed(work, &mut networks, &monitor);
    drop(networks);
    bootstrap.finish().map_err(text)?;
    Ok(code)
}

/// Does the work as all ranks of a simulated job. Everything that is random in the network comes of `seed`.
pub fn simulate(work: &Work<'_>, size: JobSize, seed: u64) -> Result<u8, String> {
    let settings = work.settings;
    sim::check(settings)?;
    let machine = settings.machine.clone().ok_or("no machine to simulate")?;
    let mut bootstrap = sim::everyone(size, &machine);
    let variants = variants(settings, Backend::Sim)?;
    let ranks = Ranks::Simulated(SimulatedJobs::new(machine, size, seed));
    let mut networks = Networks { bootstrap: &mut *bootstrap, settings, variants, ranks };
    Ok((work.body)(&mut networks, &Arc::new(Monitor::new())))
}

/// Whether a simulated network has this process to itself: its ranks are coroutines and know no others.
fn by_itself(job: &Job, variants: &[Variant]) -> Result<(), String> {
    if let Some(other) = backends(variants).find(|backend| *backend != Backend::Sim) {
        return Err(format!(
            "--transport sim has ranks of its own and cannot be run beside {other}: run each by itself and `tailback compare` \
             the results"
        ));
    }
    let launcher = match job {
        Job::None | Job::Refused => return Ok(()),
        Job::Tailback(config) => &config.launcher,
        Job::Mpi(launcher) => launcher,
    };
    Err(format!(
        "--transport sim needs no launcher, for its ranks are coroutines of one process: start it without {launcher}"
    ))
}

/// Whether what was asked for is there, and meant for what was asked for.
fn usable(settings: &Settings, variants: &[Variant]) -> Result<(), String> {
    let used = |backend: Backend| backends(variants).any(|used| used == backend);
    if settings.fabric.is_given() && !used(Backend::Libfabric) {
        return Err("--provider and --domain are for --transport libfabric".into());
    }
    if let Some(option) = settings.verbs.given().filter(|_| !used(Backend::Verbs)) {
        return Err(format!("{option} is for --transport verbs"));
    }
    if settings.mpi_thread.is_some() && !used(Backend::Mpi) {
        return Err("--mpi-thread is for --transport mpi".into());
    }
    let of_roles = settings.of_roles();
    if of_roles.iter().any(|of| of.traffic_class.is_some()) && backends(variants).all(|of| !of.is_raw()) {
        return Err("traffic classes are for raw transports: MPI has settings of its own".into());
    }
    if of_roles.iter().any(|of| of.congestion_control.is_some()) && !used(Backend::Tcp) {
        return Err("congestion controls by role are for --transport tcp".into());
    }
    if let Some(why) = backends(variants).find_map(Backend::without_rails).filter(|_| settings.rails() > 1) {
        return Err(format!("--rails is for tcp and verbs: {why}"));
    }
    if settings.machine.is_some() && !used(Backend::Sim) {
        return Err("--machine is for --transport sim".into());
    }
    backends(variants).try_for_each(|backend| {
        check(backend, settings)?;
        of_roles.iter().try_for_each(|settings| check(backend, settings))
    })
}

fn backends(variants: &[Variant]) -> impl Iterator<Item = Backend> {
    variants.iter().flat_map(|variant| variant.networks()).map(|network| network.backend)
}

fn has_secret() -> bool {
    [variables::SECRET, variables::SECRET_FILE].iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether this process is the one to report a mistake that every rank of the job makes alike.
pub fn is_reporting_rank() -> bool {
    rank().is_none_or(|rank| rank == 0)
}

/// The number of this process among those that a launcher started, if one did.
pub fn rank() -> Option<u32> {
    // Whoever starts ranks counts them in one of these.
    const RANK: [&str; 4] = [variables::RANK, "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
    RANK.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Prepares this process to be a rank, if it is one. To be called first of all: libraries that are told of the job by the
/// environment hear of it before there is a second thread, which might read the environment while it is changed.
pub fn prepare() {
    // Whoever starts ranks says in one of these how many.
    const SIZE: [&str; 8] = [
        variables::SIZE,
        "JSM_NAMESPACE_SIZE",
        "OMPI_COMM_WORLD_SIZE",
        "MPIRUN_NPROCS",
        "PMI_SIZE",
        "PMIX_SIZE",
        "FLUX_JOB_SIZE",
        "SLURM_STEP_NUM_TASKS",
    ];
    if let Some(ranks) = SIZE.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()) {
        libfabric::make_room(ranks);
    }
}

/// Whether ranks can open it here; asked before any rank starts.
fn check(backend: Backend, settings: &Settings) -> Result<(), String> {
    match (backend, raw(backend)) {
        (Backend::Sim, _) => sim::check(settings),
        (_, Some(raw)) => (raw.check)(settings),
        (_, None) => Ok(()),
    }
}

fn needs_mpi_launcher() -> String {
    format!("--transport mpi needs an MPI launcher, such as mpirun ({})", mpi::state())
}

/// The compiled-in backends and what each can do here: a line, or several. Libfabric is the system's, or `libfabric`.
pub fn available(libfabric: Option<&Path>) -> Vec<(String, String)> {
    let state = |backend: Backend| match (backend, raw(backend)) {
        (Backend::Sim, _) => sim::state(),
        (_, Some(raw)) => (raw.state)(libfabric),
        (_, None) => mpi::state(),
    };
    Backend::value_variants().iter().map(|of| (of.to_string(), state(*of))).collect()
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
