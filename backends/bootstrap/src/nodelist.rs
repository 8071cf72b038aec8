//! Slurm's compressed lists of host names: `node[003-007,9],x1`.

use tailback_transport::{Error, Result};

/// The first host of a list.
pub(crate) fn first_host(list: &str) -> Result<String> {
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
    fn known_lists() {
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
            assert_eq!(first_host(list).unwrap(), host, "{list}");
        }
        for list in ["", ",a", "node[", "node[]", "node[x-y]", "node]1", "node[1"] {
            assert!(first_host(list).is_err(), "{list}");
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
            prop_assert_eq!(first_host(&format!("{prefix}[{inside}]{tail}")).unwrap(), expected.clone());
            prop_assert_eq!(first_host(&format!("{expected}{tail}")).unwrap(), expected);
        }

        #[test]
        fn never_panics(list in "[a-z0-9,\\[\\]-]{0,30}") {
            if let Ok(host) = first_host(&list) {
                prop_assert!(!host.is_empty() && !host.contains([',', '[', ']']));
            }
        }
    }
}
