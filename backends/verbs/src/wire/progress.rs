//! Completions: what they end, and what they say is wrong. Waiting for them as the wait mode says.

use std::rc::Rc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tailback_engine::matching::MOST_RAILS;
use tailback_host::{Idle, Rest, WaitMode};
use tailback_transport::{Error, Result};

use super::ids::{self, DATAGRAM, RECEIVE};
use super::link::Route;
use super::state::{Books, VerbsWire};
use super::work::Done;
use crate::ffi::{self, Completion, Context, Event};

/// A rank looks at clocks and at the devices' events about once in so many fruitless rounds: of some ten nanoseconds if it
/// spins, of up to milliseconds if it offers its core to others after each.
const LOOK_SPINNING: u32 = 8192;
const LOOK_YIELDING: u32 = 256;

/// A port that is down for so long does not come back in time: the device's own retries take about as long.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

impl VerbsWire {
    /// One round: takes completions of every rail, acts on them, waits if there were none and `idle` says so.
    #[inline]
    pub(super) fn advance(&mut self, books: &mut Books, idle: Idle) -> Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        let mut worked = false;
        for rail in 0..self.endpoints.len() {
            worked |= self.poll(books, rail)?;
        }
        // Most rounds of a rank that spins. No pause instruction: it takes as long as a look at the queue, and adds to
        // the latency.
        let over = worked || self.wait == WaitMode::Spin && !self.rounds.is_multiple_of(LOOK_SPINNING);
        if over && self.connecting.is_empty() { Ok(()) } else { self.remind_or_wait(books, worked, idle) }
    }

    /// Takes completions of a rail and acts on them: whether there were any.
    #[inline]
    pub(super) fn poll(&mut self, books: &mut Books, rail: usize) -> Result<bool> {
        match self.endpoints[rail].completions.poll(&mut self.batch) {
            0 => Ok(false),
            found => self.act_on_all(books, found).map(|()| true),
        }
    }

    /// The rest of a round that worked or did not.
    #[inline(never)]
    fn remind_or_wait(&mut self, books: &mut Books, worked: bool, idle: Idle) -> Result<()> {
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
        if self.rounds.is_multiple_of(rounds) { self.look_at_devices(books) } else { Ok(()) }
    }

    /// Acts on what a poll put into the batch.
    #[inline(never)]
    fn act_on_all(&mut self, books: &mut Books, found: i32) -> Result<()> {
        if found == 1 {
            return self.act(books, 0);
        }
        let count = usize::try_from(found).map_err(|_| ffi::poll_failed(found))?;
        let batch = &mut self.batch[..count];
        // The cause of a pair's failure is more telling than what follows from it, whatever their order.
        if batch.iter().any(|completion| !completion.is_success()) {
            batch.sort_by_key(Completion::is_consequence);
        }
        (0..count).try_for_each(|at| self.act(books, at))
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
            return self.act_on_datagram(books, &completion, ids::parts(id));
        }
        if !completion.is_success() {
            return self.fail(books, peer, &completion);
        }
        self.complete(books, peer, number);
        if self.peers[peer].wants_pump() { self.pump(books, peer) } else { Ok(()) }
    }

    fn act_on_datagram(
        &mut self,
        books: &mut Books,
        completion: &Completion,
        (rail, number): (usize, u32),
    ) -> Result<()> {
        let receives = completion.id() & RECEIVE != 0;
        if !completion.is_success() {
            let status = completion.status();
            let message = format!("{} in the exchange of greetings", ffi::status_text(status));
            return Err(Error::Library { call: "ibv_poll_cq", peer: None, code: status.into(), message });
        }
        if receives {
            return self.take_hello(books, (rail, number), completion);
        }
        self.endpoints[rail].greeted();
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
        let mut worked = false;
        for rail in 0..self.endpoints.len() {
            // What completed before the queue was armed makes no event.
            worked |= self.endpoints[rail].arm()? && self.poll(books, rail)?;
        }
        if worked {
            return Ok(());
        }
        let (completed, happened) = self.watch(self.nap())?;
        for (rail, endpoint) in self.endpoints.iter_mut().enumerate() {
            if completed >> rail & 1 != 0 {
                endpoint.take_event();
            }
        }
        if happened || completed == 0 { self.look_at_devices(books) } else { Ok(()) }
    }

    /// Waits for the devices of all rails, so long at most: the rails on which something completed, a bit for each, and
    /// whether a device says something by itself.
    fn watch(&self, limit: Duration) -> Result<(u32, bool)> {
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        let count = self.endpoints.len();
        let mut watched: [PollFd<'_>; 2 * MOST_RAILS] = std::array::from_fn(|at| {
            let endpoint = &self.endpoints[(at / 2).min(count - 1)];
            let queue = at % 2 == 0;
            let fd = if queue { endpoint.completions.fd() } else { endpoint.choice.context.event_fd() };
            PollFd::from_borrowed_fd(fd, PollFlags::IN)
        });
        match poll(&mut watched[..2 * count], Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Io { operation: "poll", peer: None, source: error.into() }),
        }
        let (mut completed, mut happened) = (0, false);
        for (rail, of) in watched[..2 * count].chunks_exact(2).enumerate() {
            completed |= u32::from(!of[0].revents().is_empty()) << rail;
            happened |= !of[1].revents().is_empty();
        }
        Ok((completed, happened))
    }

    /// Hears what the devices say by themselves: a port that stays down is an error for a rank that waits for someone on its
    /// rail.
    fn look_at_devices(&mut self, books: &Books) -> Result<()> {
        for rail in 0..self.endpoints.len() {
            while let Some(event) = self.endpoints[rail].choice.context.next_event() {
                self.hear_device(rail, event)?;
            }
        }
        for (rail, endpoint) in self.endpoints.iter().enumerate() {
            let Some(since) = endpoint.down_since.filter(|since| since.elapsed() >= PORT_PATIENCE) else { continue };
            let Some(peer) = books.first_needed(rail) else { continue };
            let seen = format!("no link for {:.1} s", since.elapsed().as_secs_f64());
            return Err(books.lost(peer, self.evidence(rail, &seen)));
        }
        Ok(())
    }

    /// The device of a rail says something, maybe about a port that is another rail's.
    fn hear_device(&mut self, rail: usize, event: Event) -> Result<()> {
        let context = Rc::clone(&self.endpoints[rail].choice.context);
        if let Event::Fatal(kind) = event {
            let message = format!("{} on {}", Context::event_text(kind), context.name);
            return Err(Error::Library { call: "ibv_get_async_event", peer: None, code: kind.into(), message });
        }
        let of_device = self.endpoints.iter_mut().filter(|of| Rc::ptr_eq(&of.choice.context, &context));
        of_device.for_each(|of| of.hear(event));
        Ok(())
    }
}
