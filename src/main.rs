//! Tailback's command line.
#![forbid(unsafe_code)]

fn main() {}
