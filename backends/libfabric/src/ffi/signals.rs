//! Providers install signal handlers (shm's ends the process after removing its files, which would turn Ctrl-C into a
//! crash without results). Calls that may do so run between a snapshot of the handlers and its return.

use std::mem::MaybeUninit;

/// The signals that libfabric's providers are known to take, and their kin.
const TAKEN: [libc::c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGABRT, libc::SIGBUS, libc::SIGSEGV, libc::SIGTERM];

/// Runs `call`; signal handlers are afterwards as they were before.
pub(super) fn preserved<R>(call: impl FnOnce() -> R) -> R {
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
    result
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_handler_that_was_installed_meanwhile_is_gone() {
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
