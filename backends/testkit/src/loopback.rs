//! The backend for tests: the ranks of a job are threads of one process, and the network is memory.
//!
//! It is correct, and as unhelpful as the traits allow, so that code which passes here has not been lucky:
//! - puts and gets take effect in their flush, never earlier;
//! - ranks that wait sleep on a condition variable; ranks that poll in vain give up their time slice.
//!
//! A [`Fault`] can delay ranks and change bytes under way. A call that waits longer than the job's limit fails and says
//! for what it waited. When one rank fails, every other rank's next call fails and names it.
//!
//! Out of scope: speed, and memory limits (a message is held by its receiver however large it is).

mod bootstrap;
mod engine;
mod fault;
mod matching;
mod shared;

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tailback_transport::{Capabilities, Rank};

use shared::Shared;

pub use bootstrap::LoopbackBootstrap;
pub use engine::Loopback;
pub use fault::{Fault, Transfer};

/// A job to be: how many ranks, on which hosts, with which faults.
#[derive(Clone)]
pub struct Job {
    hosts: Vec<String>,
    limit: Duration,
    fault: Option<Arc<dyn Fault>>,
    capabilities: Capabilities,
}

impl Job {
    /// A job of `size` ranks on one host, without faults; a call that waits for more than a minute fails.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Job {
            hosts: vec!["loopback".into(); size],
            limit: Duration::from_secs(60),
            fault: None,
            capabilities: Capabilities::all(),
        }
    }

    /// The host of every rank; sets the size too.
    #[must_use]
    pub fn hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }

    /// How long a call may wait before it fails.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// What goes wrong on purpose.
    #[must_use]
    pub fn fault(mut self, fault: impl Fault + 'static) -> Self {
        self.fault = Some(Arc::new(fault));
        self
    }

    /// What the network can do, instead of everything.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The two planes of every rank, in rank order, for callers that make their own threads.
    #[must_use]
    pub fn ranks(self) -> Vec<(LoopbackBootstrap, Loopback)> {
        let shared = Arc::new(Shared::new(self.hosts, self.limit, self.fault, self.capabilities));
        (0..shared.size()).map(|rank| planes(&shared, Rank::from(rank))).collect()
    }

    /// Runs `body` as every rank on a thread of its own; the results in rank order.
    ///
    /// # Errors
    /// What the first rank to fail returned; the other ranks' calls fail from then on.
    ///
    /// # Panics
    /// With the panic of the first rank to fail, if it panicked.
    pub fn run<R, E, F>(self, body: F) -> Result<Vec<R>, E>
    where
        R: Send,
        E: Send + fmt::Display,
        F: Fn(LoopbackBootstrap, Loopback) -> Result<R, E> + Sync,
    {
        let shared = Arc::new(Shared::new(self.hosts, self.limit, self.fault, self.capabilities));
        let body = &body;
        let outcomes: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..shared.size())
                .map(|rank| {
                    let shared = &shared;
                    scope.spawn(move || run_rank(shared, Rank::from(rank), body))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a rank's panic is caught")).collect()
        });
        let blamed = shared.failed_rank();
        let mut results = Vec::with_capacity(outcomes.len());
        let mut failed = None;
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(Ok(result)) => results.push(result),
                other if failed.is_none() || blamed == Some(Rank::from(rank)) => failed = Some(other),
                _ => {}
            }
        }
        match failed {
            None => Ok(results),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(payload)) => panic::resume_unwind(payload),
            Some(Ok(Ok(_))) => unreachable!("successes are collected above"),
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("hosts", &self.hosts).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// [`Job::ranks`] of a job of `size` ranks on one host.
#[must_use]
pub fn job(size: usize) -> Vec<(LoopbackBootstrap, Loopback)> {
    Job::new(size).ranks()
}

/// [`Job::run`] of a job of `size` ranks on one host.
///
/// # Errors
/// As [`Job::run`].
pub fn run<R, E, F>(size: usize, body: F) -> Result<Vec<R>, E>
where
    R: Send,
    E: Send + fmt::Display,
    F: Fn(LoopbackBootstrap, Loopback) -> Result<R, E> + Sync,
{
    Job::new(size).run(body)
}

fn planes(shared: &Arc<Shared>, rank: Rank) -> (LoopbackBootstrap, Loopback) {
    (LoopbackBootstrap::new(Arc::clone(shared), rank), Loopback::new(Arc::clone(shared), rank))
}

/// Runs one rank and, if it fails, fails the job so that no other rank waits for it.
fn run_rank<R, E, F>(shared: &Arc<Shared>, rank: Rank, body: &F) -> thread::Result<Result<R, E>>
where
    E: fmt::Display,
    F: Fn(LoopbackBootstrap, Loopback) -> Result<R, E>,
{
    let (bootstrap, transport) = planes(shared, rank);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(bootstrap, transport)));
    match &outcome {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => shared.fail(rank, &error.to_string()),
        Err(_) => shared.fail(rank, "it panicked"),
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailback_transport::{Bootstrap, Error};

    #[test]
    fn an_error_on_one_rank_ends_the_others_and_is_the_one_reported() {
        let outcome = run(4, |mut bootstrap, _| match bootstrap.rank() {
            Rank(2) => Err(Error::Setup("rank 2 had enough".into())),
            _ => bootstrap.barrier(),
        });
        assert_eq!(outcome.unwrap_err().to_string(), "rank 2 had enough");
    }

    #[test]
    #[should_panic(expected = "cable on fire")]
    fn abort_panics_with_its_reason_and_ends_the_others() {
        let _ = run(3, |mut bootstrap, _| {
            if bootstrap.rank() == Rank(1) {
                bootstrap.abort("cable on fire");
            }
            bootstrap.barrier()
        });
    }

    #[test]
    fn waiting_in_vain_ends_and_says_for_what() {
        let job = Job::new(2).limit(Duration::from_millis(50));
        let outcome =
            job.run(|mut bootstrap, _| if bootstrap.rank() == Rank(0) { bootstrap.barrier() } else { Ok(()) });
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("barrier") && message.contains("rank 1"), "{message}");
    }

    #[test]
    fn hosts_are_as_given() {
        let hosts: Vec<String> = ["a", "a", "b"].map(String::from).into();
        let ranks = Job::new(1).hosts(hosts.clone()).ranks();
        let seen: Vec<&str> = ranks.iter().map(|(bootstrap, _)| bootstrap.host()).collect();
        assert_eq!(seen, hosts);
    }
}
