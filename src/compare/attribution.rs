//! Whose fault the congestion is: MPI's impact beside the raw fabric's, on one system.
//!
//! The rules are in docs/methodology.md, section "Attribution". In short: the raw run whose slowdown distributions are
//! nearest to MPI's is the reference; the network causes the reference's impact, and the library adds what MPI's impact
//! has beyond it. A difference is only called one when its interval excludes 1.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::measured::Measured;
use super::{Side, State, Verdict};
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::stats::{Direction, Factor, Statistic};
use crate::text::{Table, factor, with_interval};

/// Slowdowns are compared at so many evenly spaced quantiles.
const QUANTILES: u32 = 99;
/// Distances of two references this close do not tell which of them MPI resembles.
const CLOSE: f64 = 0.05;

/// How far a raw run's slowdowns are from MPI's.
#[derive(Clone, Debug, Serialize)]
pub struct Distance {
    /// The raw run.
    pub side: String,
    /// Mean distance of log10 slowdowns, over quantiles and canaries: 0 = alike, 0.3 = a factor of 2 apart.
    pub distance: f64,
}

/// One canary's impact, taken apart.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Share {
    pub kernel: Canary,
    pub title: String,
    pub mpi: f64,
    pub raw: f64,
    /// MPI's impact over the reference's.
    pub library: Factor,
    pub verdict: Verdict,
    /// The network's part of MPI's impact on a logarithmic scale, from 0 to 1; absent when MPI has no impact.
    pub network_share: Option<f64>,
}

/// What MPI's impact is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Attribution {
    /// The MPI run.
    pub mpi: String,
    /// Raw runs, the nearest first. It is the reference.
    pub distances: Vec<Distance>,
    /// The 99th percentile of every canary that both have.
    pub shares: Vec<Share>,
}

/// The attribution of the first MPI run among `sides`; nothing without one, or without a raw run to hold it against.
pub fn attribute(sides: &[Side<'_>]) -> Option<Attribution> {
    let is_mpi = |side: &&Side<'_>| side.run.transport.backend == "mpi";
    let mpi = sides.iter().find(is_mpi)?;
    let raw = sides.iter().filter(|side| !is_mpi(side));
    let mut near: Vec<(f64, &Side<'_>)> = raw.filter_map(|side| Some((distance(mpi, side)?, side))).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let reference = near.first()?.1;
    let shares = mpi.kernels().into_iter().filter_map(|kernel| share(mpi, reference, kernel)).collect();
    let distances = near.iter().map(|(distance, side)| Distance { side: side.label.clone(), distance: *distance });
    Some(Attribution { mpi: mpi.label.clone(), distances: distances.collect(), shares })
}

/// Mean over the canaries both have; nothing when they have none in common.
fn distance(mpi: &Side<'_>, raw: &Side<'_>) -> Option<f64> {
    let each: Vec<f64> = mpi
        .kernels()
        .into_iter()
        .filter_map(|kernel| {
            let (mine, theirs) = (slowdowns(mpi, kernel)?, slowdowns(raw, kernel)?);
            let apart = mine.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
            Some(apart.sum::<f64>() / mine.len() as f64)
        })
        .collect();
    (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
}

/// log10 of loaded samples over the isolated median, at every quantile. Samples grow as things get worse, for
/// bandwidths too, so no direction is needed.
fn slowdowns(side: &Side<'_>, kernel: Canary) -> Option<Vec<f64>> {
    let isolated = side.run.test(kernel, Phase::Isolated)?.samples()?;
    let loaded = side.run.test(kernel, Phase::Loaded)?.samples()?;
    let at = |of: &Histogram<u64>, quantile: f64| of.value_at_quantile(quantile).max(1) as f64;
    let median = at(&isolated, 0.5);
    let quantile = |step: u32| f64::from(step) / f64::from(QUANTILES + 1);
    Some((1..=QUANTILES).map(|step| (at(&loaded, quantile(step)) / median).log10()).collect())
}

fn share(mpi: &Side<'_>, raw: &Side<'_>, kernel: Canary) -> Option<Share> {
    let direction: Direction = kernel.info().direction;
    let (own, reference) = (Measured::of(mpi, kernel), Measured::of(raw, kernel));
    let library = own.ratio(&reference, direction, State::Impact, Statistic::P99, mpi.file.seed)?;
    let (whole, part) = (own.value(State::Impact, Statistic::P99)?, reference.value(State::Impact, Statistic::P99)?);
    Some(Share {
        kernel,
        title: mpi.run.test(kernel, Phase::Loaded)?.title.clone(),
        mpi: whole,
        raw: part,
        verdict: Verdict::of(&library),
        library,
        network_share: (whole > 1.0).then(|| (part.max(1.0).ln() / whole.ln()).clamp(0.0, 1.0)),
    })
}

impl Share {
    /// The finding in words.
    pub fn sentence(&self) -> String {
        let part =
            self.network_share.map_or_else(String::new, |share| format!(" ({:.0}% of the impact)", 100.0 * share));
        let network = format!("the network causes {}{part}", factor(self.raw));
        let times = factor(self.library.factor);
        match self.verdict {
            Verdict::Worse => format!("{network}; the MPI library makes that {times} worse"),
            Verdict::Better => format!("{network}; the MPI library softens it, to {times} of that"),
            Verdict::NotSignificant => format!("{network}; no share of the MPI library could be shown"),
            Verdict::Unknown => format!("{network}; MPI has {times} of that, but there is no interval to judge it by"),
        }
    }
}

impl Attribution {
    /// For a terminal.
    pub fn render(&self) -> String {
        let mut out = format!("Attribution of {}'s p99 impact (rules: docs/methodology.md)\n", self.mpi);
        let mut table = Table::new(["test", "raw impact", "MPI impact", "library adds", "", "network's share"]);
        for share in &self.shares {
            table.row([
                share.title.clone(),
                factor(share.raw),
                factor(share.mpi),
                with_interval(share.library),
                share.verdict.word().to_owned(),
                share.network_share.map_or_else(|| "-".into(), |part| format!("{:.0}%", 100.0 * part)),
            ]);
        }
        out += &table.render();
        for share in &self.shares {
            let _ = writeln!(out, "  {}: {}.", share.title, share.sentence());
        }
        out.push('\n');
        let mut table = Table::new(["raw run", "distance"]);
        self.distances.iter().for_each(|of| table.row([of.side.clone(), format!("{:.3}", of.distance)]));
        let _ = writeln!(out, "{}", self.resemblance());
        out + &table.render() + "\n"
    }

    /// Which raw run MPI resembles, in words.
    pub fn resemblance(&self) -> String {
        match &self.distances[..] {
            [nearest, next, ..] if next.distance - nearest.distance < CLOSE => {
                format!(
                    "MPI resembles {} and {} alike: their distances differ by less than {CLOSE}.",
                    nearest.side, next.side
                )
            }
            [nearest, ..] => format!("MPI resembles {} most; it is the reference above.", nearest.side),
            [] => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::sides::sides;
    use super::*;
    use crate::result::{ResultFile, synthetic};

    fn system(mpi: f64, eager: f64, put: f64, get: f64) -> Vec<(PathBuf, ResultFile)> {
        let mut file = synthetic::file("mpi", None, mpi);
        for (protocol, impact) in [("eager", eager), ("put", put), ("get", get)] {
            file.runs.extend(synthetic::file("libfabric", Some(protocol), impact).runs);
        }
        vec![("a.json".into(), file)]
    }

    #[test]
    fn a_library_that_doubles_the_impact_is_found_out() {
        let files = system(20.0, 1.5, 10.0, 2.0);
        let found = attribute(&sides(&files)).unwrap();
        assert_eq!((found.mpi.as_str(), found.distances[0].side.as_str()), ("mpi", "libfabric, put"));
        // Twice as slow everywhere is 0.301 of a decade.
        assert!((found.distances[0].distance - 0.301).abs() < 0.01, "{found:?}");
        for share in &found.shares {
            assert_eq!(share.verdict, Verdict::Worse, "{share:?}");
            assert!((share.library.factor - 2.0).abs() < 0.02, "{share:?}");
            let expected = 10f64.ln() / 20f64.ln();
            assert!((share.network_share.unwrap() - expected).abs() < 0.01, "{share:?}");
            assert!(share.sentence().contains("makes that 2.0"), "{}", share.sentence());
        }
        assert!(found.render().contains("MPI resembles libfabric, put most"), "{}", found.render());
    }

    #[test]
    fn a_library_that_adds_nothing_is_not_blamed() {
        let files = system(10.0, 1.5, 3.0, 10.0);
        let found = attribute(&sides(&files)).unwrap();
        assert_eq!(found.distances[0].side, "libfabric, get");
        assert!(found.distances[0].distance < 0.01);
        for share in &found.shares {
            assert_eq!(share.verdict, Verdict::NotSignificant);
            assert!((share.network_share.unwrap() - 1.0).abs() < 0.01, "{share:?}");
        }
    }

    #[test]
    fn a_calm_network_under_a_bad_library_has_no_share() {
        let files = system(10.0, 1.0, 1.0, 1.0);
        let found = attribute(&sides(&files)).unwrap();
        assert!(found.shares.iter().all(|share| share.network_share.unwrap() < 0.01), "{found:?}");
        assert!(found.resemblance().contains("alike"), "{}", found.resemblance());
    }

    #[test]
    fn a_library_that_softens_is_praised() {
        let files = system(3.0, 12.0, 12.0, 30.0);
        let found = attribute(&sides(&files)).unwrap();
        assert!(found.shares.iter().all(|share| share.verdict == Verdict::Better), "{found:?}");
    }

    #[test]
    fn without_both_kinds_there_is_nothing_to_attribute() {
        for backend in ["mpi", "libfabric"] {
            let files = vec![(PathBuf::from("a.json"), synthetic::file(backend, None, 2.0))];
            assert!(attribute(&sides(&files)).is_none());
        }
    }
}
