//! What a report is made of: its files, and the plots drawn of them.

use std::path::PathBuf;

use super::plot::Plot;
use super::studies::Study;
use super::{plot, published, studies};
use crate::analysis::compare::sides::file_names;
use crate::analysis::compare::{Aggressors, Side, sides};
use crate::analysis::relative;
use crate::kernel::Canary;
use crate::output::by_size;
use crate::result::ResultFile;

/// Counters that are shown by condition.
const MOST_CONDITIONS: usize = 12;

/// What a report is made of.
pub struct Report<'a> {
    /// Every run of every file.
    pub(super) sides: Vec<Side<'a>>,
    pub(super) files: &'a [(PathBuf, ResultFile)],
    /// What studies found, by file.
    pub(super) found: Vec<Vec<Study<'a>>>,
    /// Whether published systems are shown beside the results.
    pub(super) published: bool,
}

impl<'a> Report<'a> {
    /// A report on `files`.
    pub fn new(files: &'a [(PathBuf, ResultFile)], published: bool) -> Self {
        let found = file_names(files).iter().zip(files).map(|(name, (_, file))| Study::all(name, file)).collect();
        Report { sides: sides(files), files, found, published }
    }

    /// Every plot of the page.
    pub fn plots(&self) -> Vec<Plot> {
        let mut plots: Vec<Plot> = self.overview().into_iter().collect();
        plots.extend(self.sizes());
        plots.extend(self.sweeps());
        plots.extend(self.bursts());
        plots.extend(self.impacts());
        plots.extend(self.heat());
        plots.extend(self.repetitions());
        plots.extend(self.distributions());
        plots.extend(self.percentiles());
        plots.extend(self.loads());
        plots.extend(self.ports());
        plots.extend(self.counters());
        plots.extend(self.conditions());
        plots.extend(self.queues());
        plots.extend(self.node_maps());
        plots.extend(self.studies());
        plots
    }

    pub(super) fn kernels(&self) -> Vec<Canary> {
        let mut kernels: Vec<Canary> = self.sides.iter().flat_map(Side::kernels).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    }

    /// The ranks per port of all of its files, where they have one number.
    pub(super) fn ranks_per_port(&self) -> Option<f64> {
        let mut all = self.files.iter().map(|(_, file)| file.ranks_per_port());
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    /// The impact on every test.
    pub(super) fn overview(&self) -> Option<Plot> {
        plot::overview(&self.sides)
    }

    pub(super) fn impacts(&self) -> Vec<Plot> {
        let systems = if self.published { published::beside(self.ranks_per_port()) } else { Vec::new() };
        self.kernels().into_iter().filter_map(|kernel| plot::impact(kernel, &self.sides, &systems)).collect()
    }

    /// The curves of sweeps.
    pub(super) fn sweeps(&self) -> Vec<Plot> {
        self.named().flat_map(|(name, file)| plot::sweep(&name, file)).collect()
    }

    /// Latency folded over bursts of load.
    pub(super) fn bursts(&self) -> Vec<Plot> {
        self.named().flat_map(|(name, file)| plot::bursts(&name, file)).collect()
    }

    /// Victims and aggressors, where there are several loads.
    pub(super) fn heat(&self) -> Option<Plot> {
        Aggressors::of(&self.sides).map(|of| plot::heat(&of))
    }

    /// Every canary over message sizes, where they took turns.
    pub(super) fn sizes(&self) -> Vec<Plot> {
        let by_size = self.named().filter(|(_, file)| file.is_by_size());
        let of = |(name, file): (String, &ResultFile)| -> Vec<Plot> {
            by_size::of(file).iter().filter_map(|of| plot::sizes(&name, of)).collect()
        };
        by_size.flat_map(of).collect()
    }

    fn per_test(&self, draw: impl Fn(&Side<'_>, Canary) -> Option<Plot>) -> Vec<Plot> {
        let draw = &draw;
        let tests = self.kernels().into_iter().flat_map(|kernel| self.sides.iter().map(move |side| (side, kernel)));
        tests.filter_map(|(side, kernel)| draw(side, kernel)).collect()
    }

    /// All runs on one axis, or the only one.
    pub(super) fn distributions(&self) -> Vec<Plot> {
        let draw = |kernel: Canary| match plot::panels(&self.sides, kernel) {
            none if none.is_empty() => self.sides.iter().filter_map(|side| plot::distribution(side, kernel)).collect(),
            panels => panels,
        };
        self.kernels().into_iter().flat_map(draw).collect()
    }

    pub(super) fn repetitions(&self) -> Vec<Plot> {
        self.per_test(plot::repetitions)
    }

    pub(super) fn percentiles(&self) -> Vec<Plot> {
        self.per_test(plot::percentiles)
    }

    pub(super) fn loads(&self) -> Vec<Plot> {
        self.sides.iter().filter_map(plot::load).collect()
    }

    /// Every file with its name.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, &'a ResultFile)> {
        file_names(self.files).into_iter().zip(self.files.iter().map(|(_, file)| file))
    }

    /// A file's part of what a page can hold of something, within limits: a page on many files stays small.
    pub(super) fn each(&self, whole: usize, least: usize, most: usize) -> usize {
        (whole / self.files.len().max(1)).clamp(least, most)
    }

    /// One map for each file: its runs share the placement.
    pub(super) fn node_maps(&self) -> Vec<Plot> {
        self.named().filter_map(|(name, file)| plot::nodes(&name, file)).collect()
    }

    /// What the ports of an emulated or simulated network did: both count for a whole file.
    pub(super) fn ports(&self) -> Vec<Plot> {
        let dots = self.each(160, 6, 40);
        self.named()
            .flat_map(|(name, file)| {
                let lab = file.lab.iter().map(|lab| &lab.phases);
                let phases = lab.chain(file.machine.iter().map(|machine| &machine.phases));
                phases.flat_map(|phases| plot::ports(&name, phases, dots)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// What the nodes' own devices counted.
    pub(super) fn counters(&self) -> Vec<Plot> {
        let most = (self.each(24, 1, 6), self.each(160, 6, 40));
        let counted = self.named().filter_map(|(name, file)| Some((name, file.counters.as_ref()?)));
        counted.flat_map(|(name, counters)| plot::devices(&name, counters, most)).collect()
    }

    /// Counters of all files by condition, on one scale.
    pub(super) fn conditions(&self) -> Vec<Plot> {
        let mut counters = relative(&self.sides);
        counters.truncate(MOST_CONDITIONS);
        plot::conditions(&counters, (160 / self.sides.len().max(1)).clamp(6, 40))
    }

    /// The queues of simulated networks over time, and who was crowded at the worst moment.
    pub(super) fn queues(&self) -> Vec<Plot> {
        let machines = self.named().filter_map(|(name, file)| Some((name, file.machine.as_ref()?)));
        machines
            .flat_map(|(name, machine)| [plot::queues(&name, machine), plot::trees(&name, machine)].concat())
            .collect()
    }

    /// Plots of studies but the one that the page begins with, where it begins with one.
    pub(super) fn further_studies(&self) -> Vec<Plot> {
        let first = usize::from(self.overview().is_none());
        self.studies().into_iter().skip(first).collect()
    }

    /// Every plot of studies.
    pub(super) fn studies(&self) -> Vec<Plot> {
        let found = || self.found.iter().flatten();
        let mut all: Vec<Plot> = found().flat_map(studies::plots).collect();
        let system = |of: &Study<'a>| Some((of.name.clone(), of.models.hpcc.as_ref()?, of.ranks));
        let systems: Vec<plot::System<'_>> = found().filter_map(system).collect();
        let published = if self.published { published::balances() } else { Vec::new() };
        all.extend(plot::kiviat(&systems));
        all.extend(plot::balance(&systems, &published));
        all.extend(plot::bands(&systems, &published));
        all
    }
}
