//! Results side by side: figures of every side, and how many times worse each is than the first, with a confidence
//! interval and a verdict.
//!
//! The test behind a verdict is over placements, which are what is independent in a run (docs/methodology.md). Out of
//! scope: differences between repeated jobs, which no single result can show.

mod aggressors;
mod attribution;
mod compatible;
mod conditions;
mod counters;
mod figures;
mod protocols;
mod side_by_side;
pub mod sides;
mod verdict;

pub use aggressors::{AGGRESSORS_TITLE, Aggressors, Victim};
pub use attribution::{Attribution, attribute};
pub use compatible::{Aspect, Difference, differences};
pub use conditions::{CONDITIONS_TITLE, ConditionRow, conditions_table};
pub use counters::{COUNTERS_TITLE, CounterCell, CounterComparison, counters_table};
pub use figures::{FIGURES_TEST, FigureRow};
pub use protocols::ProtocolFinding;
pub use side_by_side::render;
pub use side_by_side::{Comparison, SHOWN, TEST, compare, compare_congestors};
pub use sides::{By, Side, sides};
pub use verdict::{Cell, Row, State, Verdict};

#[cfg(test)]
mod tests;
