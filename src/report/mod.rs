//! Reports: one HTML file that needs nothing else, and its plots as files of their own.
//!
//! The page has no script and asks nothing of a network: plots are inline SVG whose marks carry their values as titles,
//! light and dark follow the reader's system, and every number in a plot is in a table as well.

mod html;
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

use std::path::PathBuf;

use crate::compare::sides::file_names;
use crate::compare::{Side, sides};
use crate::kernel::Canary;
use crate::result::ResultFile;

use plot::Plot;
pub use png::Painter;

/// What a report is made of.
pub struct Report<'a> {
    /// Every run of every file.
    sides: Vec<Side<'a>>,
    files: &'a [(PathBuf, ResultFile)],
    /// Whether published systems are shown beside the results.
    published: bool,
}

impl<'a> Report<'a> {
    /// A report on `files`.
    pub fn new(files: &'a [(PathBuf, ResultFile)], published: bool) -> Self {
        Report { sides: sides(files), files, published }
    }

    /// The page.
    pub fn html(&self) -> String {
        page::render(self)
    }

    /// Every plot of the page.
    pub fn plots(&self) -> Vec<Plot> {
        let mut plots = self.impacts();
        plots.extend(self.distributions());
        plots.extend(self.percentiles());
        plots.extend(self.loads());
        plots.extend(self.ports());
        plots.extend(self.node_maps());
        plots.extend(self.studies());
        plots
    }

    fn kernels(&self) -> Vec<Canary> {
        let mut kernels: Vec<Canary> = self.sides.iter().flat_map(Side::kernels).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    }

    fn impacts(&self) -> Vec<Plot> {
        let systems = if self.published { published::table() } else { Vec::new() };
        self.kernels().into_iter().filter_map(|kernel| plot::impact(kernel, &self.sides, &systems)).collect()
    }

    fn per_test(&self, draw: impl Fn(&Side<'_>, Canary) -> Option<Plot>) -> Vec<Plot> {
        let draw = &draw;
        let tests = self.kernels().into_iter().flat_map(|kernel| self.sides.iter().map(move |side| (side, kernel)));
        tests.filter_map(|(side, kernel)| draw(side, kernel)).collect()
    }

    fn distributions(&self) -> Vec<Plot> {
        self.per_test(plot::distribution)
    }

    fn percentiles(&self) -> Vec<Plot> {
        self.per_test(plot::percentiles)
    }

    fn loads(&self) -> Vec<Plot> {
        self.sides.iter().filter_map(plot::load).collect()
    }

    /// Every file with its name.
    fn named(&self) -> impl Iterator<Item = (String, &'a ResultFile)> {
        file_names(self.files).into_iter().zip(self.files.iter().map(|(_, file)| file))
    }

    /// A file's part of what a page can hold of something, within limits: a page on many files stays small.
    fn each(&self, whole: usize, least: usize, most: usize) -> usize {
        (whole / self.files.len().max(1)).clamp(least, most)
    }

    /// One map for each file: its runs share the placement.
    fn node_maps(&self) -> Vec<Plot> {
        self.named().filter_map(|(name, file)| plot::nodes(&name, file)).collect()
    }

    /// What the ports of an emulated network did: the lab counts for a whole file.
    fn ports(&self) -> Vec<Plot> {
        let dots = self.each(160, 6, 40);
        self.named()
            .filter_map(|(name, file)| Some(plot::counters(&name, file.lab.as_ref()?, dots)))
            .flatten()
            .collect()
    }

    fn studies(&self) -> Vec<Plot> {
        self.named().flat_map(|(name, file)| studies::plots(&name, file)).collect()
    }
}

#[cfg(test)]
mod tests;
