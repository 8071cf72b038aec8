//! A simulated network for Tailback: packets in queues on virtual time ([`net`]), for machines described in TOML files
//! ([`machine`]).

#![deny(unsafe_code)]

pub mod machine;
pub mod net;
pub mod rng;
