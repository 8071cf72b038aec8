//! STREAM: four loops over vectors too long for caches, timed one by one.

use std::hint::black_box;
use std::time::Instant;

use crate::random::greatest;

/// Every loop is run so often; the first does not count.
const PASSES: usize = 10;
const SCALAR: f64 = 3.0;

/// Three vectors.
#[derive(Debug)]
pub struct Stream {
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

    /// Vectors of `words` numbers.
    #[must_use]
    pub fn new(words: usize) -> Self {
        Stream { a: vec![2.0; words], b: vec![2.0; words], c: vec![0.5; words] }
    }

    /// Runs the loops.
    pub fn run(&mut self) -> StreamRates {
        let mut best = [f64::INFINITY; 4];
        for pass in 0..PASSES {
            for (at, seconds) in self.pass().into_iter().enumerate() {
                if pass > 0 {
                    best[at] = best[at].min(seconds);
                }
            }
        }
        let bytes = (self.a.len() * size_of::<f64>()) as f64;
        let rate = |vectors: f64, seconds: f64| vectors * bytes / seconds * 1e-9;
        let [copy, scale, add, triad] = best;
        StreamRates { copy: rate(2.0, copy), scale: rate(2.0, scale), add: rate(3.0, add), triad: rate(3.0, triad) }
    }

    /// One pass; the seconds of each loop.
    fn pass(&mut self) -> [f64; 4] {
        let Stream { a, b, c } = self;
        let timed = |work: &mut dyn FnMut()| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64()
        };
        let copy = timed(&mut || c.copy_from_slice(black_box(&*a)));
        let scale = timed(&mut || b.iter_mut().zip(black_box(&*c)).for_each(|(b, c)| *b = SCALAR * c));
        let add = timed(&mut || {
            c.iter_mut().zip(black_box(&*a)).zip(black_box(&*b)).for_each(|((c, a), b)| *c = a + b);
        });
        let triad = timed(&mut || {
            a.iter_mut().zip(black_box(&*b)).zip(black_box(&*c)).for_each(|((a, b), c)| *a = b + SCALAR * c);
        });
        [copy, scale, add, triad]
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
        let average = |numbers: &[f64], expected: f64| {
            let sum: f64 = numbers.iter().map(|number| (number - expected).abs()).sum();
            sum / numbers.len().max(1) as f64 / f64::abs(expected)
        };
        let errors = [average(&self.a, a), average(&self.b, b), average(&self.c, c)];
        greatest(errors.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found_and_a_wrong_number_is_seen() {
        let mut stream = Stream::new(10_000);
        let StreamRates { copy, scale, add, triad } = stream.run();
        assert!([copy, scale, add, triad].iter().all(|rate| rate.is_finite() && *rate > 0.0));
        assert!(stream.error() < Stream::LIMIT, "{}", stream.error());
        stream.b[777] *= 1.0 + 1e-6;
        assert!(stream.error() > Stream::LIMIT, "{}", stream.error());
        stream.b[777] = f64::NAN;
        assert!(stream.error().is_nan());
    }
}
