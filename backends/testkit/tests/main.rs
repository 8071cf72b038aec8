//! The tests of the conformance suite, over the loopback, linked once.

mod broken;
mod examples;
mod loopback;
