//! What a rank could take, as it tells the others, and how well that reaches them.

use tailback_transport::{Error, Rank, Result};

/// How one end gets to another, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Not at all: they are of different kinds.
    Never,
    /// If both are on the same machine.
    Local,
    /// Through routers, if there are any.
    Routed,
    /// They share a network.
    Near,
}

/// One end, as other ranks need to know it.
pub trait End: Sized {
    /// In one line.
    fn encode(&self) -> String;

    /// From such a line.
    fn decode(line: &str) -> Option<Self>;

    /// How this one gets to `other`, which is another rank's.
    fn reach(&self, other: &Self) -> Reach;

    /// Whether both are of one network, as far as they tell: where they may be of several that reach each other, a rail
    /// keeps to one.
    fn shares_network(&self, other: &Self) -> bool {
        self.reach(other) == Reach::Near
    }

    /// What people call it, without what differs from host to host.
    fn name(&self) -> String;

    /// What errors call it.
    fn describe(&self) -> String {
        self.encode()
    }
}

/// Begins a line that says why something cannot be used.
pub(super) const OBSTACLE: char = '!';
/// Begins the line that says how many rails there are, where it is not one.
pub(super) const RAILS: char = '#';

/// What a rank could take.
pub(super) struct Offer<E> {
    pub(super) host: String,
    pub(super) ends: Vec<E>,
    pub(super) obstacles: Vec<String>,
    pub(super) rails: usize,
}

/// The offer of a rank, as it told it.
pub(super) fn parse<E: End>(rank: usize, bytes: &[u8]) -> Result<Offer<E>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let host = lines.next().unwrap_or_default().to_owned();
    let (mut ends, mut obstacles, mut rails) = (Vec::new(), Vec::new(), 1);
    for line in lines {
        let unknown = || unclear(rank, &format!("offers \"{line}\""));
        if let Some(text) = line.strip_prefix(OBSTACLE) {
            obstacles.push(text.to_owned());
        } else if let Some(count) = line.strip_prefix(RAILS) {
            rails = count.parse().map_err(|_| unknown())?;
        } else {
            ends.push(E::decode(line).ok_or_else(unknown)?);
        }
    }
    Ok(Offer { host, ends, obstacles, rails })
}

/// The error for what no correct rank says.
pub(super) fn unclear(rank: usize, what: &str) -> Error {
    Error::Protocol { operation: "choice of local ends", peer: Some(Rank::from(rank)), detail: what.to_owned() }
}

/// How well an end of a rank on `host` reaches the other host that it reaches worst.
pub(super) fn worst<E: End>(end: &E, host: &str, offers: &[Offer<E>]) -> Reach {
    let others = offers.iter().filter(|offer| offer.host != host);
    others.map(|offer| best_of(end, &offer.ends)).min().unwrap_or(Reach::Near)
}

fn best_of<E: End>(end: &E, others: &[E]) -> Reach {
    others.iter().map(|other| end.reach(other)).max().unwrap_or(Reach::Never)
}
