//! Completions: what they end, and what they say is wrong. Waiting for them as the wait mode says.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tailback_transport::{Error, Idle, Rest, Result, WaitMode};

use super::ids::{self, DATAGRAM, RECEIVE};
use super::link::Route;
use super::state::{Books, VerbsWire};
use super::work::Done;
use crate::ffi::{self, Completion, Context, Event};

/// A rank looks at clocks and at the device's events about once in so many fruitless rounds: of some ten nanoseconds if it
/// spins, of up to milliseconds if it offers its core to others after each.
const LOOK_SPINNING: u32 = 8192;
const LOOK_YIELDING: u32 = 256;

/// A port that is down for so long does not come back in time: the device's own retries take about as long.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

impl VerbsWire {
    /// One round: takes completions, acts on them, waits if there were none and `idle` says so.
    #[inline]
    pub(super) fn advance(&mut self, books: &mut Books, idle: Idle) -> Result<()> {
        let found = self.endpoint.completions.poll(&mut self.batch);
        self.rounds = self.rounds.wrapping_add(1);
        // Most rounds of a rank that spins. No pause instruction: it takes as long as a look at the queue, and adds to
        // the latency.
        let fruitless = found == 0 && self.wait == WaitMode::Spin && self.connecting.is_empty();
        if fruitless && !self.rounds.is_multiple_of(LOOK_SPINNING) {
            Ok(())
        } else {
            self.act_or_wait(books, found, idle)
        }
    }

    /// The rest of a round whose poll gave `found`.
    #[inline(never)]
    fn act_or_wait(&mut self, books: &mut Books, found: i32, idle: Idle) -> Result<()> {
        let worked = self.act_on_all(books, found)?;
        if !self.connecting.is_empty() {
            self.remind(books)?;
        }
        if worked {
            return Ok(());
        }
        match self.wait.rest(idle) {
            Rest::Sleep => self.sleep(books),
            Rest::None => self.look_every(books, LOOK_SPINNING),
            Rest::Yield => {
                std::thread::yield_now();
                self.look_every(books, LOOK_YIELDING)
            }
        }
    }

    fn look_every(&mut self, books: &Books, rounds: u32) -> Result<()> {
        if self.rounds.is_multiple_of(rounds) { self.look_at_device(books) } else { Ok(()) }
    }

    /// Acts on what a poll put into the batch; whether that was anything.
    #[inline]
    pub(super) fn act_on_all(&mut self, books: &mut Books, found: i32) -> Result<bool> {
        if found == 1 {
            return self.act(books, 0).map(|()| true);
        }
        let count = usize::try_from(found).map_err(|_| ffi::poll_failed(found))?;
        let batch = &mut self.batch[..count];
        // The cause of a pair's failure is more telling than what follows from it, whatever their order.
        if batch.iter().any(|completion| !completion.is_success()) {
            batch.sort_by_key(Completion::is_consequence);
        }
        (0..count).try_for_each(|at| self.act(books, at))?;
        Ok(count > 0)
    }

    /// Acts on one completion of the batch.
    #[inline]
    fn act(&mut self, books: &mut Books, at: usize) -> Result<()> {
        let completion = &self.batch[at];
        let id = completion.id();
        let (peer, number) = ids::parts(id);
        if id & (RECEIVE | DATAGRAM) == RECEIVE && completion.is_success() {
            let (len, credits) = (completion.len(), completion.immediate());
            return self.arrive(books, peer, number, len, credits);
        }
        let completion = *completion;
        if id & DATAGRAM != 0 {
            return self.act_on_datagram(books, &completion, number);
        }
        if !completion.is_success() {
            return self.fail(books, peer, &completion);
        }
        self.complete(books, peer, number);
        if self.peers[peer].wants_pump() { self.pump(books, peer) } else { Ok(()) }
    }

    fn act_on_datagram(&mut self, books: &mut Books, completion: &Completion, number: u32) -> Result<()> {
        let receives = completion.id() & RECEIVE != 0;
        if !completion.is_success() {
            let status = completion.status();
            let message = format!("{} in the exchange of greetings", ffi::status_text(status));
            return Err(Error::Library { call: "ibv_poll_cq", peer: None, code: status.into(), message });
        }
        if receives {
            return self.take_hello(books, number, completion);
        }
        self.endpoint.greeted();
        Ok(())
    }

    /// Everything up to this request is complete.
    fn complete(&mut self, books: &mut Books, peer: usize, number: u32) {
        let Route::Linked(link) = &mut self.peers[peer].route else { return };
        while let Some(done) = link.complete_up_to(number) {
            match done {
                Done::Nothing => {}
                Done::Send { slot, member, lane } => books.end_send(peer, slot, member, lane),
                Done::Access { slot, member, reads } => {
                    let seat = books.rails.seat(member, peer);
                    books.groups.at_mut(slot).members[seat].far.end(reads);
                    books.end_access(peer, slot);
                }
            }
        }
    }

    /// A request failed, and with it the pair: whatever the status, the peer is out of reach from now on.
    fn fail(&mut self, books: &Books, peer: usize, completion: &Completion) -> Result<()> {
        if !matches!(self.peers[peer].route, Route::Linked(_)) {
            return Ok(());
        }
        let (status, vendor) = (completion.status(), completion.vendor_error());
        let seen = format!("{}, status {status}, vendor code {vendor:#x}", ffi::status_text(status));
        self.lose(books, peer, &seen)
    }

    /// Sleeps until something completes, or something is wrong, or it is time to look.
    fn sleep(&mut self, books: &mut Books) -> Result<()> {
        if !self.armed {
            self.endpoint.completions.arm()?;
            self.armed = true;
            // What completed before the queue was armed makes no event.
            let found = self.endpoint.completions.poll(&mut self.batch);
            if self.act_on_all(books, found)? {
                return Ok(());
            }
        }
        let nap = self.nap();
        let (completed, happened) = {
            let completions = &self.endpoint.completions;
            let context = &self.endpoint.choice.context;
            let limit = Timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
            let (queue, events) = (completions.fd(), context.event_fd());
            let mut ready = [PollFd::new(&queue, PollFlags::IN), PollFd::new(&events, PollFlags::IN)];
            match poll(&mut ready, Some(&limit)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Error::Io { operation: "poll", peer: None, source: error.into() }),
            }
            (!ready[0].revents().is_empty(), !ready[1].revents().is_empty())
        };
        if completed && self.endpoint.completions.take_event() {
            self.armed = false;
        }
        if happened || !completed { self.look_at_device(books) } else { Ok(()) }
    }

    /// Hears what the device says by itself: a port that stays down is an error for a rank that waits for someone.
    fn look_at_device(&mut self, books: &Books) -> Result<()> {
        let own = self.endpoint.choice.port.number;
        while let Some(event) = self.endpoint.choice.context.next_event() {
            match event {
                Event::PortDown(port) if port == own => self.port_down = Some(Instant::now()),
                Event::PortUp(port) if port == own => self.port_down = None,
                Event::Fatal(kind) => {
                    let message = format!("{} on {}", Context::event_text(kind), self.endpoint.place());
                    return Err(Error::Library { call: "ibv_get_async_event", peer: None, code: kind.into(), message });
                }
                Event::PortDown(_) | Event::PortUp(_) | Event::Other => {}
            }
        }
        let Some(since) = self.port_down.filter(|since| since.elapsed() >= PORT_PATIENCE) else { return Ok(()) };
        let Some(peer) = books.first_needed(0) else { return Ok(()) };
        let seen = format!("no link for {:.1} s", since.elapsed().as_secs_f64());
        Err(books.lost(peer, self.evidence(&seen)))
    }
}
