//! Packet hops per second, on one core: a fat tree of 1,024 nodes, lossless, adaptive, a permutation of 2 MB messages in
//! 4 KiB packets, every packet acknowledged.

use std::time::Instant;

use tailback_sim::machine::Machine;
use tailback_sim::net::{Network, Send};
use tailback_sim::rng::Rng;

#[allow(clippy::print_stdout)]
fn main() {
    let machine = Machine::load("fat-tree-1024").expect("a shipped machine");
    let started = Instant::now();
    let mut network = Network::new(&machine, 1).expect("a sound machine");
    let made = started.elapsed();
    let endpoints = machine.endpoints() as u32;
    for (from, to) in permutation(endpoints).into_iter().enumerate() {
        let send = Send { from: from as u32, to, class: 0, bytes: 2_000_000, token: 0, acknowledge: true };
        network.send(0, send);
    }
    let (started, before) = (Instant::now(), cpu_seconds());
    network.run();
    let (wall, seconds) = (started.elapsed().as_secs_f64(), cpu_seconds() - before);
    let (work, audit) = (network.work(), network.audit());
    assert!(audit.is_clean(), "{audit:?}");
    println!("fat tree of 1,024 nodes, permutation of 2 MB in 4 KiB packets, lossless, adaptive, acknowledged");
    println!("  made in {:.1} ms; simulated {:.1} us", 1e3 * made.as_secs_f64(), network.now() as f64 / 1e6);
    println!("  {} hops, {} events in {seconds:.2} s of one core ({wall:.2} s by the clock)", work.hops, work.events);
    println!(
        "  {:.2} million hops/s, {:.2} million events/s",
        work.hops as f64 / seconds / 1e6,
        work.events as f64 / seconds / 1e6
    );
    println!("  peak memory {} MB", peak_mb());
}

/// Everyone sends to one and receives from one, nobody from itself.
fn permutation(size: u32) -> Vec<u32> {
    let mut rng = Rng::new(7);
    let mut to: Vec<u32> = (0..size).collect();
    // Sattolo's shuffle: one cycle.
    for at in (1..size as usize).rev() {
        to.swap(at, rng.below(at as u32) as usize);
    }
    to
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Processor time of this process: on a machine that others use too, it says more than the clock.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, in hundredths of a second.
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
