//! Providers install signal handlers (shm's ends the process after removing its files, which would turn Ctrl-C into a
//! crash without results). Calls that may do so run between a snapshot of the handlers and its return.

use std::mem::MaybeUninit;

/// The signals that libfabric's providers are known to take, and their kin.
const TAKEN: [libc::c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGABRT, libc::SIGBUS, libc::SIGSEGV, libc::SIGTERM];

/// Those that ask a process to end; the others tell of a fault in it, and cannot wait.
const ASKING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Runs `call`; signal handlers are afterwards as they were before. A signal that comes to this thread meanwhile waits for
/// them.
pub(super) fn preserved<R>(call: impl FnOnce() -> R) -> R {
    let (mut held, mut mask) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::<libc::sigset_t>::uninit());
    // SAFETY: both sets are locals, each filled in by the call that is given it; the numbers are of signals that exist.
    let masked = unsafe {
        libc::sigemptyset(held.as_mut_ptr());
        for signal in ASKING {
            libc::sigaddset(held.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), mask.as_mut_ptr()) == 0
    };
    let before = TAKEN.map(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: a null new action only asks; the out-pointer has room for one.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: filled in, since the call succeeded.
        (asked == 0).then(|| unsafe { action.assume_init() })
    });
    let result = call();
    for (signal, action) in TAKEN.into_iter().zip(before) {
        if let Some(action) = action {
            // SAFETY: an action that was in force a moment ago, whose handler is code that is still loaded.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
    }
    if masked {
        // SAFETY: the mask that was in force before, filled in since the call succeeded.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Handlers belong to the process, and tests are threads of it.
    fn alone() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    extern "C" fn handler(_signal: libc::c_int) {}

    fn current() -> usize {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; the out-pointer has room for one action and is filled in or all zeros.
        unsafe {
            libc::sigaction(libc::SIGHUP, std::ptr::null(), action.as_mut_ptr());
            action.assume_init().sa_sigaction
        }
    }

    #[test]
    fn a_signal_waits_for_the_handlers_that_were_there() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static OURS: AtomicU32 = AtomicU32::new(0);
        static THEIRS: AtomicU32 = AtomicU32::new(0);
        extern "C" fn ours(_signal: libc::c_int) {
            OURS.fetch_add(1, Ordering::Relaxed);
        }
        extern "C" fn theirs(_signal: libc::c_int) {
            THEIRS.fetch_add(1, Ordering::Relaxed);
        }
        let _alone = alone();
        // SAFETY: the handler only counts; what was there before is put back below.
        let before = unsafe { libc::signal(libc::SIGINT, ours as *const () as usize) };
        preserved(|| {
            // SAFETY: this handler only counts too; the signal is this thread's own.
            unsafe {
                libc::signal(libc::SIGINT, theirs as *const () as usize);
                libc::raise(libc::SIGINT);
            }
        });
        assert_eq!((OURS.load(Ordering::Relaxed), THEIRS.load(Ordering::Relaxed)), (1, 0));
        // SAFETY: as it was.
        unsafe { libc::signal(libc::SIGINT, before) };
    }

    #[test]
    fn a_handler_that_was_installed_meanwhile_is_gone() {
        let _alone = alone();
        let before = current();
        let during = preserved(|| {
            // SAFETY: the handler does nothing, and is removed again below.
            unsafe { libc::signal(libc::SIGHUP, handler as *const () as usize) };
            current()
        });
        assert_ne!(during, before);
        assert_eq!(current(), before);
    }
}
