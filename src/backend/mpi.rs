//! MPI as the network under test, or as the bootstrap of another one.

use std::sync::Arc;

use tailback_mpi::{MpiBootstrap, MpiTransport, Threading};
use tailback_tcp::Secret;
use tailback_transport::{Bootstrap, Monitor, Rank, Result as TransportResult, Transport};

use super::agree::run_agreed;
use super::open::open_raw;
use super::pair::{Alone, ThenRaw, Two, open_raw_pair};
use super::{
    Backend, Network, Networks, PairVisitor, RoleSettings, Settings, ThreadLevel, Variant, Visitor, Work, give_up,
};

const COULD_NOT_RUN: u8 = 2;

pub(super) fn state() -> String {
    "built in: start it with this MPI's own launcher".into()
}

/// The MPI launcher that started this process, if one did.
pub(super) fn launcher() -> Option<String> {
    tailback_mpi::launcher().map(|launcher| launcher.to_string())
}

/// Ranks that MPI brought together, over MPI and over raw networks.
pub(super) fn over_mpi<W: Work>(request: &W, _launcher: &str, variants: Vec<Variant>) -> Result<u8, String> {
    let monitor = Arc::new(Monitor::new());
    let Some((mut bootstrap, transport)) = init(request, &monitor)? else { return Ok(COULD_NOT_RUN) };
    let secret = match shared_secret(&mut bootstrap) {
        Ok(secret) => secret,
        Err(error) => give_up(&bootstrap, &error),
    };
    let mut networks = MpiNetworks { bootstrap, transport, secret, settings: request.settings(), variants };
    Ok(run_agreed(request, &mut networks, &monitor))
}

/// What those ranks can open. MPI stays initialised throughout, and is not called while another network is measured.
struct MpiNetworks<'a> {
    bootstrap: MpiBootstrap,
    transport: MpiTransport,
    secret: Secret,
    settings: &'a Settings,
    variants: Vec<Variant>,
}

impl Networks for MpiNetworks<'_> {
    type Bootstrap = MpiBootstrap;

    fn bootstrap(&mut self) -> &mut MpiBootstrap {
        &mut self.bootstrap
    }

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn open<V: Visitor + Clone>(&mut self, network: Network, visitor: V) -> TransportResult<V::Output> {
        if network.backend == Backend::Mpi {
            return Ok(visitor.visit(&mut self.bootstrap, &mut self.transport));
        }
        open_raw(network, self.settings, &mut self.bootstrap, &self.secret, visitor)
    }

    fn open_pair<V: PairVisitor + Clone>(
        &mut self,
        variant: Variant,
        role: &dyn Fn(Rank) -> RoleSettings,
        visitor: V,
    ) -> TransportResult<V::Output> {
        let (settings, secret) = (&self.settings.of_role(&role(self.bootstrap.rank())), &self.secret);
        let over_mpi = |network: Network| network.backend == Backend::Mpi;
        match variant.congestors {
            None if over_mpi(variant.network) => Ok(Alone(visitor).visit(&mut self.bootstrap, &mut self.transport)),
            Some(congestors) if over_mpi(variant.network) => {
                let then = ThenRaw { congestors, settings, secret, visitor };
                then.visit(&mut self.bootstrap, &mut self.transport)
            }
            Some(congestors) if over_mpi(congestors) => {
                let under = UnderMpi { transport: &mut self.transport, visitor };
                open_raw(variant.network, settings, &mut self.bootstrap, secret, under)
            }
            _ => open_raw_pair(variant, settings, &mut self.bootstrap, secret, visitor),
        }
    }
}

/// With the canaries' raw network, does what was to be done with a pair, whose congestors use MPI.
struct UnderMpi<'a, V> {
    transport: &'a mut MpiTransport,
    visitor: V,
}

impl<V: PairVisitor> Visitor for UnderMpi<'_, V> {
    type Output = V::Output;

    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> V::Output {
        self.visitor.visit(bootstrap, &mut Two(transport, self.transport))
    }
}

/// Initialises MPI. A failure is every process's, so only the first of them says so.
fn init<W: Work>(request: &W, monitor: &Arc<Monitor>) -> Result<Option<(MpiBootstrap, MpiTransport)>, String> {
    let settings = request.settings();
    let threads = threading(settings.mpi_thread.unwrap_or_default());
    match tailback_mpi::init(Arc::clone(monitor), request.stall_limit(), threads, settings.wait) {
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
