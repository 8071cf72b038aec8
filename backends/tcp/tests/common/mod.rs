//! Jobs whose ranks are threads: the bootstrap is the loopback's, the data goes over real sockets.

use std::fmt;
use std::net::IpAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tailback_bootstrap::Secret;
use tailback_bootstrap::address::Selection;
use tailback_engine::Engine;
use tailback_host::WaitMode;
use tailback_tcp::{TcpConfig, TcpTransport, open};
use tailback_testkit::loopback::{self, LoopbackBootstrap};
use tailback_transport::{Bootstrap, Rank};

/// The secret of every test's job.
pub const SECRET: Secret = Secret::from_bytes([42; 32]);

/// No test of a healthy backend takes this long, however loaded the machine.
const LIMIT: Duration = Duration::from_secs(240);

/// What a rank passes to open its transport.
pub fn config(wait: WaitMode) -> TcpConfig {
    TcpConfig {
        addresses: Selection::default(),
        rails: 1,
        wait: Some(wait),
        traffic_class: 0,
        congestion_control: None,
        secret: SECRET,
    }
}

/// Likewise, with rails: a rank has so many addresses of loopback's for itself.
pub fn config_with_rails(wait: WaitMode, rails: usize, rank: Rank) -> TcpConfig {
    let address = |rail: usize| IpAddr::from([127, 7, rank.0 as u8 + 1, rail as u8 + 1]);
    let addresses = Selection { interfaces: Vec::new(), addresses: (0..rails).map(address).collect() };
    TcpConfig { addresses, rails, ..config(wait) }
}

/// Runs `body` as each of `size` ranks with an open transport; the results in rank order. Ends the process if it hangs.
pub fn run<R: Send, E: Send + fmt::Display>(
    size: usize,
    wait: WaitMode,
    body: impl Fn(LoopbackBootstrap, TcpTransport) -> Result<R, E> + Sync,
) -> Vec<R> {
    run_with(size, |_| config(wait), body)
}

/// Likewise, with what each rank passes.
pub fn run_with<R: Send, E: Send + fmt::Display>(
    size: usize,
    config: impl Fn(Rank) -> TcpConfig + Sync,
    body: impl Fn(LoopbackBootstrap, TcpTransport) -> Result<R, E> + Sync,
) -> Vec<R> {
    let (done, finished) = mpsc::channel::<()>();
    let name = thread::current().name().unwrap_or("a test").to_owned();
    thread::spawn(move || {
        if finished.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{name}: no end after {} s", LIMIT.as_secs());
            std::process::exit(101);
        }
    });
    let outcome = loopback::run(size, |mut bootstrap, _| {
        let config = config(bootstrap.rank());
        let transport = open(&mut bootstrap, &config).expect("open");
        body(bootstrap, transport)
    });
    drop(done);
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// A group of all ranks.
pub fn everyone(transport: &mut TcpTransport, size: usize, segment: usize) -> usize {
    let members: Vec<Rank> = (0..size).map(Rank::from).collect();
    transport.make_group(&members, segment).expect("a group of all ranks").slot
}

/// Bytes that tell where they are, and whose.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect()
}

/// A part of this rank's segment.
pub fn read(transport: &TcpTransport, group: usize, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    transport.read(group, offset, &mut bytes);
    bytes
}
