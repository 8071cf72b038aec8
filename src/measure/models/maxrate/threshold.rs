//! Thresholds between protocols to the byte: between the two sizes that bracket one, sizes are measured that halve the bracket, each
//! time on the side whose line the time is nearer to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::Result;

use super::Line;

/// Lines that are no further apart than this, as a part of the time, cannot be told apart by one more size.
const APART: f64 = 0.1;

/// Where one protocol ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// The largest message that is known to be sent by the first.
    pub largest_bytes: usize,
    /// The smallest that is known to be sent by the second: one byte more where the threshold was found to the byte.
    pub smallest_bytes: usize,
}

/// Halves a bracket until it is a byte wide, or the two lines are too near to tell. `time` measures a size; nothing when the user
/// interrupts.
pub(super) fn bisect(
    bracket: Threshold,
    (below, above): (Line, Line),
    mut time: impl FnMut(usize) -> Result<Option<f64>>,
) -> Result<Option<Threshold>> {
    let Threshold { mut largest_bytes, mut smallest_bytes } = bracket;
    while smallest_bytes - largest_bytes > 1 {
        let middle = largest_bytes + (smallest_bytes - largest_bytes) / 2;
        let [below, above] = [below, above].map(|line| line.seconds(middle));
        if !(below > 0.0 && above > 0.0 && (above / below).ln().abs() > APART) {
            break;
        }
        let Some(seconds) = time(middle)? else { return Ok(None) };
        if (seconds / below).ln().abs() <= (seconds / above).ln().abs() {
            largest_bytes = middle;
        } else {
            smallest_bytes = middle;
        }
    }
    Ok(Some(Threshold { largest_bytes, smallest_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRACKET: Threshold = Threshold { largest_bytes: 16_384, smallest_bytes: 32_768 };

    #[test]
    fn a_threshold_is_found_to_the_byte_with_few_measurements() {
        let (eager, rendezvous) = (Line { latency: 1e-5, slope: 1e-9 }, Line { latency: 3e-5, slope: 5e-10 });
        let mut measured = 0;
        // The paper's figure 7: 25,548 bytes.
        let time = |bytes: usize| {
            measured += 1;
            Ok(Some(if bytes <= 25_548 { eager } else { rendezvous }.seconds(bytes) * 1.03))
        };
        let found = bisect(BRACKET, (eager, rendezvous), time).unwrap().unwrap();
        assert_eq!(found, Threshold { largest_bytes: 25_548, smallest_bytes: 25_549 });
        assert_eq!(measured, 14);
        assert_eq!(bisect(BRACKET, (eager, rendezvous), |_| Ok(None)).unwrap(), None);
    }

    #[test]
    fn lines_that_meet_leave_the_bracket() {
        let line = Line { latency: 1e-5, slope: 1e-9 };
        let near = Line { latency: 1.1e-5, ..line };
        let found = bisect(BRACKET, (line, near), |_| unreachable!("nothing could be told")).unwrap();
        assert_eq!(found, Some(BRACKET));
    }
}
