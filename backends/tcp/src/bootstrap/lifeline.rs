//! How a rank learns that its launcher is gone, even when that was killed without a chance to say so.
//!
//! The launcher holds the writing end of a pipe and lets every rank inherit the reading end; the system closes the
//! writing end when the launcher dies, however it dies. The rank opens its inherited descriptor anew through /proc,
//! which needs no unsafe code and fails cleanly if a wrapper closed it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use rustix::event::{PollFd, PollFlags, Timespec};

/// The reading end of the launcher's pipe.
#[derive(Debug)]
pub struct Lifeline(File);

impl Lifeline {
    /// The pipe inherited as descriptor `number`, if it is there and is a pipe.
    #[must_use]
    pub fn inherited(number: u32) -> Option<Self> {
        let path = format!("/proc/self/fd/{number}");
        if !std::fs::metadata(&path).ok()?.file_type().is_fifo() {
            return None;
        }
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits();
        File::options().read(true).custom_flags(nonblock as i32).open(path).ok().map(Lifeline)
    }

    /// Whether the launcher is gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(PollFlags::HUP)
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
