//! Makes results: from what was measured, counted and asked of the machine to what the file says.
//!
//! The types are those of [`crate::result`]; what makes them stands here, beside what it is made from.

mod activity;
mod burst;
mod control;
mod counters;
mod machine;
mod models;
mod ports;
mod run;
mod slow;
#[cfg(test)]
pub mod synthetic;
mod system;

#[cfg(test)]
pub(crate) use counters::MOST_DEVICES;
pub use ports::{DROPS, by_kind};
pub use run::{RunBuilder, placement, plain_placement};
pub use system::{environment, now_rfc3339};

/// The entry that `is` what is looked for, made if it is not there.
pub fn entry<T>(all: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(is).unwrap_or_else(|| {
        all.push(make());
        all.len() - 1
    });
    &mut all[at]
}
