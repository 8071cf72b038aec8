//! Bytes out: the outbox to the socket, as far as the kernel takes them.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use tailback_transport::Result;

use super::outbox::{Ends, SLICES};
use super::peer::Route;
use super::{TcpLedger, TcpWire};
use crate::header::Header;

/// Small puts leave at once when this many bytes wait.
const CORK_LIMIT: usize = 64 * 1024;

impl TcpWire {
    /// Writes what waits for `peer` until its outbox is empty or the kernel is full.
    pub(super) fn pump(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        loop {
            let state = &mut self.peers[peer];
            let Route::Up(link) = &mut state.route else { return Ok(()) };
            if state.out.is_empty() || !link.writable {
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (used, total) = state.out.gather(&ledger.groups, &mut slices);
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
                    self.written(ledger, peer, written);
                }
                Err(Errno::AGAIN) => link.writable = false,
                Err(Errno::INTR) => {}
                Err(error) => return self.write_failed(ledger, peer, error),
            }
        }
    }

    /// Writes the small puts that were held back.
    pub(super) fn kick(&mut self, ledger: &mut TcpLedger) -> Result<()> {
        while let Some(peer) = self.corked.pop() {
            self.peers[peer as usize].corked = false;
            self.pump(ledger, peer as usize)?;
        }
        Ok(())
    }

    /// Queues a header that answers a peer's request, and writes.
    pub(super) fn answer(&mut self, ledger: &mut TcpLedger, peer: usize, header: Header) -> Result<()> {
        self.peers[peer].out.stage(&header.encode());
        self.pump(ledger, peer)
    }

    /// Lets small output wait for company until the next call that makes progress.
    pub(super) fn cork(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        if self.peers[peer].out.staged() >= CORK_LIMIT {
            return self.pump(ledger, peer);
        }
        if !self.peers[peer].corked {
            self.peers[peer].corked = true;
            self.corked.push(peer as u32);
        }
        Ok(())
    }

    fn written(&mut self, ledger: &mut TcpLedger, peer: usize, mut written: usize) {
        while let Some(ends) = self.peers[peer].out.take(&mut written) {
            match ends {
                Some(Ends::Send { slot, member, lane }) => ledger.end_send(peer, slot, member, lane),
                Some(Ends::Loan { slot }) => ledger.unlend(slot),
                None => {}
            }
        }
    }

    /// The peer takes nothing more. What it sent before it went may still be in the kernel, so the link stays for
    /// reading unless a send needs it.
    fn write_failed(&mut self, ledger: &mut TcpLedger, peer: usize, error: Errno) -> Result<()> {
        if self.peers[peer].out.has_sends() {
            return self.lose(ledger, peer, format!("connection closed: {error}"));
        }
        self.forget_output(ledger, peer);
        Ok(())
    }
}
