//! Who sits where and does what: nodes, slices, roles and rings, all from one seed.
//!
//! A node is the set of ranks that share a host. The i-th rank of every node forms slice i: one rank per node, so a
//! slice never talks on-node. Everything here is O(ranks) in time and memory and needs no communication: every rank
//! derives the same layout from the same host list and seed.

mod duties;
mod nodes;
mod pairs;
mod policy;
mod ring;
mod roles;
mod shuffle;

pub use duties::Loads;
pub use nodes::Nodes;
pub use pairs::sample_pairs;
pub use policy::{Placement, Policy};
pub use ring::{Neighbours, natural_ring, random_rings};
pub use roles::{Layout, LayoutError, Role, Split};
pub use shuffle::order;
