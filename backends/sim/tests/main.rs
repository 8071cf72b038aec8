//! The tests of the simulator as its users see it, linked once.

mod common;
mod conformance;
mod conservation;
mod examples;
mod faults;
mod jobs;
mod limits;
mod theory;
