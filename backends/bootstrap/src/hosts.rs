//! Names of hosts: this one's, those that several machines have (cloned images, containers, a name that nobody set), and
//! Slurm's lists of them.

use std::fs;

use tailback_transport::{Error, Rank, Result};

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

/// The system's host name.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The first host of one of Slurm's compressed lists: `node[003-007,9],x1`.
pub(crate) fn first_of_slurm_list(list: &str) -> Result<String> {
    let bad = |what: &str| Error::Setup(format!("the node list \"{list}\" {what}"));
    let mut first = String::new();
    let mut rest = list;
    // A name may have several brackets: rack[1-2]node[01-04].
    loop {
        let end = rest.find([',', '[', ']']).unwrap_or(rest.len());
        first.push_str(&rest[..end]);
        match rest[end..].chars().next() {
            None | Some(',') => break,
            Some('[') => {
                let inside = &rest[end + 1..];
                let close = inside.find(']').ok_or_else(|| bad("has a bracket that does not close"))?;
                let number = inside[..close].split([',', '-']).next().unwrap_or_default();
                if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(bad("has a bracket without a number"));
                }
                first.push_str(number);
                rest = &inside[close + 1..];
            }
            Some(_) => return Err(bad("has a bracket that does not open")),
        }
    }
    if first.is_empty() { Err(bad("names no host")) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn the_first_of_a_list_of_slurms() {
        let cases = [
            ("node[003-007,9],x1", "node003"),
            ("x1", "x1"),
            ("x1,node[1-2]", "x1"),
            ("n[9]", "n9"),
            ("rack[1-2]node[01-04]", "rack1node01"),
            ("nid[000010,000020-000030].local", "nid000010.local"),
            ("a-b-3,c", "a-b-3"),
        ];
        for (list, host) in cases {
            assert_eq!(first_of_slurm_list(list).unwrap(), host, "{list}");
        }
        for list in ["", ",a", "node[", "node[]", "node[x-y]", "node]1", "node[1"] {
            assert!(first_of_slurm_list(list).is_err(), "{list}");
        }
    }

    proptest! {
        #[test]
        fn first_of_a_compressed_list(
            prefix in "[a-z][a-z-]{0,8}", width in 1usize..6, first in 0u32..999, more in proptest::collection::vec(0u32..999, 0..5), tail in "(,[a-z]{1,5}[0-9]{0,3}){0,3}",
        ) {
            let mut inside = format!("{first:0width$}");
            for (i, n) in more.iter().enumerate() {
                inside += &format!("{}{n:0width$}", if i % 2 == 0 { '-' } else { ',' });
            }
            let expected = format!("{prefix}{first:0width$}");
            prop_assert_eq!(first_of_slurm_list(&format!("{prefix}[{inside}]{tail}")).unwrap(), expected.clone());
            prop_assert_eq!(first_of_slurm_list(&format!("{expected}{tail}")).unwrap(), expected);
        }

        #[test]
        fn lists_never_panic(list in "[a-z0-9,\\[\\]-]{0,30}") {
            if let Ok(host) = first_of_slurm_list(&list) {
                prop_assert!(!host.is_empty() && !host.contains([',', '[', ']']));
            }
        }
    }
}
