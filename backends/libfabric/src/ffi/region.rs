//! The memory of groups: registered, and counted while operations refer to it.

use std::ffi::c_void;
use std::ptr;

use libfabric_sys::calls::fi_close;
use libfabric_sys::fid_mr;

use tailback_transport::{Registration, Segment, Span};

/// A group's memory, by number. Numbers are reused once nothing refers to the memory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub u32);

/// What a peer has to know to access a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Card {
    pub key: u64,
    /// What the first byte is called: an address, or zero.
    pub base: u64,
}

impl Card {
    /// Bytes on the wire.
    pub(crate) const LEN: usize = 16;

    pub(crate) fn to_bytes(self) -> [u8; Card::LEN] {
        let mut bytes = [0; Card::LEN];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..].copy_from_slice(&self.base.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Card::LEN]) -> Card {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Card { key: word(0), base: word(8) }
    }
}

/// What libfabric knows about a segment.
pub(super) struct Registered {
    /// Null once it is no longer registered.
    pub(super) mr: *mut fid_mr,
    pub(super) desc: *mut c_void,
    pub(super) card: Card,
}

impl Registration for Registered {
    fn end(&mut self) -> bool {
        if !self.mr.is_null() {
            // SAFETY: *Live*; registered once, closed once.
            unsafe { fi_close(self.mr.cast()) };
            self.mr = ptr::null_mut();
        }
        true
    }
}

/// A group's memory, and how many operations refer to it.
pub(super) struct Region {
    segment: Segment<Registered>,
    in_flight: usize,
    given_up: bool,
}

/// All regions of an endpoint.
#[derive(Default)]
pub(super) struct Regions {
    slots: Vec<Option<Region>>,
}

impl Regions {
    pub(super) fn add(&mut self, segment: Segment<Registered>) -> RegionId {
        let region = Region { segment, in_flight: 0, given_up: false };
        let at = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(region);
        RegionId(u32::try_from(at).expect("fewer than 2^32 groups"))
    }

    pub(super) fn at(&self, id: RegionId) -> &Segment<Registered> {
        &self.slots[id.0 as usize].as_ref().expect("a region in use").segment
    }

    /// See [`Regions::at`].
    pub(super) fn at_mut(&mut self, id: RegionId) -> &mut Segment<Registered> {
        &mut self.slots[id.0 as usize].as_mut().expect("a region in use").segment
    }

    /// The address of a span of the region.
    ///
    /// # Panics
    /// If the span is not inside it.
    #[inline]
    pub(super) fn place(&self, id: RegionId, span: Span) -> (*mut u8, *mut c_void) {
        let segment = self.at(id);
        (segment.place(span.offset, span.len), segment.registration().desc)
    }

    /// One more operation refers to the region.
    #[inline]
    pub(super) fn hold(&mut self, id: RegionId) {
        self.slots[id.0 as usize].as_mut().expect("a region in use").in_flight += 1;
    }

    /// One operation less does.
    #[inline]
    pub(super) fn release(&mut self, id: RegionId) {
        let slot = &mut self.slots[id.0 as usize];
        let region = slot.as_mut().expect("a region in use");
        region.in_flight -= 1;
        if region.given_up && region.in_flight == 0 {
            *slot = None;
        }
    }

    /// Nobody will name the region again.
    pub(super) fn give_up(&mut self, id: RegionId) {
        let slot = &mut self.slots[id.0 as usize];
        if let Some(region) = slot {
            region.given_up = true;
            if region.in_flight == 0 {
                *slot = None;
            }
        }
    }

    pub(super) fn deregister_all(&mut self) {
        self.slots.iter_mut().flatten().for_each(|region| region.segment.deregister());
    }

    /// Leaves the memory to the process's end: something may still write to it.
    pub(super) fn leak(&mut self) {
        self.slots.drain(..).for_each(std::mem::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(len: usize) -> Segment<Registered> {
        let none = Registered { mr: ptr::null_mut(), desc: ptr::null_mut(), card: Card::default() };
        Segment::new(len, |_, _| Ok(none)).expect("memory")
    }

    #[test]
    fn a_region_lives_while_operations_refer_to_it() {
        let mut regions = Regions::default();
        let id = regions.add(region(16));
        regions.hold(id);
        regions.give_up(id);
        assert_eq!(regions.at(id).len(), 16);
        assert_ne!(regions.add(region(1)), id);
        regions.release(id);
        assert_eq!(regions.add(region(1)), id);
    }

    #[test]
    #[should_panic(expected = "9 bytes at offset 8 are not inside the segment of 16 bytes")]
    fn spans_outside_are_refused() {
        let mut regions = Regions::default();
        let id = regions.add(region(16));
        regions.place(id, Span::new(8, 9));
    }

    #[test]
    fn cards_are_read_back() {
        let card = Card { key: 7, base: u64::MAX - 3 };
        assert_eq!(Card::from_bytes(card.to_bytes()), card);
    }
}
