//! The one place with unsafe code: stacks for the ranks, and coroutines that borrow from whoever runs them.
//!
//! All stacks lie in one mapping, each above a guard. Guards that the kernel installs in its page tables (Linux 6.13)
//! cost no mapping of their own, so that a job can have any number of ranks; older kernels split the mapping at every
//! guard and have a limit for that.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::ptr;
use std::rc::Rc;

use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult};

/// Suspends the coroutine that it was handed to.
pub(crate) type Yielder = corosensei::Yielder<(), ()>;

/// Installs a guard without a mapping of its own; since Linux 6.13.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// The stacks of a job.
#[derive(Debug)]
pub(crate) struct Stacks {
    start: usize,
    len: usize,
    each: usize,
    guard: usize,
}

impl Stacks {
    /// `count` stacks of about `bytes` of address space; memory is used as far as it is touched.
    pub(crate) fn new(count: usize, bytes: usize) -> io::Result<Rc<Self>> {
        let page = page_size();
        let each = bytes.next_multiple_of(page) + page;
        let len = each.checked_mul(count.max(1)).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // From here on the mapping is unmapped when this is dropped.
        let stacks = Stacks { start: start as usize, len, each, guard: page };
        // A huge page per stack would be hundreds of times the memory that a rank needs; a kernel without huge pages
        // refuses, which is as good.
        // SAFETY: advice about a mapping of ours.
        unsafe { libc::madvise(start, len, libc::MADV_NOHUGEPAGE) };
        for index in 0..count {
            stacks.protect(index)?;
        }
        Ok(Rc::new(stacks))
    }

    /// Makes the lowest page of a stack one that cannot be touched.
    fn protect(&self, index: usize) -> io::Result<()> {
        let lowest = (self.start + index * self.each) as *mut libc::c_void;
        // SAFETY: the page is inside our mapping and nothing was stored in it yet.
        let done = unsafe {
            libc::madvise(lowest, self.guard, MADV_GUARD_INSTALL) == 0
                || libc::mprotect(lowest, self.guard, libc::PROT_NONE) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and every stack in it held a reference to this, so none is in use.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// One of the stacks.
struct OneStack {
    stacks: Rc<Stacks>,
    index: usize,
}

// SAFETY: base and limit are the ends of a part of the mapping that no other stack has (`Fiber::new` takes each index
// once), both are multiples of the page size, the lowest page is a guard, and the mapping lives as long as `stacks`.
unsafe impl Stack for OneStack {
    fn base(&self) -> StackPointer {
        NonZeroUsize::new(self.stacks.start + (self.index + 1) * self.stacks.each).expect("a mapping is not at zero")
    }

    fn limit(&self) -> StackPointer {
        NonZeroUsize::new(self.stacks.start + self.index * self.stacks.each).expect("a mapping is not at zero")
    }
}

/// Coroutines that borrow for `'env`.
pub(crate) struct Fibers<'env> {
    all: Vec<Coroutine<(), (), (), OneStack>>,
    stacks: Rc<Stacks>,
    // Invariant in 'env: what bodies borrow may not be shortened.
    marker: std::marker::PhantomData<&'env mut &'env ()>,
}

impl<'env> Fibers<'env> {
    pub(crate) fn new(stacks: Rc<Stacks>) -> Self {
        Fibers { all: Vec::new(), stacks, marker: std::marker::PhantomData }
    }

    /// Adds a coroutine; it has not started.
    ///
    /// # Panics
    /// If there is no stack left.
    pub(crate) fn add(&mut self, body: impl FnOnce(&Yielder) + 'env) {
        let index = self.all.len();
        assert!(index < self.stacks.len / self.stacks.each, "a coroutine too many");
        let stack = OneStack { stacks: Rc::clone(&self.stacks), index };
        // SAFETY: what `body` borrows is valid for 'env, which outlives this value; the coroutine is dropped with it or
        // before, and nobody outside this module can take it out to forget it. Forgetting all of `Fibers` forgets the
        // stacks with it, and the bodies are then never run again.
        let fiber = unsafe { Coroutine::with_stack_unchecked(stack, move |yielder, ()| body(yielder)) };
        self.all.push(fiber);
    }

    /// Runs a coroutine until it suspends itself (false) or ends (true). Its panic is the caller's.
    pub(crate) fn resume(&mut self, index: usize) -> bool {
        matches!(self.all[index].resume(()), CoroutineResult::Return(()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn fibers_take_turns_and_borrow() {
        let count = Cell::new(0);
        let mut fibers = Fibers::new(Stacks::new(100, 64 << 10).unwrap());
        for _ in 0..100 {
            fibers.add(|yielder| {
                count.set(count.get() + 1);
                yielder.suspend(());
                count.set(count.get() + 1000);
            });
        }
        assert!((0..100).all(|index| !fibers.resume(index)));
        assert_eq!(count.get(), 100);
        assert!((0..100).all(|index| fibers.resume(index)));
        assert_eq!(count.get(), 100_100);
    }

    #[test]
    fn a_fiber_that_is_dropped_unwinds() {
        struct Dropped<'a>(&'a Cell<u32>);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let count = Cell::new(0);
        let mut fibers = Fibers::new(Stacks::new(2, 64 << 10).unwrap());
        for _ in 0..2 {
            fibers.add(|yielder| {
                let _held = Dropped(&count);
                yielder.suspend(());
            });
        }
        fibers.resume(0);
        drop(fibers);
        assert_eq!(count.get(), 1);
    }
}
