//! Which node, cable or link is to blame for slow pairs of a map.
//!
//! Every figure of a map has an additive model of its own ([`crate::stats::Additive`]): rates, latencies, retransmissions, and how far
//! the worst slice of a pair is from its median. What these models suspect is put together for each node and group: who is slow to itself too is a
//! slow host, who is slow both ways has a bad cable, and so on. All models share one rate of false alarms.
//!
//! A map is of one time. What was busy meanwhile looks the same as what is broken. Probes tell them apart: a fault is slow when it is
//! measured alone ([`ProbePlan`]). So does a map of another time: a fault is slow in both, by the same figure and in the same direction.

mod alone;
mod fit;
mod located;
mod name;
mod probe;
mod suspect;

pub use located::{Located, Probed};
pub use probe::{MOST_ROUNDS, ProbePlan};
pub use suspect::{Demands, Evidence, Fault, Figure, Place, Suspect, Way};
