//! Collectives of large vectors around a ring of the team, as training libraries do them: reduce-scatter, allgather, and
//! allreduce, which is one after the other.
//!
//! A vector has a part for each member. In every step a member sends one part to the next and receives another from the one
//! before, so that all links carry a part at once and each member sends (n-1)/n of the vector in n-1 steps. Vectors are
//! summed as 64-bit integers that wrap around: unlike in sums of floating point, no changed bit can be rounded away.

use std::marker::PhantomData;

use tailback_transport::{Error, Group, Rank, Result, Span, Tag};

use super::bus::Bus;
use super::traits::{Kernel, Sizes, check_pattern, fill_pattern};
use crate::layout::Neighbours;

/// What is summed.
pub(super) const WORD: usize = 8;
/// Words are read, added and written in blocks of so many bytes.
const BLOCK: usize = 4096;

/// Which of the two halves of an allreduce it has.
pub trait Halves {
    /// Sums: at the end each member has one part of the sum.
    const REDUCES: bool;
    /// Hands parts on: at the end everyone has all of them.
    const GATHERS: bool;
    /// What a member sends of the vector.
    const BUS: Bus;
}

pub struct ReduceScatter;
pub struct Allgather;
pub struct RingAllreduce;

impl Halves for ReduceScatter {
    const REDUCES: bool = true;
    const GATHERS: bool = false;
    const BUS: Bus = Bus::Once;
}

impl Halves for Allgather {
    const REDUCES: bool = false;
    const GATHERS: bool = true;
    const BUS: Bus = Bus::Once;
}

impl Halves for RingAllreduce {
    const REDUCES: bool = true;
    const GATHERS: bool = true;
    const BUS: Bus = Bus::Twice;
}

/// One of them, of a vector of `bytes`.
pub struct RingCollective<H> {
    bytes: usize,
    size: usize,
    rank: usize,
    halves: PhantomData<H>,
}

impl<H: Halves> RingCollective<H> {
    /// Where a part of the vector is; parts may be counted on around the ring. Of a short vector some are empty.
    fn part(&self, number: usize) -> Span {
        let (number, words) = (number % self.size, self.bytes / WORD);
        let end = |of: usize| if of == self.size { self.bytes } else { words * of / self.size * WORD };
        Span::new(end(number), end(number + 1) - end(number))
    }

    /// The same where the result is made: behind what is summed.
    fn result(&self, part: Span) -> Span {
        Span::new(if H::REDUCES { self.bytes } else { 0 } + part.offset, part.len)
    }

    /// A part that has come to be added lies behind both.
    fn received(&self, part: Span) -> Span {
        Span::new(2 * self.bytes, part.len)
    }

    fn exchange<G: Group>(&self, group: &mut G, sent: Span, received: Span) -> Result<()> {
        if received.len > 0 {
            group.post_recv(Rank::from((self.rank + self.size - 1) % self.size), Tag(0), received)?;
        }
        if sent.len > 0 {
            group.post_send(Rank::from((self.rank + 1) % self.size), Tag(0), sent)?;
        }
        group.wait_all()
    }

    /// Adds what was received to this member's own part.
    fn add<G: Group>(&self, group: &mut G, part: Span) {
        group.add_words(part, self.received(part).offset, self.result(part).offset);
    }

    /// Compares a part of the result with the sum over all members.
    fn check_sum<G: Group>(&self, group: &G, part: Span) -> Result<()> {
        let mut block = [0; BLOCK];
        for start in (0..part.len).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(part.len - start)];
            group.read(self.result(part).offset + start, block);
            for (at, found) in block.chunks_exact(WORD).enumerate() {
                let (index, found) = ((part.offset + start) / WORD + at, word(found));
                let sum = sum(index, self.size);
                if found != sum {
                    let detail = format!(
                        "word {index} of {} summed over {} members is {found:#x}, not {sum:#x}: the network or a library corrupted it",
                        self.bytes / WORD,
                        self.size
                    );
                    return Err(Error::Protocol { operation: "checking a sum", peer: None, detail });
                }
            }
        }
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"))
}

/// Every bit of it depends on the index.
fn base(index: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a member gives: odd multiples of the base.
fn summand(index: usize, rank: usize) -> u64 {
    base(index).wrapping_mul(2 * rank as u64 + 1)
}

/// The first n odd numbers add up to the square of n.
fn sum(index: usize, size: usize) -> u64 {
    base(index).wrapping_mul((size as u64).wrapping_mul(size as u64))
}

/// Segment: [vector | result | a part that has come]; of an allgather only the result, which has this member's part.
impl<H: Halves> Kernel for RingCollective<H> {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        RingCollective { bytes: sizes.bytes, size, rank: rank.index(), halves: PhantomData }
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        if H::REDUCES { 3 * sizes.bytes } else { sizes.bytes }
    }

    fn fill<G: Group>(&self, group: &mut G, _: Sizes) {
        if !H::REDUCES {
            let own = self.part(self.rank);
            return fill_pattern(group, own.offset, own.len);
        }
        for index in 0..self.bytes / WORD {
            group.write(index * WORD, &summand(index, self.rank).to_le_bytes());
        }
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        // Counted from the size on, so that it can be counted down around the ring.
        let mut first = self.size + self.rank;
        if H::REDUCES {
            for step in 0..self.size - 1 {
                let (sent, part) = (self.part(first - step), self.part(first - step - 1));
                let sent = if step == 0 { sent } else { self.result(sent) };
                self.exchange(group, sent, self.received(part))?;
                self.add(group, part);
            }
            first += 1;
        }
        if H::GATHERS {
            for step in 0..self.size - 1 {
                let (sent, part) = (self.part(first - step), self.part(first - step - 1));
                self.exchange(group, self.result(sent), self.result(part))?;
            }
        }
        Ok(())
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        match (H::REDUCES, H::GATHERS) {
            // Alone, a member has nothing to add to.
            _ if self.size == 1 => Ok(()),
            (true, true) => self.check_sum(group, Span::new(0, self.bytes)),
            (true, false) => self.check_sum(group, self.part(self.rank + 1)),
            (false, _) => (0..self.size).try_for_each(|member| {
                let part = self.part(member);
                check_pattern(group, Rank::from(member), part.offset, part.len)
            }),
        }
    }

    /// The same for all, though parts may differ by a word.
    fn payload(&self) -> usize {
        H::BUS.bytes(self.bytes, self.size)
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_of, run_on_loopback as run};
    use super::*;

    #[test]
    fn parts_make_up_the_vector() {
        for (bytes, size) in [(1000, 1), (1000, 3), (8, 7), (64, 7), (1001, 8), (4096, 8)] {
            let of = RingCollective::<Allgather>::new(Sizes { bytes, window: 1 }, size, Rank(0));
            let parts: Vec<Span> = (0..size).map(|number| of.part(number)).collect();
            assert_eq!(parts[0].offset, 0);
            assert!(parts.windows(2).all(|pair| pair[0].offset + pair[0].len == pair[1].offset), "{parts:?}");
            assert_eq!(parts.iter().map(|part| part.len).sum::<usize>(), bytes);
            assert_eq!(of.part(size + 1).offset, of.part(1).offset);
        }
    }

    #[test]
    fn sums_and_parts_are_right_on_any_number_of_members() {
        for size in [1, 2, 3, 7, 8] {
            let once = 1000 * (size - 1) / size;
            assert_eq!(run::<RingCollective<ReduceScatter>>(Job::new(size), size).unwrap(), vec![once; size]);
            assert_eq!(run::<RingCollective<Allgather>>(Job::new(size), size).unwrap(), vec![once; size]);
            let twice = 2000 * (size - 1) / size;
            assert_eq!(run::<RingCollective<RingAllreduce>>(Job::new(size), size).unwrap(), vec![twice; size]);
        }
    }

    #[test]
    fn vectors_may_be_short_and_long() {
        for bytes in [8, 16, 48, 72, 100_000] {
            let sizes = Sizes { bytes, window: 1 };
            run_of::<RingCollective<ReduceScatter>>(Job::new(7), 7, sizes).unwrap();
            run_of::<RingCollective<RingAllreduce>>(Job::new(7), 7, sizes).unwrap();
        }
        for bytes in [1, 13, 100_001] {
            run_of::<RingCollective<Allgather>>(Job::new(7), 7, Sizes { bytes, window: 1 }).unwrap();
        }
    }

    #[test]
    fn corruption_is_detected() {
        let said = |found: Result<Vec<usize>>| found.unwrap_err().to_string();
        for size in [2, 3] {
            // Byte 77 of a message is in its tenth word.
            let sum = said(run::<RingCollective<RingAllreduce>>(Job::new(size).fault(BadCard), size));
            assert!(sum.contains("summed over") && sum.contains("corrupted it"), "{sum}");
            let sum = said(run::<RingCollective<ReduceScatter>>(Job::new(size).fault(BadCard), size));
            assert!(sum.contains("summed over"), "{sum}");
            let part = said(run::<RingCollective<Allgather>>(Job::new(size).fault(BadCard), size));
            assert!(part.contains("byte 77"), "{part}");
        }
    }
}
