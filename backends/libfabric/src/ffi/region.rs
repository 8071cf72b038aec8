//! Registrations of groups' memory.

use std::ffi::c_void;
use std::ptr;

use libfabric_sys::calls::fi_close;
use libfabric_sys::fid_mr;

use tailback_engine::{Registration, tagged};
use tailback_transport::{Error, Result};

/// What a peer has to know to access a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pub key: u64,
    /// What the first byte is called: an address, or zero.
    pub base: u64,
}

impl tagged::Card for Card {
    const LEN: usize = 16;

    fn encode(&self, into: &mut [u8]) {
        into[..8].copy_from_slice(&self.key.to_le_bytes());
        into[8..].copy_from_slice(&self.base.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Card {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::c_int;

    use libfabric_sys::{fi_ops, fid};

    use super::*;

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
    fn cards_are_read_back() {
        let card = Card { key: 7, base: u64::MAX - 3 };
        let mut bytes = [0; 16];
        tagged::Card::encode(&card, &mut bytes);
        assert_eq!(<Card as tagged::Card>::decode(&bytes), card);
    }
}
