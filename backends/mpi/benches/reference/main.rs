//! Tailback's kernels over [`MpiTransport`](tailback_mpi::MpiTransport) against the same loops in C, alternating.
//!
//! All sides run in the same processes over the same MPI, so that placement, settings and neighbours on the machine
//! are the same for them. A batch is some milliseconds of one kernel; batches of C, Rust and C once more take turns, and
//! so does who goes first. The second C shows by how much two sides differ that do the same. Rank 0 prints a line for
//! each batch: kernel, side and the microseconds of an iteration, with tabs between.
//!
//! Run by `ci/bench mpi-loops`, which sums up: `mpirun -n 2 reference [batches [first letters of a kernel]]`.

mod ffi;

use std::process::ExitCode;
use std::sync::Arc;

use tailback_mpi::{MpiBootstrap, MpiTransport, Threading};
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

/// Microseconds per iteration of one batch. The sides have buffers of their own, so the first iterations, not timed, find
/// them where the side before has left them in the caches.
fn batch<G: Group>(group: &mut G, kernel: &Kernel<G>, run: impl Fn(&mut G, i32) -> Result<()>) -> Result<f64> {
    run(group, kernel.iterations / 5)?;
    group.barrier()?;
    let start = group.now();
    run(group, kernel.iterations)?;
    Ok(group.now().since(start).as_secs_f64() * 1e6 / f64::from(kernel.iterations))
}

/// Who does the work of a batch.
const SIDES: [&str; 3] = ["C", "Rust", "C again"];

#[allow(clippy::print_stdout)]
fn compare<G: Group>(group: &mut G, ring: &Ring, kernel: &Kernel<G>, batches: usize) -> Result<()> {
    // One round more than asked for: the first is the warm-up.
    for round in 0..=batches {
        for turn in 0..SIDES.len() {
            let side = SIDES[(round + turn) % SIDES.len()];
            let time = batch(group, kernel, |group, iterations| match side {
                "Rust" => (0..iterations).try_for_each(|_| (kernel.iterate)(group, ring)),
                _ => in_c(kernel.number, iterations),
            })?;
            if round > 0 && group.rank() == Rank(0) {
                println!("{}\t{side}\t{time:.4}", kernel.name);
            }
        }
    }
    Ok(())
}

fn in_c(number: i32, iterations: i32) -> Result<()> {
    let code = ffi::run(number, iterations);
    if code == 0 {
        return Ok(());
    }
    Err(Error::Library { call: "reference_run", peer: None, code: code.into(), message: "the C loop failed".into() })
}

fn compare_all(bootstrap: &mut MpiBootstrap, transport: &mut MpiTransport, batches: usize) -> Result<()> {
    let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&members, 4 * AREA)?;
    let (rank, size) = (group.rank().index(), group.size());
    let ring = Ring { left: Rank::from((rank + size - 1) % size), right: Rank::from((rank + 1) % size) };
    let chosen = std::env::args().nth(2).unwrap_or_default();
    let mut chosen = kernels().into_iter().filter(|kernel| kernel.name.starts_with(&chosen));
    chosen.try_for_each(|kernel| compare(&mut group, &ring, &kernel, batches))
}

fn main() -> ExitCode {
    let batches = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200);
    let planes = tailback_mpi::init(Arc::new(Monitor::new()), None, Threading::Single, None);
    let (mut bootstrap, mut transport) = match planes {
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
