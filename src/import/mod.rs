//! Results of other programs: the tables that GPCNeT prints, and HPC Challenge's output file.
//!
//! What a program does not say is not made up: an imported result names its source and notes what is not known.

mod gpcnet;
mod hpcc;
mod unknown;

pub use gpcnet::{ImportError, gpcnet};
pub use hpcc::{HpccError, hpcc};
