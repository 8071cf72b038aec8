//! The only unsafe code of this crate: a group's memory, which devices and peers may write behind the compiler's back.
//!
//! Invariants that the SAFETY comments refer to by name:
//! - *Owned*: the pages come from this file's allocation or mapping and are freed once, with the same layout or length.
//! - *Inside*: every range is checked against the segment before its address is made.
//! - *Registered*: a registration ends before its pages are freed; if it cannot be ended, the pages are never freed. What
//!   a device does with memory that is gone therefore ends in the device's refusal, never in a stray access.
//! - Memory that a device may write is copied through raw pointers, and by atomic loads where it is looked at meanwhile; it
//!   is never lent as a slice. Only a segment that nobody registered lends its bytes.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use tailback_host::pages::{self, HugePages};
use tailback_transport::{Error, Result, Span, payload};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const PAGE: usize = 4096;

/// What is looked at while a device may write it has at most so many bytes, in whole words.
const LOOKED_AT: usize = 32;
const WORD: usize = 8;

/// What a backend did to a segment's pages so that its device may use them.
///
/// # Safety
/// The pages are freed on the word of [`Registration::end`]. Once it says true, no device, library or peer may access
/// them through this registration, now or later. A library's call that failed proves nothing of the kind: say false, and
/// the pages stay until the process ends. It is called at least once before they are freed, and may be called again after
/// either answer.
///
/// Whoever registers in [`Segment::new`]'s callback keeps the same promise for what it returns as an error: nothing is
/// registered then.
pub unsafe trait Registration {
    /// Ends it: whether the pages may be freed.
    fn end(&mut self) -> bool;
}

// SAFETY: memory that only this process touches.
unsafe impl Registration for () {
    fn end(&mut self) -> bool {
        true
    }
}

/// Zeroed whole pages, all of them backed by memory, with a backend's registration.
pub struct Segment<R: Registration = ()> {
    registration: R,
    pages: Pages,
    len: usize,
}

/// Zeroed whole pages. They are freed only by [`Pages::free`].
struct Pages {
    base: NonNull<u8>,
    size: usize,
    /// Absent for mapped ones.
    layout: Option<Layout>,
}

impl Pages {
    /// At least `len` bytes of usual pages.
    fn usual(len: usize) -> Option<Pages> {
        let size = len.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(size, PAGE).ok()?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        pages::note(|had| had.usual += size);
        Some(Pages { base, size, layout: Some(layout) })
    }

    /// The same of huge pages of `huge` bytes: reserved ones, or else those that the kernel makes. What is less than half of
    /// one is not worth it, and usual. The error says why there are none.
    fn huge(len: usize, huge: usize) -> std::result::Result<Pages, String> {
        let size = len.checked_next_multiple_of(huge).ok_or("there is no such memory")?;
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let reserved = unsafe { mmap_anonymous(ptr::null_mut(), size, access, private | MapFlags::HUGETLB) };
        let refused = match reserved {
            Ok(base) => {
                pages::note(|had| had.reserved += size);
                let base = NonNull::new(base.cast()).ok_or("the kernel mapped nothing")?;
                return Ok(Pages { base, size, layout: None });
            }
            Err(error) => format!("no reserved ones ({error})"),
        };
        let whole = size.checked_add(huge).ok_or("there is no such memory")?;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), whole, access, private) };
        let start: *mut u8 = start.map_err(|error| format!("{refused}, and no memory ({error})"))?.cast();
        let before = start.addr().next_multiple_of(huge) - start.addr();
        // SAFETY: *Inside* of what was just mapped, which nobody knows of: its ends are given back, its middle is whole.
        let (base, cut) = unsafe {
            let base = start.add(before);
            let front = if before > 0 { munmap(start.cast(), before) } else { Ok(()) };
            (base, front.and_then(|()| munmap(base.add(size).cast(), huge - before)))
        };
        let base = NonNull::new(base).ok_or("the kernel mapped nothing")?;
        let mapped = Pages { base, size, layout: None };
        let earlier = pages::transparent_bytes();
        // SAFETY: *Owned*, whole pages of a mapping of our own.
        let advised = unsafe { madvise(mapped.base.as_ptr().cast(), size, Advice::LinuxHugepage) };
        for offset in (0..size).step_by(PAGE) {
            // SAFETY: *Inside*. Volatile, or the store of a zero over a zero might be left out.
            unsafe { mapped.base.as_ptr().add(offset).write_volatile(0) };
        }
        let made = pages::transparent_bytes().saturating_sub(earlier).min(size);
        match (cut, advised) {
            (Ok(()), Ok(())) if made >= len.min(huge) => {
                pages::note(|had| {
                    had.transparent += made;
                    had.usual += size - made;
                });
                Ok(mapped)
            }
            (cut, advised) => {
                // SAFETY: *Owned*; nobody has it yet.
                unsafe { mapped.free() };
                let why = cut.and(advised).err().map_or_else(|| "it made none".to_owned(), |error| error.to_string());
                Err(format!("{refused}, none of the kernel's making ({why})"))
            }
        }
    }

    /// As the process requested.
    fn new(len: usize, requested: HugePages) -> Result<Pages> {
        let too_much = || Error::Setup(format!("there is no memory for a segment of {len} bytes"));
        let size = if requested == HugePages::No { None } else { pages::huge_page() };
        let found = match size {
            Some(huge) if len >= huge / 2 => Pages::huge(len, huge),
            None if requested != HugePages::No => Err("the kernel has none".into()),
            _ => return Pages::usual(len).ok_or_else(too_much),
        };
        match (found, requested) {
            (Ok(pages), _) => Ok(pages),
            (Err(why), HugePages::Require) => {
                Err(Error::Setup(format!("there are no huge pages for a segment of {len} bytes: {why}")))
            }
            (Err(why), _) => {
                pages::note(|had| had.why = Some(why));
                Pages::usual(len).ok_or_else(too_much)
            }
        }
    }

    /// Gives them back.
    ///
    /// # Safety
    /// Nobody may use them from here on.
    unsafe fn free(&self) {
        // SAFETY: *Owned*, and the caller's word. A mapping that cannot be undone stays.
        unsafe {
            match self.layout {
                Some(layout) => dealloc(self.base.as_ptr(), layout),
                None => _ = munmap(self.base.as_ptr().cast(), self.size),
            }
        }
    }
}

impl<R: Registration> Segment<R> {
    /// `len` bytes; `register` gets the address and the size of all their pages.
    ///
    /// # Errors
    /// If there is no such memory, or what `register` says.
    pub fn new(len: usize, register: impl FnOnce(*mut u8, usize) -> Result<R>) -> Result<Segment<R>> {
        Segment::of(Pages::new(len, pages::requested())?, len, register)
    }

    fn of(pages: Pages, len: usize, register: impl FnOnce(*mut u8, usize) -> Result<R>) -> Result<Segment<R>> {
        match register(pages.base.as_ptr(), pages.size) {
            Ok(registration) => Ok(Segment { registration, pages, len }),
            Err(error) => {
                // SAFETY: *Owned*; nothing was registered.
                unsafe { pages.free() };
                Err(error)
            }
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What `register` gave.
    #[inline]
    pub fn registration(&self) -> &R {
        &self.registration
    }

    /// Ends the registration early, for devices that want that before they are closed.
    pub fn deregister(&mut self) {
        self.registration.end();
    }

    /// The address of `len` bytes at `offset`, for work requests.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn place(&self, offset: usize, len: usize) -> *mut u8 {
        self.check(offset, len);
        // SAFETY: *Inside*.
        unsafe { self.pages.base.as_ptr().add(offset) }
    }

    #[inline]
    fn check(&self, offset: usize, len: usize) {
        if len > self.len || offset > self.len - len {
            outside(offset, len, self.len);
        }
    }

    /// Copies out.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.place(offset, into.len());
        if into.len() <= LOOKED_AT && into.len().is_multiple_of(WORD) && from.addr().is_multiple_of(WORD) {
            return read_words(from, into);
        }
        // SAFETY: *Inside*; `into` is a Rust slice and so no part of memory that is reached through `base`, or this is a
        // segment that lends, and `into` a mutable loan of something else. What a device writes there meanwhile is the
        // caller's to prevent, as the traits say; bytes have no invalid value.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies in.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        let into = self.place(offset, from.len());
        // SAFETY: as for `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
    }

    /// Adds words: [`tailback_transport::Group::add_words`].
    ///
    /// # Panics
    /// If a range is not inside, or the sums would overlap a summand.
    pub fn add_words(&mut self, left: Span, right: usize, into: usize) {
        let len = left.len;
        left.assert_sums_apart(right, into);
        let [left, right, into] = [left.offset, right, into].map(|offset| self.place(offset, len));
        // SAFETY: *Inside* and initialised; what is written overlaps nothing that is read. What a device writes there meanwhile
        // is the caller's to prevent, as for `read`.
        let (left, right, into) = unsafe {
            (slice::from_raw_parts(left, len), slice::from_raw_parts(right, len), slice::from_raw_parts_mut(into, len))
        };
        payload::add_words(left, right, into);
    }

    /// Copies from another segment.
    ///
    /// # Panics
    /// If a range is not inside.
    #[inline]
    pub fn copy_from<O: Registration>(&mut self, offset: usize, other: &Segment<O>, from: usize, len: usize) {
        let (into, from) = (self.place(offset, len), other.place(from, len));
        // SAFETY: *Inside*; two segments are two allocations, for one of them is borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(from, into, len) };
    }

    /// Copies inside this segment; the ranges may overlap.
    ///
    /// # Panics
    /// If a range is not inside.
    pub fn copy_within(&mut self, from: usize, to: usize, len: usize) {
        let (from, to) = (self.place(from, len), self.place(to, len));
        // SAFETY: *Inside*.
        unsafe { ptr::copy(from, to, len) };
    }
}

impl Segment {
    /// `len` bytes that only this process touches.
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn plain(len: usize) -> Result<Segment> {
        Segment::new(len, |_, _| Ok(()))
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: *Owned*, initialised, and touched by nobody but through this value.
        unsafe { slice::from_raw_parts(self.pages.base.as_ptr(), self.len) }
    }

    /// See [`Segment::bytes`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the loan is exclusive.
        unsafe { slice::from_raw_parts_mut(self.pages.base.as_ptr(), self.len) }
    }
}

impl<R: Registration> Drop for Segment<R> {
    fn drop(&mut self) {
        if self.registration.end() {
            // SAFETY: *Owned*, *Registered*.
            unsafe { self.pages.free() };
        } else {
            tell_kept(self.pages.size);
        }
    }
}

impl<R: Registration> fmt::Debug for Segment<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Copies whole words that a device may be writing. Each is as it was or as it will be, and what was written before the one
/// that was seen is seen too: whoever finds a word that says so may read the rest.
#[inline]
fn read_words(from: *mut u8, into: &mut [u8]) {
    for (at, word) in into.chunks_exact_mut(WORD).enumerate() {
        // SAFETY: *Inside*, and a multiple of eight by the caller's look. Loads of other sizes of the same word are made only
        // when no device writes it; this process stores to it only through a `&mut` segment.
        let seen = unsafe { AtomicU64::from_ptr(from.add(at * WORD).cast()) }.load(Ordering::Acquire);
        word.copy_from_slice(&seen.to_ne_bytes());
    }
}

/// Says that memory is not freed, once: a device that refuses one of many refuses the others too.
#[cold]
fn tell_kept(bytes: usize) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        eprintln!(
            "tailback: warning: a device did not give back {bytes} bytes of memory; what it does not give back is kept until \
             the process ends"
        );
    });
}

#[cold]
fn outside(offset: usize, len: usize, size: usize) -> ! {
    panic!("{len} bytes at offset {offset} are not inside the segment of {size} bytes")
}

/// Gives freed memory back to the system, where the C library can: what was needed once, as to read the command line, does not
/// stay with every rank.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn fresh_memory_is_zero_and_keeps_what_is_written() {
        let mut segment = Segment::plain(10_000).expect("memory");
        assert!(segment.bytes().iter().all(|&byte| byte == 0) && segment.bytes().as_ptr().addr().is_multiple_of(PAGE));
        segment.write(5, &[1, 2, 3, 4]);
        segment.copy_within(5, 7, 4);
        let mut seen = [0; 6];
        segment.read(5, &mut seen);
        assert_eq!(seen, [1, 2, 1, 2, 3, 4]);
        let mut other = Segment::plain(4).expect("memory");
        other.copy_from(0, &segment, 7, 4);
        assert_eq!(other.bytes(), [1, 2, 3, 4]);
        let words: Vec<u8> = (1..=40).collect();
        segment.write(64, &words);
        for (offset, len) in [(64, 8), (64, 24), (72, 32), (64, 40), (65, 8), (64, 7), (64, 0)] {
            let mut seen = vec![0; len];
            segment.read(offset, &mut seen);
            assert_eq!(seen, words[offset - 64..][..len], "{len} bytes at {offset}");
        }
        assert!(Segment::plain(0).expect("no bytes").is_empty());
    }

    #[test]
    #[should_panic(expected = "9 bytes at offset 8 are not inside the segment of 16 bytes")]
    fn ranges_outside_are_refused() {
        Segment::plain(16).expect("memory").place(8, 9);
    }

    #[test]
    fn huge_pages_are_had_or_the_reason_is_said() {
        const LEN: usize = (5 << 20) + 3;
        let Some(huge) = pages::huge_page() else { return assert!(Pages::new(LEN, HugePages::Require).is_err()) };
        match Pages::new(LEN, HugePages::Require) {
            Ok(pages) => {
                assert!(pages.base.addr().get().is_multiple_of(huge) && pages.size == LEN.next_multiple_of(huge));
                let mut segment = Segment::of(pages, LEN, |_, _| Ok(())).expect("nothing to register");
                assert!(segment.bytes().iter().all(|byte| *byte == 0));
                segment.bytes_mut()[LEN - 1] = 7;
                assert_eq!(segment.bytes()[LEN - 1], 7);
                let had = pages::had();
                assert!(had.reserved + had.transparent >= huge, "{had:?}");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("no huge pages for a segment of 5242883 bytes: no reserved ones"), "{said}");
            }
        }
        let small = Pages::new(8, HugePages::Require).expect("too small to be worth one");
        assert!(small.layout.is_some());
        // SAFETY: nobody has it.
        unsafe { small.free() };
        let tried = Segment::of(Pages::new(LEN, HugePages::Try).expect("memory"), LEN, |_, _| Ok(()));
        assert_eq!(tried.expect("nothing to register").len(), LEN);
    }

    struct Counted(Rc<Cell<u32>>);

    // SAFETY: nothing was registered.
    unsafe impl Registration for Counted {
        fn end(&mut self) -> bool {
            self.0.set(self.0.get() + 1);
            true
        }
    }

    #[test]
    fn a_registration_ends_with_its_segment() {
        let ends = Rc::new(Cell::new(0));
        let segment = Segment::new(8, |address, len| {
            assert!(!address.is_null() && len == PAGE);
            Ok(Counted(Rc::clone(&ends)))
        });
        assert_eq!(ends.get(), 0);
        drop(segment);
        assert_eq!(ends.get(), 1);
        let refused = Segment::<Counted>::new(8, |_, _| Err(Error::Setup("no".into())));
        assert!(refused.is_err() && Segment::plain(usize::MAX).is_err());
    }

    struct Stuck;

    // SAFETY: it never says that the pages may be freed.
    unsafe impl Registration for Stuck {
        fn end(&mut self) -> bool {
            false
        }
    }

    #[test]
    fn pages_that_a_device_may_still_use_are_never_freed() {
        let mut at = ptr::null_mut();
        let mut segment = Segment::new(8 * PAGE, |address, _| {
            at = address;
            Ok(Stuck)
        })
        .expect("memory");
        segment.write(8 * PAGE - 8, b"see you!");
        drop(segment);
        // SAFETY: *Owned*, by nobody any more: they were not freed, which is what is tested.
        let seen = unsafe { slice::from_raw_parts(at.add(8 * PAGE - 8), 8) };
        assert_eq!(seen, b"see you!");
        let others: Vec<_> = (0..64).map(|_| Segment::plain(8 * PAGE).expect("memory")).collect();
        assert!(others.iter().all(|other| other.place(0, 0) != at), "given to somebody else");
        assert_eq!(seen, b"see you!");
        // SAFETY: *Owned*, by this test since nobody else has them; of this layout, as usual pages are.
        unsafe { dealloc(at, Layout::from_size_align(8 * PAGE, PAGE).expect("a layout")) };
    }
}
