//! The state machine of one group: every message that is announced, queued or moving, and what brings it a step on.
//!
//! Memory that control messages are sent from is written again only after something came back that the peer sends later
//! than it read them: a CTS or a FIN after the RTS, a FIN after the CTS. A FIN has no answer and never changes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::Protocol;
use super::rules::{Rules, window};
use super::slots::{self, CTS_WORDS, FIN_WORDS, Found, RTS_WORDS, Slots};
use crate::group::{Lane, RawGroup};
use crate::{Error, Operation, Rank, Result, Span, Tag};

/// A message to one member.
#[derive(Clone, Copy, Debug)]
struct Message {
    to: Rank,
    tag: Tag,
    span: Span,
}

/// What this member sends to one other.
#[derive(Clone, Debug)]
struct Window {
    /// A bit per free slot.
    free: u64,
    /// Messages that wait for a slot, and those behind them.
    queue: VecDeque<Message>,
}

#[derive(Clone, Copy, Debug)]
struct Outgoing {
    to: Rank,
    slot: usize,
    span: Span,
    /// The receiver's slot, once the put was made.
    put_for: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Incoming {
    from: Rank,
    span: Span,
    state: Receiving,
}

#[derive(Clone, Copy, Debug)]
enum Receiving {
    /// No RTS yet, or no slot to answer it from.
    Expected,
    /// The sender was told where to put it; the FIN arrives in this slot.
    Granted { slot: usize },
    /// The get was made; the FIN goes to this slot of the sender.
    Reading { fin_for: usize },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Machine<G> {
    pub(super) raw: G,
    rules: Rules,
    /// Ranks in the job, for errors.
    members: Vec<Rank>,
    slots: Slots,
    windows: Vec<Window>,
    queued: usize,
    sends: Vec<Outgoing>,
    receives: Vec<Incoming>,
    /// Receiver's slots that are free.
    free: Vec<usize>,
    /// Messages under way in all groups of the transport.
    open: Rc<Cell<usize>>,
}

impl<G> Machine<G> {
    /// This group's messages under way.
    pub(super) fn under_way(&self) -> usize {
        self.queued + self.sends.len() + self.receives.len()
    }

    /// Whether a send of `len` bytes on `lane` is the raw group's alone.
    #[inline]
    pub(super) fn sends_directly(&self, lane: Lane, len: usize) -> bool {
        lane != Lane::Data || (len < self.rules.below && self.queued == 0)
    }

    /// Whether a receive of `len` bytes on `lane` is the raw group's alone.
    #[inline]
    pub(super) fn receives_directly(&self, lane: Lane, len: usize) -> bool {
        lane != Lane::Data || len < self.rules.below
    }

    /// Whether messages can leave anything on the protocol's lane.
    #[inline]
    pub(super) fn is_eager(&self) -> bool {
        self.rules.protocol == Protocol::Eager
    }

    fn count(&self, change: isize) {
        self.open.set(self.open.get().wrapping_add_signed(change));
    }
}

impl<G> Drop for Machine<G> {
    fn drop(&mut self) {
        self.open.set(self.open.get() - self.under_way());
    }
}

impl<G: RawGroup> Machine<G> {
    /// The machine of a group whose raw segment is laid out as `slots`.
    pub(super) fn new(mut raw: G, members: &[Rank], rules: Rules, slots: Slots, open: Rc<Cell<usize>>) -> Self {
        let announces = rules.protocol != Protocol::Eager;
        if announces {
            slots::put_words(&mut raw, slots.fin().offset, [0; FIN_WORDS]);
        }
        let window = Window { free: u64::MAX >> (64 - window(members.len())), queue: VecDeque::new() };
        Machine {
            raw,
            rules,
            members: members.to_vec(),
            slots,
            windows: if announces { vec![window; members.len()] } else { Vec::new() },
            queued: 0,
            sends: Vec::new(),
            receives: Vec::new(),
            free: (0..slots.receivers()).collect(),
            open,
        }
    }

    /// Starts or queues a message that [`Machine::sends_directly`] says no to.
    pub(super) fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("send", to)?;
        let announced = self.is_announced(to, span);
        let window = &mut self.windows[to.index()];
        if !window.queue.is_empty() || (announced && window.free == 0) {
            window.queue.push_back(Message { to, tag, span });
            self.queued += 1;
            self.count(1);
            return Ok(());
        }
        self.launch(Message { to, tag, span })
    }

    /// Posts a receive that [`Machine::receives_directly`] says no to.
    pub(super) fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("recv", from)?;
        if !self.is_announced(from, span) {
            return self.raw.post_recv(Lane::Data, from, tag, span);
        }
        let rts = slots::rts_in(span);
        slots::clear::<G, RTS_WORDS>(&mut self.raw, rts.offset);
        self.raw.post_recv(Lane::Data, from, tag, rts)?;
        self.receives.push(Incoming { from, span, state: Receiving::Expected });
        self.count(1);
        Ok(())
    }

    /// Goes on with every message that can go on; says whether one did.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let mut moved = false;
        // Ends: each turn but the last brings a message a step on, and none has more than four.
        while self.under_way() > 0 && self.step()? {
            moved = true;
        }
        Ok(moved)
    }

    /// Whether every message of the kernel is complete, and so is all that was said about them.
    pub(super) fn is_complete(&mut self) -> Result<bool> {
        Ok(self.under_way() == 0 && self.raw.is_complete(Lane::Data)? && self.raw.is_complete(Lane::Protocol)?)
    }

    fn is_announced(&self, peer: Rank, span: Span) -> bool {
        span.len >= self.rules.below && peer != self.raw.rank()
    }

    fn check(&self, operation: &'static str, peer: Rank) -> Result<()> {
        if let Some(reason) = &self.rules.refusal {
            return Err(Error::Unsupported { operation: Operation::TwoSided, reason: reason.clone() });
        }
        if peer.index() < self.members.len() {
            return Ok(());
        }
        let detail = format!("there is no member {peer} in a group of {}", self.members.len());
        Err(Error::Usage { operation, detail })
    }

    /// Announces a message, or sends it as it is. An announced one finds a slot free.
    fn launch(&mut self, Message { to, tag, span }: Message) -> Result<()> {
        if !self.is_announced(to, span) {
            return self.raw.post_send(Lane::Data, to, tag, span);
        }
        let free = &mut self.windows[to.index()].free;
        let slot = to.index() * window(self.members.len()) + free.trailing_zeros() as usize;
        *free &= *free - 1;
        let (rts, answer) = (self.slots.rts(slot), self.slots.answer(slot, self.answer_words()));
        slots::clear::<G, CTS_WORDS>(&mut self.raw, answer.offset);
        slots::put_words(&mut self.raw, rts.offset, [span.len as u64, slot as u64, span.offset as u64]);
        self.raw.post_recv(Lane::Protocol, to, slots::to_sender(slot), answer)?;
        self.raw.post_send(Lane::Data, to, tag, rts)?;
        self.sends.push(Outgoing { to, slot, span, put_for: None });
        self.count(1);
        Ok(())
    }

    fn answer_words(&self) -> usize {
        if self.rules.protocol == Protocol::Put { CTS_WORDS } else { FIN_WORDS }
    }

    /// One turn over all messages. Flushes are asked for last, so that one answer covers all puts and gets of the turn.
    fn step(&mut self) -> Result<bool> {
        // A backend may hand messages over no sooner than it is asked about their lane.
        self.raw.is_complete(Lane::Data)?;
        self.raw.is_complete(Lane::Protocol)?;
        let mut moved = self.answer_announced()?;
        moved |= match self.rules.protocol {
            Protocol::Get => self.end_answered()?,
            _ => self.put_granted()? | self.end_granted()?,
        };
        Ok(moved | self.end_moved()?)
    }

    /// Receiver: an RTS is answered by a CTS or by a get.
    fn answer_announced(&mut self) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.receives.len() {
            let Incoming { from, span, state: Receiving::Expected } = self.receives[at] else { continue };
            let Some([len, token, offset]) = self.look::<RTS_WORDS>(from, slots::rts_in(span))? else { continue };
            if len != span.len as u64 {
                return Err(self.wrong(from, format!("a message of {len} bytes met a receive of {}", span.len)));
            }
            let token = token as usize;
            self.receives[at].state = if self.rules.protocol == Protocol::Get {
                self.raw.get(from, span, offset as usize)?;
                Receiving::Reading { fin_for: token }
            } else {
                let Some(slot) = self.free.pop() else { break };
                let (cts, landing) = (self.slots.cts(slot), self.slots.landing(slot));
                slots::clear::<G, FIN_WORDS>(&mut self.raw, landing.offset);
                slots::put_words(&mut self.raw, cts.offset, [span.offset as u64, slot as u64]);
                self.raw.post_recv(Lane::Protocol, from, slots::to_receiver(slot), landing)?;
                self.raw.post_send(Lane::Protocol, from, slots::to_sender(token), cts)?;
                Receiving::Granted { slot }
            };
            moved = true;
        }
        Ok(moved)
    }

    /// Sender: a CTS is answered by the put.
    fn put_granted(&mut self) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.sends.len() {
            let Outgoing { to, slot, span, put_for: None } = self.sends[at] else { continue };
            let answer = self.slots.answer(slot, CTS_WORDS);
            let Some([offset, token]) = self.look::<CTS_WORDS>(to, answer)? else { continue };
            self.raw.put(to, span, offset as usize)?;
            self.sends[at].put_for = Some(token as usize);
            moved = true;
        }
        Ok(moved)
    }

    /// Sender: the FIN of a get ends the message.
    fn end_answered(&mut self) -> Result<bool> {
        self.end_sends(|machine, send| {
            let answer = machine.slots.answer(send.slot, FIN_WORDS);
            Ok(machine.look::<FIN_WORDS>(send.to, answer)?.is_some())
        })
    }

    /// Receiver: the FIN of a put ends the message.
    fn end_granted(&mut self) -> Result<bool> {
        self.end_receives(|machine, receive| {
            let Receiving::Granted { slot } = receive.state else { return Ok(false) };
            let landed = machine.look::<FIN_WORDS>(receive.from, machine.slots.landing(slot))?.is_some();
            if landed {
                machine.free.push(slot);
            }
            Ok(landed)
        })
    }

    /// Whoever moved the bytes says FIN, once they are where they belong.
    fn end_moved(&mut self) -> Result<bool> {
        let put = self.end_sends(|machine, send| match send.put_for {
            Some(token) => machine.finish(send.to, slots::to_receiver(token)),
            None => Ok(false),
        })?;
        let got = self.end_receives(|machine, receive| match receive.state {
            Receiving::Reading { fin_for } => machine.finish(receive.from, slots::to_sender(fin_for)),
            _ => Ok(false),
        })?;
        Ok(put | got)
    }

    fn finish(&mut self, peer: Rank, tag: Tag) -> Result<bool> {
        let flushed = self.raw.is_flushed(peer)?;
        if flushed {
            self.raw.post_send(Lane::Protocol, peer, tag, self.slots.fin())?;
        }
        Ok(flushed)
    }

    /// Takes out the sends that `ended` says yes to, and lets what queued behind them leave.
    fn end_sends(&mut self, mut ended: impl FnMut(&mut Self, Outgoing) -> Result<bool>) -> Result<bool> {
        let mut moved = false;
        let mut at = 0;
        while at < self.sends.len() {
            let Outgoing { to, slot, .. } = self.sends[at];
            if !ended(self, self.sends[at])? {
                at += 1;
                continue;
            }
            self.sends.swap_remove(at);
            self.count(-1);
            self.windows[to.index()].free |= 1 << (slot % window(self.members.len()));
            self.launch_queued(to)?;
            moved = true;
        }
        Ok(moved)
    }

    fn launch_queued(&mut self, to: Rank) -> Result<()> {
        while let Some(&next) = self.windows[to.index()].queue.front() {
            if self.is_announced(to, next.span) && self.windows[to.index()].free == 0 {
                break;
            }
            self.windows[to.index()].queue.pop_front();
            self.queued -= 1;
            self.count(-1);
            self.launch(next)?;
        }
        Ok(())
    }

    fn end_receives(&mut self, mut ended: impl FnMut(&mut Self, Incoming) -> Result<bool>) -> Result<bool> {
        let mut moved = false;
        let mut at = 0;
        while at < self.receives.len() {
            if !ended(self, self.receives[at])? {
                at += 1;
                continue;
            }
            self.receives.swap_remove(at);
            self.count(-1);
            moved = true;
        }
        Ok(moved)
    }

    /// The words that were to arrive at `place`, if they did.
    fn look<const N: usize>(&self, peer: Rank, place: Span) -> Result<Option<[u64; N]>> {
        match slots::look(&self.raw, place.offset) {
            Found::Nothing => Ok(None),
            Found::Words(words) => Ok(Some(words)),
            Found::Garbage => Err(self.wrong(peer, "it sent something else where a rendezvous was to begin".into())),
        }
    }

    #[cold]
    fn wrong(&self, peer: Rank, detail: String) -> Error {
        Error::Protocol { operation: "rendezvous", peer: Some(self.members[peer.index()]), detail }
    }
}
