//! The loops of perftest over [`VerbsTransport`]: two ranks on this machine, one loop a run, as perftest's programs do.
//! `ci/bench verbs` runs them in turn with those and compares.
//!
//! - `send_lat`: 8 bytes there and back by messages, half of it (ib_send_lat).
//! - `write_lat`: 8 bytes there and back by puts that the target finds in its memory, half of it (ib_write_lat).
//! - `read_lat`: one get of 8 bytes (ib_read_lat); the other rank sleeps, as perftest's server does.
//! - `write_bw`: puts of 64 KiB, one flush at the end (ib_write_bw); likewise.
//!
//! Latencies are medians in microseconds, the bandwidth is in MiB/s. `fabric LOOP ITERATIONS`

#![allow(clippy::print_stdout)]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use tailback_bootstrap::launch::{self, LaunchOptions, RankSetup};
use tailback_bootstrap::{JoinConfig, TcpBootstrap};
use tailback_engine::{Engine, Lane, Membership};
use tailback_host::{Idle, WaitMode};
use tailback_transport::{Bootstrap, Error, Monitor, Nanos, Rank, Result, Span, Tag};
use tailback_verbs::{VerbsConfig, VerbsTransport};

const LONG: usize = 65_536;
const OUT: Span = Span { offset: 0, len: 8 };
const INTO: Span = Span { offset: 64, len: 8 };

/// A rank, and the group of both.
struct Pair {
    transport: VerbsTransport,
    group: Membership<usize>,
}

/// A loop: its figure after so many iterations.
type Loop = fn(&mut Pair, usize) -> Result<f64>;

const LOOPS: [(&str, Loop); 4] =
    [("send_lat", send_lat), ("write_lat", write_lat), ("read_lat", read_lat), ("write_bw", write_bw)];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = words.first().and_then(|name| LOOPS.iter().find(|(of, _)| of == name));
    let (Some((_, run)), Some(Ok(iterations))) = (chosen, words.get(1).map(|word| word.parse())) else {
        eprintln!("usage: fabric send_lat|write_lat|read_lat|write_bw ITERATIONS (ci/bench verbs calls it)");
        // Cargo's own tests and benches call it without a word.
        return if words.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    let done = match JoinConfig::from_env() {
        Ok(Some(config)) => as_rank(config, *run, iterations).map(|()| 0),
        Ok(None) => start(),
        Err(error) => Err(error),
    };
    match done {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
        Err(error) => {
            eprintln!("fabric: {error}");
            ExitCode::from(2)
        }
    }
}

/// Starts this program again as two ranks, on a core each: the one that measures on the second, as perftest's client is
/// in `ci/bench verbs`, for the first core has the machine's interrupts.
fn start() -> Result<i32> {
    let program = std::env::current_exe().map_err(|source| Error::Io { operation: "start", peer: None, source })?;
    let command = [program.into()].into_iter().chain(std::env::args_os().skip(1)).collect::<Vec<OsString>>();
    let mut options = LaunchOptions::new(2, command);
    options.setup = Box::new(|rank| RankSetup {
        prefix: ["taskset", "-c"].map(Into::into).into_iter().chain([(1 - rank.index()).to_string().into()]).collect(),
        ..RankSetup::default()
    });
    launch::run(&options)
}

fn as_rank(mut config: JoinConfig, run: Loop, iterations: usize) -> Result<()> {
    config.stall_limit = None; // an emulated machine takes its time, and nobody ticks
    let secret = config.secret.clone();
    let mut bootstrap = TcpBootstrap::join(config, Arc::new(Monitor::new()))?;
    let config = VerbsConfig { wait: Some(WaitMode::Spin), ..VerbsConfig::new(secret) };
    let mut transport = tailback_verbs::open(&mut bootstrap, &config)?;
    let group = transport.make_group(&[Rank(0), Rank(1)], 2 * LONG)?;
    let mut pair = Pair { transport, group };
    // Both are connected then.
    meet(&mut pair)?;
    let figure = run(&mut pair, iterations)?;
    if bootstrap.rank() == Rank(0) {
        println!("{figure:.2}");
    }
    // Over the bootstrap, where a rank sleeps: one that spins would take a core from the emulation.
    bootstrap.barrier()?;
    drop(pair);
    bootstrap.finish()
}

/// The median of `iterations` timed calls, after a tenth as many to warm up, in microseconds.
fn median(pair: &mut Pair, iterations: usize, mut step: impl FnMut(&mut Pair, usize) -> Result<()>) -> Result<f64> {
    let warmup = iterations / 10 + 1;
    let mut times = Vec::with_capacity(iterations);
    // One look at the clock for each, as perftest has it.
    let mut before = pair.transport.now();
    for i in 0..warmup + iterations {
        step(pair, i)?;
        let now = pair.transport.now();
        if i >= warmup {
            times.push(now.since(before));
        }
        before = now;
    }
    times.sort_unstable();
    Ok(times.get(iterations / 2).copied().unwrap_or_default().as_secs_f64() * 1e6)
}

fn send_lat(pair: &mut Pair, iterations: usize) -> Result<f64> {
    let (peer, first) = (Rank(1 - pair.group.rank.0), pair.group.rank == Rank(0));
    let round = median(pair, iterations, |pair, _| {
        if first {
            pair.transport.post_send(pair.group.slot, Lane::Data, peer, Tag(1), OUT)?;
        }
        pair.transport.post_recv(pair.group.slot, Lane::Data, peer, Tag(1), INTO)?;
        pair.transport.wait(pair.group.slot, Lane::Data)?;
        if !first {
            pair.transport.post_send(pair.group.slot, Lane::Data, peer, Tag(1), OUT)?;
            pair.transport.wait(pair.group.slot, Lane::Data)?;
        }
        Ok(())
    })?;
    Ok(round / 2.0)
}

/// Both learn where the other's segment is: the one that sleeps later could not say.
fn meet(pair: &mut Pair) -> Result<()> {
    let peer = Rank(1 - pair.group.rank.0);
    pair.transport.put(pair.group.slot, peer, Span::new(128, 8), 192)?;
    pair.transport.flush(pair.group.slot, peer)?;
    // The other's question, too, was answered when its word has come.
    pair.transport.post_send(pair.group.slot, Lane::Data, peer, Tag(2), OUT)?;
    pair.transport.post_recv(pair.group.slot, Lane::Data, peer, Tag(2), INTO)?;
    pair.transport.wait(pair.group.slot, Lane::Data)
}

fn write_lat(pair: &mut Pair, iterations: usize) -> Result<f64> {
    let (peer, first) = (Rank(1 - pair.group.rank.0), pair.group.rank == Rank(0));
    meet(pair)?;
    let round = median(pair, iterations, |pair, i| {
        let number = (i as u64 + 1).to_le_bytes();
        // Two places in turn: the answer to a number proves that the put of the one before has left its place.
        let out = Span::new(16 * (i % 2), 8);
        pair.transport.write(pair.group.slot, out.offset, &number);
        if first {
            pair.transport.put(pair.group.slot, peer, out, INTO.offset)?;
        }
        let mut found = [0; 8];
        while found != number {
            pair.transport.progress(Idle::Return)?;
            pair.transport.read(pair.group.slot, INTO.offset, &mut found);
        }
        if first { Ok(()) } else { pair.transport.put(pair.group.slot, peer, out, INTO.offset) }
    })?;
    pair.transport.flush(pair.group.slot, peer)?;
    Ok(round / 2.0)
}

fn read_lat(pair: &mut Pair, iterations: usize) -> Result<f64> {
    meet(pair)?;
    if pair.group.rank != Rank(0) {
        return Ok(0.0);
    }
    median(pair, iterations, |pair, _| {
        pair.transport.get(pair.group.slot, Rank(1), INTO, 0)?;
        pair.transport.flush(pair.group.slot, Rank(1))
    })
}

fn write_bw(pair: &mut Pair, iterations: usize) -> Result<f64> {
    meet(pair)?;
    if pair.group.rank != Rank(0) {
        return Ok(0.0);
    }
    let stream = |pair: &mut Pair, count: usize| -> Result<Nanos> {
        let before = pair.transport.now();
        for _ in 0..count {
            pair.transport.put(pair.group.slot, Rank(1), Span::new(0, LONG), LONG)?;
        }
        pair.transport.flush(pair.group.slot, Rank(1))?;
        Ok(pair.transport.now().since(before))
    };
    stream(pair, iterations / 10 + 1)?;
    let time = stream(pair, iterations)?;
    Ok((iterations * LONG) as f64 / time.as_secs_f64() / f64::from(1 << 20))
}
