//! For tests: the [`conformance`] suite that defines what a backend is, and [`loopback`], a job of threads in one process.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod loopback;
