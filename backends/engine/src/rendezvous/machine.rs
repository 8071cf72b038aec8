//! The state machine of one group: every message that is announced, queued or moving, and what brings it a step on.
//!
//! Memory that control messages are sent from is written again only once they have left ([`Engine::is_sent`]), or
//! something came back that the peer sends later than it read them: a FIN after the CTS. The FIN of a put has no answer
//! and never changes.

use tailback_transport::{Error, Operation, Rank, Result, Span, Tag};

use super::protocol::{Protocol, Rules, window};
use super::sending::{Message, Moving, Sending};
use super::slots::{self, CTS_WORDS, FIN_WORDS, Found, RTS_WORDS, Slots};
use crate::{Engine, Lane, Membership};

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
    /// The get was made, the last of so many accesses; the FIN goes to this slot of the sender.
    Reading { fin_for: usize, accesses: u64 },
}

/// See the module.
pub(super) struct Machine<E: Engine> {
    slot: E::Slot,
    rank: Rank,
    rules: Rules,
    /// Ranks in the job, for errors; empty where members are numbered as in the job, for that list is the longest.
    members: Vec<Rank>,
    slots: Slots,
    sending: Sending,
    receives: Vec<Incoming>,
    /// Receiver's slots that are free.
    free: Vec<usize>,
    /// Receiver's slots that a FIN leaves from, and for whom.
    leaving: Vec<(usize, Rank)>,
    /// What the engine's completions were when no message could go on, if none was posted since.
    stuck_at: Option<u64>,
}

/// Whether members are the first ranks of the job, in their order.
fn in_order(members: &[Rank]) -> bool {
    members.iter().enumerate().all(|(at, member)| member.index() == at)
}

impl<E: Engine> Machine<E> {
    /// The machine of a group whose segment is laid out as `slots`. Its protocol is not eager.
    pub(super) fn new(
        engine: &mut E,
        group: Membership<E::Slot>,
        members: &[Rank],
        rules: Rules,
        slots: Slots,
    ) -> Self {
        slots::put_words(engine, group.slot, slots.fin().offset, [0; FIN_WORDS]);
        Machine {
            slot: group.slot,
            rank: group.rank,
            rules,
            members: if in_order(members) { Vec::new() } else { members.to_vec() },
            slots,
            sending: Sending::new(members.len(), window(members.len())),
            receives: Vec::new(),
            free: (0..slots.receivers()).collect(),
            leaving: Vec::new(),
            stuck_at: None,
        }
    }

    /// This group's messages under way.
    pub(super) fn under_way(&self) -> usize {
        self.sending.under_way() + self.receives.len()
    }

    /// Whether a send of `len` bytes is the engine's alone.
    #[inline]
    pub(super) fn sends_directly(&self, len: usize) -> bool {
        len < self.rules.below && self.sending.queued() == 0
    }

    /// Whether a receive of `len` bytes is the engine's alone.
    #[inline]
    pub(super) fn receives_directly(&self, len: usize) -> bool {
        len < self.rules.below
    }

    /// Starts or queues a message that [`Machine::sends_directly`] says no to.
    pub(super) fn post_send(&mut self, engine: &mut E, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("send", to)?;
        let message = Message { to, tag, span };
        if self.sending.has_queue(to) || (self.is_announced(to, span) && !self.has_place(engine, to)?) {
            self.sending.queue(message);
            self.stuck_at = None;
            return Ok(());
        }
        self.launch(engine, message)
    }

    /// Posts a receive that [`Machine::receives_directly`] says no to.
    pub(super) fn post_recv(&mut self, engine: &mut E, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("recv", from)?;
        if !self.is_announced(from, span) {
            return engine.post_recv(self.slot, Lane::Data, from, tag, span);
        }
        let rts = slots::rts_in(span);
        slots::clear::<E, RTS_WORDS>(engine, self.slot, rts.offset);
        engine.post_recv(self.slot, Lane::Data, from, tag, rts)?;
        self.receives.push(Incoming { from, span, state: Receiving::Expected });
        self.stuck_at = None;
        Ok(())
    }

    /// Goes on with every message that can go on; says whether one did.
    pub(super) fn advance(&mut self, engine: &mut E) -> Result<bool> {
        let mut moved = false;
        // Ends: each turn but the last brings a message a step on, and none has more than four. A rank that spins comes here
        // all the time and may have thousands of messages open: they are looked at when something has happened.
        while self.under_way() > 0 {
            let completions = engine.completions();
            if completions.is_some() && completions == self.stuck_at {
                break;
            }
            if !self.step(engine)? {
                self.stuck_at = completions;
                break;
            }
            moved = true;
        }
        Ok(moved)
    }

    /// Whether every message of the kernel is complete, and so is all that was said about them.
    pub(super) fn is_complete(&mut self, engine: &mut E) -> Result<bool> {
        Ok(self.under_way() == 0
            && engine.is_complete(self.slot, Lane::Data)?
            && engine.is_complete(self.slot, Lane::Protocol)?)
    }

    fn is_announced(&self, peer: Rank, span: Span) -> bool {
        span.len >= self.rules.below && peer != self.rank
    }

    fn check(&self, operation: &'static str, peer: Rank) -> Result<()> {
        if let Some(reason) = &self.rules.refusal {
            return Err(Error::Unsupported { operation: Operation::TwoSided, reason: reason.clone() });
        }
        if peer.index() < self.sending.members() {
            return Ok(());
        }
        let detail = format!("there is no member {peer} in a group of {}", self.sending.members());
        Err(Error::Usage { operation, detail })
    }

    /// Whether there is a place for an RTS to leave from.
    fn has_place(&mut self, engine: &mut E, to: Rank) -> Result<bool> {
        if !self.sending.has_place(to) && engine.is_sent(self.slot, Lane::Data, to)? {
            self.sending.free_places(to);
        }
        Ok(self.sending.has_place(to))
    }

    /// Announces a message, or sends it as it is. An announced one finds a place free.
    fn launch(&mut self, engine: &mut E, message: Message) -> Result<()> {
        let Message { to, tag, span } = message;
        if !self.is_announced(to, span) {
            return engine.post_send(self.slot, Lane::Data, to, tag, span);
        }
        let (place, number) = self.sending.begin(message);
        let rts = self.slots.rts(place);
        slots::put_words(engine, self.slot, rts.offset, [span.len as u64, number as u64, span.offset as u64]);
        self.await_answers(engine, to)?;
        engine.post_send(self.slot, Lane::Data, to, tag, rts)?;
        self.stuck_at = None;
        Ok(())
    }

    /// Posts receives for answers, as many as are to come and there are places for.
    fn await_answers(&mut self, engine: &mut E, from: Rank) -> Result<()> {
        while let Some(place) = self.sending.await_answer(from) {
            let answer = self.slots.answer(place, self.answer_words());
            slots::clear::<E, CTS_WORDS>(engine, self.slot, answer.offset);
            engine.post_recv(self.slot, Lane::Protocol, from, slots::TO_SENDER, answer)?;
        }
        Ok(())
    }

    fn answer_words(&self) -> usize {
        if self.rules.protocol == Protocol::Put { CTS_WORDS } else { FIN_WORDS }
    }

    /// One turn over all messages. Flushes are asked for last, so that one answer covers all puts and gets of the turn.
    fn step(&mut self, engine: &mut E) -> Result<bool> {
        // A backend may hand messages over no sooner than it is asked about their lane.
        engine.is_complete(self.slot, Lane::Data)?;
        engine.is_complete(self.slot, Lane::Protocol)?;
        let mut moved = self.answer_announced(engine)? | self.take_answers(engine)?;
        if self.rules.protocol == Protocol::Put {
            moved |= self.end_granted(engine)?;
        }
        Ok(moved | self.end_moved(engine)? | self.launch_queued(engine)?)
    }

    /// Receiver: an RTS is answered by a CTS or by a get.
    fn answer_announced(&mut self, engine: &mut E) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.receives.len() {
            let Incoming { from, span, state: Receiving::Expected } = self.receives[at] else { continue };
            let Some([len, number, offset]) = self.look::<RTS_WORDS>(engine, from, slots::rts_in(span))? else {
                continue;
            };
            if len != span.len as u64 {
                return Err(self.wrong(from, format!("a message of {len} bytes met a receive of {}", span.len)));
            }
            let number = number as usize;
            self.receives[at].state = if self.rules.protocol == Protocol::Get {
                engine.get(self.slot, from, span, offset as usize)?;
                Receiving::Reading { fin_for: number, accesses: engine.accesses(self.slot, from) }
            } else {
                let Some(slot) = self.free.pop() else { break };
                let (cts, landing) = (self.slots.reply(slot, CTS_WORDS), self.slots.landing(slot));
                slots::clear::<E, FIN_WORDS>(engine, self.slot, landing.offset);
                slots::put_words(engine, self.slot, cts.offset, [span.offset as u64, slots::pack(slot, number)]);
                engine.post_recv(self.slot, Lane::Protocol, from, slots::to_receiver(slot), landing)?;
                engine.post_send(self.slot, Lane::Protocol, from, slots::TO_SENDER, cts)?;
                Receiving::Granted { slot }
            };
            moved = true;
        }
        Ok(moved)
    }

    /// Sender: a CTS is answered by the put; the FIN of a get ends the message.
    fn take_answers(&mut self, engine: &mut E) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.sending.awaited() {
            let from = self.sending.awaited_at(at);
            while let Some(place) = self.sending.next_answer(from) {
                let answer = self.slots.answer(place, self.answer_words());
                if self.rules.protocol == Protocol::Get {
                    let Some([number]) = self.look::<FIN_WORDS>(engine, from, answer)? else { break };
                    let number = number as usize;
                    self.known(from, number)?;
                    self.sending.end(number);
                    self.stuck_at = None;
                } else {
                    let Some([offset, word]) = self.look::<CTS_WORDS>(engine, from, answer)? else { break };
                    let (slot, number) = slots::unpack(word);
                    let span = self.known(from, number)?;
                    engine.put(self.slot, from, span, offset as usize)?;
                    self.sending.put(Moving { number, slot, accesses: engine.accesses(self.slot, from) });
                }
                self.sending.take_answer(from);
                self.await_answers(engine, from)?;
                moved = true;
            }
        }
        self.sending.tidy();
        Ok(moved)
    }

    /// The span of the message that an answer is about.
    fn known(&self, from: Rank, number: usize) -> Result<Span> {
        let span = self.sending.span(from, number);
        span.ok_or_else(|| self.wrong(from, format!("it answers message {number}, which was not announced to it")))
    }

    /// Receiver: the FIN of a put ends the message.
    fn end_granted(&mut self, engine: &mut E) -> Result<bool> {
        self.end_receives(|machine, receive| {
            let Receiving::Granted { slot } = receive.state else { return Ok(false) };
            let landed = machine.look::<FIN_WORDS>(engine, receive.from, machine.slots.landing(slot))?.is_some();
            if landed {
                machine.free.push(slot);
            }
            Ok(landed)
        })
    }

    /// Whoever moved the bytes says FIN, once they are where they belong; those of later messages are not waited for.
    fn end_moved(&mut self, engine: &mut E) -> Result<bool> {
        let mut moved = false;
        let mut at = 0;
        while let Some((to, Moving { number, slot, accesses })) = self.sending.put_at(at) {
            if !engine.are_flushed(self.slot, to, accesses)? {
                at += 1;
                continue;
            }
            engine.post_send(self.slot, Lane::Protocol, to, slots::to_receiver(slot), self.slots.fin())?;
            self.sending.end_put(at);
            self.sending.end(number);
            self.stuck_at = None;
            moved = true;
        }
        let got = self.end_receives(|machine, receive| match receive.state {
            Receiving::Reading { fin_for, accesses } => machine.finish_get(engine, receive.from, fin_for, accesses),
            _ => Ok(false),
        })?;
        Ok(moved | got)
    }

    /// Says FIN for a get whose bytes are here, if they are and there is a place to say it from.
    fn finish_get(&mut self, engine: &mut E, to: Rank, number: usize, accesses: u64) -> Result<bool> {
        if !engine.are_flushed(self.slot, to, accesses)? {
            return Ok(false);
        }
        if self.free.is_empty() {
            for at in (0..self.leaving.len()).rev() {
                let (slot, to) = self.leaving[at];
                if engine.is_sent(self.slot, Lane::Protocol, to)? {
                    self.leaving.swap_remove(at);
                    self.free.push(slot);
                }
            }
        }
        let Some(slot) = self.free.pop() else { return Ok(false) };
        let fin = self.slots.reply(slot, FIN_WORDS);
        slots::put_words(engine, self.slot, fin.offset, [number as u64]);
        engine.post_send(self.slot, Lane::Protocol, to, slots::TO_SENDER, fin)?;
        self.leaving.push((slot, to));
        Ok(true)
    }

    /// Lets messages leave that waited for a place, or for one that did.
    fn launch_queued(&mut self, engine: &mut E) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.sending.queues() {
            let to = self.sending.queue_at(at);
            while let Some(next) = self.sending.first_queued(to) {
                if self.is_announced(to, next.span) && !self.has_place(engine, to)? {
                    break;
                }
                self.sending.unqueue(to);
                self.stuck_at = None;
                self.launch(engine, next)?;
                moved = true;
            }
        }
        self.sending.tidy();
        Ok(moved)
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
            self.stuck_at = None;
            moved = true;
        }
        Ok(moved)
    }

    /// The words that were to arrive at `place`, if they did.
    fn look<const N: usize>(&self, engine: &E, peer: Rank, place: Span) -> Result<Option<[u64; N]>> {
        match slots::look(engine, self.slot, place.offset) {
            Found::Nothing => Ok(None),
            Found::Words(words) => Ok(Some(words)),
            Found::Garbage => Err(self.wrong(peer, "it sent something else where a rendezvous was to begin".into())),
        }
    }

    #[cold]
    fn wrong(&self, peer: Rank, detail: String) -> Error {
        Error::Protocol {
            operation: "rendezvous",
            peer: Some(self.members.get(peer.index()).copied().unwrap_or(peer)),
            detail,
        }
    }
}
