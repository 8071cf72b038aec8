//! When to read, when to write, when to sleep.
//!
//! A spinning rank with few links reads them directly: no system call but the read itself. With more, and when
//! blocking, epoll says which links to read. New connections are looked for every so many rounds.

use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use tailback_host::{Idle, Rest, WaitMode};
use tailback_transport::Result;

use super::peer::Route;
use super::state::{Books, HALF, LISTENER, TcpWire, failed};

/// Up to this many links a spinning rank reads each of them in every round.
const FEW: usize = 4;

/// Rounds between looks at the listener while spinning: some 100 us.
const LOOK_EVERY: u32 = 256;

/// The same while a connection is being proven.
pub(super) const LOOK_EVERY_BUSY: u32 = 16;

/// The longest sleep: bounds how late a stranger's time limit is noticed.
const NAP: Duration = Duration::from_millis(100);

impl TcpWire {
    /// One round: writes what was held back, reads what has arrived, waits if there was nothing and `idle` says so.
    pub(super) fn advance(&mut self, books: &mut Books, idle: Idle) -> Result<()> {
        self.kick(books)?;
        self.rounds = self.rounds.wrapping_add(1);
        let direct = self.wait != WaitMode::Block && !self.up.is_empty() && self.up.len() <= FEW;
        if direct {
            let worked = self.read_all(books)?;
            if self.look_due(idle) {
                self.poll_events(books, Duration::ZERO)?;
            }
            if !worked && self.wait.rest(idle) == Rest::Yield {
                std::thread::yield_now();
            }
            return Ok(());
        }
        // Even a rank that always finds something to read has to hear of the others.
        if !self.ready.is_empty() && self.rounds.is_multiple_of(LOOK_EVERY_BUSY) {
            self.poll_events(books, Duration::ZERO)?;
        }
        if self.read_ready(books)? {
            return Ok(());
        }
        let sleep = self.wait.rest(idle) == Rest::Sleep;
        if sleep && let Some(peer) = self.only_source() {
            if !self.read_sleeping(books, peer)? || self.rounds.is_multiple_of(LOOK_EVERY) {
                self.poll_events(books, Duration::ZERO)?;
            }
            return Ok(());
        }
        self.poll_events(books, if sleep { NAP } else { Duration::ZERO })?;
        if !self.read_ready(books)? && self.wait.rest(idle) == Rest::Yield {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// The peer to sleep on, if nothing but its bytes can matter: a job of two, connected, with nothing left to write.
    /// One system call then waits and reads, without a time limit, for the kernel's timer costs as much as all of our own work.
    /// Strangers wait for the peer's next bytes.
    fn only_source(&self) -> Option<usize> {
        let (&[peer], 2) = (self.up.as_slice(), self.peers.len()) else { return None };
        let quiet = self.connecting + self.strangers == 0 && !self.listeners.iter().any(|of| of.ready);
        (quiet && self.peers[peer as usize].out.is_empty()).then_some(peer as usize)
    }

    fn look_due(&self, idle: Idle) -> bool {
        let busy = self.strangers > 0 || idle == Idle::Return;
        self.connecting > 0 || self.rounds.is_multiple_of(if busy { LOOK_EVERY_BUSY } else { LOOK_EVERY })
    }

    fn read_all(&mut self, books: &mut Books) -> Result<bool> {
        let mut any = false;
        let mut at = 0;
        while at < self.up.len() {
            let peer = self.up[at] as usize;
            if !self.peers[peer].out.is_empty() {
                if let Route::Up(link) = &mut self.peers[peer].route {
                    link.writable = true;
                }
                self.pump(books, peer)?;
            }
            any |= self.read_link(books, peer)?;
            at += 1;
        }
        Ok(any)
    }

    fn read_ready(&mut self, books: &mut Books) -> Result<bool> {
        let mut any = false;
        let mut at = 0;
        while at < self.ready.len() {
            let peer = self.ready[at];
            any |= self.read_link(books, peer as usize)?;
            match &self.peers[peer as usize].route {
                Route::Up(link) if link.ready => at += 1,
                // A link that was lost has left the list already.
                _ if self.ready.get(at) == Some(&peer) => {
                    self.ready.swap_remove(at);
                }
                _ => {}
            }
        }
        Ok(any)
    }

    /// Asks the kernel what happened, for at most `timeout`, and acts on connections that are not links yet.
    pub(super) fn poll_events(&mut self, books: &mut Books, timeout: Duration) -> Result<()> {
        let limit = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("epoll_wait", None, error)),
        }
        let acted = events.iter().try_for_each(|event| self.act(books, event.data.u64(), event.flags));
        self.events = events;
        acted?;
        for rail in 0..self.listeners.len() {
            if self.listeners[rail].ready {
                self.accept(books, rail)?;
            }
        }
        if self.strangers > 0 {
            self.expire()?;
        }
        Ok(())
    }

    fn act(&mut self, books: &mut Books, token: u64, flags: EventFlags) -> Result<()> {
        match token {
            LISTENER.. => self.listeners[(token - LISTENER) as usize].ready = true,
            HALF.. => self.drive(books, (token - HALF) as usize)?,
            number => {
                let peer = number as usize;
                let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                if let Route::Up(link) = &mut self.peers[peer].route {
                    link.closing |= flags.intersects(ended);
                    link.writable |= flags.intersects(EventFlags::OUT | ended);
                    if flags.intersects(EventFlags::IN | ended) {
                        self.mark_ready(peer);
                    }
                }
                self.pump(books, peer)?;
            }
        }
        Ok(())
    }

    /// Puts a link on the ready list.
    pub(super) fn mark_ready(&mut self, peer: usize) {
        if let Route::Up(link) = &mut self.peers[peer].route
            && !link.ready
        {
            link.ready = true;
            self.ready.push(peer as u32);
        }
    }
}
