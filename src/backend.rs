//! Chooses how the ranks come together and what they measure. The only place that knows which backends are compiled in.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use tailback_tcp::launch::{self, LaunchOptions};
use tailback_tcp::{JoinConfig, TcpBootstrap, TcpConfig, TcpTransport};
use tailback_transport::{Collective, Monitor};

use crate::plan::Preset;
use crate::session::{self, Request};

/// Ranks that are started on this machine when there is no launcher.
const LOCAL_RANKS: usize = 10;

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
pub fn start(request: Request) -> Result<u8, String> {
    match JoinConfig::from_env().map_err(|error| error.to_string())? {
        Some(config) => over_tcp(request, config),
        None => locally(&request),
    }
}

fn over_tcp(request: Request, mut config: JoinConfig) -> Result<u8, String> {
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
    let code = match TcpTransport::open(&mut bootstrap, tcp) {
        Ok(raw) => session::run(&request, &mut bootstrap, &mut Collective::new(raw), &monitor),
        Err(error) => session::give_up(&bootstrap, &error),
    };
    bootstrap.finish().map_err(text)?;
    Ok(code)
}

/// No launcher: this very command, as ranks on this machine.
fn locally(request: &Request) -> Result<u8, String> {
    // Mistakes are said once, here, rather than by a rank.
    let plan = request.resolve(Preset::Quick)?;
    let ranks = request.transport.ranks.unwrap_or(LOCAL_RANKS);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command: Vec<OsString> = vec![program.into()];
    command.extend(std::env::args_os().skip(1));
    if plan.ranks_per_node.is_none() {
        command.extend(["--ranks-per-node".into(), "1".into()]);
    }
    if !request.names_preset() {
        command.extend(["--preset".into(), plan.preset.to_string().into()]);
    }
    let nodes = ranks.div_ceil(plan.ranks_per_node.unwrap_or(1));
    request.say(&format!(
        "no launcher: starting {ranks} ranks on this machine as {nodes} virtual nodes, {} plan. \
         They share this machine's cores, so what follows is the cores' congestion as much as a network's.",
        plan.preset
    ));
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = Duration::from_secs(5);
    let code = launch::run(&options).map_err(|error| error.to_string())?;
    Ok(u8::try_from(code).unwrap_or(2))
}
