//! Results side by side: figures of every side, how each differs from the first, with a confidence interval and a
//! verdict.
//!
//! What decides is the time that load adds. The test behind a verdict is over jobs, which are what is independent; one job
//! a side is shown and never marked (docs/methodology.md).

mod aggressors;
mod attribution;
mod compatible;
mod conditions;
mod counters;
mod figures;
mod jobs;
mod protocols;
mod side_by_side;
pub mod sides;
mod variation;
mod verdict;

pub use aggressors::{AGGRESSORS_TITLE, Aggressors, Victim};
pub use attribution::{Attribution, attribute};
pub use compatible::{Aspect, Difference, differences};
pub use conditions::{CONDITIONS_TITLE, ConditionRow, conditions_table};
pub use counters::{COUNTERS_TITLE, CounterCell, CounterComparison, counters_table};
pub use figures::{FIGURES_TEST, Figure as StudyFigure, FigureRow, Good, study_figures};
pub use jobs::{ComponentRow, JobSet};
pub use protocols::ProtocolFinding;
pub use side_by_side::render;
pub use side_by_side::{COMPONENTS_TITLE, Comparison, SHOWN, TEST, compare, compare_congestors, compare_jobs};
pub use sides::{By, Side, sides};
pub use variation::{VARIATION_TITLE, VariationRow, repeated, repeats, variation, variation_of, variation_table};
pub use verdict::{Cell, Change, Row, State, Verdict};

#[cfg(test)]
mod tests;
