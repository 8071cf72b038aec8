//! Stands in for `png.rs` in a binary without the feature: says so.

use super::plot::Plot;

/// Draws nothing.
pub struct Painter;

impl Painter {
    /// Refuses.
    pub fn new() -> Result<Self, String> {
        Err("this binary was built without PNG: build it with --features png, or use the SVG files of --plots".into())
    }

    /// Never called: there is no painter.
    pub fn paint(&self, _: &Plot) -> Result<Vec<u8>, String> {
        Self::new().map(|_| Vec::new())
    }
}
