//! Which of a rank's ends are its rails. Every rank knows all offers and comes to the same conclusion about all ranks.

use tailback_transport::{Error, Result};

use super::offer::{End, Offer, Reach, worst};

/// A candidate's index, how well it reaches the host that it reaches worst, and why it is taken.
type Picked = (usize, Reach, String);

/// What a rank takes for each of so many rails, in their order.
pub(super) fn pick<E: End>(
    candidates: &[E],
    asked: bool,
    host: &str,
    rails: usize,
    offers: &[Offer<E>],
) -> Result<Vec<Picked>> {
    for (rank, offer) in offers.iter().enumerate() {
        let ends = usable(&offer.ends, asked, &offer.host, offers);
        if ends.len() < rails {
            return Err(Error::Setup(too_few(rank, offer, &ends, rails)));
        }
    }
    let mut mine = usable(candidates, asked, host, offers);
    if let Some(leader) = offers.first().filter(|_| !asked) {
        let lead = usable(&leader.ends, asked, &leader.host, offers);
        let lead: Vec<&E> = lead.iter().take(rails).map(|(at, ..)| &leader.ends[*at]).collect();
        let network = |end: &E, lead: &E| (end.reach(lead), end.shares_network(lead));
        align(&mut mine, candidates, &lead, network);
        // Names only order what was taken: who took by name would take what the leader has, and equals be dealt out in vain.
        mine.truncate(rails);
        align(&mut mine, candidates, &lead, |end, lead| (network(end, lead), end.name() == lead.name()));
    }
    mine.truncate(rails);
    Ok(mine)
}

/// The ends of a rank on `host` that can be rails, best first: one of each name that may reach every other host; if they were
/// asked for, all.
fn usable<E: End>(ends: &[E], asked: bool, host: &str, offers: &[Offer<E>]) -> Vec<Picked> {
    if asked {
        let reach = |end: &E| worst(end, host, offers);
        return ends.iter().enumerate().map(|(at, end)| (at, reach(end), "as asked for".to_owned())).collect();
    }
    let mut usable: Vec<Picked> = Vec::new();
    for (level, reason) in [
        (Reach::Near, "of those that share a network with every other host"),
        (Reach::Routed, "of those that may reach every host"),
    ] {
        for (at, end) in ends.iter().enumerate() {
            let known = usable.iter().any(|(of, ..)| ends[*of].name() == end.name());
            if !known && worst(end, host, offers) >= level {
                usable.push((at, level, reason.to_owned()));
            }
        }
    }
    usable
}

/// Orders ends so that in the place of each of the leader's is the first that fits it best.
fn align<E: End, F: Ord>(mine: &mut [Picked], candidates: &[E], lead: &[&E], fit: impl Fn(&E, &E) -> F) {
    for (rail, lead) in lead.iter().enumerate() {
        let fit = |(at, ..): &Picked| fit(&candidates[*at], lead);
        let best = mine[rail..].iter().map(fit).max();
        if let Some(at) = mine[rail..].iter().position(|of| Some(fit(of)) == best) {
            mine[rail..=rail + at].rotate_right(1);
        }
    }
}

fn too_few<E: End>(rank: usize, offer: &Offer<E>, usable: &[Picked], rails: usize) -> String {
    let list = |texts: Vec<String>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
    let ends = list(usable.iter().map(|(at, ..)| offer.ends[*at].describe()).collect());
    let is_other = |end: &&E| usable.iter().all(|(at, ..)| offer.ends[*at].name() != end.name());
    let others: Vec<String> = offer.ends.iter().filter(is_other).map(End::describe).collect();
    let others = match &others[..] {
        [] => String::new(),
        others => format!("; not to every other host: {}", others.join(", ")),
    };
    let obstacles = offer.obstacles.iter().fold(String::new(), |text, obstacle| text + "; " + obstacle);
    format!("--rails {rails}: rank {rank} on {} has too few ends for that: {ends}{others}{obstacles}", offer.host)
}
