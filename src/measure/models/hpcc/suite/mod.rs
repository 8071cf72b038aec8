//! Runs the tests, or says how long they would take, by the kernels and checks of `tailback_hpcc`.

mod estimate;
mod forms;
mod measure;
mod sizes;

pub use estimate::estimate;
pub use measure::measure;

/// Whether this build can.
///
/// # Errors
/// What it is to be built with.
pub fn check() -> Result<(), String> {
    Ok(())
}
