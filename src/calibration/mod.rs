//! Calibration: which mix of congestors does what a recorded run shows, found by few runs.
//!
//! Pure functions of results: [`Observed`] is what a run shows, [`Distances`] holds all runs against the recorded one,
//! [`Surrogate`] tells what a mix would show that was not run, and [`Search`] says which to run next and what was found.
//! Whoever runs them is elsewhere.

mod distance;
mod mix;
mod observed;
mod search;
mod surrogate;

pub use distance::Distances;
pub use mix::{Mix, Space};
pub use observed::{By, Observed};
pub use search::{Found, MOST_RUNS, Range, Search};
pub use surrogate::Surrogate;
