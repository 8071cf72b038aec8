//! Chooses how the ranks come together and what they measure. The only place that knows which backends are compiled in.

use std::sync::Arc;

use tailback_tcp::{JoinConfig, TcpBootstrap, TcpConfig, TcpTransport};
use tailback_transport::{Collective, Monitor};

use crate::lab::LabSpec;
use crate::local;
use crate::session::{self, Request};

/// The compiled-in backends and what each can do here.
pub fn available() -> Vec<(&'static str, String)> {
    vec![("tcp", "ready: plain sockets, nothing to install".into())]
}

/// What launcher, if any, this process sees.
pub fn job_seen() -> String {
    match JoinConfig::from_env() {
        Ok(Some(config)) => format!("rank {} of {}, started by {}", config.rank, config.size, config.launcher),
        Ok(None) => "no launcher: `run`, `network` and `congest` start ranks on this machine".into(),
        Err(error) => format!("unusable: {error}"),
    }
}

/// Runs the request in the job this process belongs to, or starts one.
pub fn start(request: &Request) -> Result<u8, String> {
    match JoinConfig::from_env().map_err(|error| error.to_string())? {
        Some(config) => over_tcp(request, config),
        None => local::run(request),
    }
}

/// The same in an emulated cluster of this shape; in a rank of it, the request itself.
pub fn start_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    match JoinConfig::from_env().map_err(|error| error.to_string())? {
        Some(config) => over_tcp(request, config),
        None => local::run_in_lab(request, spec),
    }
}

fn over_tcp(request: &Request, mut config: JoinConfig) -> Result<u8, String> {
    let text = |error: tailback_transport::Error| error.to_string();
    config.stall_limit = request.stall_limit();
    let secret = config.secret.bytes();
    let monitor = Arc::new(Monitor::new());
    let mut bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    let options = &request.transport;
    let tcp = TcpConfig {
        interface: options.data_interface.clone(),
        address: options.data_address,
        wait: options.wait,
        secret,
    };
    let code = match TcpTransport::open(&mut bootstrap, &tcp) {
        Ok(raw) => session::run(request, &mut bootstrap, &mut Collective::new(raw), &monitor),
        Err(error) => session::give_up(&bootstrap, &error),
    };
    bootstrap.finish().map_err(text)?;
    Ok(code)
}
