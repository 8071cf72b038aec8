//! Figures by message size, as OSU's benchmarks and NCCL's tests print them: a table for each canary over each network, with a row
//! for each size.

use tailback_transport::Bytes;

use crate::kernel::Canary;
use crate::result::{ResultFile, Run, Test, distinct};
use crate::stats::Statistic;
use crate::text::Table;

/// One canary over one network, at every size.
#[allow(missing_docs)]
pub struct BySize<'a> {
    pub kernel: Canary,
    /// The network, where there are several.
    pub over: Option<String>,
    /// From the smallest size on.
    pub tests: Vec<&'a Test>,
}

/// All of them, network by network.
pub fn of(file: &ResultFile) -> Vec<BySize<'_>> {
    let networks = distinct(file.runs.iter().map(|run| run.transport.label()));
    let of = |network: &String, kernel: Canary| {
        let runs = file.runs.iter().filter(|run| run.transport.label() == *network);
        let mut tests: Vec<&Test> =
            runs.flat_map(|run: &Run| &run.tests).filter(|test| test.kernel == kernel).collect();
        tests.sort_by_key(|test| test.bytes);
        BySize { kernel, over: (networks.len() > 1).then(|| network.clone()), tests }
    };
    networks.iter().flat_map(|network| file.kernels().into_iter().map(move |kernel| of(network, kernel))).collect()
}

impl BySize<'_> {
    /// What stands over its table: the kernel, and the unit of all figures.
    pub fn title(&self) -> String {
        let over = self.over.as_ref().map(|network| format!(" over {network}")).unwrap_or_default();
        format!("{}{over}, in {}", self.kernel, self.kernel.info().direction.unit())
    }

    /// A row for each size.
    pub fn table(&self) -> Table {
        let collective = self.tests.iter().any(|test| test.collective.is_some());
        Table::of(&self.tests)
            .column("size", |test| Bytes(test.bytes as u64))
            .columns([Statistic::Avg, Statistic::P50, Statistic::P99], |table, of| {
                table.column(of.title(), |test| test.figure(of))
            })
            .column("worst", |test| test.extremes().1)
            .column_if(collective, "algbw", |test| Some(test.collective?.algorithm_mib_per_s))
            .column_if(collective, "busbw", |test| Some(test.collective?.bus_mib_per_s))
            .column("iterations", |test| test.summary.as_ref()?.iterations)
            .done()
    }
}
