//! Jobs whose ranks are threads: the bootstrap is the loopback's, the data goes over real sockets.

#![allow(dead_code)]

use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tailback_tcp::{Secret, TcpConfig, TcpTransport, WaitMode};
use tailback_transport::loopback::{self, LoopbackBootstrap};
use tailback_transport::{Rank, RawTransport};

/// The secret of every test's job.
pub const SECRET: Secret = Secret::from_bytes([42; 32]);

/// No test of a healthy backend takes this long, however loaded the machine.
const LIMIT: Duration = Duration::from_secs(240);

/// What a rank passes to open its transport.
pub fn config(wait: WaitMode) -> TcpConfig {
    TcpConfig {
        interface: None,
        address: None,
        wait: Some(wait),
        traffic_class: 0,
        congestion_control: None,
        secret: SECRET,
    }
}

/// Runs `body` as each of `size` ranks with an open transport; the results in rank order. Ends the process if it hangs.
pub fn run<R: Send, E: Send + fmt::Display>(
    size: usize,
    wait: WaitMode,
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
        let transport = TcpTransport::open(&mut bootstrap, &config(wait)).expect("open");
        body(bootstrap, transport)
    });
    drop(done);
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// A group of all ranks.
pub fn everyone(transport: &mut TcpTransport, size: usize, segment: usize) -> <TcpTransport as RawTransport>::Group {
    let members: Vec<Rank> = (0..size).map(Rank::from).collect();
    transport.group(&members, segment).expect("a group of all ranks")
}
