//! Bytes out: the outbox to the socket, as far as the kernel takes them.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use tailback_transport::Result;

use super::Engine;
use super::outbox::{Piece, SLICES};
use super::peer::Route;
use crate::wire::Header;

/// Payloads up to this size are copied next to their header; puts up to this size may wait for company.
pub(super) const SMALL: usize = 8 * 1024;

/// Small puts leave at once when this many bytes wait.
const CORK_LIMIT: usize = 64 * 1024;

impl Engine {
    /// Writes what waits for `peer` until its outbox is empty or the kernel is full.
    pub(super) fn pump(&mut self, peer: usize) -> Result<()> {
        loop {
            let state = &mut self.peers[peer];
            let Route::Up(link) = &mut state.route else { return Ok(()) };
            if state.out.is_empty() || !link.writable {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (used, total) = state.out.gather(&self.groups, &mut slices);
            let result = match &slices[..used] {
                [one] => send(&link.socket, one, SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
                many => {
                    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    sendmsg(&link.socket, many, &mut SendAncillaryBuffer::default(), flags)
                }
            };
            match result {
                Ok(written) => {
                    // A short write means that the kernel is full and will raise an event when it no longer is.
                    link.writable = written == total;
                    self.written(peer, written);
                }
                Err(Errno::AGAIN) => link.writable = false,
                Err(Errno::INTR) => {}
                Err(error) => return self.write_failed(peer, error),
            }
        }
    }

    /// Writes the small puts that were held back.
    pub(super) fn kick(&mut self) -> Result<()> {
        while let Some(peer) = self.corked.pop() {
            self.peers[peer as usize].corked = false;
            self.pump(peer as usize)?;
        }
        Ok(())
    }

    /// Queues a header that answers a peer's request, and writes.
    pub(super) fn answer(&mut self, peer: usize, header: Header) -> Result<()> {
        self.peers[peer].out.stage(&header.encode());
        self.pump(peer)
    }

    /// Lets small output wait for company until the next call that makes progress.
    pub(super) fn cork(&mut self, peer: usize) -> Result<()> {
        if self.peers[peer].out.staged() >= CORK_LIMIT {
            return self.pump(peer);
        }
        if !self.peers[peer].corked {
            self.peers[peer].corked = true;
            self.corked.push(peer as u32);
        }
        Ok(())
    }

    fn written(&mut self, peer: usize, mut written: usize) {
        while let Some(piece) = self.peers[peer].out.take(&mut written) {
            self.retire(peer, piece);
        }
    }

    fn retire(&mut self, peer: usize, piece: Piece) {
        if let Some((slot, lane)) = piece.completes {
            self.peers[peer].open -= 1;
            self.groups.at_mut(slot).pending[lane as usize] -= 1;
        }
        if let Some(slot) = piece.group() {
            self.groups.unqueue(slot);
        }
    }

    /// The peer takes nothing more. What it sent before it went may still be in the kernel, so the link stays for
    /// reading unless a send needs it.
    fn write_failed(&mut self, peer: usize, error: Errno) -> Result<()> {
        if self.peers[peer].out.has_sends() {
            return self.lose(peer, format!("connection closed: {error}"));
        }
        self.forget_output(peer);
        Ok(())
    }

    /// Empties an outbox that will never be written; open operations stay open, so that they are reported.
    pub(super) fn forget_output(&mut self, peer: usize) {
        let mut all = usize::MAX;
        while let Some(piece) = self.peers[peer].out.take(&mut all) {
            if let Some(slot) = piece.group() {
                self.groups.unqueue(slot);
            }
        }
    }
}
