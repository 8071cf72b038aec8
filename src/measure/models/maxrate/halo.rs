//! What an exchange with neighbours takes (the paper's section 3.1).

use std::str::FromStr;

use super::{Model, Values};
use crate::units;

/// A halo exchange: every one of so many ranks of a node sends so many messages to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halo {
    /// Messages of a rank (the paper's E).
    pub messages: usize,
    /// The size of each.
    pub bytes: usize,
    /// Ranks of a node that exchange at once (k); none when as many as were measured.
    pub ranks: Option<usize>,
}

impl Halo {
    /// Its time by a model: E (a + k n / min(R_N, k R_C)), and its like for the others.
    pub fn seconds(&self, model: Model, values: &Values, ranks: usize) -> f64 {
        self.messages as f64 * values.seconds(model, ranks, self.bytes)
    }

    /// What one rank sends in it.
    pub fn bytes_of_a_rank(&self) -> f64 {
        self.messages as f64 * self.bytes as f64
    }
}

impl FromStr for Halo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split('x').collect();
        let ([messages, bytes], ranks) = match words[..] {
            [messages, bytes] => ([messages, bytes], None),
            [messages, bytes, ranks] => ([messages, bytes], Some(units::count(ranks)?)),
            _ => return Err(format!("'{text}' is no halo: MESSAGESxBYTES or MESSAGESxBYTESxRANKS, such as 6x16KiBx8")),
        };
        Ok(Halo { messages: units::count(messages)?, bytes: units::message(bytes)?, ranks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_refused() {
        assert_eq!("6x16KiBx8".parse(), Ok(Halo { messages: 6, bytes: 16384, ranks: Some(8) }));
        assert_eq!("4x100".parse(), Ok(Halo { messages: 4, bytes: 100, ranks: None }));
        for text in ["6", "0x8", "6x8x0", "6x8x2x2", "x"] {
            assert!(text.parse::<Halo>().is_err(), "{text}");
        }
    }
}
