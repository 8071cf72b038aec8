//! Tailback: what congestion does to a network.
#![forbid(unsafe_code)]

pub mod lab;
