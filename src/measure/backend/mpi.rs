//! MPI as the network under test, or as the bootstrap of another one.

use std::sync::Arc;

use tailback_bootstrap::Secret;
use tailback_mpi::{MpiBootstrap, MpiTransport, Threading};
use tailback_transport::{Bootstrap, Monitor, Rank, Result as TransportResult};

use super::agree::run_agreed;
use super::network::Ranks;
use super::{Networks, ThreadLevel, Variant, Work, give_up};
use crate::engine::Opened;

const COULD_NOT_RUN: u8 = 2;

pub(super) fn state() -> String {
    format!("built in for {}: start it with this MPI's own launcher", tailback_mpi::library())
}

/// The MPI launcher that started this process, if one did.
pub(super) fn launcher() -> Option<String> {
    tailback_mpi::launcher().map(|launcher| launcher.to_string())
}

/// Ranks that MPI brought together, over MPI and over raw networks.
pub(super) fn over_mpi(work: &Work<'_>, _launcher: &str, variants: Vec<Variant>) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let Some((mut bootstrap, transport)) = init(work, &monitor)? else { return Ok(COULD_NOT_RUN) };
    let secret = match shared_secret(&mut bootstrap) {
        Ok(secret) => secret,
        Err(error) => give_up(&bootstrap, &error),
    };
    let ranks = Ranks::Real { secret, mpi: Some(Box::new(Opened::new(transport))) };
    let mut networks = Networks { bootstrap: &mut bootstrap, settings: work.settings, variants, ranks };
    Ok(run_agreed(work, &mut networks, &monitor))
}

/// Initialises MPI. A failure is every process's, so only the first of them says so.
fn init(work: &Work<'_>, monitor: &Arc<Monitor>) -> Result<Option<(MpiBootstrap, MpiTransport)>, String> {
    let settings = work.settings;
    let threads = threading(settings.mpi_thread.unwrap_or_default());
    match tailback_mpi::init(Arc::clone(monitor), work.stall_limit, threads, settings.wait) {
        Ok(both) => Ok(Some(both)),
        Err(_) if tailback_mpi::launcher().and_then(|launcher| launcher.rank).is_some_and(|rank| rank > 0) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn threading(level: ThreadLevel) -> Threading {
    match level {
        ThreadLevel::Single => Threading::Single,
        ThreadLevel::Funneled => Threading::Funneled,
        ThreadLevel::Serialized => Threading::Serialized,
        ThreadLevel::Multiple => Threading::Multiple,
    }
}

/// A new secret from rank 0, told over MPI.
fn shared_secret(bootstrap: &mut MpiBootstrap) -> TransportResult<Secret> {
    let mine = if bootstrap.rank() == Rank(0) { Secret::random()?.to_hex() } else { String::new() };
    let told = bootstrap.broadcast(mine.into_bytes())?;
    Secret::from_hex(&String::from_utf8_lossy(&told))
}
