//! Message sizes of `--sizes`: single ones, and ranges of powers of two.

use std::str::FromStr;

use crate::units;

/// What stands between two commas: a size, or the first and the last of sizes that double.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else { return Ok(Sizes(vec![units::message(text)?])) };
        let (from, to) = (units::message(from)?, units::message(to)?);
        if from > to {
            return Err(format!("invalid sizes '{text}': expected the smaller one first, as in 8..4MiB"));
        }
        Ok(Sizes(std::iter::successors(Some(from), |size| Some(2 * size)).take_while(|size| *size <= to).collect()))
    }
}

impl Sizes {
    /// All of them, in the order given.
    pub fn all(of: &[Sizes]) -> Vec<usize> {
        of.iter().flat_map(|sizes| sizes.0.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<Vec<usize>, String> {
        Ok(Sizes::all(&text.split(',').map(str::parse).collect::<Result<Vec<Sizes>, String>>()?))
    }

    #[test]
    fn ranges_double_and_lists_are_as_they_are() {
        assert_eq!(sizes("8..64").unwrap(), [8, 16, 32, 64]);
        assert_eq!(sizes("8,64,512").unwrap(), [8, 64, 512]);
        assert_eq!(sizes("1,8..32,1kB").unwrap(), [1, 8, 16, 32, 1000]);
        let all = sizes("8..4MiB").unwrap();
        assert_eq!((all.len(), all[0], all[19]), (20, 8, 4 << 20));
        assert_eq!((sizes("12..50").unwrap(), sizes("4KiB..4KiB").unwrap()), (vec![12, 24, 48], vec![4096]));
        assert_eq!(sizes("512MiB..1GiB").unwrap().len(), 2);
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (text, expected) in [
            ("0", "invalid message size '0': expected 1 B to 1 GiB"),
            ("8..2GiB", "invalid message size '2GiB': expected 1 B to 1 GiB"),
            ("64..8", "invalid sizes '64..8': expected the smaller one first"),
            ("8..", "invalid size '': expected"),
            ("8k", "invalid size '8k': expected"),
        ] {
            let said = sizes(text).unwrap_err();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
