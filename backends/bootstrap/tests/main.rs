//! The integration tests, linked once: jobs whose ranks are threads, and jobs whose ranks are processes.

mod interrupts;
mod job;
mod join;
mod processes;
mod strangers;
