//! What a phase brings back, folded up the bootstrap's tree.

use tailback_transport::{Bootstrap, Error, Result};

use super::{Kept, LoadState, Slices};
use crate::stats::{Folded, Samples, SamplesError, Took};

/// What one kind of congestor did while the canaries measured, over all its ranks.
#[derive(Clone, Debug)]
pub struct Load {
    /// Ranks of this kind.
    pub ranks: u64,
    /// Payload bytes they moved.
    pub bytes: u64,
    /// Seconds it took, added up over the ranks.
    pub seconds: f64,
    /// Their iterations, as one batch.
    pub samples: Samples,
    /// What they moved in each slice of that time.
    pub slices: Slices,
    /// Whether the load of every rank was steady when the canaries were released.
    pub steady: bool,
}

/// The quickest messages that one rank received: from the left and from the right in every ring, in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Quickest {
    /// Whose.
    pub rank: u32,
    /// In ns; the largest number where there was none.
    pub ns: Vec<u32>,
}

/// A phase's results: of one rank before, of all ranks after collecting.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// What canaries measured.
    pub canary: Option<Samples>,
    /// The same by ring, where that was asked for.
    pub rings: Vec<Samples>,
    /// The quickest message of each pair of neighbours, rank by rank, where samples are single messages.
    pub quickest: Vec<Quickest>,
    /// The figure of an application's repetition.
    pub figure: Option<f64>,
    /// The longest wall time of a rank's test, in ns.
    pub wall_ns: u64,
    /// The time inside canaries' timed iterations, added up over the ranks, in ns.
    pub covered_ns: u64,
    /// The wall time of canaries' tests, added up over the ranks, in ns.
    pub rank_ns: u64,
    /// The longest time a rank iterated untimed, until it was steady or earlier load was no longer felt, in ns.
    pub settled_ns: u64,
    /// How many iterations that took: the same on all canaries.
    pub warm_up: Took,
    /// How schedules were kept, over the ranks.
    pub kept: Kept,
    /// The same samples by the time since the last burst began, where load comes in bursts.
    pub folded: Option<Folded>,
    /// What each congestor of the plan did, by its index.
    pub loads: Vec<Option<Load>>,
}

/// A whole phase's tally in a few kilobytes.
#[derive(Clone, Debug)]
pub struct EncodedTally {
    bytes: Vec<u8>,
    kinds: usize,
}

/// One phase's results on rank 0.
#[derive(Debug)]
pub struct Measured {
    /// In what state.
    pub phase: LoadState,
    /// The canary test of the plan, by index.
    pub canary: Option<usize>,
    /// The congestor of the plan that ran alone, by index.
    pub congestor: Option<usize>,
    /// When, in the order of this canary's phases on this placement.
    pub block: usize,
    /// The most that a clock was off, where load came in bursts, in ns.
    pub clock_error_ns: u64,
    /// What was measured.
    pub tally: EncodedTally,
}

impl From<Tally> for EncodedTally {
    fn from(tally: Tally) -> Self {
        (&tally).into()
    }
}

impl From<&Tally> for EncodedTally {
    fn from(tally: &Tally) -> Self {
        EncodedTally { bytes: tally.encode(), kinds: tally.loads.len() }
    }
}

impl EncodedTally {
    /// What it is in a file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was in a file: nothing unless it is the tally of a plan with `kinds` congestors.
    pub fn read(bytes: Vec<u8>, kinds: usize) -> Option<Self> {
        Tally::decode_all(&bytes, kinds).then_some(EncodedTally { bytes, kinds })
    }

    /// The tally.
    pub fn decode(&self) -> Tally {
        Tally::decode(&self.bytes, self.kinds).expect("this rank wrote these bytes itself")
    }
}

impl Tally {
    /// An empty tally for a plan with `kinds` congestors.
    pub(super) fn new(kinds: usize) -> Self {
        Tally { loads: vec![None; kinds], ..Tally::default() }
    }

    /// A tally of a load alone.
    pub(super) fn of_load(kind: usize, kinds: usize, load: Load) -> Self {
        let mut tally = Tally::new(kinds);
        tally.loads[kind] = Some(load);
        tally
    }

    /// Everyone's tally, on rank 0, which keeps those of many phases and so keeps them small.
    pub(super) fn collect(self, bootstrap: &mut dyn Bootstrap) -> Result<Option<EncodedTally>> {
        let kinds = self.loads.len();
        let damaged = |error: SamplesError| Error::Protocol {
            operation: "collecting results",
            peer: None,
            detail: error.to_string(),
        };
        let encoded = self.encode();
        let mut sum = self;
        let root = bootstrap.reduce(encoded, &mut |mine, theirs| {
            // What comes in as `mine` is what this closure put there last, so `sum` need not be decoded again.
            sum.merge_encoded(theirs).map_err(damaged)?;
            *mine = sum.encode();
            Ok(())
        })?;
        Ok(root.map(|bytes| EncodedTally { bytes, kinds }))
    }

    /// Adds another rank's tally as [`Tally::encode`] wrote it.
    fn merge_encoded(&mut self, mut bytes: &[u8]) -> std::result::Result<(), SamplesError> {
        self.merge_from(&mut bytes)
    }

    /// The same, leaving what follows it.
    fn merge_from(&mut self, bytes: &mut &[u8]) -> std::result::Result<(), SamplesError> {
        self.wall_ns = self.wall_ns.max(word(bytes)?);
        self.settled_ns = self.settled_ns.max(word(bytes)?);
        self.covered_ns += word(bytes)?;
        self.rank_ns += word(bytes)?;
        // One rank at most has a figure; none is no number.
        let figure = f64::from_bits(word(bytes)?);
        self.figure = self.figure.or((!figure.is_nan()).then_some(figure));
        let took = [word(bytes)?, word(bytes)?, word(bytes)?, word(bytes)?];
        let [measurements, unsteady, fewest, most] = took;
        if measurements > 0 {
            self.warm_up = Took { measurements, unsteady, fewest, most };
        }
        let [slots, late, lost, worst_ns] = [word(bytes)?, word(bytes)?, word(bytes)?, word(bytes)?];
        self.kept.merge(Kept { slots, late, lost, worst_ns });
        if let Some(encoded) = take_samples(bytes)? {
            match &mut self.canary {
                Some(mine) => mine.merge_encoded(encoded)?,
                None => self.canary = Some(Samples::decode(encoded)?),
            }
        }
        for ring in 0..word(bytes)? as usize {
            let Some(encoded) = take_samples(bytes)? else { continue };
            match self.rings.get_mut(ring) {
                Some(mine) => mine.merge_encoded(encoded)?,
                None => self.rings.push(Samples::decode(encoded)?),
            }
        }
        for _ in 0..word(bytes)? {
            let (rank, count) = (word(bytes)? as u32, word(bytes)?);
            let ns: std::result::Result<Vec<u32>, SamplesError> = (0..count).map(|_| Ok(word(bytes)? as u32)).collect();
            self.quickest.push(Quickest { rank, ns: ns? });
        }
        if let Some(encoded) = take_samples(bytes)? {
            self.folded.get_or_insert_default().merge(&Folded::decode(encoded)?);
        }
        for load in &mut self.loads {
            let Some(encoded) = take_samples(bytes)? else { continue };
            let (ranks, moved, seconds) = (word(bytes)?, word(bytes)?, f64::from_bits(word(bytes)?));
            let steady = word(bytes)? != 0;
            let slices = Slices::decode(|| word(bytes).ok()).ok_or_else(|| SamplesError("slices of a load".into()))?;
            match load {
                Some(mine) => {
                    mine.ranks += ranks;
                    mine.bytes += moved;
                    mine.seconds += seconds;
                    mine.steady &= steady;
                    mine.slices.merge(&slices);
                    mine.samples.merge_encoded(encoded)?;
                }
                None => {
                    let samples = Samples::decode(encoded)?;
                    *load = Some(Load { ranks, bytes: moved, seconds, samples, slices, steady });
                }
            }
        }
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let Kept { slots, late, lost, worst_ns } = self.kept;
        let Took { measurements, unsteady, fewest, most } = self.warm_up;
        let took = [measurements, unsteady, fewest, most];
        let figure = self.figure.unwrap_or(f64::NAN).to_bits();
        let times = [self.wall_ns, self.settled_ns, self.covered_ns, self.rank_ns, figure];
        let words = [&times, &took[..], &[slots, late, lost, worst_ns]].concat();
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        put_samples(&mut out, self.canary.as_ref());
        out.extend((self.rings.len() as u64).to_le_bytes());
        self.rings.iter().for_each(|ring| put_samples(&mut out, Some(ring)));
        out.extend((self.quickest.len() as u64).to_le_bytes());
        for of in &self.quickest {
            let words =
                [u64::from(of.rank), of.ns.len() as u64].into_iter().chain(of.ns.iter().map(|ns| u64::from(*ns)));
            out.extend(words.flat_map(u64::to_le_bytes));
        }
        put(&mut out, &self.folded.as_ref().map(Folded::encode).unwrap_or_default());
        for load in &self.loads {
            put_samples(&mut out, load.as_ref().map(|load| &load.samples));
            if let Some(load) = load {
                let words = [load.ranks, load.bytes, load.seconds.to_bits(), u64::from(load.steady)];
                out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                load.slices.encode(&mut out);
            }
        }
        out
    }

    /// Whether these bytes are a tally and nothing else.
    fn decode_all(bytes: &[u8], kinds: usize) -> bool {
        let mut rest = bytes;
        Tally::new(kinds).merge_from(&mut rest).is_ok() && rest.is_empty()
    }

    fn decode(bytes: &[u8], kinds: usize) -> std::result::Result<Self, SamplesError> {
        let mut tally = Tally::new(kinds);
        tally.merge_encoded(bytes)?;
        Ok(tally)
    }
}

/// Absent samples are a length of zero: an encoding is never empty.
fn put_samples(out: &mut Vec<u8>, samples: Option<&Samples>) {
    put(out, &samples.map(Samples::encode).unwrap_or_default());
}

fn put(out: &mut Vec<u8>, encoded: &[u8]) {
    out.extend((encoded.len() as u64).to_le_bytes());
    out.extend(encoded);
}

fn take_samples<'a>(bytes: &mut &'a [u8]) -> std::result::Result<Option<&'a [u8]>, SamplesError> {
    let length = word(bytes)? as usize;
    let (encoded, rest) = bytes.split_at_checked(length).ok_or_else(|| SamplesError("cut short".into()))?;
    *bytes = rest;
    Ok((length > 0).then_some(encoded))
}

fn word(bytes: &mut &[u8]) -> std::result::Result<u64, SamplesError> {
    let (head, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| SamplesError("cut short".into()))?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_figure_of_an_application_travels() {
        let with = Tally { figure: Some(1.25), wall_ns: 9, ..Tally::default() };
        for figures in [[&with, &Tally::default()], [&Tally::default(), &with]] {
            let mut sum = Tally::default();
            figures.iter().for_each(|of| sum.merge_encoded(&of.encode()).unwrap());
            assert_eq!((sum.figure, sum.wall_ns), (Some(1.25), 9));
        }
        assert_eq!(Tally::decode(&Tally::default().encode(), 0).unwrap().figure, None);
    }

    #[test]
    fn quickest_messages_travel_rank_by_rank() {
        let of = |rank| Quickest { rank, ns: vec![10 + rank, u32::MAX, 7] };
        let mut sum = Tally { quickest: vec![of(0)], ..Tally::default() };
        let others = Tally { quickest: vec![of(3), of(1)], ..Tally::default() };
        sum.merge_encoded(&Tally::default().encode()).unwrap();
        sum.merge_encoded(&others.encode()).unwrap();
        assert_eq!(EncodedTally::from(&sum).decode().quickest, [of(0), of(3), of(1)]);
        let cut = &others.encode()[..80];
        assert!(Tally::default().merge_encoded(cut).is_err());
    }

    #[test]
    fn samples_of_rings_are_added_ring_by_ring() {
        let of = |values: &[&[u64]]| {
            let ring = |values: &&[u64]| {
                let mut samples = Samples::growing(1);
                values.iter().for_each(|ns| samples.record(*ns));
                samples
            };
            Tally { rings: values.iter().map(ring).collect(), ..Tally::default() }
        };
        let mut sum = Tally::default();
        for tally in [of(&[&[10, 20], &[], &[5]]), Tally::default(), of(&[&[30], &[7], &[]])] {
            sum.merge_encoded(&tally.encode()).unwrap();
        }
        let found: Vec<(u64, Option<(u64, u64)>)> =
            sum.rings.iter().map(|of| (of.total().len(), of.total().extremes_ns())).collect();
        assert_eq!(found, [(3, Some((10, 30))), (1, Some((7, 7))), (1, Some((5, 5)))]);
    }
}
