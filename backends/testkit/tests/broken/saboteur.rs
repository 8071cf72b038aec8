//! A transport that breaks one promise of the one under it.

use tailback_transport::{
    Capabilities, Description, Error, Group, Nanos, Operation, Proposal, Rank, Result, Span, Tag, Transport,
};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    Nothing,
    /// All messages travel with tag 0.
    IgnoreTags,
    /// Two sends to one member in a row leave in the opposite order.
    SwapSends,
    /// Waiting for messages returns at once.
    SkipWait,
    /// Messages of 4096 bytes are not sent.
    DropSends,
    /// Nothing is added.
    SkipSums,
    /// Flush returns at once.
    SkipFlush,
    /// Puts of eight bytes or more start a byte early at the target.
    ShiftPuts,
    /// Gets read from the member after the right one.
    MisdirectGets,
    /// Waiting for a time returns at once.
    WakeEarly,
    /// Barriers return at once.
    SkipBarrier,
    /// Background barriers are complete as soon as they are started.
    RushBarrier,
    /// Members agree on what they proposed themselves.
    AgreeAlone,
    /// Waiting for messages waits for the agreement under way first.
    AgreeFirst,
    /// Member 1's sums are the next larger number.
    RoundDifferently,
    /// Segments start with a byte that is not zero.
    DirtySegments,
    /// Usage errors are swallowed.
    AcceptMisuse,
    /// There is no get, which is said before and again when it is called.
    LackGet,
    /// There is no get; when it is called, nothing happens.
    LackGetSilently,
}

/// The transport.
pub struct Saboteur<T> {
    inner: T,
    sabotage: Sabotage,
}

impl<T: Transport> Saboteur<T> {
    /// Sabotages `inner`.
    pub fn new(inner: T, sabotage: Sabotage) -> Self {
        Saboteur { inner, sabotage }
    }
}

impl<T: Transport> Transport for Saboteur<T> {
    type Group = SaboteurGroup<T::Group>;

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.inner.capabilities();
        if matches!(self.sabotage, Sabotage::LackGet | Sabotage::LackGetSilently) {
            return capabilities.without(Operation::Get, "sold separately");
        }
        capabilities
    }

    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn try_one_sided(&mut self) -> Result<()> {
        self.inner.try_one_sided()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group> {
        let mut inner = self.inner.group(members, segment)?;
        if self.sabotage == Sabotage::DirtySegments && segment > 0 {
            inner.write(segment - 1, &[1]);
        }
        Ok(SaboteurGroup { inner, sabotage: self.sabotage, held: None, proposed: None, agreed: None })
    }
}

/// Its groups.
pub struct SaboteurGroup<G> {
    inner: G,
    sabotage: Sabotage,
    /// A send kept back to leave after the next.
    held: Option<(Rank, Tag, Span)>,
    proposed: Option<Proposal>,
    agreed: Option<Proposal>,
}

impl<G: Group> SaboteurGroup<G> {
    fn does(&self, sabotage: Sabotage) -> bool {
        self.sabotage == sabotage
    }

    fn release(&mut self) -> Result<()> {
        self.held.take().map_or(Ok(()), |(to, tag, span)| self.inner.post_send(to, tag, span))
    }

    /// Turns a refusal into a success, where that is the sabotage.
    fn refuse(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::Usage { .. }) if self.does(Sabotage::AcceptMisuse) => Ok(()),
            other => other,
        }
    }

    fn tag(&self, tag: Tag) -> Tag {
        if self.does(Sabotage::IgnoreTags) { Tag(0) } else { tag }
    }
}

impl<G: Group> Group for SaboteurGroup<G> {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        if self.does(Sabotage::WakeEarly) {
            return Ok(());
        }
        self.inner.wait_until(at)
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.inner.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.inner.write(offset, from);
    }

    fn add_words(&mut self, left: Span, right: usize, into: usize) {
        if !self.does(Sabotage::SkipSums) {
            self.inner.add_words(left, right, into);
        }
    }

    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        if self.does(Sabotage::DropSends) && span.len == 4096 {
            return Ok(());
        }
        if self.does(Sabotage::SwapSends) {
            match self.held {
                None => {
                    self.held = Some((to, tag, span));
                    return Ok(());
                }
                Some(held) if held.0 == to => {
                    self.inner.post_send(to, tag, span)?;
                    return self.release();
                }
                Some(_) => self.release()?,
            }
        }
        let outcome = self.inner.post_send(to, self.tag(tag), span);
        self.refuse(outcome)
    }

    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        let outcome = self.inner.post_recv(from, self.tag(tag), span);
        self.refuse(outcome)
    }

    fn wait_all(&mut self) -> Result<()> {
        self.release()?;
        if self.does(Sabotage::SkipWait) {
            return Ok(());
        }
        if self.does(Sabotage::AgreeFirst) && self.proposed.is_some() && self.agreed.is_none() {
            self.agreed = Some(self.inner.wait_agreement()?);
        }
        self.inner.wait_all()
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        let shift = usize::from(self.does(Sabotage::ShiftPuts) && local.len >= 8 && remote > 0);
        self.inner.put(to, local, remote - shift)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        match self.sabotage {
            Sabotage::LackGet => {
                Err(Error::Unsupported { operation: Operation::Get, reason: "sold separately".into() })
            }
            Sabotage::LackGetSilently => Ok(()),
            Sabotage::MisdirectGets => {
                let wrong = Rank::from((from.index() + 1) % self.size());
                self.inner.get(wrong, local, remote)?;
                self.inner.flush(wrong)
            }
            _ => self.inner.get(from, local, remote),
        }
    }

    fn flush(&mut self, peer: Rank) -> Result<()> {
        if self.does(Sabotage::SkipFlush) { Ok(()) } else { self.inner.flush(peer) }
    }

    fn barrier(&mut self) -> Result<()> {
        self.release()?;
        if self.does(Sabotage::SkipBarrier) { Ok(()) } else { self.inner.barrier() }
    }

    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.inner.allreduce(values)?;
        if self.does(Sabotage::RoundDifferently) && self.rank() == Rank(1) && values.len > 0 {
            let mut bytes = [0; 8];
            self.inner.read(values.offset, &mut bytes);
            self.inner.write(values.offset, &f64::from_ne_bytes(bytes).next_up().to_ne_bytes());
        }
        Ok(())
    }

    fn start_barrier(&mut self) -> Result<()> {
        let outcome = if self.does(Sabotage::RushBarrier) { Ok(()) } else { self.inner.start_barrier() };
        self.refuse(outcome)
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        if self.does(Sabotage::RushBarrier) { Ok(true) } else { self.inner.poll_barrier() }
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        self.proposed = Some(mine);
        self.agreed = None;
        let outcome = if self.does(Sabotage::AgreeAlone) { Ok(()) } else { self.inner.start_agreement(mine) };
        self.refuse(outcome)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        if self.does(Sabotage::AgreeAlone) || self.agreed.is_some() {
            return Ok(self.agreed.or(self.proposed));
        }
        self.inner.poll_agreement()
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        match self.poll_agreement()? {
            Some(agreed) => Ok(agreed),
            None => self.inner.wait_agreement(),
        }
    }
}
