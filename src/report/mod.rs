//! Reports: one HTML file that needs nothing else, and its plots as files of their own.
//!
//! The page opens with the verdict and the plot that shows it. It asks nothing of a network, which its own policy forbids: plots
//! are inline SVG whose marks carry their values as titles and whose data is a link, light and dark follow the reader's system.
//! A small script sorts tables, shows values beside the pointer and unfolds what is printed; all else works without it.

mod contents;
mod figures;
mod first;
mod history;
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
pub use history::history;
pub use png::Painter;

#[cfg(test)]
mod tests;
