//! What is told of a suspect, and what it was seen by.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::result::MapPlace as Place;
use crate::stats::{FALSE_ALARMS, Interval, LEAST};

/// A worst slice is this many times farther from the median than it is elsewhere.
const INTERMITTENT_LN: f64 = 0.2;
/// Segments sent again by a pair, beyond what others send again.
const LOSS_LN: f64 = 0.4;

/// What a suspect is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A node that sends slowly, or its cable that way.
    SlowToSend,
    /// A node that receives slowly, or its cable that way.
    SlowToReceive,
    /// A node's cable: slow both ways, or late.
    Cable,
    /// A node's cable that loses packets.
    Loss,
    /// A node that is slow to itself.
    Host,
    /// A node that is slow at times.
    Intermittent,
    /// Links of a group to all others.
    Uplink,
    /// Links of one group to another.
    GroupPair,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::SlowToSend,
        Fault::SlowToReceive,
        Fault::Cable,
        Fault::Loss,
        Fault::Host,
        Fault::Intermittent,
        Fault::Uplink,
        Fault::GroupPair,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::SlowToSend => "slow to send",
            Fault::SlowToReceive => "slow to receive",
            Fault::Cable => "bad cable",
            Fault::Loss => "loses packets",
            Fault::Host => "slow host",
            Fault::Intermittent => "slow at times",
            Fault::Uplink => "slow uplink",
            Fault::GroupPair => "slow between groups",
        })
    }
}

/// What a suspect was seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Bandwidth, one way or both ways.
    Rate,
    /// Half a round trip.
    Latency,
    /// Copies inside the node.
    Copy,
    /// Segments sent again.
    Retransmissions,
    /// The worst slice beside the median.
    WorstSlice,
}

impl Figure {
    /// What an effect on logarithms comes to: the part of a rate that is lacking, the part of a time that is added, or segments.
    pub(super) fn part(self, ln: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy | Figure::WorstSlice => -(-ln).exp_m1(),
            Figure::Latency | Figure::Retransmissions => ln.exp_m1(),
        }
    }

    /// The inverse of [`Figure::part`].
    pub(super) fn ln(self, part: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy | Figure::WorstSlice => -(-part).ln_1p(),
            Figure::Latency | Figure::Retransmissions => part.ln_1p(),
        }
    }

    /// Whether links between groups are judged by it.
    pub(super) fn is_of_links(self) -> bool {
        matches!(self, Figure::Rate | Figure::Latency)
    }

    pub(super) fn least(self, least: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy => -(-least).ln_1p(),
            Figure::Latency => least.ln_1p(),
            Figure::Retransmissions => LOSS_LN,
            Figure::WorstSlice => INTERMITTENT_LN,
        }
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Way {
    Out,
    In,
    Both,
}

/// One figure by which a suspect is slower than its peers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which figure.
    pub figure: Figure,
    /// Of what it sends, of what it receives, or of both.
    pub way: Way,
    /// The part of a rate that is lacking, or of a latency that is added; of retransmissions segments for each pair.
    pub slower: f64,
    /// Its 95% interval.
    pub interval: Interval,
    /// Corrected for all effects of this figure that were looked at.
    pub p_value: f64,
}

/// Something that is slower than its peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// What it is.
    pub place: Place,
    /// What it is called.
    pub name: String,
    /// What it is taken for.
    pub fault: Fault,
    /// Which way.
    pub way: Way,
    /// What shows it, the most telling first.
    pub evidence: Vec<Evidence>,
}

impl Suspect {
    /// The figure that shows it best.
    pub fn first(&self) -> &Evidence {
        &self.evidence[0]
    }
}

/// How sure a verdict has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demands {
    /// How often a system without faults may have any suspect.
    pub false_alarms: f64,
    /// The least part by which a suspect is slower.
    pub least: f64,
}

impl Default for Demands {
    fn default() -> Self {
        Demands { false_alarms: FALSE_ALARMS, least: LEAST }
    }
}

/// What one figure shows of one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) place: Place,
    pub(super) way: Way,
    pub(super) figure: Figure,
    /// On logarithms: above 0 is slower.
    pub(super) ln: f64,
    /// Its standard error, with the spread of its peers.
    pub(super) error: f64,
    pub(super) interval: Interval,
    /// Corrected for all that this figure shows.
    pub(super) p_value: f64,
}
