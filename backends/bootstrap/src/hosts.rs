//! Hosts of one name are told apart: images that were cloned, containers, a name that nobody set.

use std::fs;

use tailback_transport::Rank;

/// The number of this boot and of this process's network namespace: what one address is one address in, whatever hosts are
/// called.
pub(crate) fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{}-{}", boot.trim(), space.display())
}

/// What a rank says of its host.
pub(crate) fn card(host: &str, machine: &str) -> Vec<u8> {
    format!("{machine}\n{host}").into_bytes()
}

/// The name by which a rank's host is known in the job, by the cards of all ranks: its own, and where another machine has it
/// too, with the lowest of its ranks.
pub(crate) fn known_as(rank: Rank, host: &str, cards: &[Vec<u8>]) -> String {
    let mine = &cards[rank.index()];
    let name = |card: &[u8]| card.iter().position(|byte| *byte == b'\n').map(|end| card[end..].to_vec());
    let shared = cards.iter().any(|card| card != mine && name(card) == name(mine));
    match cards.iter().position(|card| card == mine) {
        Some(lowest) if shared => format!("{host}/{lowest}"),
        _ => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_name_get_their_lowest_rank() {
        let cards = |of: &[(&str, &str)]| of.iter().map(|(host, machine)| card(host, machine)).collect::<Vec<_>>();
        let known = |of: &[(&str, &str)]| {
            let cards = cards(of);
            let name = |rank: usize| known_as(Rank::from(rank), of[rank].0, &cards);
            (0..of.len()).map(name).collect::<Vec<_>>()
        };
        assert_eq!(known(&[("n0", "a"), ("n0", "a"), ("n1", "b")]), ["n0", "n0", "n1"]);
        // Nodes that are only pretended share a machine.
        assert_eq!(known(&[("node0", "a"), ("node1", "a")]), ["node0", "node1"]);
        let same = [("vm", "a"), ("vm", "b"), ("vm", "a"), ("n1", "c"), ("vm", "b")];
        assert_eq!(known(&same), ["vm/0", "vm/1", "vm/0", "n1", "vm/1"]);
    }
}
