//! Tailback measures what congestion does to traffic that matters: canary kernels alone, then under load.
//!
//! The library exists for the binary, its tests and its benches; it makes no promise of a stable interface.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod assemble;
pub mod backend;
pub mod body;
pub mod calibration;
pub mod cli;
pub mod counters;
pub mod engine;
pub mod import;
pub mod input;
pub mod job;
pub mod kernel;
pub mod lab;
pub mod launch;
pub mod layout;
pub mod models;
pub mod output;
pub mod plan;
pub mod report;
pub mod result;
pub mod text;

pub use tailback_stats as stats;
pub use tailback_transport::units;
