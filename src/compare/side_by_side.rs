//! Every side beside the first: rows of figures, and what they say about network, library and protocol.

use serde::Serialize;

use super::attribution::{Attribution, attribute};
use super::compatible::{Difference, differences};
use super::figures::{FIGURES_TEST, FigureRow};
use super::measured::Measured;
use super::protocols::ProtocolFinding;
use super::sides::Side;
use super::verdict::{Cell, Row, State, Verdict};
use super::{congestors, figures, protocols};
use crate::result::ResultFile;
use crate::stats::Statistic;

/// Said wherever verdicts are shown.
pub const TEST: &str = "95% bootstrap interval of the ratio over batches of passes excludes 1";

/// Several sides, compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The sides' names, the first being what the others are compared with.
    pub sides: Vec<String>,
    /// What makes the sides less than comparable.
    pub differences: Vec<Difference>,
    /// The test behind the verdicts.
    pub test: &'static str,
    /// The figures of canaries.
    pub rows: Vec<Row>,
    /// Those of studies and congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRow>,
    /// What MPI's impact is made of, when MPI and raw runs of like jobs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What each raw backend's impact is made of, when it ran with several protocols in like jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolFinding>,
}

/// Compares every side with the first, for the kernels that the first and at least one other measured.
pub fn compare(sides: &[Side<'_>], statistics: &[Statistic]) -> Comparison {
    let mut rows = Vec::new();
    let (first, rest) = sides.split_first().expect("the command line asks for two sides");
    for kernel in first.kernels().into_iter().filter(|kernel| rest.iter().any(|side| side.kernels().contains(kernel))) {
        let measured: Vec<Measured> = sides.iter().map(|side| Measured::of(side, kernel)).collect();
        let Some(test) = first.run.tests.iter().find(|test| test.kernel == kernel) else { continue };
        for state in State::ALL {
            for &statistic in statistics {
                let cells: Vec<Cell> = measured
                    .iter()
                    .enumerate()
                    .map(|(at, side)| {
                        let ratio = (at > 0)
                            .then(|| side.ratio(&measured[0], test.direction, state, statistic, first.file.seed))
                            .flatten();
                        let verdict = ratio.as_ref().map(Verdict::of);
                        Cell { value: side.value(state, statistic), ratio, verdict }
                    })
                    .collect();
                if cells.iter().any(|cell| cell.value.is_some()) {
                    let unit = if state == State::Impact { "x".into() } else { test.unit.clone() };
                    rows.push(Row { kernel, title: test.title.clone(), state, statistic, unit, cells });
                }
            }
        }
    }
    let differences: Vec<Difference> = rest.iter().flat_map(|side| differences(first, side)).collect();
    // Blame needs like jobs: where plans or ranks differ, a remainder would be anybody's.
    let alike = differences.iter().all(|of| !of.fatal);
    let attribution = alike.then(|| attribute(sides)).flatten();
    let protocols = if alike { protocols::findings(sides) } else { Vec::new() };
    let names = sides.iter().map(|side| side.label.clone()).collect();
    let figures: Vec<_> = sides.iter().map(|side| figures::of_study(side.file)).collect();
    Comparison { sides: names, differences, test: TEST, rows, figures: figures::rows(&figures), attribution, protocols }
}

/// Compares the congestors of one file with each other; nothing when it has fewer than two.
pub fn compare_congestors(file: &ResultFile) -> Option<Comparison> {
    let kinds = congestors::kinds(file);
    let figures: Vec<_> = kinds.iter().map(|&kernel| congestors::figures(file, kernel)).collect();
    (kinds.len() > 1).then(|| Comparison {
        sides: kinds.iter().map(|kernel| kernel.info().key.to_owned()).collect(),
        differences: Vec::new(),
        test: FIGURES_TEST,
        rows: Vec::new(),
        figures: figures::rows(&figures),
        attribution: None,
        protocols: Vec::new(),
    })
}
