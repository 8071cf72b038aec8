//! What a rank finds out about the machine it runs on, and how it uses it: clock, cores, memory pages, near devices, and how
//! it waits.

#![forbid(unsafe_code)]

mod activity;
mod clock;
mod cores;
pub mod near;
pub mod pages;
mod post;
mod process_stat;
mod seats;
mod wait;

pub use activity::{Activity, ActivitySince};
pub use clock::Clock;
pub use process_stat::ProcessStat;
pub use wait::{Idle, Rest, WaitMode, nap};
