//! Plain sockets, under any bootstrap.

use std::sync::Arc;

use tailback_tcp::{JoinConfig, Secret, TcpBootstrap, TcpConfig, TcpTransport};
use tailback_transport::{Bootstrap, Collective, Error, Monitor, Result as TransportResult};

use super::Work;
use crate::session;

/// Ranks that found each other through Tailback's own bootstrap.
pub(super) fn over_own_bootstrap<W: Work>(request: &W, mut config: JoinConfig) -> Result<u8, String> {
    let text = |error: Error| error.to_string();
    config.stall_limit = request.stall_limit();
    let secret = config.secret.clone();
    let monitor = Arc::new(Monitor::new());
    let mut bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    let code = match open(request, &mut bootstrap, &secret) {
        Ok(mut transport) => request.run(&mut bootstrap, &mut transport, &monitor),
        Err(error) => session::give_up(&bootstrap, &error),
    };
    bootstrap.finish().map_err(text)?;
    Ok(code)
}

/// The transport, for ranks that share `secret`.
pub(super) fn open<W: Work>(
    request: &W,
    bootstrap: &mut impl Bootstrap,
    secret: &Secret,
) -> TransportResult<Collective<TcpTransport>> {
    let options = request.transport();
    let config = TcpConfig {
        interface: options.data_interface.clone(),
        address: options.data_address,
        wait: options.wait,
        secret: secret.clone(),
    };
    TcpTransport::open(bootstrap, &config).map(Collective::new)
}
