//! Plain sockets, under any bootstrap.

use tailback_tcp::{Secret, TcpConfig, TcpTransport};
use tailback_transport::{Bootstrap, Result};

use super::Settings;

/// The transport, for ranks that share `secret`.
pub(super) fn open(settings: &Settings, bootstrap: &mut impl Bootstrap, secret: &Secret) -> Result<TcpTransport> {
    let config = TcpConfig {
        interface: settings.data_interface.clone(),
        address: settings.data_address,
        wait: settings.wait,
        secret: secret.clone(),
    };
    TcpTransport::open(bootstrap, &config)
}
