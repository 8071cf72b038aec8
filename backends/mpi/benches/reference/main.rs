//! Tailback's kernels over [`MpiTransport`](tailback_mpi::MpiTransport) against the same loops in C, alternating.
//!
//! Both sides run in the same processes over the same MPI, so that placement, settings and neighbours on the machine
//! are the same for both. A batch is some milliseconds of one kernel; batches of C and Rust take turns, and so does who
//! goes first. Reported: p10 and median over the batches of the time per iteration, on rank 0, and their ratios.
//!
//! Run by `ci/bench mpi`: `mpirun -n 2 reference [batches [first letters of a kernel]]`.

mod ffi;

use std::process::ExitCode;
use std::sync::Arc;

use tailback_mpi::{MpiBootstrap, MpiTransport};
use tailback_transport::{Bootstrap, Error, Group, Monitor, Rank, Result, Span, Tag, Transport};

const BANDWIDTH: usize = 128 << 10;
const WINDOW: usize = 8;
const AREA: usize = WINDOW * BANDWIDTH;
const TO_LEFT: Tag = Tag(1);
const TO_RIGHT: Tag = Tag(2);

/// A kernel on both sides: the number by which C knows it, and one iteration of it over a group.
struct Kernel<G> {
    name: &'static str,
    number: i32,
    iterations: i32,
    iterate: fn(&mut G, &Ring) -> Result<()>,
}

/// This rank's neighbours.
struct Ring {
    left: Rank,
    right: Rank,
}

fn kernels<G: Group>() -> [Kernel<G>; 4] {
    [
        Kernel { name: "ring 8 B", number: 0, iterations: 2000, iterate: exchange },
        Kernel { name: "BW 128 KiB x 8", number: 1, iterations: 10, iterate: bandwidth },
        Kernel { name: "BW+Sync 128 KiB x 8", number: 2, iterations: 10, iterate: bandwidth_sync },
        Kernel {
            name: "allreduce 8 B",
            number: 3,
            iterations: 2000,
            iterate: |group, _| group.allreduce(Span::new(0, 8)),
        },
    ]
}

#[inline]
fn exchange<G: Group>(group: &mut G, ring: &Ring) -> Result<()> {
    group.post_recv(ring.left, TO_RIGHT, Span::new(2 * AREA, 8))?;
    group.post_recv(ring.right, TO_LEFT, Span::new(3 * AREA, 8))?;
    group.post_send(ring.left, TO_LEFT, Span::new(0, 8))?;
    group.post_send(ring.right, TO_RIGHT, Span::new(AREA, 8))?;
    group.wait_all()
}

#[inline]
fn bandwidth<G: Group>(group: &mut G, ring: &Ring) -> Result<()> {
    for i in 0..WINDOW {
        group.post_recv(ring.left, TO_RIGHT, Span::new(2 * AREA + i * BANDWIDTH, BANDWIDTH))?;
        group.post_recv(ring.right, TO_LEFT, Span::new(3 * AREA + i * BANDWIDTH, BANDWIDTH))?;
    }
    for i in 0..WINDOW {
        group.post_send(ring.left, TO_LEFT, Span::new(i * BANDWIDTH, BANDWIDTH))?;
        group.post_send(ring.right, TO_RIGHT, Span::new(AREA + i * BANDWIDTH, BANDWIDTH))?;
    }
    group.wait_all()
}

#[inline]
fn bandwidth_sync<G: Group>(group: &mut G, ring: &Ring) -> Result<()> {
    bandwidth(group, ring)?;
    group.barrier()
}

/// Nanoseconds per iteration of one batch.
fn batch<G: Group>(group: &mut G, kernel: &Kernel<G>, run: impl FnOnce(&mut G) -> Result<()>) -> Result<f64> {
    group.barrier()?;
    let start = group.now();
    run(group)?;
    Ok(group.now().since(start).as_secs_f64() * 1e9 / f64::from(kernel.iterations))
}

fn compare<G: Group>(group: &mut G, ring: &Ring, kernel: &Kernel<G>, batches: usize) -> Result<[Vec<f64>; 2]> {
    let mut times = [Vec::with_capacity(batches), Vec::with_capacity(batches)];
    // One round more than asked for: the first is the warm-up.
    for round in 0..=batches {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let time = match side {
                0 => batch(group, kernel, |_| in_c(kernel.number, kernel.iterations))?,
                _ => batch(group, kernel, |group| {
                    (0..kernel.iterations).try_for_each(|_| (kernel.iterate)(group, ring))
                })?,
            };
            if round > 0 {
                times[side].push(time);
            }
        }
    }
    Ok(times)
}

fn in_c(number: i32, iterations: i32) -> Result<()> {
    let code = ffi::run(number, iterations);
    if code == 0 {
        return Ok(());
    }
    Err(Error::Library { call: "reference_run", peer: None, code: code.into(), message: "the C loop failed".into() })
}

fn quantile(times: &mut [f64], q: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(q * (times.len() - 1) as f64).round() as usize]
}

#[allow(clippy::print_stdout)]
fn compare_all(bootstrap: &mut MpiBootstrap, transport: &mut MpiTransport, batches: usize) -> Result<()> {
    let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&members, 4 * AREA)?;
    let (rank, size) = (group.rank().index(), group.size());
    let ring = Ring { left: Rank::from((rank + size - 1) % size), right: Rank::from((rank + 1) % size) };
    if rank == 0 {
        println!("{}, {size} ranks, {batches} batches a side; times in us per iteration", transport.describe().library);
        println!(
            "{:20} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}",
            "kernel", "C p10", "Rust p10", "C median", "Rust med.", "p10 R/C", "med. R/C"
        );
    }
    let chosen = std::env::args().nth(2).unwrap_or_default();
    for kernel in kernels().into_iter().filter(|kernel| kernel.name.starts_with(&chosen)) {
        let [mut c, mut rust] = compare(&mut group, &ring, &kernel, batches)?;
        let [c10, r10] = [&mut c, &mut rust].map(|times| quantile(times, 0.1) * 1e-3);
        let [c50, r50] = [&mut c, &mut rust].map(|times| quantile(times, 0.5) * 1e-3);
        if rank == 0 {
            let (p10, median) = (r10 / c10, r50 / c50);
            println!("{:20} {c10:10.3} {r10:10.3} {c50:10.3} {r50:10.3} {p10:9.3} {median:9.3}", kernel.name);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let batches = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200);
    let (mut bootstrap, mut transport) = match tailback_mpi::init(Arc::new(Monitor::new()), None) {
        Ok(planes) => planes,
        Err(error) => {
            eprintln!("tailback: error: {error}");
            return ExitCode::from(2);
        }
    };
    if ffi::open() != 0 {
        bootstrap.abort("the C loops could not be set up");
    }
    if let Err(error) = compare_all(&mut bootstrap, &mut transport, batches) {
        bootstrap.abort(&error.to_string());
    }
    if ffi::close() != 0 {
        bootstrap.abort("the C loops could not be ended");
    }
    ExitCode::SUCCESS
}
