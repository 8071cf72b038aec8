//! The memory of groups: allocated, touched, registered, counted while operations refer to it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr;

use libfabric_sys::calls::fi_close;
use libfabric_sys::fid_mr;

use tailback_transport::Span;

const PAGE: usize = 4096;

/// A group's memory, by number. Numbers are reused once nothing refers to the memory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionId(pub u32);

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

pub(super) struct Region {
    memory: *mut u8,
    len: usize,
    layout: Layout,
    /// Null until registered, and where the provider registers nothing.
    pub(super) mr: *mut fid_mr,
    pub(super) desc: *mut c_void,
    pub(super) card: Card,
    in_flight: usize,
    given_up: bool,
}

impl Region {
    /// `len` zeroed bytes, backed by memory: some providers register what is there, not what will be.
    pub(super) fn new(len: usize) -> Region {
        let layout = Layout::from_size_align(len.max(1), PAGE).expect("a segment fits the address space");
        // SAFETY: the layout has a size above zero.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory was just allocated with this size.
        unsafe { ptr::write_bytes(memory, 0, layout.size()) };
        let card = Card::default();
        Region { memory, len, layout, mr: ptr::null_mut(), desc: ptr::null_mut(), card, in_flight: 0, given_up: false }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.memory
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Ends the registration, not the memory.
    pub(super) fn deregister(&mut self) {
        if !self.mr.is_null() {
            // SAFETY: *Live*; registered once, closed once.
            unsafe { fi_close(self.mr.cast()) };
            self.mr = ptr::null_mut();
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.deregister();
        // SAFETY: allocated by `new` with this layout; *Kept*.
        unsafe { dealloc(self.memory, self.layout) };
    }
}

/// All regions of an endpoint.
#[derive(Default)]
pub(super) struct Regions {
    slots: Vec<Option<Region>>,
}

impl Regions {
    pub(super) fn add(&mut self, region: Region) -> RegionId {
        let at = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(region);
        RegionId(u32::try_from(at).expect("fewer than 2^32 groups"))
    }

    pub(super) fn at(&self, id: RegionId) -> &Region {
        self.slots[id.0 as usize].as_ref().expect("a region in use")
    }

    /// The address of a span of the region.
    ///
    /// # Panics
    /// If the span is not inside it.
    #[inline]
    pub(super) fn place(&self, id: RegionId, span: Span) -> (*mut u8, *mut c_void) {
        let region = self.at(id);
        assert!(
            span.offset <= region.len && span.len <= region.len - span.offset,
            "{} bytes at offset {} are not inside the segment of {} bytes",
            span.len,
            span.offset,
            region.len
        );
        // SAFETY: checked just now.
        (unsafe { region.memory.add(span.offset) }, region.desc)
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
        self.slots.iter_mut().flatten().for_each(Region::deregister);
    }

    /// Leaves the memory to the process's end: something may still write to it.
    pub(super) fn leak(&mut self) {
        self.slots.drain(..).for_each(std::mem::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_lives_while_operations_refer_to_it() {
        let mut regions = Regions::default();
        let id = regions.add(Region::new(16));
        regions.hold(id);
        regions.give_up(id);
        assert_eq!(regions.at(id).len(), 16);
        assert_ne!(regions.add(Region::new(1)), id);
        regions.release(id);
        assert_eq!(regions.add(Region::new(1)), id);
    }

    #[test]
    #[should_panic(expected = "9 bytes at offset 8 are not inside the segment of 16 bytes")]
    fn spans_outside_are_refused() {
        let mut regions = Regions::default();
        let id = regions.add(Region::new(16));
        regions.place(id, Span::new(8, 9));
    }

    #[test]
    fn cards_are_read_back() {
        let card = Card { key: 7, base: u64::MAX - 3 };
        assert_eq!(Card::from_bytes(card.to_bytes()), card);
    }
}
