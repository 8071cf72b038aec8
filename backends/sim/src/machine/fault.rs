//! What is broken in a machine: tables `[[fault]]` of its file, each for one node or for the links between two places.

use serde::Deserialize;

use super::quantity::Ps;

/// One fault. A share is of what the part does when it is whole: 0.5 is half as fast.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// A node that sends slowly.
    Send {
        /// Which, from 0.
        node: usize,
        /// Share of its links' rate.
        rate: f64,
    },
    /// A node that receives slowly.
    Receive {
        /// Which, from 0.
        node: usize,
        /// Share of its links' rate.
        rate: f64,
    },
    /// A node's cables.
    Cable {
        /// Which node's, from 0.
        node: usize,
        /// To the switch (`out`), from it (`in`), or both.
        #[serde(default)]
        direction: Direction,
        /// Share of the rate.
        #[serde(default = "whole")]
        rate: f64,
        /// Added to the time of flight.
        #[serde(default)]
        delay: Ps,
        /// Part of the packets that are lost on the way.
        #[serde(default)]
        loss: f64,
    },
    /// The links between two switches, or of two groups of a dragonfly.
    Uplink {
        /// The two, as reports call them: `leaf0` and `spine1`, `g0s1` and `g0s2`, or the groups `g0` and `g1`.
        between: [String; 2],
        /// From the first to the second (`out`), back (`in`), or both.
        #[serde(default)]
        direction: Direction,
        /// Share of the rate.
        #[serde(default = "whole")]
        rate: f64,
        /// Added to the time of flight.
        #[serde(default)]
        delay: Ps,
        /// Part of the packets that are lost on the way.
        #[serde(default)]
        loss: f64,
    },
    /// A node that is slow to itself.
    Host {
        /// Which, from 0.
        node: usize,
        /// Share of its processor's speed.
        #[serde(default = "whole")]
        processor: f64,
        /// Share of its memory's, through which its messages go too.
        #[serde(default = "whole")]
        memory: f64,
    },
}

/// Which way a cable is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Each.
    #[default]
    Both,
    /// Away from the node, or from what is named first.
    Out,
    /// The other one.
    In,
}

impl Direction {
    pub(crate) fn is_out(self) -> bool {
        self != Direction::In
    }

    pub(crate) fn is_in(self) -> bool {
        self != Direction::Out
    }
}

fn whole() -> f64 {
    1.0
}
