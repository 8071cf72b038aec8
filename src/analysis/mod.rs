//! What results say: differences between pairs of nodes, counters, why there is an impact, comparisons, thresholds.
//!
//! Pure functions of [`crate::result`]; views show what they give.

pub mod added;
mod between;
mod carried;
pub mod checks;
pub mod compare;
mod counters;
pub mod history;
pub mod map;
mod relative;
mod severity;
pub mod sweep;
pub mod threshold;
pub mod tuning;
mod why;

pub use between::{Kind, Span};
pub use counters::{CounterRow, CounterSpread, beside_isolated};
pub use relative::{Condition, RelativeCounter, RelativeRow, relative};
pub use severity::{Conclusion, Severity};
pub use why::{HotSpot, LoadOfNode, Why, WorstPort};
