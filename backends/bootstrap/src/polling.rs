//! Waiting for descriptors until a point in time, or until nobody wants the outcome any more.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

/// How often a [`CancellableWait`] asks whether it is cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(100);

/// Waits until one of `fds` is ready or `deadline` has passed. Returns early without a ready descriptor on a signal.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(3600));
    // Rounded up: waking a moment early would spin until the moment has passed.
    let left = left + Duration::from_micros(999);
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match rustix::event::poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Waits with a limit for each step that can be cut short, which the system's own timeouts cannot: a rank that connects to
/// an address which swallows everything would notice an interrupt only after them.
#[derive(Clone, Copy)]
pub(crate) struct CancellableWait<'a> {
    /// At most this long for each step.
    pub(crate) limit: Duration,
    /// Says that nobody waits for the outcome any more.
    pub(crate) is_cancelled: &'a dyn Fn() -> bool,
}

impl CancellableWait<'_> {
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
            _ => {}
        }
        self.wait(&socket, PollFlags::OUT)?;
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        socket.set_nonblocking(false)?;
        Ok(socket.into())
    }

    pub(crate) fn wait(&self, socket: &impl AsFd, event: PollFlags) -> io::Result<()> {
        let deadline = Instant::now() + self.limit;
        loop {
            let mut fds = [PollFd::new(socket, event)];
            poll_until(&mut fds, deadline.min(Instant::now() + CANCEL_CHECK))?;
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline || (self.is_cancelled)() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}
