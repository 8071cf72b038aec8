//! Bytes in: headers and small messages through a staging buffer, large payloads straight into the segment.
//!
//! One read fetches the rest of the payload under way and, behind it, the start of what follows.

use std::io::IoSliceMut;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recv, recvmsg};

use tailback_transport::Result;

use super::arrive::arrived;
use super::peer::{Held, Incoming, Link, Route, STAGE};
use super::state::{Books, TcpWire};
use crate::header::{HEADER, Header};

/// Reads of one connection before others get their turn.
const BUDGET: usize = 16;

/// Behind a long payload only this much is staged: what is staged has to be copied.
const TAIL: usize = 512;

/// Payloads shorter than this are read together with whatever follows.
const LONG: usize = 4 * 1024;

/// How much a held payload's buffer grows at a time: what a header claims is not allocated before it arrives.
const HOLD_STEP: usize = 64 * 1024;

enum Got {
    Bytes { full: bool },
    Nothing,
    Closed(String),
}

impl TcpWire {
    /// Reads from `peer` until it is dry or over budget. Returns whether anything arrived.
    pub(super) fn read_link(&mut self, books: &mut Books, peer: usize) -> Result<bool> {
        self.read_with(books, peer, RecvFlags::DONTWAIT)
    }

    /// As [`TcpWire::read_link`], but sleeps until something arrives or the connection ends.
    pub(super) fn read_sleeping(&mut self, books: &mut Books, peer: usize) -> Result<bool> {
        self.read_with(books, peer, RecvFlags::empty())
    }

    fn read_with(&mut self, books: &mut Books, peer: usize, first: RecvFlags) -> Result<bool> {
        let mut any = false;
        for turn in 0..BUDGET {
            let flags = if turn == 0 { first } else { RecvFlags::DONTWAIT };
            let Some(got) = self.read_once(books, peer, flags) else { return Ok(any) };
            match got {
                Got::Bytes { full } => {
                    any = true;
                    self.digest(books, peer)?;
                    let Route::Up(link) = &mut self.peers[peer].route else { return Ok(any) };
                    if !full && !link.closing {
                        link.ready = false;
                        return Ok(any);
                    }
                    // Nothing wants this payload yet. The caller may be about to, and then it need not be copied.
                    if matches!(link.incoming, Incoming::Hold { .. }) {
                        return Ok(any);
                    }
                }
                Got::Nothing => {
                    if let Route::Up(link) = &mut self.peers[peer].route {
                        link.ready = false;
                    }
                    return Ok(any);
                }
                Got::Closed(detail) => {
                    self.lose(books, peer, detail)?;
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    /// One system call, or `None` when there is no link.
    fn read_once(&mut self, books: &mut Books, peer: usize, flags: RecvFlags) -> Option<Got> {
        let Route::Up(link) = &mut self.peers[peer].route else { return None };
        let Link { socket, incoming, stage, start, end, long, .. } = &mut **link;
        if *start > 0 {
            stage.copy_within(*start..*end, 0);
            (*start, *end) = (0, *end - *start);
        }
        let payload: &mut [u8] = match incoming {
            Incoming::Into { slot, offset, left, .. } => {
                &mut books.groups.at_mut(*slot).segment.bytes_mut()[*offset..*offset + *left]
            }
            Incoming::Hold { len, data, filled, .. } => {
                data.resize((*filled + HOLD_STEP).min(*len), 0);
                &mut data[*filled..]
            }
            Incoming::Header | Incoming::Discard { .. } => &mut [],
        };
        let wanted = payload.len();
        let room = if wanted >= LONG || (wanted == 0 && *long) { TAIL } else { STAGE };
        let spare = &mut stage[*end..room.max(*end)];
        let offered = wanted + spare.len();
        let result = if wanted == 0 {
            recv(&*socket, spare, flags).map(|(n, _)| n)
        } else {
            let slices = &mut [IoSliceMut::new(payload), IoSliceMut::new(spare)];
            recvmsg(&*socket, slices, &mut RecvAncillaryBuffer::default(), flags).map(|message| message.bytes)
        };
        Some(match result {
            Ok(0) => Got::Closed("connection closed".into()),
            Ok(n) => {
                let direct = n.min(wanted);
                match incoming {
                    Incoming::Into { offset, left, .. } => (*offset, *left) = (*offset + direct, *left - direct),
                    Incoming::Hold { filled, .. } => *filled += direct,
                    _ => {}
                }
                *end += n - direct;
                Got::Bytes { full: n == offered }
            }
            Err(Errno::AGAIN) => Got::Nothing,
            Err(Errno::INTR) => Got::Bytes { full: true },
            Err(error) => Got::Closed(format!("connection closed: {error}")),
        })
    }

    /// Works through what was read: finishes payloads, parses headers, copies what was staged.
    pub(super) fn digest(&mut self, books: &mut Books, peer: usize) -> Result<()> {
        loop {
            let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
            let staged = link.end - link.start;
            match &mut link.incoming {
                Incoming::Header => {
                    let Some(bytes) = link.stage[link.start..link.end].first_chunk::<HEADER>() else { return Ok(()) };
                    let parsed = Header::decode(bytes);
                    link.start += HEADER;
                    link.long = parsed.is_ok_and(|header| header.payload() >= LONG);
                    let header = parsed.map_err(|what| books.protocol(peer, what))?;
                    let incoming = self.begin(books, peer, header)?;
                    self.set_incoming(peer, incoming);
                    continue;
                }
                Incoming::Into { slot, offset, left, .. } if *left > 0 => {
                    let n = staged.min(*left);
                    let segment = &mut books.groups.at_mut(*slot).segment;
                    segment.write(*offset, &link.stage[link.start..link.start + n]);
                    (*offset, *left) = (*offset + n, *left - n);
                    link.start += n;
                }
                Incoming::Hold { len, data, filled, .. } if *filled < *len => {
                    let n = staged.min(*len - *filled);
                    data.truncate(*filled);
                    data.extend_from_slice(&link.stage[link.start..link.start + n]);
                    *filled += n;
                    link.start += n;
                }
                Incoming::Discard { left } if *left > 0 => {
                    let n = staged.min(*left);
                    *left -= n;
                    link.start += n;
                }
                _ => {}
            }
            if !self.finish(books, peer)? {
                return Ok(());
            }
        }
    }

    /// Ends the payload under way if it is complete; says whether it was.
    fn finish(&mut self, books: &mut Books, peer: usize) -> Result<bool> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(false) };
        let complete = match &link.incoming {
            Incoming::Header => false,
            Incoming::Into { left, .. } | Incoming::Discard { left } => *left == 0,
            Incoming::Hold { len, filled, .. } => filled == len,
        };
        if !complete {
            return Ok(false);
        }
        match std::mem::replace(&mut link.incoming, Incoming::Header) {
            Incoming::Into { slot, then, .. } => arrived(books, peer, slot, then),
            Incoming::Hold { what: Held::Message(envelope), data, .. } => books.keep(peer, envelope, data)?,
            Incoming::Hold { what: Held::Put(header), data, .. } => self.put_held(books, peer, header, data)?,
            Incoming::Header | Incoming::Discard { .. } => {}
        }
        Ok(true)
    }

    pub(super) fn set_incoming(&mut self, peer: usize, incoming: Incoming) {
        if let Route::Up(link) = &mut self.peers[peer].route {
            link.incoming = incoming;
        }
    }
}
