//! The memory of groups: registered, and counted while operations refer to it.

use std::ffi::c_void;
use std::ptr;

use libfabric_sys::calls::fi_close;
use libfabric_sys::fid_mr;

use tailback_engine::{Registration, Segment};
use tailback_transport::{Error, Result, Span};

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
    /// Null once it was asked to end.
    mr: *mut fid_mr,
    /// Whether it did not.
    stuck: bool,
    pub(super) desc: *mut c_void,
    pub(super) card: Card,
}

impl Registered {
    pub(super) fn new(mr: *mut fid_mr, desc: *mut c_void, card: Card) -> Registered {
        Registered { mr, stuck: false, desc, card }
    }

    pub(super) fn raw(&self) -> *mut fid_mr {
        self.mr
    }
}

// SAFETY: it has ended when libfabric says so. Asked once: after a failure its object may be gone or not, so it is neither
// closed again nor taken for closed.
unsafe impl Registration for Registered {
    fn end(&mut self) -> bool {
        if !self.mr.is_null() {
            // SAFETY: *Live*; registered once, closed once.
            self.stuck = unsafe { fi_close(self.mr.cast()) } != 0;
            self.mr = ptr::null_mut();
        }
        !self.stuck
    }
}

/// A key that a peer which was not told it will not guess, in as many bytes as the provider's keys have.
pub(super) fn random_key(bytes: usize) -> Result<u64> {
    let key = getrandom::u64().map_err(|e| Error::Setup(format!("the system gave no random numbers: {e}")))?;
    // Never all bits of a whole word, which is how libfabric writes that there is no key.
    let bits = (8 * bytes).clamp(8, 63);
    Ok(key & ((1 << bits) - 1))
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
    use std::collections::HashSet;
    use std::ffi::c_int;

    use libfabric_sys::{fi_ops, fid};

    use super::*;

    fn region(len: usize) -> Segment<Registered> {
        let none = Registered::new(ptr::null_mut(), ptr::null_mut(), Card::default());
        Segment::new(len, |_, _| Ok(none)).expect("memory")
    }

    /// A registration whose provider answers `code` when it is to end, and counts how often it is asked.
    fn ends_with(code: c_int, end: impl FnOnce(&mut Registered)) -> usize {
        #[repr(C)]
        struct Counted {
            mr: fid_mr,
            code: c_int,
            asked: usize,
        }
        unsafe extern "C" fn close(of: *mut fid) -> c_int {
            // SAFETY: the first member of a `Counted`, as made below.
            let counted = unsafe { &mut *of.cast::<Counted>() };
            counted.asked += 1;
            counted.code
        }
        // SAFETY: tables of functions and objects of libfabric's may be all zeros: nothing there.
        let (mut ops, mr) = unsafe { (std::mem::zeroed::<fi_ops>(), std::mem::zeroed::<fid_mr>()) };
        ops.close = Some(close);
        let mut counted = Counted { mr, code, asked: 0 };
        counted.mr.fid.ops = &raw mut ops;
        let counted = &raw mut counted;
        end(&mut Registered::new(counted.cast(), ptr::null_mut(), Card::default()));
        // SAFETY: still here.
        unsafe { (*counted).asked }
    }

    #[test]
    fn a_registration_that_did_not_end_is_not_taken_for_ended() {
        let asked = ends_with(0, |registered| assert!(registered.end() && registered.end()));
        assert_eq!(asked, 1);
        let asked = ends_with(-16, |registered| assert!(!registered.end() && !registered.end()));
        assert_eq!(asked, 1, "its object may be gone after a failure");
    }

    #[test]
    fn keys_are_random_and_fit() {
        let keys: HashSet<u64> = (0..1000).map(|_| random_key(8).expect("random numbers")).collect();
        assert_eq!(keys.len(), 1000);
        assert!(keys.iter().all(|&key| key != u64::MAX) && keys.iter().any(|&key| key > u64::from(u32::MAX)));
        assert!((0..1000).all(|_| random_key(4).expect("random numbers") <= u64::from(u32::MAX)));
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
