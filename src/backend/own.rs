//! Tailback's own bootstrap, under any raw network.

use std::sync::Arc;

use tailback_tcp::{Interrupt, JoinConfig, Secret, TcpBootstrap};
use tailback_transport::{Bootstrap, Error, Monitor, Rank, Result as TransportResult};

use super::agree::run_agreed;
use super::open::open_raw;
use super::pair::open_raw_pair;
use super::{Network, Networks, PairVisitor, RoleSettings, Settings, Variant, Visitor, Work};

/// Ranks that found each other through Tailback's own bootstrap.
pub(super) fn over_own_bootstrap<W: Work>(
    request: &W,
    mut config: JoinConfig,
    variants: Vec<Variant>,
) -> Result<u8, String> {
    let text = |error: Error| error.to_string();
    config.stall_limit = request.stall_limit();
    config.interrupt = request.interrupt().map(Interrupt::new);
    let secret = config.secret.clone();
    let monitor = Arc::new(Monitor::new());
    let bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    let mut networks = OwnNetworks { bootstrap, secret, settings: request.settings(), variants };
    let code = run_agreed(request, &mut networks, &monitor);
    networks.bootstrap.finish().map_err(text)?;
    Ok(code)
}

/// What those ranks can open.
struct OwnNetworks<'a> {
    bootstrap: TcpBootstrap,
    secret: Secret,
    settings: &'a Settings,
    variants: Vec<Variant>,
}

impl Networks for OwnNetworks<'_> {
    type Bootstrap = TcpBootstrap;

    fn bootstrap(&mut self) -> &mut TcpBootstrap {
        &mut self.bootstrap
    }

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn open<V: Visitor + Clone>(&mut self, network: Network, visitor: V) -> TransportResult<V::Output> {
        open_raw(network, self.settings, &mut self.bootstrap, &self.secret, visitor)
    }

    fn open_pair<V: PairVisitor + Clone>(
        &mut self,
        variant: Variant,
        role: &dyn Fn(Rank) -> RoleSettings,
        visitor: V,
    ) -> TransportResult<V::Output> {
        let settings = self.settings.of_role(&role(self.bootstrap.rank()));
        open_raw_pair(variant, &settings, &mut self.bootstrap, &self.secret, visitor)
    }
}
