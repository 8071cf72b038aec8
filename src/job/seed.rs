//! The seed of placements and rings: a number, or rank 0's time.
//!
//! A seed is asked for by every rank in the same words and made a number by rank 0 alone.

use std::str::FromStr;
use std::time::SystemTime;

/// The seed asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// This one: another job's placements again.
    Number(u64),
    /// The time at which rank 0 decides, as in GPCNeT: nobody can tune a machine to placements that are not known before.
    Time,
}

impl Seed {
    const TIME: &str = "time";

    /// The number: of time, the milliseconds since 1970.
    pub(crate) fn number(self) -> u64 {
        match self {
            Seed::Number(number) => number,
            Seed::Time => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                since.as_millis() as u64
            }
        }
    }

    /// A new one. 32 bits: easy to read out and to type.
    pub(super) fn draw() -> Self {
        Seed::Number(rand::random::<u32>().into())
    }
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            Seed::TIME => Ok(Seed::Time),
            number => number
                .parse()
                .map(Seed::Number)
                .map_err(|_| format!("invalid seed '{number}': expected a whole number, or {}", Seed::TIME)),
        }
    }
}

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Seed::Number(number) => number.fmt(f),
            Seed::Time => f.write_str(Seed::TIME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number_or_the_time() {
        assert_eq!(("7".parse(), "time".parse()), (Ok(Seed::Number(7)), Ok(Seed::Time)));
        assert_eq!("now".parse::<Seed>().unwrap_err(), "invalid seed 'now': expected a whole number, or time");
        for seed in [Seed::Number(u64::MAX), Seed::Time] {
            assert_eq!(seed.to_string().parse(), Ok(seed));
        }
        // Between 2020 and 2100.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&Seed::Time.number()));
    }
}
