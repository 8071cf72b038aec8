//! A program of the user's as a canary: started anew for each repetition by the first victim, alone or under load.
//!
//! The first victim starts it rather than rank 0 or whoever started the job: that process is on a node which belongs to
//! the program anyway, so launchers add no traffic to other nodes, and `mpirun` and `srun` work from any node of an
//! allocation. A guard process stands between, so that nothing is left of the program however a rank ends.

mod command;
mod guard;
mod repetition;

pub(super) use command::Victims;
pub use guard::guard;
pub(super) use repetition::Repetitions;
pub use repetition::check_pattern;
