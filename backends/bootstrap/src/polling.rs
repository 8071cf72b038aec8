//! Waiting for descriptors until a point in time.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};

/// Waits until one of `fds` is ready or `deadline` has passed. Returns early without a ready descriptor on a signal.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(3600));
    // Rounded up: waking a moment early would spin until the moment has passed.
    let left = left + Duration::from_micros(999);
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match rustix::event::poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
