//! Whose fault the congestion is: MPI's impact beside the raw fabric's, on one system.
//!
//! The rules are in docs/methodology.md, section "Attribution". In short: what the least raw protocol suffers as well is
//! the network's part of MPI's impact, the rest the library's, with an interval over placements in which the least is
//! chosen anew in every draw. A share is withheld where the impact is too small or the interval too wide. Canaries and
//! congestors change transport together, so the library's part holds both what it costs a victim and what it changes in
//! the load.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Side;
use super::measured::same_placements;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::stats::{Design, RawCells, Scale, Shares, Statistic};
use crate::text::{Table, factor};

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
    /// The impact over MPI, by the headline.
    pub mpi: f64,
    /// The parts; or why there are none.
    pub shares: Result<Shares, String>,
    /// The raw run that suffers least, by name.
    pub reference: Option<String>,
}

/// What MPI's impact is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Attribution {
    /// The MPI run.
    pub mpi: String,
    /// Raw runs, the nearest first.
    pub distances: Vec<Distance>,
    /// The headline of every canary that all have.
    pub shares: Vec<Share>,
}

/// The attribution of the first MPI run among `sides`; nothing without one, or without a raw run to hold it against.
pub fn attribute(sides: &[Side<'_>]) -> Option<Attribution> {
    let is_mpi = |side: &&Side<'_>| side.run.transport.backend == "mpi";
    let mpi = sides.iter().find(is_mpi)?;
    let raw = sides.iter().filter(|side| !is_mpi(side));
    let mut near: Vec<(f64, &Side<'_>)> = raw.filter_map(|side| Some((distance(mpi, side)?, side))).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    near.first()?;
    let raw: Vec<&Side<'_>> = near.iter().map(|(_, side)| *side).collect();
    let shares = mpi.kernels().into_iter().filter_map(|kernel| share(mpi, &raw, kernel)).collect();
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

fn share(mpi: &Side<'_>, raw: &[&Side<'_>], kernel: Canary) -> Option<Share> {
    let factors = |side: &Side<'_>| side.run.factors(kernel, Statistic::HEADLINE);
    let cells = |side: &&Side<'_>| Some(RawCells { raw: factors(side)?, under_library: Vec::new() });
    let design = Design {
        library: factors(mpi)?,
        library_under_raw: Vec::new(),
        raw: raw.iter().map(cells).collect::<Option<Vec<_>>>()?,
    };
    let shares = if raw.iter().all(|side| same_placements(mpi, side)) {
        Shares::of(&design, Scale::Log, mpi.file.seed).map_err(|why| why.to_string())
    } else {
        Err("the runs were on different placements".into())
    };
    Some(Share {
        kernel,
        title: mpi.run.test(kernel, Phase::Loaded)?.title.clone(),
        mpi: mpi.run.impact(kernel, Statistic::HEADLINE)?.factor,
        reference: shares.as_ref().ok().map(|shares| raw[shares.reference].label.clone()),
        shares,
    })
}

impl Share {
    /// The finding in words.
    pub fn sentence(&self) -> String {
        let shares = match &self.shares {
            Err(why) => return format!("no share is given: {why}"),
            Ok(shares) => shares,
        };
        let reference = self.reference.as_deref().unwrap_or("raw");
        let network = shares.network;
        let part = format!(
            "what {reference} suffers as well is {:.0}% of it [{:.0}, {:.0}]",
            100.0 * network.share,
            100.0 * network.interval.low,
            100.0 * network.interval.high
        );
        match (shares.library.interval.low > 0.0, shares.library.interval.high < 0.0) {
            (true, _) => format!("{part}; the rest is consistent with the MPI library's doing"),
            (_, true) => format!("{part}; the MPI library softens the impact"),
            _ => format!("{part}; no share of the MPI library could be shown"),
        }
    }
}

impl Attribution {
    /// For a terminal.
    pub fn render(&self) -> String {
        let mut out = format!("Attribution of {}'s impact (rules: docs/methodology.md)\n", self.mpi);
        let mut table = Table::new(["test", "MPI impact", "network's share", "library's share"]);
        for share in &self.shares {
            let percent = |of: crate::stats::Share| {
                let [share, low, high] = [of.share, of.interval.low, of.interval.high].map(|part| 100.0 * part);
                format!("{share:.0}% [{low:.0}, {high:.0}]")
            };
            let cell = |of: fn(&Shares) -> crate::stats::Share| {
                share.shares.as_ref().map_or_else(|_| "-".into(), |shares| percent(of(shares)))
            };
            table.row([share.title.clone(), factor(share.mpi), cell(|of| of.network), cell(|of| of.library)]);
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
            [nearest, ..] => format!("MPI resembles {} most.", nearest.side),
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
        let files = system(20.0, 10.0, 12.0, 15.0);
        let found = attribute(&sides(&files)).unwrap();
        assert_eq!(found.mpi, "mpi");
        for share in &found.shares {
            let shares = share.shares.as_ref().unwrap();
            let expected = 10f64.ln() / 20f64.ln();
            assert!((shares.network.share - expected).abs() < 0.02, "{share:?}");
            assert_eq!(share.reference.as_deref(), Some("libfabric, eager"));
            assert!(share.sentence().contains("consistent with the MPI library's doing"), "{}", share.sentence());
        }
        assert!(found.render().contains("MPI resembles libfabric, get most"), "{}", found.render());
    }

    #[test]
    fn an_impact_too_small_to_divide_is_not_divided() {
        let files = system(1.2, 1.1, 1.1, 1.2);
        let found = attribute(&sides(&files)).unwrap();
        assert!(found.shares.iter().all(|share| share.sentence().starts_with("no share is given")), "{found:?}");
        assert!(found.render().contains(" -"), "{}", found.render());
    }

    #[test]
    fn a_library_that_softens_is_said_to() {
        let files = system(3.0, 12.0, 12.0, 30.0);
        let found = attribute(&sides(&files)).unwrap();
        let said: Vec<String> = found.shares.iter().map(Share::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("the MPI library softens the impact")), "{said:?}");
    }

    #[test]
    fn without_both_kinds_there_is_nothing_to_attribute() {
        for backend in ["mpi", "libfabric"] {
            let files = vec![(PathBuf::from("a.json"), synthetic::file(backend, None, 2.0))];
            assert!(attribute(&sides(&files)).is_none());
        }
    }
}
