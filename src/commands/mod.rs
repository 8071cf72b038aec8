//! Commands that measure: the load test and its parts, and the studies; in the job this process belongs to, or started
//! on this machine.
//!
//! All of them go one way: a request, what rank 0 makes of it (`prepare`), ranks ([`start`], `local`), what they do (`body`), a
//! result (`result_assembler`), and its views (`show`).
//!
//! A command is a request of plain values. The command line makes them; so could anything else. Rank 0 reads files and
//! decides; the others are told, so a mistake is reported once, and ranks cannot disagree about the plan.

mod application;
mod body;
mod calibrate;
mod calibration_target;
mod checks;
mod dry_run;
mod enclosing_lab;
mod host_counters;
mod interrupt;
mod local;
mod mixes;
mod observers;
mod phase_socket;
mod placement_run;
mod ports;
mod prepare;
mod reduce_json;
mod request;
mod result_assembler;
mod runs;
mod show;
mod start;
mod study_kinds;
mod study_runner;
mod warnings;
mod watcher_overhead;
mod what_if;

pub use application::{check_pattern, guard};
pub use calibration_target::CalibrationSelection;
pub use checks::Checks;
pub use local::Place;
pub use request::{ControlSelection, CountersSelection, Output, Request, RunsOn, StudySelection};
pub use start::{start, start_in_lab};
pub use study_kinds::{ContentionStudy, Study};
pub use what_if::what_if;
