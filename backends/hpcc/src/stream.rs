//! STREAM: four loops over vectors too long for caches, timed one by one.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use crate::random::greatest;
use crate::threads::{at_once, begin};

/// Every loop is run so often; the first does not count.
const PASSES: usize = 10;
const LOOPS: usize = 4;
const SCALAR: f64 = 3.0;

/// Three vectors, of which every thread has a part.
#[derive(Debug)]
pub struct Stream {
    parts: Vec<Part>,
}

/// What one thread works on. It makes it itself, so that it lies in the memory near it.
#[derive(Debug, Default)]
struct Part {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

/// The best rates, in 10^9 bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct StreamRates {
    pub copy: f64,
    pub scale: f64,
    pub add: f64,
    pub triad: f64,
}

impl Stream {
    /// Average errors above this say that a loop went wrong.
    pub const LIMIT: f64 = 1e-13;

    /// Vectors of `words` numbers, for so many threads.
    #[must_use]
    pub fn new(words: usize, threads: usize) -> Self {
        let threads = threads.clamp(1, words.max(1));
        let mut parts: Vec<Part> = Vec::new();
        parts.resize_with(threads, Part::default);
        let sizes = (0..threads).map(|at| begin(words, threads, at + 1) - begin(words, threads, at));
        at_once(parts.iter_mut().zip(sizes).collect(), |(part, words)| {
            *part = Part { a: vec![2.0; words], b: vec![2.0; words], c: vec![0.5; words] };
        });
        Stream { parts }
    }

    /// Runs the loops. All threads begin one together, and it takes until the last is done.
    pub fn run(&mut self) -> StreamRates {
        let words: usize = self.parts.iter().map(|part| part.a.len()).sum();
        let together = Barrier::new(self.parts.len());
        let mut best = [f64::INFINITY; LOOPS];
        // The last part is this thread's own, which has the clock.
        let clocks = (1..self.parts.len()).map(|_| None).chain([Some(&mut best)]);
        at_once(self.parts.iter_mut().zip(clocks).collect(), |(part, mut best)| {
            for pass in 0..PASSES {
                for number in 0..LOOPS {
                    together.wait();
                    let begin = Instant::now();
                    part.once(number);
                    together.wait();
                    let seconds = begin.elapsed().as_secs_f64();
                    if let Some(best) = best.as_deref_mut().filter(|_| pass > 0) {
                        best[number] = best[number].min(seconds);
                    }
                }
            }
        });
        let bytes = (words * size_of::<f64>()) as f64;
        let rate = |vectors: f64, seconds: f64| vectors * bytes / seconds * 1e-9;
        let [copy, scale, add, triad] = best;
        StreamRates { copy: rate(2.0, copy), scale: rate(2.0, scale), add: rate(3.0, add), triad: rate(3.0, triad) }
    }

    /// The largest of the vectors' average errors, relative to what the loops must have left in them.
    #[must_use]
    pub fn error(&self) -> f64 {
        let (mut a, mut b, mut c) = (2.0, 2.0, 0.5);
        for _ in 0..PASSES {
            c = a;
            b = SCALAR * c;
            c = a + b;
            a = b + SCALAR * c;
        }
        let average = |of: fn(&Part) -> &[f64], expected: f64| {
            let numbers = || self.parts.iter().flat_map(of);
            let sum: f64 = numbers().map(|number| (number - expected).abs()).sum();
            sum / numbers().count().max(1) as f64 / f64::abs(expected)
        };
        let errors = [average(|part| &part.a, a), average(|part| &part.b, b), average(|part| &part.c, c)];
        greatest(errors.into_iter())
    }
}

impl Part {
    /// One of the loops, in STREAM's order.
    fn once(&mut self, number: usize) {
        let Part { a, b, c } = self;
        match number {
            0 => c.copy_from_slice(black_box(&*a)),
            1 => b.iter_mut().zip(black_box(&*c)).for_each(|(b, c)| *b = SCALAR * c),
            2 => c.iter_mut().zip(black_box(&*a)).zip(black_box(&*b)).for_each(|((c, a), b)| *c = a + b),
            _ => a.iter_mut().zip(black_box(&*b)).zip(black_box(&*c)).for_each(|((a, b), c)| *a = b + SCALAR * c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found_and_a_wrong_number_is_seen() {
        for threads in [1, 3] {
            rates_and_errors(threads);
        }
        assert!(Stream::new(2, 8).run().copy > 0.0, "more threads than words");
    }

    fn rates_and_errors(threads: usize) {
        let mut stream = Stream::new(10_000, threads);
        let StreamRates { copy, scale, add, triad } = stream.run();
        assert!([copy, scale, add, triad].iter().all(|rate| rate.is_finite() && *rate > 0.0));
        assert!(stream.error() < Stream::LIMIT, "{}", stream.error());
        stream.parts[0].b[777] *= 1.0 + 1e-6;
        assert!(stream.error() > Stream::LIMIT, "{}", stream.error());
        stream.parts[0].b[777] = f64::NAN;
        assert!(stream.error().is_nan());
    }
}
