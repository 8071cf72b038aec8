//! What an exchange with neighbours takes (the paper's section 3.1): by a model, and measured, with and without computing meanwhile.

use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Error, Group, Nanos, Rank, Result as TransportResult, Span, Tag};

use super::{Model, Values};
use crate::layout::Nodes;
use crate::models::measure::{Control, check, forget};
use crate::units;

/// A halo exchange: every one of so many ranks of a node sends so many messages to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Halo {
    /// Messages of a rank (the paper's E).
    pub messages: usize,
    /// The size of each.
    pub bytes: usize,
    /// Ranks of a node whose data is exchanged (k); none when as many as were measured.
    pub ranks: Option<usize>,
    /// Ranks of a node that send it, each an equal part of it in as many messages; none when all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<usize>,
}

impl Halo {
    /// The same with ranks and senders, where `most` pairs are measured.
    #[must_use]
    pub fn resolved(&self, most: usize) -> Halo {
        let ranks = self.ranks.unwrap_or(most);
        Halo { ranks: Some(ranks), senders: Some(self.senders.unwrap_or(ranks).min(ranks)), ..*self }
    }

    /// How many ranks send, and the size of their messages, where `most` pairs are measured.
    pub fn shape(&self, most: usize) -> (usize, usize) {
        let of = self.resolved(most);
        let (ranks, senders) = (of.ranks.unwrap_or(1), of.senders.unwrap_or(1).max(1));
        (senders, (self.bytes as u128 * ranks as u128).div_ceil(senders as u128) as usize)
    }

    /// Its time by a model: E (a + k n / min(R_N, k R_C)), and its like for the others.
    pub fn seconds(&self, model: Model, values: &Values, most: usize) -> f64 {
        let (senders, bytes) = self.shape(most);
        self.messages as f64 * values.seconds(model, senders, bytes)
    }

    /// What one rank has in it.
    pub fn bytes_of_a_rank(&self) -> f64 {
        self.messages as f64 * self.bytes as f64
    }
}

impl FromStr for Halo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid halo '{text}': expected MESSAGESxBYTES[xRANKS[/SENDERS]], such as 6x16KiBx8 or 6x16KiBx8/2"
            )
        };
        let words: Vec<&str> = text.split('x').collect();
        if words.iter().any(|word| word.is_empty()) {
            return Err(wrong());
        }
        let ([messages, bytes], ranks) = match words[..] {
            [messages, bytes] => ([messages, bytes], None),
            [messages, bytes, ranks] => ([messages, bytes], Some(ranks)),
            _ => return Err(wrong()),
        };
        let (ranks, senders) =
            match ranks.map(|ranks| ranks.split_once('/').map_or((ranks, None), |(a, b)| (a, Some(b)))) {
                None => (None, None),
                Some((ranks, senders)) => (Some(units::count(ranks)?), senders.map(units::count).transpose()?),
            };
        if senders.is_some_and(|senders| ranks.is_some_and(|ranks| senders > ranks)) {
            return Err(wrong());
        }
        Ok(Halo { messages: units::count(messages)?, bytes: units::message(bytes)?, ranks, senders })
    }
}

/// A halo exchange that was measured, repetition by repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HaloSeen {
    /// Which, with its ranks and senders.
    pub halo: Halo,
    /// The slowest rank's seconds of an exchange.
    pub seconds: Vec<f64>,
    /// The same with computing meanwhile, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
}

/// Computing between the start of an exchange and the wait for its end, repetition by repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// The slowest rank's seconds of computing while nothing is sent.
    pub compute_s: Vec<f64>,
    /// Of both.
    pub both_s: Vec<f64>,
}

impl HaloSeen {
    pub(super) fn new(halo: Halo, computes: bool) -> Self {
        HaloSeen { halo, seconds: Vec::new(), overlap: computes.then(Overlap::default) }
    }

    /// Keeps so many repetitions.
    pub(super) fn truncate(&mut self, complete: usize) {
        let overlap = self.overlap.iter_mut().flat_map(|of| [&mut of.compute_s, &mut of.both_s]);
        [&mut self.seconds].into_iter().chain(overlap).for_each(|all| all.truncate(complete));
    }
}

/// Memory of an exchange that is measured: what is sent, and what every message is received into.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of the longest message, and the most messages, of exchanges between two nodes with so many pairs.
pub(super) fn room(halos: &[Halo], most: usize) -> TransportResult<(usize, usize)> {
    for halo in halos {
        let (senders, bytes) = halo.shape(most);
        if halo.ranks.is_some_and(|ranks| ranks > most) || senders > most {
            return Err(Error::Setup(format!(
                "a halo of {senders} ranks of a node is not measured with {most}: start more ranks"
            )));
        }
        if bytes.checked_mul(halo.messages + 1).is_none_or(|all| all > MOST_BYTES) {
            return Err(Error::Setup("a halo with more than 1 GiB of a rank's messages is not measured".into()));
        }
    }
    let longest = halos.iter().map(|halo| halo.shape(most).1).max().unwrap_or(1);
    Ok((longest, halos.iter().map(|halo| halo.messages).max().unwrap_or(1)))
}

/// A rank's part in an exchange between two nodes: its neighbours are ranks of the other node, in turn.
pub(super) struct Exchange<'a> {
    halo: Halo,
    senders: usize,
    bytes: usize,
    /// The other node's ranks, and this one's place on its own; none when it has no part.
    neighbours: Option<(&'a [Rank], usize)>,
    /// Where received messages begin.
    received: usize,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        halo: Halo,
        nodes: &'a Nodes,
        (first, second): (usize, usize),
        me: Rank,
        received: usize,
    ) -> Self {
        let (senders, bytes) = halo.shape(1);
        let (node, place) = (nodes.node_of(me), nodes.slice_of(me));
        let other = if node == first { Some(second) } else { (node == second).then_some(first) };
        let neighbours = other.filter(|_| place < senders).map(|other| (nodes.ranks(other), place));
        Exchange { halo, senders, bytes, neighbours, received }
    }

    /// The slowest rank's seconds of an exchange, with `work` units of computing in it; nothing when the user interrupts.
    pub(super) fn seconds<G: Group>(
        &self,
        group: &mut G,
        control: Control<'_>,
        work: u64,
    ) -> TransportResult<Option<f64>> {
        for at in 0..self.messages() {
            forget(group, self.area(at).offset, self.bytes);
        }
        let rested = control.until_steady(group, control.rule, |group, iterations| {
            let begin = group.now();
            for _ in 0..iterations {
                self.once(group, work)?;
            }
            Ok(if self.neighbours.is_some() { group.now().since(begin) } else { Nanos(0) })
        })?;
        let Some(rested) = rested else { return Ok(None) };
        for at in 0..self.messages() {
            check(group, self.from(at), self.area(at).offset, self.bytes)?;
        }
        Ok(Some(rested.median_ns * 1e-9))
    }

    /// The slowest rank's seconds of computing alone.
    pub(super) fn computing<G: Group>(
        &self,
        group: &mut G,
        control: Control<'_>,
        work: u64,
    ) -> TransportResult<Option<f64>> {
        let rested = control.until_steady(group, control.rule, |group, iterations| {
            let begin = group.now();
            if self.neighbours.is_some() {
                (0..iterations).for_each(|_| compute(work));
            }
            Ok(group.now().since(begin))
        })?;
        Ok(rested.map(|rested| rested.median_ns * 1e-9))
    }

    fn messages(&self) -> usize {
        if self.neighbours.is_some() { self.halo.messages } else { 0 }
    }

    fn area(&self, at: usize) -> Span {
        Span::new(self.received + at * self.bytes, self.bytes)
    }

    fn from(&self, at: usize) -> Rank {
        let (ranks, place) = self.neighbours.expect("a rank with messages has neighbours");
        ranks[(place + self.senders - at % self.senders) % self.senders]
    }

    /// As the paper writes it: receives and sends of every edge, what is computed on the interior, and the wait for all.
    fn once<G: Group>(&self, group: &mut G, work: u64) -> TransportResult<()> {
        let Some((ranks, place)) = self.neighbours else { return Ok(()) };
        for at in 0..self.halo.messages {
            group.post_recv(self.from(at), Tag(0), self.area(at))?;
        }
        for at in 0..self.halo.messages {
            group.post_send(ranks[(place + at) % self.senders], Tag(0), Span::new(0, self.bytes))?;
        }
        compute(work);
        group.wait_all()
    }
}

/// Units of computing that this rank does in so long when it has a core to itself: the quickest of some tries.
pub(super) fn units_in(nanos: u64) -> u64 {
    const LEAST_NS: u128 = 1_000_000;
    const TRIES: usize = 5;
    let took = |work: u64| {
        let once = || {
            let begin = Instant::now();
            compute(work);
            begin.elapsed().as_nanos()
        };
        (0..TRIES).map(|_| once()).fold(u128::MAX, u128::min)
    };
    let mut work = 1 << 12;
    loop {
        match took(work) {
            took if took >= LEAST_NS => return (u128::from(work) * u128::from(nanos) / took).max(1) as u64,
            _ => work *= 2,
        }
    }
}

/// Arithmetic that needs no memory.
fn compute(units: u64) {
    let mut number = 1u64;
    for _ in 0..units {
        number ^= number << 13;
        number ^= number >> 7;
        number = black_box(number ^ (number << 17));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_refused() {
        assert_eq!("6x16KiBx8".parse(), Ok(Halo { messages: 6, bytes: 16384, ranks: Some(8), senders: None }));
        assert_eq!("4x100".parse(), Ok(Halo { messages: 4, bytes: 100, ranks: None, senders: None }));
        for text in ["6", "0x8", "6x8x0", "6x8x2x2", "x", "6x8x2/3", "6x8x2/0", "6x8/1"] {
            assert!(text.parse::<Halo>().is_err(), "{text}");
        }
    }

    #[test]
    fn data_of_all_ranks_goes_through_fewer() {
        let halo: Halo = "6x1000x8/2".parse().unwrap();
        assert_eq!((halo.senders, halo.shape(1)), (Some(2), (2, 4000)));
        // By max-rate, two senders that fill the node take no longer than eight but for the sum of their rates.
        let values = Values { latency: 0.0, first: 1e9, further: 1e9, node: Some(2e9) };
        let all: Halo = "6x1000x8".parse().unwrap();
        let seconds = |halo: &Halo| halo.seconds(Model::MaxRate, &values, 8);
        assert!((seconds(&halo) / seconds(&all) - 1.0).abs() < 1e-12);
        assert!(room(&[halo], 2).is_err(), "8 ranks are not there");
        assert_eq!(room(&["2x10x2".parse().unwrap(), "5x4x2".parse().unwrap()], 2).unwrap(), (10, 5));
        assert!(room(&["4x512MiBx1".parse().unwrap()], 1).unwrap_err().to_string().contains("1 GiB"));
    }

    #[test]
    fn computing_takes_about_as_long_as_asked_for() {
        let work = units_in(4_000_000);
        assert!(work > 1000 && work < u64::MAX / 2, "{work}");
    }
}
