//! Chooses how the ranks come together and what they measure. The only place that knows which backends are compiled in.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use tailback_tcp::launch::{self, LaunchOptions};
use tailback_tcp::{JoinConfig, TcpBootstrap, TcpConfig, TcpTransport};
use tailback_transport::{Bootstrap, Collective, Monitor, Transport};

use crate::cli::TransportOptions;
use crate::output::Progress;
use crate::session;

/// What a command asks of a backend, and does with the job it is given.
pub trait Work {
    /// How the network under test is reached.
    fn transport(&self) -> &TransportOptions;

    /// How long a rank may make no progress.
    fn stall_limit(&self) -> Option<Duration>;

    /// Whether the user wants results only.
    fn quiet(&self) -> bool;

    /// What to start on this machine when there is no launcher, with every mistake in the request found.
    fn local(&self) -> Result<Local, String>;

    /// Does the work as one rank of a job and gives the exit code. Errors end the whole job.
    fn run<B: Bootstrap, T: Transport>(&self, bootstrap: &mut B, transport: &mut T, monitor: &Arc<Monitor>) -> u8;
}

/// A job on this machine alone.
#[derive(Clone, Debug)]
pub struct Local {
    /// How many ranks, unless the user says.
    pub ranks: usize,
    /// How many of them are a virtual node.
    pub per_node: usize,
    /// What the ranks' command line has beyond this process's own.
    pub arguments: Vec<OsString>,
    /// What is run, for a note to the user.
    pub what: String,
}

/// The compiled-in backends and what each can do here.
pub fn available() -> Vec<(&'static str, String)> {
    vec![("tcp", "ready: plain sockets, nothing to install".into())]
}

/// What launcher, if any, this process sees.
pub fn job_seen() -> String {
    match JoinConfig::from_env() {
        Ok(Some(config)) => format!("rank {} of {}, started by {}", config.rank, config.size, config.launcher),
        Ok(None) => "no launcher: commands that measure start ranks on this machine".into(),
        Err(error) => format!("unusable: {error}"),
    }
}

/// Does the work in the job this process belongs to, or starts one.
pub fn start<W: Work>(work: &W) -> Result<u8, String> {
    match JoinConfig::from_env().map_err(|error| error.to_string())? {
        Some(config) => over_tcp(work, config),
        None => locally(work),
    }
}

fn over_tcp<W: Work>(work: &W, mut config: JoinConfig) -> Result<u8, String> {
    let text = |error: tailback_transport::Error| error.to_string();
    config.stall_limit = work.stall_limit();
    let secret = config.secret.bytes();
    let monitor = Arc::new(Monitor::new());
    let mut bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    let options = work.transport();
    let tcp = TcpConfig {
        interface: options.data_interface.clone(),
        address: options.data_address,
        wait: options.wait,
        secret,
    };
    let code = match TcpTransport::open(&mut bootstrap, &tcp) {
        Ok(raw) => work.run(&mut bootstrap, &mut Collective::new(raw), &monitor),
        Err(error) => session::give_up(&bootstrap, &error),
    };
    bootstrap.finish().map_err(text)?;
    Ok(code)
}

/// No launcher: this very command, as ranks on this machine.
fn locally<W: Work>(work: &W) -> Result<u8, String> {
    // Mistakes are said once, here, rather than by a rank.
    let local = work.local()?;
    let ranks = work.transport().ranks.unwrap_or(local.ranks);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command: Vec<OsString> = vec![program.into()];
    command.extend(std::env::args_os().skip(1));
    command.extend(local.arguments);
    let (nodes, what) = (ranks.div_ceil(local.per_node), local.what);
    if !work.quiet() {
        eprintln!(
            "tailback: no launcher: starting {ranks} ranks on this machine as {nodes} virtual nodes, {what}. \
             They share this machine's cores, so what follows is the cores' congestion as much as a network's."
        );
    }
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = Duration::from_secs(5);
    let progress = Arc::new(Progress::of_launcher(work.quiet()));
    let shown = Arc::clone(&progress);
    options.on_phase = Some(Box::new(move |line| shown.told(line)));
    let code = launch::run(&options).map_err(|error| error.to_string());
    progress.finish();
    let code = code?;
    Ok(u8::try_from(code).unwrap_or(2))
}
