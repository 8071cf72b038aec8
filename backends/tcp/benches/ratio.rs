//! What the data plane costs over a bare socket: the same traffic over [`TcpTransport`] and over a plain TCP stream
//! with the same wait mode, in alternating batches of one run, so that noise of the machine meets both.
//!
//! A latency ratio is ours / bare (lower is better), a bandwidth ratio too is ours / bare (higher is better): each the
//! median over pairs of neighbouring batches. Ranks are two threads. Nothing is asserted here.
//!
//! `cargo bench -p tailback-tcp --bench ratio [-- NAME_PART [BATCHES]]`; without cargo's `--bench` flag (as under
//! `cargo test --benches`) one small batch of each only shows that it runs.

#![allow(clippy::print_stdout)]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tailback_bootstrap::Secret;
use tailback_bootstrap::address::Selection;
use tailback_engine::{Engine, Lane};
use tailback_host::WaitMode;
use tailback_tcp::{TcpConfig, TcpTransport};
use tailback_testkit::loopback;
use tailback_transport::{Bootstrap, Rank, Result, Span, Tag};

const SEGMENT: usize = 1 << 20;
const LONG: usize = 128 * 1024;

#[derive(Clone, Copy)]
enum Traffic {
    /// 8 bytes there and back.
    PingPong,
    /// 128 KiB messages one way, an answer at the end.
    Stream,
    /// Puts of 8 bytes, each flushed; bare: 8 bytes there and an answer.
    PutFlush,
}

struct Plan {
    traffic: Traffic,
    wait: WaitMode,
    /// Ranks of the job; those beyond two are idle. A job of two has a shorter way to block.
    ranks: usize,
    batches: usize,
    per_batch: usize,
}

impl Plan {
    fn name(&self) -> String {
        let traffic = match self.traffic {
            Traffic::PingPong => "pingpong_8B",
            Traffic::Stream => "stream_128KiB",
            Traffic::PutFlush => "putflush_8B",
        };
        let ranks = if self.ranks == 2 { String::new() } else { format!("_of_{}", self.ranks) };
        format!("tcp_{traffic}_{}{ranks}", self.wait)
    }
}

/// A bare stream that waits as the mode says.
struct Bare {
    stream: TcpStream,
    wait: WaitMode,
    buffer: Vec<u8>,
}

impl Bare {
    fn read(&mut self, len: usize) {
        let mut got = 0;
        while got < len {
            match self.stream.read(&mut self.buffer[got..len]) {
                Ok(0) => panic!("the bare stream was closed"),
                Ok(n) => got += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.idle(),
                Err(e) => panic!("bare read: {e}"),
            }
        }
    }

    fn write(&mut self, len: usize) {
        let mut put = 0;
        while put < len {
            match self.stream.write(&self.buffer[put..len]) {
                Ok(n) => put += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.idle(),
                Err(e) => panic!("bare write: {e}"),
            }
        }
    }

    fn idle(&self) {
        if self.wait == WaitMode::Yield {
            std::thread::yield_now();
        }
    }

    fn batch(&mut self, plan: &Plan, leads: bool) {
        match plan.traffic {
            Traffic::PingPong | Traffic::PutFlush => {
                for _ in 0..plan.per_batch {
                    if leads {
                        self.write(8);
                        self.read(8);
                    } else {
                        self.read(8);
                        self.write(8);
                    }
                }
            }
            Traffic::Stream => {
                for _ in 0..plan.per_batch {
                    if leads { self.write(LONG) } else { self.read(LONG) }
                }
                if leads { self.read(8) } else { self.write(8) }
            }
        }
    }
}

fn ours(transport: &mut TcpTransport, group: usize, plan: &Plan, leads: bool) -> Result<()> {
    let peer = Rank::from(usize::from(leads));
    let (out, back) = (Span::new(0, 8), Span::new(8, 8));
    match plan.traffic {
        Traffic::PingPong => {
            for _ in 0..plan.per_batch {
                transport.post_recv(group, Lane::Data, peer, Tag(0), back)?;
                if !leads {
                    transport.wait(group, Lane::Data)?;
                }
                transport.post_send(group, Lane::Data, peer, Tag(0), out)?;
                transport.wait(group, Lane::Data)?;
            }
        }
        Traffic::PutFlush if leads => {
            for _ in 0..plan.per_batch {
                transport.put(group, peer, out, 8)?;
                transport.flush(group, peer)?;
            }
            transport.post_send(group, Lane::Data, peer, Tag(0), out)?;
            transport.wait(group, Lane::Data)?;
        }
        Traffic::PutFlush => {
            transport.post_recv(group, Lane::Data, peer, Tag(0), back)?;
            transport.wait(group, Lane::Data)?;
        }
        Traffic::Stream => {
            let span = Span::new(LONG, LONG);
            for _ in 0..plan.per_batch {
                if leads {
                    transport.post_send(group, Lane::Data, peer, Tag(1), span)?;
                } else {
                    transport.post_recv(group, Lane::Data, peer, Tag(1), span)?;
                }
                transport.wait(group, Lane::Data)?;
            }
            if leads {
                transport.post_recv(group, Lane::Data, peer, Tag(2), back)?;
            } else {
                transport.post_send(group, Lane::Data, peer, Tag(2), out)?;
            }
            transport.wait(group, Lane::Data)?;
        }
    }
    Ok(())
}

/// Seconds of each batch as the leading rank saw it: (ours, bare).
fn measure(plan: &Plan) -> Vec<(f64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let times = Mutex::new(Vec::new());
    let body = |mut bootstrap: loopback::LoopbackBootstrap, _| -> Result<()> {
        let leads = bootstrap.rank() == Rank(0);
        let config = TcpConfig {
            addresses: Selection::default(),
            rails: 1,
            wait: Some(plan.wait),
            traffic_class: 0,
            congestion_control: None,
            secret: Secret::from_bytes([7; 32]),
        };
        let mut transport = tailback_tcp::open(&mut bootstrap, &config)?;
        if bootstrap.rank() > Rank(1) {
            return bootstrap.barrier();
        }
        let group = transport.make_group(&[Rank(0), Rank(1)], SEGMENT)?.slot;
        let stream = if leads { TcpStream::connect(address) } else { listener.accept().map(|(stream, _)| stream) };
        let stream = stream.expect("the bare stream");
        stream.set_nodelay(true).expect("nodelay");
        stream.set_nonblocking(plan.wait != WaitMode::Block).expect("non-blocking");
        let mut bare = Bare { stream, wait: plan.wait, buffer: vec![0; LONG] };
        for batch in 0..plan.batches + 2 {
            let start = Instant::now();
            ours(&mut transport, group, plan, leads)?;
            let middle = Instant::now();
            bare.batch(plan, leads);
            let pair = ((middle - start).as_secs_f64(), middle.elapsed().as_secs_f64());
            // The first two warm up connections, buffers and the machine.
            if leads && batch >= 2 {
                times.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
            }
        }
        bootstrap.barrier()
    };
    loopback::Job::new(plan.ranks).limit(Duration::from_secs(3600)).run(body).expect("the run");
    times.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(plan: &Plan) {
    let times = measure(plan);
    let (ours, bare) = (median(times.iter().map(|t| t.0)), median(times.iter().map(|t| t.1)));
    let count = plan.per_batch as f64;
    let (name, batches) = (plan.name(), plan.batches);
    match plan.traffic {
        Traffic::Stream => {
            let ratio = median(times.iter().map(|t| t.1 / t.0));
            let rate = |seconds: f64| count * LONG as f64 / seconds * 1e-9;
            println!(
                "{name} ratio {ratio:.3} (ours {:.2} GB/s, bare {:.2} GB/s, {batches} batches)",
                rate(ours),
                rate(bare)
            );
        }
        Traffic::PingPong | Traffic::PutFlush => {
            let ratio = median(times.iter().map(|t| t.0 / t.1));
            let halves = if matches!(plan.traffic, Traffic::PingPong) { 2.0 } else { 1.0 };
            let micros = |seconds: f64| seconds / count / halves * 1e6;
            println!(
                "{name} ratio {ratio:.3} (ours {:.2} us, bare {:.2} us, {batches} batches)",
                micros(ours),
                micros(bare)
            );
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let measured = args.iter().any(|a| a == "--bench");
    let mut words = args.iter().filter(|a| !a.starts_with('-'));
    let part = words.next().cloned().unwrap_or_default();
    let batches = words.next().and_then(|n| n.parse().ok()).unwrap_or(40);
    for (wait, ranks) in [(WaitMode::Spin, 2), (WaitMode::Yield, 2), (WaitMode::Block, 2), (WaitMode::Block, 3)] {
        for (traffic, per_batch) in [(Traffic::PingPong, 4000), (Traffic::Stream, 400), (Traffic::PutFlush, 4000)] {
            let plan = Plan { traffic, wait, ranks, batches, per_batch };
            let plan = if measured { plan } else { Plan { batches: 1, per_batch: 4, ..plan } };
            if plan.name().contains(&part) {
                report(&plan);
            }
        }
    }
}
