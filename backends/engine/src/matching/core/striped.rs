//! What the operations do differently with more than one rail; see [`Rails`](crate::matching::Rails).

use tailback_transport::{Rank, Result, Span};

use super::super::kinds::Slot;
use super::super::marks::Counts;
use super::super::wire::Wire;
use super::Core;

impl<W: Wire> Core<W> {
    #[inline]
    pub(super) fn has_rails(&self) -> bool {
        self.ledger.rails.count() > 1
    }

    /// The rail of what is short between this rank and another.
    #[inline]
    pub(super) fn home(&self, rank: usize) -> usize {
        self.ledger.rails.home(self.ledger.me.index(), rank)
    }

    /// Does something to every part of a span, with the peer it goes to or comes from.
    pub(super) fn over_rails(
        &mut self,
        rank: usize,
        span: Span,
        mut each: impl FnMut(&mut Self, usize, Span) -> Result<()>,
    ) -> Result<()> {
        let rails = self.ledger.rails;
        let mut taken = rails.taken(self.home(rank), span.len);
        taken.try_for_each(|rail| each(self, rails.peer(rank, rail), rails.part(rail, span)))
    }

    /// Likewise for a put or a get, which are counted on the home rail.
    pub(super) fn access_over_rails(
        &mut self,
        (slot, member): (Slot, Rank),
        rank: usize,
        local: Span,
        each: impl FnMut(&mut Self, usize, Span) -> Result<()>,
    ) -> Result<()> {
        self.over_rails(rank, local, each)?;
        let (rails, home) = (self.ledger.rails, self.home(rank));
        if rails.taken(home, local.len).len() > 1 {
            let members = &mut self.ledger.groups.at_mut(slot).members;
            let mut counts = Counts::default();
            for (rail, count) in counts.iter_mut().enumerate().take(rails.count()) {
                *count = W::accesses(&members[rails.peer(member.index(), rail)].far);
            }
            members[rails.peer(member.index(), home)].marks.get_or_insert_default().add(counts);
        }
        Ok(())
    }
}
