//! What a point of a sweep uses of its job: over which networks it goes, and which nodes and ranks take part.
//!
//! The job has all of them: every network that a point names is opened, and ranks that a point does not use are idle. A network is a
//! name here; which there are is known where they are opened.

use tailback_engine::Protocol;

/// Key of a sweep over networks.
pub const TRANSPORT: &str = "transport";
/// Key of a sweep over protocols.
pub const PROTOCOL: &str = "protocol";
/// Keys of sweeps over how much of the job takes part.
const NODES: &str = "nodes";
const RANKS_PER_NODE: &str = "ranks-per-node";

/// The part of a job that a point uses: all of it, but for what is swept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The canaries' network, by its name.
    pub transport: Option<String>,
    /// The protocol of every raw network.
    pub protocol: Option<Protocol>,
    /// The first so many nodes take part.
    pub nodes: Option<usize>,
    /// Of each node the first so many ranks take part.
    pub ranks_per_node: Option<usize>,
}

impl Part {
    /// Their keys.
    pub const KEYS: [&str; 4] = [PROTOCOL, TRANSPORT, NODES, RANKS_PER_NODE];

    /// Takes the value of one of the keys.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let count = || {
            let count = value.parse().ok().filter(|count| *count > 0);
            count.map(Some).ok_or_else(|| format!("invalid count '{value}': expected 1 or more"))
        };
        match key {
            TRANSPORT => self.transport = Some(value.to_owned()),
            PROTOCOL => self.protocol = Some(protocol_named(value)?),
            NODES => self.nodes = count()?,
            RANKS_PER_NODE => self.ranks_per_node = count()?,
            _ => return Err(format!("'{key}' is no part of a job")),
        }
        Ok(())
    }
}

/// A protocol by its name.
pub fn protocol_named(name: &str) -> Result<Protocol, String> {
    let known = Protocol::ALL.into_iter().find(|protocol| protocol.to_string() == name);
    known.ok_or_else(|| format!("unknown protocol '{name}': expected eager, put or get"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_values_that_it_can_have() {
        let mut part = Part::default();
        for (key, value) in [(PROTOCOL, "put"), (TRANSPORT, "tcp"), (NODES, "8"), (RANKS_PER_NODE, "2")] {
            part.set(key, value).unwrap();
        }
        let (nodes, ranks_per_node) = (Some(8), Some(2));
        let whole = Part { transport: Some("tcp".into()), protocol: Some(Protocol::Put), nodes, ranks_per_node };
        assert_eq!(part, whole);
        for (key, value, expected) in [
            (PROTOCOL, "rendezvous", "unknown protocol 'rendezvous': expected eager, put or get"),
            (NODES, "0", "invalid count '0': expected 1 or more"),
            (RANKS_PER_NODE, "half", "invalid count 'half': expected 1 or more"),
        ] {
            assert_eq!(part.set(key, value).unwrap_err(), expected);
        }
    }
}
