//! Plain sockets, under any bootstrap.

use tailback_tcp::{Secret, TcpConfig, TcpTransport};
use tailback_transport::{Bootstrap, Error, Result, traffic_class};

use super::Settings;

/// Whether the options mean something.
pub(super) fn check(settings: &Settings) -> std::result::Result<(), String> {
    class(settings)?;
    settings.wish().check(settings.rails())?;
    settings.congestion_control.as_deref().map_or(Ok(()), tailback_tcp::has_congestion_control)
}

fn class(settings: &Settings) -> std::result::Result<u8, String> {
    settings.traffic_class.as_deref().map_or(Ok(0), traffic_class)
}

/// The transport, for ranks that share `secret`.
pub(super) fn open(settings: &Settings, bootstrap: &mut impl Bootstrap, secret: &Secret) -> Result<TcpTransport> {
    let config = TcpConfig {
        wish: settings.wish(),
        rails: settings.rails(),
        wait: settings.wait,
        traffic_class: class(settings).map_err(Error::Setup)?,
        congestion_control: settings.congestion_control.clone(),
        secret: secret.clone(),
    };
    TcpTransport::open(bootstrap, &config)
}
