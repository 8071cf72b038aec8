//! Whether puts and gets need the process that they are aimed at. No library tells, so it is tried: a put to a rank that
//! sleeps and calls nothing is over at once where an adapter or shared memory serves it, and not before that rank wakes up
//! where the library makes messages of it.
//!
//! Tried between two nodes if there are two, else between two ranks of one.

use std::thread;
use std::time::{Duration, Instant};

use tailback_transport::{Rank, Result, Span};

use crate::ffi::{Comm, Port};

/// How long the target sleeps, and how long the origin lets it fall asleep.
const SLEEP: Duration = Duration::from_millis(80);
const HEAD_START: Duration = Duration::from_millis(20);
/// A put that takes longer did wait for the target, unless the machine was busy: it is tried again.
const AT_ONCE: Duration = Duration::from_millis(30);
const TRIES: u32 = 3;

/// Who serves puts and gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// An adapter, or shared memory.
    Direct,
    /// The target's process; a put to a sleeping one took so long.
    Emulated(Duration),
    /// There was nobody to try it with.
    Unknown,
}

/// Finds out over a window of all ranks. Collective; `lowest` is the lowest rank on this rank's node.
pub(crate) fn service(world: Comm, port: &mut Port, rank: Rank, size: usize, lowest: u64) -> Result<Service> {
    if size < 2 {
        return Ok(Service::Unknown);
    }
    let elsewhere = world.minimum(if lowest == 0 { u64::MAX } else { u64::from(rank.0) })?;
    let target = Rank(u32::try_from(elsewhere).unwrap_or(1));
    let origin = rank == Rank(0);
    // Connections are made while the target can answer.
    if origin {
        put(port, target)?;
    }
    let mut shortest = Duration::MAX;
    for _ in 0..TRIES {
        world.barrier()?;
        let mut took = u64::MAX;
        if rank == target {
            thread::sleep(SLEEP);
        } else if origin {
            thread::sleep(HEAD_START);
            let begin = Instant::now();
            put(port, target)?;
            took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        }
        shortest = shortest.min(Duration::from_micros(world.minimum(took)?));
        if shortest < AT_ONCE {
            return Ok(Service::Direct);
        }
    }
    Ok(Service::Emulated(shortest))
}

fn put(port: &mut Port, target: Rank) -> Result<()> {
    port.put(target, Span::new(0, 8), 0)?;
    port.flush(target)
}

/// What to say of puts and gets that are emulated by this library.
pub(crate) fn remark(library: &str, service: Service) -> Option<String> {
    let Service::Emulated(took) = service else { return None };
    let advice =
        if library.starts_with("Open MPI") { "; with UCX its adapters serve them (--mca osc ucx)" } else { "" };
    Some(format!(
        "{library} emulates put and get by messages, which the target's process has to answer: a put to a rank that slept \
         took {} ms{advice}",
        took.as_millis()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_emulated_is_remarked() {
        assert_eq!(remark("Open MPI 4.1.4", Service::Direct), None);
        assert_eq!(remark("Open MPI 4.1.4", Service::Unknown), None);
        let said = remark("Open MPI 4.1.4", Service::Emulated(Duration::from_millis(91))).expect("a remark");
        assert!(said.contains("emulates put and get") && said.contains("91 ms") && said.contains("osc ucx"), "{said}");
        let said = remark("MPICH 5.0", Service::Emulated(Duration::from_millis(91))).expect("a remark");
        assert!(!said.contains("UCX"), "{said}");
    }
}
