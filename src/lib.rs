//! Tailback measures what congestion does to traffic that matters: canary kernels alone, then under load.
//!
//! The library exists for the binary, its tests and its benches; it makes no promise of a stable interface.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod assemble;
pub mod body;
pub mod calibration;
pub mod cli;
pub mod counters;
pub mod import;
pub mod job;
pub mod lab;
pub mod launch;
pub mod output;
pub mod report;
pub mod result;
pub mod text;

pub use tailback_measure::{backend, engine, input, kernel, layout, models, plan, stats, units};
