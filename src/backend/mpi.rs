//! MPI as the network under test, or as the bootstrap of another one.

use std::sync::Arc;

use tailback_mpi::{MpiBootstrap, MpiTransport};
use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Monitor, Rank};

use super::{Work, tcp};
use crate::session;

const COULD_NOT_RUN: u8 = 2;

pub(super) fn state() -> String {
    "built in: start it with this MPI's own launcher".into()
}

/// The MPI launcher that started this process, if one did.
pub(super) fn launcher() -> Option<String> {
    tailback_mpi::launcher().map(|launcher| launcher.to_string())
}

pub(super) fn over_mpi<W: Work>(request: &W, _launcher: &str) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let Some((mut bootstrap, mut transport)) = init(request, &monitor)? else { return Ok(COULD_NOT_RUN) };
    Ok(request.run(&mut bootstrap, &mut transport, &monitor))
}

/// Sockets between ranks that MPI brought together.
pub(super) fn tcp_over_mpi_bootstrap<W: Work>(request: &W, _launcher: &str) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let Some((mut bootstrap, _mpi)) = init(request, &monitor)? else { return Ok(COULD_NOT_RUN) };
    let opened = shared_secret(&mut bootstrap).and_then(|secret| tcp::open(request, &mut bootstrap, &secret));
    match opened {
        Ok(mut transport) => Ok(request.run(&mut bootstrap, &mut transport, &monitor)),
        Err(error) => session::give_up(&bootstrap, &error),
    }
}

/// Initialises MPI. A failure is every process's, so only the first of them says so.
fn init<W: Work>(request: &W, monitor: &Arc<Monitor>) -> Result<Option<(MpiBootstrap, MpiTransport)>, String> {
    match tailback_mpi::init(Arc::clone(monitor), request.stall_limit()) {
        Ok(both) => Ok(Some(both)),
        Err(_) if tailback_mpi::launcher().and_then(|launcher| launcher.rank).is_some_and(|rank| rank > 0) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// A new secret from rank 0, told over MPI.
fn shared_secret(bootstrap: &mut MpiBootstrap) -> tailback_transport::Result<Secret> {
    let mine = if bootstrap.rank() == Rank(0) { Secret::random()?.to_hex() } else { String::new() };
    let told = bootstrap.broadcast(mine.into_bytes())?;
    Secret::from_hex(&String::from_utf8_lossy(&told))
}
