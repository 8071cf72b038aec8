//! Congestors of one file side by side: what each delivered alone and while each canary measured.

use super::figures::{Figure, Good};
use crate::kernel::Congestor;
use crate::result::{CongestorLoad, ResultFile, Run};

/// The congestors that a file measured, in the order of the registry.
pub(super) fn kinds(file: &ResultFile) -> Vec<Congestor> {
    let measured: Vec<Congestor> = file.runs.iter().flat_map(loads).map(|(_, load)| load.kernel).collect();
    Congestor::ALL.iter().copied().filter(|kernel| measured.contains(kernel)).collect()
}

/// What one kind did in every run.
pub(super) fn figures(file: &ResultFile, kernel: Congestor) -> Vec<Figure> {
    let several = file.runs.len() > 1;
    let mut all = Vec::new();
    for run in &file.runs {
        for (state, load) in loads(run).filter(|(_, load)| load.kernel == kernel) {
            let group = if several { format!("{}: {state}", run.label()) } else { state };
            let mut figure = |name: &str, unit, value| {
                let (group, name) = (group.clone(), name.to_owned());
                all.push(Figure { group, name, unit, value, interval: None, freedom: None, good: Good::More });
            };
            figure("delivered by all its ranks", "MiB/s", load.delivered_mib_per_s);
            if load.ranks > 0 {
                figure("delivered by a rank", "MiB/s", load.delivered_mib_per_s / load.ranks as f64);
            }
            if let Some(summary) = &load.summary {
                figure("one iteration, p50", "MiB/s/rank", summary.p50);
                figure("one iteration, p99", "MiB/s/rank", summary.p99);
            }
        }
    }
    all
}

fn loads(run: &Run) -> impl Iterator<Item = (String, &CongestorLoad)> {
    let alone = run.congestors.iter().map(|load| ("Congestors alone".to_owned(), load));
    let beside = run.tests.iter().flat_map(|test| {
        let state = format!("While {} measured", test.kernel.info().key);
        test.load.iter().map(move |load| (state.clone(), load))
    });
    alone.chain(beside)
}
