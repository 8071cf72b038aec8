//! What every job has, whatever is measured in it: the request, what rank 0 makes of it (`prepare`), who hears of its phases,
//! the result file (`result_assembler`) and its views (`show`).
//!
//! A request is plain values. The command line makes them; so could anything else. Rank 0 reads files and decides; the
//! others are told, so a mistake is reported once, and ranks cannot disagree about the plan.

mod calibration_target;
mod host_counters;
mod interrupt;
mod journal;
mod locate_selection;
mod map_study;
mod observers;
mod pair;
mod port_counters;
mod prepare;
mod reduce_json;
mod request;
mod result_assembler;
mod runs_on;
mod scratch;
mod seed;
mod show;
mod study;
mod topology;
mod tune_selection;

pub use calibration_target::CalibrationSelection;
pub(crate) use interrupt::flag as interrupt_flag;
pub(crate) use journal::{FinishedRun, Journal, Place};
pub use locate_selection::{LocateSelection, SuspectsLimit};
pub(crate) use map_study::MapPlan;
pub use map_study::{KnownMap, MapStudy};
pub(crate) use observers::{Heard, Observers, PHASES_VARIABLE, listen};
pub(crate) use port_counters::{EnclosingLab, Recording};
pub(crate) use prepare::{Mix, Prepared, Session};
pub(crate) use reduce_json::{WatcherOverhead, activity, gather, memory, tell};
pub(crate) use request::Decision;
pub use request::{Checks, Colors, ControlSelection, CountersSelection, LocalRanks, Output, Request, StudySelection};
pub(crate) use result_assembler::{ResultAssembler, RunConfig, RunOutcome};
pub use runs_on::RunsOn;
pub(crate) use scratch::{Scratch, unique_name};
pub use seed::Seed;
pub use show::with_result_file;
pub(crate) use show::{RESULT_VARIABLE, handed_over, show};
pub use study::{ContentionStudy, Study};
pub use topology::GroupsFrom;
pub(crate) use tune_selection::COMMAND_TIME;
pub use tune_selection::TuneSelection;
