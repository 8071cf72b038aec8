//! What the targets share: a bound on memory. libFuzzer looks at the resident size once a second and misses what is taken
//! and given back between; here every allocation is counted, and the one that goes beyond the bound ends the program, with
//! its backtrace.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are allocated, and how many may be.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static COUNTED: Counted = Counted;

struct Counted;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's word.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(at, layout) }
    }
}

fn take(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::Relaxed).saturating_add(size);
    // No second report while this one allocates.
    if live > MOST.load(Ordering::Relaxed) && MOST.swap(usize::MAX, Ordering::Relaxed) != usize::MAX {
        eprintln!("panicked at too much memory: {live} bytes with {size} more");
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}

/// Runs `body`, which may have allocated at most `mebibytes` more than there was before at any moment.
pub fn within<R>(mebibytes: usize, body: impl FnOnce() -> R) -> R {
    MOST.store(LIVE.load(Ordering::Relaxed) + (mebibytes << 20), Ordering::Relaxed);
    let result = body();
    MOST.store(usize::MAX, Ordering::Relaxed);
    result
}

/// An error is one line.
pub fn one_line(error: &impl std::fmt::Display) {
    let error = error.to_string();
    assert!(!error.contains('\n'), "one line: {error}");
}
