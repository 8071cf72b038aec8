//! Samples, their summary and the impact of congestion on them.
//!
//! A sample is a time in nanoseconds that grows as things get worse: a latency, or for bandwidth kernels the time a
//! MiB took (ns/MiB), which is comparable between teams of different size. Bandwidth figures are the inverse, so a
//! bandwidth's 99th percentile is the value that 99% of samples reach or exceed.
//!
//! Samples are kept in a fixed number of batches of consecutive passes (a pass is one visit of a ring). Memory does
//! not grow with the run, and the batches are what the bootstrap resamples.

mod bootstrap;
mod impact;
mod samples;
mod summary;

pub use bootstrap::{Batched, Interval, bootstrap};
pub use impact::{Factor, Impact, Side, impact};
pub use samples::{Batch, Samples, SamplesError};
pub use summary::{Direction, Statistic, Summary};
