//! What of the puts and gets with a member is over: on one rail, and on all.

use tailback_transport::{Rank, Result};

use super::super::kinds::Slot;
use super::super::marks::of_home;
use super::super::wire::Wire;
use super::Core;

impl<W: Wire> Core<W> {
    /// Whether all puts and gets with the member over this peer's connection are over.
    #[inline]
    pub(super) fn is_over(&mut self, peer: usize, (slot, member): (Slot, Rank)) -> Result<bool> {
        self.wire.ask_flush(&mut self.ledger, peer, (slot, member))?;
        let far = self.far(peer, (slot, member));
        Ok(W::over(far) == W::accesses(far))
    }

    /// Likewise of the first `count` of them: what was put since then is not asked for without need.
    pub(super) fn are_over(&mut self, peer: usize, (slot, member): (Slot, Rank), count: u64) -> Result<bool> {
        if W::over(self.far(peer, (slot, member))) >= count {
            return Ok(true);
        }
        self.wire.ask_flush(&mut self.ledger, peer, (slot, member))?;
        Ok(W::over(self.far(peer, (slot, member))) >= count)
    }

    #[inline]
    fn far(&self, peer: usize, (slot, member): (Slot, Rank)) -> &W::Far {
        let seat = self.ledger.rails.seat(member.0, peer);
        &self.ledger.groups.at(slot).members[seat].far
    }

    /// Every rail is asked before one is waited for.
    pub(super) fn is_flushed_over_rails(&mut self, (slot, member): (Slot, Rank), rank: usize) -> Result<bool> {
        let (rails, home) = (self.ledger.rails, self.home(rank));
        let mut flushed = true;
        for rail in 0..rails.count() {
            flushed &= self.is_over(rails.peer(rank, rail), (slot, member))?;
        }
        if flushed {
            self.marks_are_over(slot, rails.peer(member.index(), home), u64::MAX);
        }
        Ok(flushed)
    }

    /// Likewise.
    pub(super) fn are_flushed_over_rails(
        &mut self,
        (slot, member): (Slot, Rank),
        rank: usize,
        count: u64,
    ) -> Result<bool> {
        let (rails, home) = (self.ledger.rails, self.home(rank));
        let seat = rails.peer(member.index(), home);
        let marks = self.ledger.groups.at(slot).members[seat].marks.as_deref();
        let counts = marks.map_or_else(|| of_home(home, count), |marks| marks.of_first(home, count));
        let mut flushed = true;
        for (rail, &count) in counts.iter().enumerate().take(rails.count()).filter(|(_, count)| **count > 0) {
            flushed &= self.are_over(rails.peer(rank, rail), (slot, member), count)?;
        }
        if flushed {
            self.marks_are_over(slot, seat, count);
        }
        Ok(flushed)
    }

    fn marks_are_over(&mut self, slot: Slot, seat: usize, count: u64) {
        let home = self.ledger.rails.rail(seat);
        if let Some(marks) = &mut self.ledger.groups.at_mut(slot).members[seat].marks {
            marks.are_over(home, count);
        }
    }
}
