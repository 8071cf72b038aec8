//! Tailback measures what congestion does to traffic that matters: canary kernels alone, then under load.
//!
//! The library exists for the binary, its tests and its benches; it makes no promise of a stable interface.

#![forbid(unsafe_code)]

pub mod kernel;
pub mod layout;
pub mod stats;
