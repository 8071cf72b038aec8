//! Models of a network from the literature, with the measurements they are fitted to.
//!
//! Each submodule keeps its arithmetic apart from its measuring: predictions and fits are plain functions that need no
//! network. Formulas, sources and the places where a source contradicts itself are in `docs/models.md`.

pub mod beff;
pub mod contention;
pub mod hpcc;
pub mod map;
pub mod maxrate;
mod measure;

pub use measure::{Control, Repeated, StudyJob};
