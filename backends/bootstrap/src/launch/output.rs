//! Ranks' output, line by line: lines of different ranks may follow each other, but never mix.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tailback_transport::Rank;

/// A line longer than this is passed on in parts.
const LINE_LIMIT: usize = 1 << 20;
/// How every message that ends a job begins.
const ERROR_MARK: &[u8] = b"tailback: error:";

/// One rank's stdout or stderr.
#[derive(Debug)]
pub(super) struct Stream {
    source: File,
    prefix: Option<Vec<u8>>,
    is_stderr: bool,
    silenced: bool,
    buffer: Vec<u8>,
    /// Whether a line said why the job ends.
    pub(super) reported: bool,
    /// Why the user did not get to see all of it.
    pub(super) lost: Option<io::Error>,
}

impl Stream {
    pub(super) fn new(source: OwnedFd, rank: Rank, prefixed: bool, is_stderr: bool) -> Self {
        let prefix = prefixed.then(|| format!("[{rank}] ").into_bytes());
        Stream {
            source: source.into(),
            prefix,
            is_stderr,
            silenced: false,
            buffer: Vec::new(),
            reported: false,
            lost: None,
        }
    }

    /// From now on nothing of it is shown.
    pub(super) fn silence(&mut self) {
        self.silenced = true;
    }

    /// Reads once, when poll said that this does not wait, and passes whole lines on. `false` at the end.
    pub(super) fn pump(&mut self) -> bool {
        let mut chunk = [0; 32 << 10];
        let open = match self.source.read(&mut chunk) {
            Ok(0) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
            Err(e) => e.kind() == io::ErrorKind::Interrupted,
        };
        let unfinished = !open || self.buffer.len() > LINE_LIMIT;
        if unfinished && self.buffer.last().is_some_and(|b| *b != b'\n') {
            self.buffer.push(b'\n');
        }
        if let Some(end) = self.buffer.iter().rposition(|b| *b == b'\n') {
            let rest = self.buffer.split_off(end + 1);
            let lines = std::mem::replace(&mut self.buffer, rest);
            self.pass_on(&lines);
        }
        open
    }

    fn pass_on(&mut self, lines: &[u8]) {
        if self.silenced {
            return;
        }
        let mut shown = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|b| *b == b'\n') {
            self.reported |= self.is_stderr && line.starts_with(ERROR_MARK);
            shown.extend_from_slice(self.prefix.as_deref().unwrap_or_default());
            shown.extend_from_slice(line);
        }
        if self.is_stderr {
            let _ = io::stderr().lock().write_all(&shown);
            return;
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&shown).and_then(|()| stdout.flush()) {
            // A reader that went away knows what it did not read.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => self.lost = Some(error),
            _ => {}
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}
