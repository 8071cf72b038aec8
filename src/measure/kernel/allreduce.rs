//! Allreduce of doubles over the team: one double as a canary, megabytes as a congestor.

use tailback_transport::{Error, Group, Rank, Result, Span};

use super::traits::{Kernel, Sizes};
use crate::layout::Neighbours;

/// The sum of `bytes / 8` doubles. Its first double is set to 1 before each iteration, so that the sum is the team's
/// size; the others stay 0.
pub struct Allreduce {
    span: Span,
    size: usize,
}

impl Kernel for Allreduce {
    fn new(sizes: Sizes, size: usize, _rank: Rank) -> Self {
        Allreduce { span: Span::new(0, sizes.bytes), size }
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        sizes.bytes
    }

    fn fill<G: Group>(&self, group: &mut G, _: Sizes) {
        const ZEROS: [u8; 4096] = [0; 4096];
        for start in (0..self.span.len).step_by(ZEROS.len()) {
            group.write(start, &ZEROS[..ZEROS.len().min(self.span.len - start)]);
        }
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        group.write(0, &1f64.to_le_bytes());
        group.allreduce(self.span)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let mut sum = [0; 8];
        group.read(0, &mut sum);
        let (sum, expected) = (f64::from_le_bytes(sum), self.size as f64);
        if sum == expected {
            return Ok(());
        }
        let detail = format!("the sum over {} members is {sum}, not {expected}", self.size);
        Err(Error::Protocol { operation: "checking allreduce", peer: None, detail })
    }

    /// Every double leaves and its sum arrives: GPCNeT counts both.
    fn payload(&self) -> usize {
        2 * self.span.len
    }
}
