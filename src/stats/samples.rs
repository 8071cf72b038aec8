//! What a rank records and what travels up the tree: a bounded number of batches, each a histogram with exact sums.

mod counts;

use std::borrow::Cow;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use counts::{Counts, DIGITS, LONGEST_NS};

/// At most this many batches; when they are full, neighbours are joined and batches become twice as wide.
pub const MAX_BATCHES: usize = 16;

/// Bytes from a peer that are not samples.
#[derive(Debug, thiserror::Error)]
#[error("damaged samples: {0}")]
pub struct SamplesError(pub String);

/// Consecutive passes of one test.
#[derive(Clone, Debug)]
pub struct Batch {
    counts: Counts,
    /// Exact sum of the samples, in ns.
    sum_ns: f64,
    /// Exact extremes, in ns.
    extremes_ns: Option<(u64, u64)>,
    /// Sum over passes and ranks of each pass's own figure, and how many there were.
    passes: (f64, u64),
}

impl Batch {
    fn new() -> Self {
        Batch { counts: Counts::fixed(), sum_ns: 0.0, extremes_ns: None, passes: (0.0, 0) }
    }

    /// As small as what is in it allows.
    fn growing() -> Self {
        Batch { counts: Counts::growing(), sum_ns: 0.0, extremes_ns: None, passes: (0.0, 0) }
    }

    fn absorb(&mut self, other: &Batch) {
        self.counts.absorb(&other.counts);
        self.sum_ns += other.sum_ns;
        self.extremes_ns = match (self.extremes_ns, other.extremes_ns) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (mine, theirs) => mine.or(theirs),
        };
        self.passes = (self.passes.0 + other.passes.0, self.passes.1 + other.passes.1);
    }

    /// All of `batches` in one.
    pub fn joined<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Self {
        let mut batches = batches.into_iter();
        let mut joined = batches.next().cloned().unwrap_or_else(Batch::new);
        batches.for_each(|batch| joined.absorb(batch));
        joined
    }

    fn clear(&mut self) {
        self.counts.reset();
        (self.sum_ns, self.extremes_ns, self.passes) = (0.0, None, (0.0, 0));
    }

    /// The histogram of this batch, made anew where its samples are few.
    pub fn histogram(&self) -> Cow<'_, Histogram<u64>> {
        self.counts.histogram()
    }

    /// How many samples it has.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exact mean of the samples.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.len() as f64
    }

    /// Mean over passes and ranks of each pass's own figure, if a pass was closed.
    pub fn pass_mean(&self) -> Option<f64> {
        (self.passes.1 > 0).then(|| self.passes.0 / self.passes.1 as f64)
    }

    /// Passes closed, added up over ranks.
    pub(super) fn closed(&self) -> u64 {
        self.passes.1
    }

    /// Smallest and largest sample, exact.
    pub fn extremes_ns(&self) -> Option<(u64, u64)> {
        self.extremes_ns
    }
}

/// All samples of one test: of one rank while it runs, of all ranks after merging.
#[derive(Clone, Debug)]
pub struct Samples {
    batches: Vec<Batch>,
    /// Passes in a full batch.
    width: u64,
    /// Passes closed so far, the same on every rank of a test.
    passes: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self::new()
    }
}

impl Samples {
    /// Empty, with all memory that recording will ever need.
    pub fn new() -> Self {
        let mut batches: Vec<Batch> = (0..MAX_BATCHES).map(|_| Batch::new()).collect();
        // Writing to it makes the memory real, so that no sample has to wait for that and no rank grows as it records.
        batches.iter_mut().for_each(Batch::clear);
        Samples { batches, width: 1, passes: 0 }
    }

    /// Empty, and as large as what is recorded makes it, in at most so many batches (one, or [`MAX_BATCHES`]): for virtual
    /// time, in which making room takes none, and for thousands of ranks in one process.
    pub fn growing(batches: usize) -> Self {
        let width = if batches == 1 { u64::MAX } else { 1 };
        Samples { batches: (0..batches).map(|_| Batch::growing()).collect(), width, passes: 0 }
    }

    /// Empty, of one batch, with all memory that recording will ever need.
    pub fn single() -> Self {
        let mut batch = Batch::new();
        batch.clear();
        Samples { batches: vec![batch], width: u64::MAX, passes: 0 }
    }

    /// Records one sample in the current pass. No allocation, unless it is growing.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let at = (self.passes / self.width) as usize;
        let batch = &mut self.batches[at];
        batch.counts.record(ns);
        batch.sum_ns += ns as f64;
        batch.extremes_ns = Some(batch.extremes_ns.map_or((ns, ns), |(low, high)| (low.min(ns), high.max(ns))));
    }

    /// Ends a pass, whose figure over its whole length was `figure` (the mean latency, or the mean bandwidth; nothing
    /// for a rank that takes no samples). Every rank of a test closes the same passes, so batches line up when they
    /// are merged.
    pub fn close_pass(&mut self, figure: Option<f64>) {
        let at = (self.passes / self.width) as usize;
        if let Some(figure) = figure {
            let passes = &mut self.batches[at].passes;
            *passes = (passes.0 + figure, passes.1 + 1);
        }
        self.passes += 1;
        if self.width < u64::MAX && self.passes == self.width * MAX_BATCHES as u64 {
            self.widen();
        }
    }

    fn widen(&mut self) {
        for at in 0..MAX_BATCHES / 2 {
            // In place: what stood at `at` was absorbed by an earlier one.
            self.batches.swap(at, 2 * at);
            let (joined, rest) = self.batches.split_at_mut(2 * at + 1);
            joined[at].absorb(&rest[0]);
        }
        self.batches[MAX_BATCHES / 2..].iter_mut().for_each(Batch::clear);
        self.width *= 2;
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.batches.iter_mut().for_each(Batch::clear);
        (self.width, self.passes) = (if self.width == u64::MAX { u64::MAX } else { 1 }, 0);
    }

    /// The same samples as one batch of one pass, for teams that do not pass in step with each other.
    #[must_use]
    pub fn flatten(mut self) -> Self {
        self.batches = vec![self.total()];
        (self.width, self.passes) = (1, 1);
        self
    }

    /// The same samples and passes in one batch, for tests that are one of many.
    #[must_use]
    pub fn in_one(mut self) -> Self {
        self.batches = vec![self.total()];
        self.width = self.passes.max(1);
        self
    }

    /// One batch as samples of their own.
    pub fn of_batch(batch: Batch) -> Self {
        Samples { batches: vec![batch], width: 1, passes: 1 }
    }

    /// Passes closed.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The batches that hold samples.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter().filter(|batch| !batch.is_empty())
    }

    /// Everything in one batch.
    pub fn total(&self) -> Batch {
        Batch::joined(self.batches())
    }

    /// Adds another rank's samples of the same test.
    pub fn merge(&mut self, other: &Samples) -> Result<(), SamplesError> {
        self.check_passes(other.width, other.passes)?;
        self.batches.resize_with(self.batches.len().max(other.batches.len()), Batch::new);
        for (mine, theirs) in self.batches.iter_mut().zip(&other.batches) {
            if !theirs.is_empty() || theirs.passes.1 > 0 {
                mine.absorb(theirs);
            }
        }
        Ok(())
    }

    fn check_passes(&self, width: u64, passes: u64) -> Result<(), SamplesError> {
        if (self.width, self.passes) == (width, passes) {
            return Ok(());
        }
        Err(SamplesError(format!("{} passes on one rank, {passes} on another", self.passes)))
    }

    /// Adds another rank's samples of the same test, as [`Samples::encode`] wrote them: batch by batch, so that only
    /// one of the other's is in memory at a time.
    pub fn merge_encoded(&mut self, bytes: &[u8]) -> Result<(), SamplesError> {
        let mut bytes = bytes;
        let (width, passes, used) = header(&mut bytes)?;
        self.check_passes(width, passes)?;
        self.batches.resize_with(self.batches.len().max(used), Batch::new);
        let mut deserializer = Deserializer::new();
        for mine in &mut self.batches[..used] {
            mine.absorb(&batch(&mut bytes, &mut deserializer)?);
        }
        end(bytes)
    }

    /// For the way up the tree; a few hundred bytes a batch.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.width.to_le_bytes());
        out.extend(self.passes.to_le_bytes());
        let mut serializer = V2Serializer::new();
        let last = self.batches.iter().rposition(|batch| !batch.is_empty() || batch.passes.1 > 0);
        let used = &self.batches[..last.map_or(0, |at| at + 1)];
        out.extend((used.len() as u64).to_le_bytes());
        let mut histogram = Vec::new();
        for batch in used {
            histogram.clear();
            serializer.serialize(&*batch.histogram(), &mut histogram).expect("a Vec takes every byte");
            out.extend((histogram.len() as u64).to_le_bytes());
            out.extend(&histogram);
            let (low, high) = batch.extremes_ns.unwrap_or((u64::MAX, 0));
            out.extend(low.to_le_bytes());
            out.extend(high.to_le_bytes());
            out.extend(batch.sum_ns.to_le_bytes());
            out.extend(batch.passes.0.to_le_bytes());
            out.extend(batch.passes.1.to_le_bytes());
        }
        out
    }

    /// The inverse of [`Samples::encode`], to look at and to merge: it has no room for new samples.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, SamplesError> {
        let (width, passes, used) = header(&mut bytes)?;
        let mut deserializer = Deserializer::new();
        let batches = (0..used).map(|_| batch(&mut bytes, &mut deserializer)).collect::<Result<_, _>>()?;
        end(bytes)?;
        Ok(Samples { batches, width, passes })
    }
}

/// Width, passes and how many batches follow.
fn header(bytes: &mut &[u8]) -> Result<(u64, u64, usize), SamplesError> {
    let (width, passes, used) = (word(bytes)?, word(bytes)?, word(bytes)? as usize);
    if used > MAX_BATCHES || width == 0 {
        return Err(SamplesError(format!("{used} batches of {width} passes")));
    }
    Ok((width, passes, used))
}

fn batch(bytes: &mut &[u8], deserializer: &mut Deserializer) -> Result<Batch, SamplesError> {
    let length = word(bytes)? as usize;
    let mut encoded = take(bytes, length)?;
    let histogram: Histogram<u64> = deserializer.deserialize(&mut encoded).map_err(|e| SamplesError(e.to_string()))?;
    // Histograms of other bounds could not be added to ours. One that was growing may have stopped short of them, or, as it
    // doubles, have gone past.
    if (histogram.low(), histogram.sigfig()) != (1, DIGITS) || histogram.high() > 2 * LONGEST_NS {
        return Err(SamplesError("a histogram of other bounds".into()));
    }
    let (low, high) = (word(bytes)?, word(bytes)?);
    let extremes_ns = (low <= high).then_some((low, high));
    let sum_ns = f64::from_bits(word(bytes)?);
    Ok(Batch {
        counts: Counts::of(histogram),
        sum_ns,
        extremes_ns,
        passes: (f64::from_bits(word(bytes)?), word(bytes)?),
    })
}

fn end(bytes: &[u8]) -> Result<(), SamplesError> {
    if bytes.is_empty() { Ok(()) } else { Err(SamplesError(format!("{} bytes too many", bytes.len()))) }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], SamplesError> {
    let (head, tail) = bytes.split_at_checked(length).ok_or_else(|| SamplesError("cut short".into()))?;
    *bytes = tail;
    Ok(head)
}

fn word(bytes: &mut &[u8]) -> Result<u64, SamplesError> {
    Ok(u64::from_le_bytes(take(bytes, 8)?.try_into().expect("took eight")))
}

#[cfg(test)]
mod tests;
