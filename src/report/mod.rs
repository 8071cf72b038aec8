//! Reports: one HTML file that needs nothing else, and its plots as files of their own.
//!
//! The page has no script and asks nothing of a network: plots are inline SVG whose marks carry their values as titles,
//! light and dark follow the reader's system, and every number in a plot is in a table as well.

mod contents;
mod page;
pub mod plot;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "png_absent.rs"]
mod png;
pub mod published;
mod studies;
mod tables;

pub use contents::Report;
pub use png::Painter;

#[cfg(test)]
mod tests;
