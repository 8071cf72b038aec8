//! What a case gets: the two planes, ways to fill and check memory, and a place to record what was wrong.

use std::thread;
use std::time::{Duration, Instant};

use tailback_transport::{Bootstrap, Error, Group, Operation, Rank, Result, Span, Transport};

use super::pattern;
use super::report::Failure;

/// A named check of one promise of the traits.
pub(super) struct Case<B, T> {
    pub(super) name: &'static str,
    /// Operations without which it is skipped.
    pub(super) needs: &'static [Operation],
    /// Runs on every rank. An error is final; wrong data is recorded and the body goes on.
    pub(super) body: fn(&mut Arena<'_, B, T>) -> Result<()>,
}

/// One rank's surroundings while a case runs.
pub(super) struct Arena<'a, B, T> {
    pub(super) bootstrap: &'a mut B,
    pub(super) transport: &'a mut T,
    case: &'static str,
    /// The first thing that was wrong, and how many there were.
    fault: Option<(String, usize)>,
}

impl<'a, B: Bootstrap, T: Transport> Arena<'a, B, T> {
    /// Runs `case` and tells the ranks of each other's faults.
    pub(super) fn run(
        bootstrap: &'a mut B,
        transport: &'a mut T,
        case: &Case<B, T>,
    ) -> std::result::Result<(), Failure> {
        let rank = bootstrap.rank();
        let failure = |rank, detail| Failure { case: case.name, rank, detail };
        let mut arena = Arena { bootstrap, transport, case: case.name, fault: None };
        let outcome = (case.body)(&mut arena);
        let mine = match arena.fault.take() {
            None => String::new(),
            Some((first, 1)) => first,
            Some((first, count)) => format!("{first} (and {} more)", count - 1),
        };
        if let Err(error) = outcome {
            // Wrong data seen before the error is likely its cause.
            let before = if mine.is_empty() { mine } else { format!("{mine}; then ") };
            return Err(failure(rank, format!("{before}{error}")));
        }
        let all = arena.bootstrap.allgather(mine.as_bytes()).map_err(|error| failure(rank, error.to_string()))?;
        match all.iter().position(|fault| !fault.is_empty()) {
            None => Ok(()),
            Some(rank) => Err(failure(Rank::from(rank), String::from_utf8_lossy(&all[rank]).into_owned())),
        }
    }

    /// This rank of the job.
    pub(super) fn rank(&self) -> Rank {
        self.bootstrap.rank()
    }

    /// The size of the job.
    pub(super) fn size(&self) -> usize {
        self.bootstrap.size()
    }

    /// All ranks of the job, in order.
    pub(super) fn everyone(&self) -> Vec<Rank> {
        (0..self.size()).map(Rank::from).collect()
    }

    /// A group of the whole job, in rank order.
    pub(super) fn world(&mut self, segment: usize) -> Result<T::Group> {
        let everyone = self.everyone();
        self.transport.group(&everyone, segment)
    }

    /// `count` repeats, fewer in jobs of more than four ranks: a job's work grows with its size, its processors do not.
    pub(super) fn scaled(&self, count: usize) -> usize {
        (4 * count / self.size().max(4)).max(1)
    }

    /// Names the bytes of one transfer of this case.
    pub(super) fn seed(&self, from: Rank, to: Rank, index: usize) -> u64 {
        pattern::seed(self.case, from, to, index)
    }

    /// Records `fault` unless `holds`.
    pub(super) fn expect(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if holds {
            return;
        }
        match &mut self.fault {
            Some((_, count)) => *count += 1,
            None => self.fault = Some((fault(), 1)),
        }
    }

    /// Checks every byte of `span` of this rank's segment against the pattern of `seed`.
    pub(super) fn verify<G: Group>(&mut self, group: &G, span: Span, seed: u64, what: impl FnOnce() -> String) {
        let mut found = vec![0; span.len];
        group.read(span.offset, &mut found);
        let expected = pattern::bytes(seed, span.len);
        if found != expected {
            let byte = found.iter().zip(&expected).position(|(found, expected)| found != expected).unwrap_or_default();
            let (found, expected) = (found[byte], expected[byte]);
            self.expect(false, || {
                format!("{}: byte {byte} of {} is {found:#04x}, not {expected:#04x}", what(), span.len)
            });
        }
    }
}

/// Writes the pattern of `seed` into `span` of this rank's segment.
pub(super) fn fill<G: Group>(group: &mut G, span: Span, seed: u64) {
    group.write(span.offset, &pattern::bytes(seed, span.len));
}

/// The members after and before `group`'s own, in a ring.
pub(super) fn neighbours<G: Group>(group: &G) -> (Rank, Rank) {
    let (rank, size) = (group.rank().index(), group.size());
    (Rank::from((rank + 1) % size), Rank::from((rank + size - 1) % size))
}

/// Polls until there is an answer. Gives up its time slice in between, for there may be more ranks than processors.
pub(super) fn patiently<R>(operation: &'static str, mut poll: impl FnMut() -> Result<Option<R>>) -> Result<R> {
    const LIMIT: Duration = Duration::from_secs(120);
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some(answer) = poll()? {
            return Ok(answer);
        }
        thread::yield_now();
    }
    let detail = "it never completes although every member has entered".into();
    Err(Error::Timeout { operation, seconds: LIMIT.as_secs_f64(), detail })
}
