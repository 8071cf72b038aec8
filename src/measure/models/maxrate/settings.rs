//! What a max-rate study measures, how often, and between which nodes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Halo, Method, Weighting};
use crate::layout::{Nodes, sample_pairs};
use crate::units;

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Largest message in bytes; sizes are the powers of two up to it
    #[arg(long, value_name = "BYTES", value_parser = units::message, default_value_t = 1 << 20)]
    pub largest: usize,
    /// At most so many pairs at once [default: as many as the nodes have ranks]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub most_pairs: Option<usize>,
    /// Measurements of every size and number of pairs
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 5)]
    pub repetitions: usize,
    /// At least so many round trips in a measurement, fewer for messages above 64 KiB: they are repeated until their rate
    /// is steady
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 20)]
    pub iterations: usize,
    /// Between which nodes: the first two (first), every two of the job (all), or N pairs of nodes, drawn with the seed so
    /// that every node has its turn. Pairs of nodes are measured one after the other, the rest of the job being silent
    #[arg(long, value_name = "WHICH", default_value_t)]
    #[serde(default, skip_serializing_if = "NodePairs::is_first")]
    pub node_pairs: NodePairs,
    /// Answer with one byte rather than the whole message: all pairs then load the same direction of a link, which the
    /// paper's ping-pongs do only as long as they stay in step
    #[arg(long)]
    pub one_way: bool,
    /// Measure the messages between two nodes one way, the other way, and both ways at once, each by itself; one way with
    /// answers of one byte, as --one-way
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub both_directions: bool,
    /// How much each measurement counts in the fits
    #[arg(long, value_enum, default_value_t)]
    pub weighting: Weighting,
    /// Tell latencies and rates of further pairs below zero, as the paper's fit of short messages has one, rather than hold
    /// them at zero as not identifiable
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// The largest size of each protocol regime but the last, such as 32,1KiB [default: found from the data]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::message)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<usize>,
    /// Exchanges with neighbours, as MESSAGESxBYTES[xRANKS[/SENDERS]]; measured between the first two nodes and set beside what
    /// the models say. 6x16KiBx8 is 6 messages of each of 8 ranks of a node at once, 6x16KiBx8/2 the same data
    /// through 2 of them [default of ranks: the most pairs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub halo: Vec<Halo>,
    /// With --halo: measure exchanges also with so much computing between their start and the wait for their end
    #[arg(long = "compute", value_name = "TIME", value_parser = nanoseconds, requires = "halo")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_ns: Option<u64>,
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    let time = units::duration(text)?;
    let fits = !time.is_zero() && time <= LONGEST_COMPUTING;
    fits.then_some(time.as_nanos() as u64)
        .ok_or_else(|| format!("invalid time '{text}': expected more than 0, up to 10 s"))
}

/// A rank that computes shows no progress.
const LONGEST_COMPUTING: Duration = Duration::from_secs(10);

impl Default for Settings {
    fn default() -> Self {
        Settings {
            largest: 1 << 20,
            most_pairs: None,
            repetitions: 5,
            iterations: 20,
            node_pairs: NodePairs::First,
            one_way: false,
            both_directions: false,
            weighting: Weighting::default(),
            signed: false,
            thresholds: Vec::new(),
            halo: Vec::new(),
            compute_ns: None,
        }
    }
}

impl Settings {
    /// How often everything is measured: at least once.
    pub fn repetitions(&self) -> usize {
        self.repetitions.max(1)
    }

    /// Whether a message is answered with one byte.
    pub fn is_one_way(&self) -> bool {
        self.one_way || self.both_directions
    }

    /// How models are fitted.
    pub fn method(&self) -> Method {
        Method { weighting: self.weighting, signed: self.signed }
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        let largest = self.largest.max(1);
        (0..usize::BITS - 1).map(|power| 1 << power).take_while(move |&bytes| bytes <= largest)
    }

    /// Large messages need fewer round trips for the same certainty.
    pub(super) fn least(&self, bytes: usize) -> u64 {
        let least = (self.iterations * (1 << 16) / bytes.max(1 << 16)).clamp(2, self.iterations.max(2));
        least as u64
    }

    /// The exchanges, each with as many ranks and senders as it has.
    pub(super) fn halos(&self, most: usize) -> Vec<Halo> {
        self.halo.iter().map(|halo| halo.resolved(most)).collect()
    }

    /// How many pairs of ranks two nodes form.
    pub(super) fn most(&self, nodes: &Nodes, (first, second): (usize, usize)) -> usize {
        nodes.ranks(first).len().min(nodes.ranks(second).len()).min(self.most_pairs.unwrap_or(usize::MAX))
    }
}

/// Between which nodes is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodePairs {
    /// The first two of the job.
    #[default]
    First,
    /// Every two.
    All,
    /// At most so many, none twice.
    Drawn(usize),
}

impl NodePairs {
    /// Whether only the first two nodes are asked for.
    pub fn is_first(&self) -> bool {
        *self == NodePairs::First
    }

    /// The pairs of nodes; none when there is but one node.
    pub(super) fn of(self, nodes: &Nodes, seed: u64) -> Vec<(usize, usize)> {
        let most = match self {
            NodePairs::First => return (nodes.len() > 1).then_some((0, 1)).into_iter().collect(),
            NodePairs::All => usize::MAX,
            NodePairs::Drawn(most) => most,
        };
        sample_pairs(seed, nodes.len(), most).into_iter().map(|(a, b)| (a.index(), b.index())).collect()
    }
}

impl fmt::Display for NodePairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodePairs::First => f.write_str("first"),
            NodePairs::All => f.write_str("all"),
            NodePairs::Drawn(most) => write!(f, "{most}"),
        }
    }
}

impl FromStr for NodePairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(NodePairs::First),
            "all" => Ok(NodePairs::All),
            number => units::count(number)
                .map(NodePairs::Drawn)
                .map_err(|_| format!("invalid node pairs '{text}': expected first, all, or a number of pairs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_nodes_are_read_and_drawn() {
        let nodes = Nodes::virtual_nodes(12, 2);
        let of = |text: &str| text.parse::<NodePairs>().unwrap().of(&nodes, 3);
        assert_eq!((of("first"), of("all").len(), of("99").len()), (vec![(0, 1)], 15, 15));
        let drawn = of("3");
        let mut seen: Vec<usize> = drawn.iter().flat_map(|&(a, b)| [a, b]).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5], "every node before any twice");
        assert_ne!(drawn, "3".parse::<NodePairs>().unwrap().of(&nodes, 4));
        assert!(NodePairs::All.of(&Nodes::virtual_nodes(2, 2), 1).is_empty());
        for text in ["0", "some", "-1", ""] {
            assert!(text.parse::<NodePairs>().unwrap_err().contains("expected first, all"), "{text}");
        }
        assert!(["first", "all", "7"].iter().all(|text| text.parse::<NodePairs>().unwrap().to_string() == *text));
    }
}
