//! Connecting and reading with a limit for each step, and an eye on whether anybody still wants this job.
//!
//! The system's own timeouts cannot be cut short: a rank that dials an address which swallows everything would hear of
//! the user's wish to end only after them.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use crate::polling::poll_until;

/// How often to look whether it is still worth it.
const LOOK: Duration = Duration::from_millis(100);

/// How long, and as long as what, a step is worth waiting for.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// At most this long for each step.
    pub(crate) limit: Duration,
    /// Says that nobody waits for the outcome any more.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl Patience<'_> {
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

    pub(crate) fn read_exact(&self, stream: &mut TcpStream, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            self.wait(stream, PollFlags::IN)?;
            match stream.read(into) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => into = &mut into[n..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&self, socket: &impl std::os::fd::AsFd, event: PollFlags) -> io::Result<()> {
        let deadline = Instant::now() + self.limit;
        loop {
            let mut fds = [PollFd::new(socket, event)];
            poll_until(&mut fds, deadline.min(Instant::now() + LOOK))?;
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline || (self.is_over)() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}
