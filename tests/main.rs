//! All tests of the whole program, linked once: a file is a module here, and the architecture test fails for one that is
//! not. `cargo test --test it architecture::` runs those of one module.
//!
//! `lab_traffic` has a program of its own, which starts itself on the lab's hosts and so cannot have the usual `main`.

mod app;
mod architecture;
mod burst;
mod calibrate;
mod common;
mod counters;
mod coverage;
mod failures;
mod gpcnet;
mod help;
mod history;
mod hostile;
mod hpcc;
mod import;
mod interrupts;
mod jobs;
mod lab;
mod launcher;
mod manual;
mod map;
mod measured;
mod memory;
mod metrics;
mod mistakes;
mod models;
mod patterns;
mod protocols;
mod readme;
mod report;
mod results;
mod seats;
mod sim;
mod sweep;
mod tune;
mod wild;
