//! One clock for a group: before anything is measured, the first member asks each of the others for the time and believes the
//! quickest answer.

use tailback_transport::{Group, Nanos, Rank, Result, Span, Tag};

/// What the clocks' comparison needs of a group's segment: a time sent, and one received.
pub(crate) const CLOCK_SEGMENT: usize = 16;
const SENT: Span = Span { offset: 0, len: 8 };
const RECEIVED: Span = Span { offset: 8, len: 8 };
/// Each clock is asked so often.
const QUESTIONS: u32 = 12;

/// The first member's clock, as this one knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedClock {
    /// Added to this member's time it gives the first one's.
    ahead: i64,
    /// At most so far off: half of the quickest answer's time.
    error: Nanos,
}

impl SharedClock {
    /// Compares the clocks of a group. Collective; the network should be quiet.
    pub(crate) fn compare<G: Group>(group: &mut G) -> Result<Self> {
        let (me, first) = (group.rank(), Rank(0));
        if me != first {
            for _ in 0..QUESTIONS {
                receive(group, first)?;
                let now = group.now();
                send(group, first, now.0)?;
            }
            let ahead = receive(group, first)?.cast_signed();
            let error = Nanos(receive(group, first)?.div_ceil(2));
            return Ok(SharedClock { ahead, error });
        }
        for peer in (1..group.size()).map(Rank::from) {
            let mut quickest = (u64::MAX, 0);
            for _ in 0..QUESTIONS {
                let asked = group.now().0;
                send(group, peer, 0)?;
                let theirs = receive(group, peer)?;
                let answered = group.now().0;
                let middle = asked + (answered - asked) / 2;
                quickest = quickest.min((answered - asked, middle.wrapping_sub(theirs)));
            }
            send(group, peer, quickest.1)?;
            send(group, peer, quickest.0)?;
        }
        Ok(SharedClock::default())
    }

    /// The most that it may be off, by one comparison.
    pub(crate) fn error(self) -> Nanos {
        self.error
    }

    /// How far this member's clock has moved against the first one's since an earlier comparison, as far as both can tell.
    pub(crate) fn moved(self, earlier: SharedClock) -> Nanos {
        Nanos(self.ahead.abs_diff(earlier.ahead))
    }

    /// The same for another clock of this process, which shows `other` when the one that was compared shows `own`.
    pub(crate) fn on(self, own: Nanos, other: Nanos) -> Self {
        let apart = own.0.wrapping_sub(other.0).cast_signed();
        SharedClock { ahead: self.ahead.wrapping_add(apart), ..self }
    }

    /// The first member's time when it is `own` here.
    pub(crate) fn shared(self, own: Nanos) -> u64 {
        own.0.saturating_add_signed(self.ahead)
    }

    /// The time here when it is `shared` at the first member's.
    pub(crate) fn own(self, shared: u64) -> Nanos {
        Nanos(shared.saturating_add_signed(-self.ahead))
    }
}

fn send<G: Group>(group: &mut G, to: Rank, word: u64) -> Result<()> {
    group.write(SENT.offset, &word.to_le_bytes());
    group.post_send(to, Tag(0), SENT)?;
    group.wait_all()
}

fn receive<G: Group>(group: &mut G, from: Rank) -> Result<u64> {
    group.post_recv(from, Tag(0), RECEIVED)?;
    group.wait_all()?;
    let mut word = [0; 8];
    group.read(RECEIVED.offset, &mut word);
    Ok(u64::from_le_bytes(word))
}
