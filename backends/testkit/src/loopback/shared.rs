//! What the ranks of a loopback job share: mailboxes, segments, a meeting point for the bootstrap, and the first failure.
//!
//! Locks are taken one at a time, but for a segment under the list of groups. A failure is recorded before every waiting rank is woken under the
//! lock it waits with, so none can miss it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tailback_engine::Lane;
use tailback_host::Clock;
use tailback_transport::{Capabilities, Error, Rank, Result, Tag};

use super::fault::{Fault, Transfer};

/// How long a rank with nothing to do sleeps at most.
const NAP: Duration = Duration::from_millis(1);

/// The common state of a job.
pub(super) struct Shared {
    pub(super) hosts: Vec<String>,
    pub(super) clock: Clock,
    pub(super) meeting: Waitable<Meeting>,
    pub(super) capabilities: Capabilities,
    limit: Duration,
    fault: Option<Arc<dyn Fault>>,
    failure: OnceLock<(Rank, String)>,
    mailboxes: Vec<Waitable<Mailbox>>,
    groups: Mutex<Groups>,
}

/// State that ranks wait to see changed.
#[derive(Default)]
pub(super) struct Waitable<S> {
    state: Mutex<S>,
    bell: Condvar,
}

impl<S> Waitable<S> {
    /// Changes the state and wakes who waits.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut lock(&self.state));
        self.bell.notify_all();
        result
    }

    /// Looks at the state, and may take from it, without waking anyone.
    pub(super) fn peek<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut lock(&self.state))
    }
}

impl Waitable<Mailbox> {
    /// Waits a moment for a message, unless one is there already.
    pub(super) fn nap(&self) {
        let state = lock(&self.state);
        if state.is_empty() {
            drop(self.bell.wait_timeout(state, NAP));
        } else {
            drop(state);
            thread::yield_now();
        }
    }
}

/// Where the ranks meet for a bootstrap call.
#[derive(Default)]
pub(super) struct Meeting {
    pub(super) round: u64,
    pub(super) brought: Vec<Option<Vec<u8>>>,
    /// What was brought to the round before. Nobody can end a round that another has not left, so it stays until read.
    pub(super) taken: Arc<Vec<Vec<u8>>>,
}

/// A message that has arrived.
pub(super) struct Message {
    /// The sender's position in the group.
    pub(super) from: Rank,
    pub(super) tag: Tag,
    pub(super) payload: Vec<u8>,
}

/// What arrived for one rank, by group and lane; kept for groups that it has not made yet.
type Mailbox = HashMap<(u64, Lane), Vec<Message>>;

/// The segments of one group, in member order.
#[derive(Debug)]
pub(super) struct Segments {
    /// Names the group in mailboxes.
    pub(super) id: u64,
    pub(super) bytes: Vec<Mutex<Vec<u8>>>,
}

#[derive(Default)]
struct Groups {
    count: u64,
    /// Groups that some members have still to make, with how many have.
    open: HashMap<(Vec<Rank>, u64), (Arc<Segments>, usize)>,
}

impl Shared {
    pub(super) fn new(
        hosts: Vec<String>,
        limit: Duration,
        fault: Option<Arc<dyn Fault>>,
        capabilities: Capabilities,
    ) -> Self {
        let size = hosts.len();
        Shared {
            hosts,
            clock: Clock::start(),
            meeting: Waitable {
                state: Mutex::new(Meeting { brought: vec![None; size], ..Meeting::default() }),
                bell: Condvar::new(),
            },
            capabilities,
            limit,
            fault,
            failure: OnceLock::new(),
            mailboxes: (0..size).map(|_| Waitable::default()).collect(),
            groups: Mutex::default(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn failed_rank(&self) -> Option<Rank> {
        self.failure.get().map(|failure| failure.0)
    }

    /// Ends the job because of `rank`; the first call counts.
    pub(super) fn fail(&self, rank: Rank, reason: &str) {
        let _ = self.failure.set((rank, reason.to_owned()));
        self.meeting.change(|_| ());
        for mailbox in &self.mailboxes {
            mailbox.change(|_| ());
        }
    }

    /// Every call of a rank begins here: faults strike, and a failed job is left.
    pub(super) fn enter(&self, operation: &'static str, rank: Rank) -> Result<()> {
        if let Some(fault) = &self.fault {
            let delay = fault.delay(rank, operation);
            if !delay.is_zero() {
                thread::sleep(delay);
            }
        }
        self.check(operation)
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some((peer, detail)) => Err(Error::PeerLost { operation, peer: *peer, detail: detail.clone() }),
        }
    }

    /// Waits until `ready` gives a value; `missing` says for what it waited, should that take too long.
    pub(super) fn wait<S, R>(
        &self,
        operation: &'static str,
        on: &Waitable<S>,
        mut ready: impl FnMut(&mut S) -> Option<R>,
        missing: impl Fn(&S) -> String,
    ) -> Result<R> {
        let started = Instant::now();
        let mut state = lock(&on.state);
        loop {
            self.check(operation)?;
            if let Some(result) = ready(&mut state) {
                return Ok(result);
            }
            let left = self.limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(Error::Timeout { operation, seconds: self.limit.as_secs_f64(), detail: missing(&state) });
            }
            state = on.bell.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn mailbox(&self, rank: Rank) -> &Waitable<Mailbox> {
        &self.mailboxes[rank.index()]
    }

    pub(super) fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
        if let Some(fault) = &self.fault {
            fault.corrupt(transfer, payload);
        }
    }

    pub(super) fn skips_flush(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.skips_flush())
    }

    /// The segments of the `count`th group of `members`; the first member to come makes them for all.
    pub(super) fn join(&self, members: &[Rank], count: u64, segment: usize) -> Result<Arc<Segments>> {
        let mut groups = lock(&self.groups);
        let key = (members.to_vec(), count);
        let (segments, joined) = match groups.open.remove(&key) {
            Some(known) => known,
            None => {
                groups.count += 1;
                let bytes = members.iter().map(|_| Mutex::new(vec![0; segment])).collect();
                (Arc::new(Segments { id: groups.count, bytes }), 0)
            }
        };
        let others = lock(&segments.bytes[0]).len();
        if others != segment {
            let detail = format!("this member asks for a segment of {segment} bytes, another for {others}");
            return Err(Error::Usage { operation: "group", detail });
        }
        if joined + 1 < members.len() {
            groups.open.insert(key, (Arc::clone(&segments), joined + 1));
        }
        Ok(segments)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("hosts", &self.hosts).field("failure", &self.failure).finish_non_exhaustive()
    }
}

/// A panicking rank fails the whole job, so what it left behind a lock is never relied on.
pub(super) fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
