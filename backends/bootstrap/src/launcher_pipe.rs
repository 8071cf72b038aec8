//! How a rank learns that its launcher is gone, even when that was killed without a chance to say so.
//!
//! The launcher holds the writing end of a pipe and lets every rank inherit the reading end; the system closes the
//! writing end when the launcher dies, however it dies. The rank opens its inherited descriptor anew through /proc,
//! which needs no unsafe code and fails cleanly if a wrapper closed it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use rustix::event::{PollFd, PollFlags, Timespec};

/// The reading end of the launcher's pipe.
#[derive(Debug)]
pub struct LauncherPipe(File);

impl LauncherPipe {
    /// The pipe that `name` (from the launcher) says was inherited, if it is still the one behind that descriptor.
    #[must_use]
    pub fn inherited(name: &str) -> Option<Self> {
        let (number, inode) = name.split_once(':')?;
        let path = format!("/proc/self/fd/{}", number.parse::<u32>().ok()?);
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits();
        let found = std::fs::metadata(&path).ok()?;
        if !found.file_type().is_fifo() || found.ino() != inode.parse().ok()? {
            return None;
        }
        File::options().read(true).custom_flags(nonblock as i32).open(path).ok().map(LauncherPipe)
    }

    /// How ranks find the pipe whose reading end they inherit: its descriptor, and the inode that tells it from
    /// whatever else a wrapper may have put in its place.
    pub(crate) fn name(reading_end: &OwnedFd) -> io::Result<String> {
        let inode = rustix::fs::fstat(reading_end)?.st_ino;
        Ok(format!("{}:{inode}", reading_end.as_raw_fd()))
    }

    /// Whether the launcher is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(PollFlags::HUP)
    }
}

impl AsFd for LauncherPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_when_the_writing_end_closes_and_ignores_other_pipes() {
        let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let name = LauncherPipe::name(&reading).unwrap();
        let pipe = LauncherPipe::inherited(&name).unwrap();
        assert!(!pipe.is_closed());
        drop(writing);
        assert!(pipe.is_closed());
        assert!(LauncherPipe::inherited(&name).unwrap().is_closed(), "opened after the launcher has gone");
        assert!(LauncherPipe::inherited(&format!("{name}9")).is_none(), "another inode");
        assert!(LauncherPipe::inherited("0").is_none());
    }
}
