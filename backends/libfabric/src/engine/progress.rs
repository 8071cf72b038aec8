//! Rounds of progress, and what a rank does between fruitless ones.

use std::thread;
use std::time::{Duration, Instant};

use tailback_host::{Idle, Rest};
use tailback_transport::{Error, Rank, Result};

use super::Engine;
use super::groups::Slot;
use crate::ffi::{Blocking, Done, Kind};

/// The longest sleep in the queue: connections come up and peers make room without waking it.
const SLEEP_MS: i32 = 10;

/// The longest sleep while operations wait for room.
const SHORT_SLEEP_MS: i32 = 1;

/// Without a queue to sleep in, a blocking rank looks this often before it naps: a few microseconds.
const ROUNDS_BEFORE_NAP: u32 = 64;

/// The system adds its own slack, some 50 us. Napping beats yielding: on a busy host a core that was offered to others
/// comes back milliseconds later, while a sleeper is woken when its time is up.
const NAP: Duration = Duration::from_micros(20);

/// How long an engine that ends looks after what the provider accepted and may not have sent.
const LINGER: Duration = Duration::from_millis(20);

impl Engine {
    /// One round for every peer and every group.
    #[inline(always)]
    pub(super) fn advance(&mut self, idle: Idle) -> Result<()> {
        if self.poll()? > 0 {
            self.fruitless = 0;
            return Ok(());
        }
        match self.wait.rest(idle) {
            // No pause instruction: it takes as long as a read of the queue, and adds to the latency.
            Rest::None => Ok(()),
            rest => self.pause(rest),
        }
    }

    /// Waits until everything posted on a lane is complete.
    #[inline]
    pub(super) fn wait_for(&mut self, slot: Slot, lane: u8) -> Result<()> {
        while !self.groups.at(slot).is_complete(lane) {
            self.advance(Idle::Wait)?;
        }
        Ok(())
    }

    /// Reads completions and posts what waited for room: how many completions there were.
    #[inline(always)]
    pub(super) fn poll(&mut self) -> Result<usize> {
        let (groups, mut wrong) = (&mut self.groups, None);
        let count = self.endpoint.poll(|done| note(groups, &mut wrong, done));
        self.polled(count, wrong)
    }

    #[inline(always)]
    fn polled(&mut self, count: std::result::Result<usize, crate::ffi::Failure>, wrong: Option<Done>) -> Result<usize> {
        let count = count.map_err(|failure| self.error(failure))?;
        if let Some(done) = wrong {
            return Err(wrong_length(done));
        }
        if !self.queues.all_empty() {
            self.retry()?;
        }
        Ok(count)
    }

    /// Posts what can be posted now, each line up to its first operation without room.
    #[cold]
    fn retry(&mut self) -> Result<()> {
        for at in 0..self.queues.busy() {
            while let Some(work) = self.queues.first(at) {
                if !self.issue(&work)? {
                    break;
                }
                self.queues.pop(at);
            }
        }
        self.queues.tidy();
        Ok(())
    }

    /// What the wait mode says.
    fn pause(&mut self, rest: Rest) -> Result<()> {
        self.fruitless = self.fruitless.saturating_add(1);
        match (rest, self.endpoint.blocking()) {
            (Rest::None, _) => {}
            (Rest::Yield, _) => thread::yield_now(),
            (Rest::Sleep, Blocking::Queue) => {
                let limit = if self.queues.all_empty() { SLEEP_MS } else { SHORT_SLEEP_MS };
                let (groups, mut wrong) = (&mut self.groups, None);
                let count = self.endpoint.sleep(limit, |done| note(groups, &mut wrong, done));
                self.polled(count, wrong)?;
            }
            (Rest::Sleep, Blocking::None) if self.fruitless < ROUNDS_BEFORE_NAP => {}
            (Rest::Sleep, Blocking::None) => thread::sleep(NAP),
        }
        Ok(())
    }
}

/// Books a completion.
#[inline]
fn note(groups: &mut super::Groups, wrong: &mut Option<Done>, done: Done) {
    groups.complete(done.ticket);
    if done.ticket.kind == Kind::Recv && done.len != done.ticket.len {
        *wrong = Some(done);
    }
}

#[cold]
fn wrong_length(done: Done) -> Error {
    let (expected, got) = (done.ticket.len, done.len);
    let detail = format!("a message of {got} bytes came where {expected} were expected");
    Error::Protocol { operation: "recv", peer: Some(Rank(done.ticket.peer)), detail }
}

impl Drop for Engine {
    /// Small messages are the provider's once they are posted, without a word when they have left; a peer may wait for
    /// the last of them.
    fn drop(&mut self) {
        let end = Instant::now() + LINGER;
        while Instant::now() < end {
            match self.poll() {
                Ok(_) => thread::yield_now(),
                Err(_) => break,
            }
        }
    }
}
