//! Contexts of operations in flight. Some providers keep state in them, so each has an address of its own that does not
//! change.

use std::ffi::c_void;

use libfabric_sys::fi_context2;

use tailback_engine::tagged::{Kind, Ticket};

/// The library's function for an operation.
pub(super) fn call_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "fi_tsend",
        Kind::Recv => "fi_trecv",
        Kind::Put => "fi_writemsg",
        Kind::Get => "fi_read",
    }
}

#[repr(C)]
struct Slot {
    context: fi_context2,
    ticket: Ticket,
}

/// Slots are made in chunks, which stay where they are.
const CHUNK: usize = 256;

#[derive(Default)]
pub(super) struct Slots {
    chunks: Vec<*mut Slot>,
    free: Vec<*mut Slot>,
}

impl Slots {
    /// A context for an operation that is about to be posted.
    #[inline]
    pub(super) fn take(&mut self, ticket: Ticket) -> *mut c_void {
        let slot = self.free.pop().unwrap_or_else(|| self.grow(ticket));
        // SAFETY: the slot is in a chunk of ours and free, so nothing refers to it.
        unsafe { (*slot).ticket = ticket };
        slot.cast()
    }

    /// The operation is complete, or was not posted after all.
    ///
    /// # Safety
    /// `context` came from [`Slots::take`] and was not given back since.
    #[inline]
    pub(super) unsafe fn give_back(&mut self, context: *mut c_void) -> Ticket {
        let slot: *mut Slot = context.cast();
        // SAFETY: a slot of ours, whose operation is over: the provider no longer touches it.
        let ticket = unsafe { (*slot).ticket };
        self.free.push(slot);
        ticket
    }

    /// A new chunk: its first slot, the others are free.
    #[cold]
    fn grow(&mut self, ticket: Ticket) -> *mut Slot {
        let empty = || Slot { context: fi_context2 { internal: [std::ptr::null_mut(); 8] }, ticket };
        let chunk: Box<[Slot]> = std::iter::repeat_with(empty).take(CHUNK).collect();
        let first: *mut Slot = Box::into_raw(chunk).cast();
        self.chunks.push(first);
        // All chunks may be free at once: giving back never allocates.
        self.free.reserve(self.chunks.len() * CHUNK);
        // SAFETY: indices below CHUNK stay inside the chunk.
        self.free.extend((1..CHUNK).rev().map(|index| unsafe { first.add(index) }));
        first
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for &chunk in &self.chunks {
            // SAFETY: made by `grow` from a boxed slice of this length; the endpoint, whose operations refer to it, is
            // closed before its slots are dropped.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(chunk, CHUNK)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tailback_engine::tagged::RegionId;

    use super::*;

    fn ticket(number: usize) -> Ticket {
        let number = number as u32;
        Ticket { kind: Kind::Put, lane: 1, region: RegionId(number), member: number, peer: 7, len: 8, access: 9 }
    }

    /// What a provider may do with a context: anything, with all of it, until its operation is over.
    fn scribble(context: *mut c_void, byte: u8) {
        // SAFETY: of this size, and nobody else's while it is taken.
        unsafe { context.cast::<fi_context2>().write_bytes(byte, 1) };
    }

    #[test]
    fn contexts_keep_their_places_and_tickets_whatever_a_provider_writes() {
        const MANY: usize = 3 * CHUNK + 1;
        let mut slots = Slots::default();
        let taken: Vec<_> = (0..MANY).map(|number| slots.take(ticket(number))).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), MANY);
        taken.iter().for_each(|&context| scribble(context, 0xff));
        // Every other one is over, from the last to the first, and used again.
        let (over, open): (Vec<_>, Vec<_>) = taken.iter().copied().enumerate().partition(|(number, _)| number % 2 == 1);
        for &(number, context) in over.iter().rev() {
            // SAFETY: taken above, given back once.
            assert_eq!(unsafe { slots.give_back(context) }.member as usize, number);
        }
        let again: Vec<_> = (0..over.len()).map(|number| slots.take(ticket(MANY + number))).collect();
        assert_eq!(again.iter().collect::<HashSet<_>>(), over.iter().map(|(_, context)| context).collect());
        again.iter().for_each(|&context| scribble(context, 0));
        for (number, context) in open {
            // SAFETY: as above.
            assert_eq!(unsafe { slots.give_back(context) }.region, RegionId(number as _));
        }
        for (number, context) in again.into_iter().enumerate() {
            // SAFETY: taken again above, given back once.
            assert_eq!(unsafe { slots.give_back(context) }.member as usize, MANY + number);
        }
        assert_eq!(slots.chunks.len(), 4);
    }
}
