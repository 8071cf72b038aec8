//! The buffers that a peer's messages arrive in: some when the link is made, more when its window grows.

use std::ops::Range;
use std::rc::Rc;

use tailback_transport::Result;

use crate::ffi::{self, Access, Domain, Memory, Piece};

/// See the module. They are numbered, and stay where they are.
#[derive(Debug)]
pub(super) struct Buffers {
    bytes: usize,
    count: u32,
    /// Registered memory, each with the number of its first buffer.
    chunks: Vec<(u32, Memory)>,
}

impl Buffers {
    /// `count` buffers of `bytes`, and `behind` bytes for other things in the same memory.
    pub(super) fn new(domain: &Rc<Domain>, bytes: usize, count: u32, behind: usize) -> Result<Buffers> {
        let memory = ffi::memory(domain, count as usize * bytes + behind, Access::Own)?;
        Ok(Buffers { bytes, count, chunks: vec![(0, memory)] })
    }

    /// As many more: their numbers.
    pub(super) fn add(&mut self, domain: &Rc<Domain>, count: u32) -> Result<Range<u32>> {
        let memory = ffi::memory(domain, count as usize * self.bytes, Access::Own)?;
        let first = self.count;
        self.chunks.push((first, memory));
        self.count += count;
        Ok(first..self.count)
    }

    /// The memory that has this buffer, and where.
    #[inline]
    pub(super) fn find(&self, buffer: u32) -> (&Memory, usize) {
        // From behind: the last chunk has as many as all before it.
        let found = self.chunks.iter().rev().find(|(first, _)| *first <= buffer);
        let (first, memory) = found.expect("the first chunk begins with buffer 0");
        (memory, (buffer - first) as usize * self.bytes)
    }

    /// All of a buffer, for the device.
    pub(super) fn piece(&self, buffer: u32) -> Piece {
        let (memory, at) = self.find(buffer);
        ffi::piece(memory, at, self.bytes)
    }

    /// The memory with something behind its buffers.
    pub(super) fn first(&self) -> &Memory {
        &self.chunks[0].1
    }

    /// See [`Buffers::first`].
    pub(super) fn first_mut(&mut self) -> &mut Memory {
        &mut self.chunks[0].1
    }
}
