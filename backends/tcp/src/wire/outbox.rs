//! What waits to be written to one peer: headers and small payloads as bytes, large payloads as references into a
//! group's segment, in the order they were made.

use std::collections::VecDeque;
use std::io::IoSlice;

use tailback_engine::Lane;
use tailback_engine::matching::{Groups, Kinds, Slot};

/// How many slices one write gathers.
pub const SLICES: usize = 8;

/// Bytes already written are moved out of the staging buffer once there are this many.
const COMPACT: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Staged,
    Segment { slot: Slot, offset: usize },
}

/// What is over once a piece is written. The group has to stay until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// A send.
    Send { slot: Slot, member: u32, lane: Lane },
    /// The use of the segment by a put or a get.
    Loan { slot: Slot },
}

impl Ends {
    /// The group that it is about.
    pub fn slot(self) -> Slot {
        match self {
            Ends::Send { slot, .. } | Ends::Loan { slot } => slot,
        }
    }
}

/// A run of bytes from one source.
#[derive(Clone, Copy, Debug)]
struct Piece {
    source: Source,
    len: usize,
    ends: Option<Ends>,
}

/// One peer's queue.
#[derive(Debug, Default)]
pub struct Outbox {
    staged: Vec<u8>,
    head: usize,
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces.
    waiting: usize,
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

    /// Bytes that wait in all.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Appends a copy of `bytes`.
    pub fn stage(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
        self.waiting += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece { source: Source::Staged, len, ends: None }) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece { source: Source::Staged, len: bytes.len(), ends: None }),
        }
    }

    /// Appends a reference to a segment (not an empty one), which has to stay until that is written.
    pub fn refer(&mut self, slot: Slot, offset: usize, len: usize) {
        self.waiting += len;
        self.pieces.push_back(Piece { source: Source::Segment { slot, offset }, len, ends: None });
    }

    /// What was appended last ends this.
    pub fn end_with_last(&mut self, ends: Ends) {
        if let Some(last) = self.pieces.back_mut() {
            last.ends = Some(ends);
        }
    }

    /// Fills `into` with what to write next, adjacent staged pieces as one slice. Returns slices used and their bytes.
    pub fn gather<'a, K: Kinds<Registration = ()>>(
        &'a self,
        groups: &'a Groups<K>,
        into: &mut [IoSlice<'a>; SLICES],
    ) -> (usize, usize) {
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
                    into[used] = IoSlice::new(&groups.at(slot).segment.bytes()[offset..offset + piece.len]);
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

    /// Takes `written` bytes off the front: what the next finished piece ends, or none when `written` is used up.
    pub fn take(&mut self, written: &mut usize) -> Option<Option<Ends>> {
        let front = self.pieces.front_mut()?;
        let step = front.len.min(*written);
        *written -= step;
        match &mut front.source {
            Source::Staged => self.head += step,
            Source::Segment { offset, .. } => *offset += step,
        }
        front.len -= step;
        self.waiting -= step;
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
        piece.map(|piece| piece.ends)
    }

    /// Whether a send waits here.
    pub fn has_sends(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.ends, Some(Ends::Send { .. })))
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Segment;
    use tailback_engine::matching::{Ledger, Rails};
    use tailback_transport::Rank;

    use super::*;

    struct Plain;

    impl Kinds for Plain {
        type Registration = ();
        type Far = ();
        type Request = ();
    }

    fn gathered(outbox: &Outbox, groups: &Groups<Plain>) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (used, total) = outbox.gather(groups, &mut slices);
        let bytes: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).collect();
        assert_eq!(bytes.len(), total);
        bytes
    }

    #[test]
    fn bytes_leave_in_order_whatever_the_kernel_takes() {
        for step in 1..40 {
            let mut books = Ledger::<Plain>::new(Rank(0), 1, Rails::default());
            let segment = Segment::plain(64).expect("memory");
            let slot = books.groups.make(0, &[Rank(0)], segment);
            books.groups.at_mut(slot).segment.write(0, &std::array::from_fn::<u8, 64, _>(|i| i as u8));
            let groups = &books.groups;
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for i in 0..12_u8 {
                outbox.stage(&[200 + i; 5]);
                expected.extend([200 + i; 5]);
                if i % 3 == 1 {
                    outbox.refer(slot, usize::from(i), 7);
                    expected.extend(i..i + 7);
                }
                outbox.end_with_last(Ends::Send { slot, member: 0, lane: Lane::Data });
            }
            let (mut seen, mut completed) = (Vec::<u8>::new(), 0);
            while !outbox.is_empty() {
                let mut written = gathered(&outbox, groups);
                written.truncate(step);
                seen.extend(&written);
                let mut left = written.len();
                while let Some(ends) = outbox.take(&mut left) {
                    completed += usize::from(ends.is_some());
                    if left == 0 {
                        break;
                    }
                }
            }
            assert_eq!(seen, expected);
            assert_eq!(completed, 12);
            assert_eq!((outbox.staged(), outbox.waiting()), (0, 0));
        }
    }
}
