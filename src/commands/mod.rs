//! Commands that measure: the load test and its parts, and the studies; in the job this process belongs to, or started
//! on this machine.
//!
//! A command is a request of plain values. The command line makes them; so could anything else. Rank 0 reads files and
//! decides; the others are told, so a mistake is reported once, and ranks cannot disagree about the plan.

mod application;
mod around;
mod calibrate;
mod checks;
mod counting;
mod dry_run;
mod findings;
mod interrupt;
mod load;
mod local;
mod measure;
mod mixes;
mod observers;
mod phases;
mod ports;
mod prepare;
mod recorded;
mod remarks;
mod request;
mod runs;
mod show;
mod start;
mod studies;
mod study;
mod sums;
mod watching;
mod what_if;

pub use application::{check_pattern, guard};
pub use checks::Checks;
pub use local::Place;
pub use recorded::CalibrationWish;
pub use request::{ControlWish, CountersWish, Output, Request, RunsOn};
pub use start::{start, start_in_lab, start_study};
pub use studies::{ContentionStudy, Study};
pub use study::StudyRequest;
pub use what_if::what_if;
