//! What waits to be written to one peer: headers and small payloads as bytes, large payloads as references into a
//! group's segment, in the order they were made.

use std::collections::VecDeque;
use std::io::IoSlice;

use tailback_transport::Lane;

use super::groups::{Groups, Slot};

/// How many slices one write gathers.
pub const SLICES: usize = 8;

/// Bytes already written are moved out of the staging buffer once there are this many.
const COMPACT: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Staged,
    Segment { slot: Slot, offset: usize },
}

/// A run of bytes from one source.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    source: Source,
    len: usize,
    /// The send that is complete once this piece is written.
    pub completes: Option<(Slot, Lane)>,
}

impl Piece {
    /// The group that has to stay while this piece waits.
    pub fn group(&self) -> Option<Slot> {
        match self.source {
            Source::Staged => self.completes.map(|(slot, _)| slot),
            Source::Segment { slot, .. } => Some(slot),
        }
    }
}

/// One peer's queue.
#[derive(Debug, Default)]
pub struct Outbox {
    staged: Vec<u8>,
    head: usize,
    pieces: VecDeque<Piece>,
}

impl Outbox {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes held by the queue itself.
    pub fn staged(&self) -> usize {
        self.staged.len() - self.head
    }

    /// Appends a copy of `bytes`.
    pub fn stage(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
        match self.pieces.back_mut() {
            Some(Piece { source: Source::Staged, len, completes: None }) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece { source: Source::Staged, len: bytes.len(), completes: None }),
        }
    }

    /// Appends a reference to a segment (not an empty one); the caller counts it in the group.
    pub fn refer(&mut self, slot: Slot, offset: usize, len: usize) {
        self.pieces.push_back(Piece { source: Source::Segment { slot, offset }, len, completes: None });
    }

    /// What was appended last ends a send; the caller counts a copied one in the group, as it does a reference.
    pub fn complete_with_last(&mut self, slot: Slot, lane: Lane) {
        if let Some(last) = self.pieces.back_mut() {
            last.completes = Some((slot, lane));
        }
    }

    /// Fills `into` with what to write next, adjacent staged pieces as one slice. Returns slices used and their bytes.
    pub fn gather<'a>(&'a self, groups: &'a Groups, into: &mut [IoSlice<'a>; SLICES]) -> (usize, usize) {
        let (mut used, mut total, mut at) = (0, 0, self.head);
        let mut run = at;
        for piece in &self.pieces {
            match piece.source {
                Source::Staged => at += piece.len,
                Source::Segment { slot, offset } => {
                    if used + 2 > SLICES {
                        break;
                    }
                    if run < at {
                        into[used] = IoSlice::new(&self.staged[run..at]);
                        used += 1;
                        run = at;
                    }
                    into[used] = IoSlice::new(&groups.at(slot).segment[offset..offset + piece.len]);
                    used += 1;
                }
            }
            total += piece.len;
        }
        if run < at && used < SLICES {
            into[used] = IoSlice::new(&self.staged[run..at]);
            used += 1;
        } else {
            total -= at - run;
        }
        (used, total)
    }

    /// Takes `written` bytes off the front: returns the next finished piece, or none when `written` is used up.
    pub fn take(&mut self, written: &mut usize) -> Option<Piece> {
        let front = self.pieces.front_mut()?;
        let step = front.len.min(*written);
        *written -= step;
        match &mut front.source {
            Source::Staged => self.head += step,
            Source::Segment { offset, .. } => *offset += step,
        }
        front.len -= step;
        if front.len > 0 {
            return None;
        }
        let piece = self.pieces.pop_front();
        if self.pieces.is_empty() {
            self.staged.clear();
            self.head = 0;
        } else if self.head >= COMPACT {
            self.staged.drain(..self.head);
            self.head = 0;
        }
        piece
    }

    /// Whether a send waits here.
    pub fn has_sends(&self) -> bool {
        self.pieces.iter().any(|piece| piece.completes.is_some())
    }
}

#[cfg(test)]
mod tests {
    use tailback_transport::Rank;

    use super::*;

    fn gathered(outbox: &Outbox, groups: &Groups) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (used, total) = outbox.gather(groups, &mut slices);
        let bytes: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).collect();
        assert_eq!(bytes.len(), total);
        bytes
    }

    #[test]
    fn bytes_leave_in_order_whatever_the_kernel_takes() {
        for step in 1..40 {
            let mut groups = Groups::default();
            let slot = groups.make(0, &[Rank(0)], 64).0;
            groups.at_mut(slot).segment.copy_from_slice(&std::array::from_fn::<u8, 64, _>(|i| i as u8));
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for i in 0..12_u8 {
                outbox.stage(&[200 + i; 5]);
                expected.extend([200 + i; 5]);
                if i % 3 == 1 {
                    outbox.refer(slot, usize::from(i), 7);
                    expected.extend(i..i + 7);
                }
                outbox.complete_with_last(slot, Lane::Data);
            }
            let (mut seen, mut completed) = (Vec::<u8>::new(), 0);
            while !outbox.is_empty() {
                let mut written = gathered(&outbox, &groups);
                written.truncate(step);
                seen.extend(&written);
                let mut left = written.len();
                while let Some(piece) = outbox.take(&mut left) {
                    completed += usize::from(piece.completes.is_some());
                    if left == 0 {
                        break;
                    }
                }
            }
            assert_eq!(seen, expected);
            assert_eq!(completed, 12);
            assert_eq!(outbox.staged(), 0);
        }
    }
}
