//! RandomAccess: numbers of HPCC's sequence, and updates of a table that one rank has to itself.
//!
//! The sequence is the powers of x in the field of polynomials over {0, 1} of degree below 64, modulo
//! x^64 + x^2 + x + 1: a shift, and an exclusive or with 7 when the highest bit leaves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::threads::at_once;

/// The lower terms of the polynomial.
const LOWER: u64 = 7;
/// The table's owner updates it along so many parts of the sequence at a time.
const STREAMS: usize = 128;
/// Updates for every word of a table.
pub(crate) const UPDATES_PER_WORD: u64 = 4;

/// The number after `number`.
#[inline]
pub(crate) fn next(number: u64) -> u64 {
    (number << 1) ^ if number >> 63 == 1 { LOWER } else { 0 }
}

/// The `at`-th number: x to that power.
pub(crate) fn start(at: u64) -> u64 {
    (0..64 - at.leading_zeros()).rev().fold(1, |power, bit| {
        let square = square(power);
        if at >> bit & 1 == 1 { next(square) } else { square }
    })
}

/// The square. Over {0, 1} that puts a zero between the coefficients. What is above is x^64 times something, and x^64 is
/// x^2 + x + 1; one coefficient may be above again after that.
fn square(number: u64) -> u64 {
    let (low, high) = (spread(number as u32), spread((number >> 32) as u32));
    let above = high >> 62;
    low ^ high ^ (high << 1) ^ (high << 2) ^ above ^ (above << 1) ^ (above << 2)
}

/// The bits of a number, with a zero above each.
fn spread(half: u32) -> u64 {
    const STEPS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    STEPS.iter().fold(u64::from(half), |bits, (by, mask)| (bits | bits << by) & mask)
}

/// A table of one rank's own, of a power of two words. Threads that update a word at the same time may lose an update, as
/// HPCC's do: the check allows for some.
#[derive(Debug)]
pub struct Table {
    words: Vec<AtomicU64>,
    threads: usize,
}

impl Table {
    /// Every word has its own index. So many threads will update it.
    ///
    /// # Panics
    /// If `words` is no power of two.
    #[must_use]
    pub fn new(words: usize, threads: usize) -> Self {
        assert!(words.is_power_of_two(), "{words} words");
        Table { words: (0..words as u64).map(AtomicU64::new).collect(), threads }
    }

    /// Updates; 10^9 of them a second.
    pub fn run(&mut self) -> f64 {
        let updates = UPDATES_PER_WORD * self.words.len() as u64;
        let begin = Instant::now();
        // All are powers of two, and so every thread has as many parts, of as many updates.
        let threads = 1 << self.threads.max(1).ilog2();
        let streams = (STREAMS * threads).min(updates as usize);
        let share = updates / streams as u64;
        let starts: Vec<u64> = (0..streams as u64).map(|stream| start(stream * share)).collect();
        let words = &self.words[..];
        at_once(starts.chunks(streams.div_ceil(threads)).collect(), |starts| {
            let (mut numbers, mask) = (starts.to_vec(), words.len() - 1);
            for _ in 0..share {
                for number in &mut numbers {
                    *number = next(*number);
                    update(&words[*number as usize & mask], *number);
                }
            }
        });
        updates as f64 / begin.elapsed().as_secs_f64() * 1e-9
    }

    /// The part of the words that are not as before once every update was taken back, one after the other.
    pub fn errors(&mut self) -> f64 {
        let (mut number, mask) = (1, self.words.len() - 1);
        for _ in 0..UPDATES_PER_WORD * self.words.len() as u64 {
            number = next(number);
            update(&self.words[number as usize & mask], number);
        }
        let wrong = self.words.iter().zip(0..).filter(|(word, at)| word.load(Ordering::Relaxed) != *at).count();
        wrong as f64 / self.words.len() as f64
    }
}

#[inline]
fn update(word: &AtomicU64, number: u64) {
    word.store(word.load(Ordering::Relaxed) ^ number, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ERROR_LIMIT;

    #[test]
    fn any_number_of_the_sequence_is_found_at_once() {
        let mut number = 1;
        for at in 0..300 {
            assert_eq!(start(at), number, "{at}");
            number = next(number);
        }
        // The period of the sequence.
        assert_eq!(start(1_317_624_576_693_539_401), 1);
        assert_eq!(next(start((1 << 40) - 1)), start(1 << 40));
    }

    #[test]
    fn updates_are_taken_back_unless_words_were_lost() {
        let mut table = Table::new(1 << 12, 1);
        assert!(table.run() > 0.0);
        assert_eq!(table.errors(), 0.0);
        table.run();
        for word in table.words.iter().take(82) {
            update(word, 4);
        }
        let errors = table.errors();
        assert!(errors > ERROR_LIMIT && (errors - 82.0 / 4096.0).abs() < 1e-12, "{errors}");
    }

    #[test]
    fn threads_update_every_word_and_lose_few() {
        for threads in [2, 3] {
            let mut table = Table::new(1 << 16, threads);
            table.run();
            assert!(table.words.iter().zip(0..).any(|(word, at)| word.load(Ordering::Relaxed) != at));
            assert!(table.errors() < ERROR_LIMIT);
        }
    }
}
