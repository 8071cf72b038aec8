//! MPI as the network under test, or as the bootstrap of another one.

use std::sync::Arc;

use tailback_mpi::MpiBootstrap;
use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Monitor, Rank};

use super::tcp;
use crate::session::{self, Request};

pub(super) fn state() -> String {
    "built in: start it with this MPI's own launcher".into()
}

/// The MPI launcher that started this process, if one did.
pub(super) fn launcher() -> Option<String> {
    tailback_mpi::launcher().map(|launcher| launcher.to_string())
}

pub(super) fn over_mpi(request: &Request, _launcher: &str) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let (mut bootstrap, mut transport) =
        tailback_mpi::init(Arc::clone(&monitor), request.stall_limit()).map_err(|error| error.to_string())?;
    Ok(session::run(request, &mut bootstrap, &mut transport, &monitor))
}

/// Sockets between ranks that MPI brought together.
pub(super) fn tcp_over_mpi_bootstrap(request: &Request, _launcher: &str) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let (mut bootstrap, _mpi) =
        tailback_mpi::init(Arc::clone(&monitor), request.stall_limit()).map_err(|error| error.to_string())?;
    let opened = shared_secret(&mut bootstrap).and_then(|secret| tcp::open(request, &mut bootstrap, &secret));
    match opened {
        Ok(mut transport) => Ok(session::run(request, &mut bootstrap, &mut transport, &monitor)),
        Err(error) => session::give_up(&bootstrap, &error),
    }
}

/// A new secret from rank 0, told over MPI.
fn shared_secret(bootstrap: &mut MpiBootstrap) -> tailback_transport::Result<Secret> {
    let mine = if bootstrap.rank() == Rank(0) { Secret::random()?.to_hex() } else { String::new() };
    let told = bootstrap.broadcast(mine.into_bytes())?;
    Secret::from_hex(&String::from_utf8_lossy(&told))
}
