//! Samples, their summary and the impact of congestion on them.
//!
//! A sample is a time in nanoseconds that grows as things get worse: a latency, or for bandwidth kernels the time a
//! MiB took (ns/MiB), which is comparable between teams of different size. Bandwidth figures are the inverse, so a
//! bandwidth's 99th percentile is the value that 99% of samples reach or exceed.
//!
//! Samples are kept in a fixed number of batches of consecutive passes (a pass is one visit of a ring). Memory does
//! not grow with the run.
//!
//! From samples to a claim: [`Statistic`] reads a number off the samples of one placement in one state, loaded over
//! isolated is that placement's factor, and [`Spread`] makes an interval of the factors of several placements, which
//! are what is independent in a run. Everything that decides is here as a pure function, and `tests/coverage` puts
//! processes of known truth through it. `examples/claim.rs` goes that way:
//!
//! ```
//! use tailback_stats::Spread;
//!
//! let impact = Spread::of(&[2.1, 2.6, 1.9, 3.0, 2.3]).unwrap();
//! assert!(impact.interval.unwrap().low > 1.0, "load costs something, wherever canaries are");
//! ```

#![forbid(unsafe_code)]

mod additive;
mod batches;
mod change;
mod encoded;
mod folded;
mod gate;
mod impact;
mod jobs;
mod judgement;
mod many;
mod ranking;
mod samples;
mod share;
mod spread;
mod statistic;
mod steady;
mod student;
mod summary;
mod time;
mod variation;

pub use additive::{
    Additive, Cell, Effect, FALSE_ALARMS, FEWEST_PEERS, LEAST, MAD, Term, robust_freedom, robust_spread,
};
pub use batches::{FEWEST_BATCHES, MOST_LAG1, OnePlacement, Sum, Withheld, jackknife, lag1, one_placement, sums};
pub use change::{
    ChangePoint, Departure, FEWEST_OF_LEVEL, FEWEST_TO_SPLIT, change_points, departure, fewest_to_show, level_shift,
};
pub use encoded::EncodedHistogram;
pub use folded::{BurstResponse, Folded, FoldedPart, OverBursts, WITHIN, monotonic};
pub use gate::{FailsIf, Outcome, needed};
pub use impact::{Added, Factor, Impact};
pub use jobs::{Components, Difference, JobVariance, Jobs, difference, paired_difference};
pub use judgement::{Evidence, FEWEST_COVERED, Judgement, NotReportable, TestState, fewest_iterations};
pub use many::{AllPairs, FAMILY_ERROR, Pair, holm, holm_levels};
pub use ranking::{RankedPair, Ranking};
pub use samples::{Batch, MAX_BATCHES, Samples, SamplesError};
pub use share::{Blame, Design, NoShare, RawCells, Share, Shares};
pub use spread::{FEWEST_PLACEMENTS, Interval, Ratio, Spread, left_out, mean, median, paired, unpaired, variance};
pub use statistic::{Percentiles, Statistic, Times, fewest_to_carry, pooled};
pub use steady::{Rested, Rule, Steady, Took};
pub use student::{t95, two_sided_p, two_sided_t, upper_p};
pub use summary::{Direction, Summary};
pub use time::{TimeView, Weight, quantile_ns};
pub use variation::Variation;
