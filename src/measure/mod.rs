//! What is measured and how: kernels, the plan of a run, who measures and who loads, the measuring engine, the models and
//! their studies, and the backends that all of it runs over.
//!
//! Nothing here knows of result files, reports or the command line's commands.

#![forbid(unsafe_code)]

pub mod backend;
pub mod engine;
pub mod input;
pub mod kernel;
pub mod layout;
pub mod models;
pub mod plan;

pub use tailback_stats as stats;
pub use tailback_transport::units;
