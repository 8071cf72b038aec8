//! Whose fault the congestion is: MPI's impact beside the raw fabric's, on one system.
//!
//! The rules are in docs/methodology.md, section "Attribution". In short: what the least raw protocol suffers as well is
//! the network's part of MPI's impact, the rest the library's, with an interval over placements in which the least is
//! chosen anew in every draw. A share is withheld where the impact is too small or the interval too wide. Where canaries
//! also ran over the one under congestors over the other (the 2x2 design), the library's part is taken apart into what it
//! costs a victim and what it changes in the load; else it holds both.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Side;
use super::verdict::same_placements;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::TransportFacts;
use crate::stats::{self, Design, RawCells, Scale, Shares};
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
    let one_network = || sides.iter().filter(|side| side.run.congestors_over.is_none());
    let mpi = one_network().find(|side| is_mpi(&side.run.transport))?;
    let raw = one_network().filter(|side| !is_mpi(&side.run.transport));
    let mut near: Vec<(f64, &Side<'_>)> = raw.filter_map(|side| Some((distance(mpi, side)?, side))).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    near.first()?;
    let raw: Vec<Raw<'_>> = near.iter().map(|(_, side)| Raw::of(side, sides)).collect();
    let shares = mpi.kernels().into_iter().filter_map(|kernel| share(mpi, &raw, kernel)).collect();
    let distances = near.iter().map(|(distance, side)| Distance { side: side.label.clone(), distance: *distance });
    Some(Attribution { mpi: mpi.label.clone(), distances: distances.collect(), shares })
}

fn is_mpi(transport: &TransportFacts) -> bool {
    transport.backend == "mpi"
}

/// A raw run with the mixed ones of the 2x2 design that belong to it, where they were made.
struct Raw<'s> {
    run: &'s Side<'s>,
    /// Its canaries under MPI's congestors.
    under_library: Option<&'s Side<'s>>,
    /// MPI's canaries under its congestors.
    over_library: Option<&'s Side<'s>>,
}

impl<'s> Raw<'s> {
    fn of(run: &'s Side<'s>, sides: &'s [Side<'s>]) -> Self {
        let own = run.run.transport.label();
        let mixed = |wanted: fn(&TransportFacts, &TransportFacts, &str) -> bool| {
            let fits = |side: &&Side<'_>| {
                let (canaries, congestors) = (&side.run.transport, side.run.congestors_over.as_ref());
                congestors.is_some_and(|congestors| wanted(canaries, congestors, &own))
            };
            sides.iter().find(fits)
        };
        Raw {
            run,
            under_library: mixed(|canaries, congestors, own| canaries.label() == own && is_mpi(congestors)),
            over_library: mixed(|canaries, congestors, own| is_mpi(canaries) && congestors.label() == own),
        }
    }

    fn sides(&self) -> impl Iterator<Item = &'s Side<'s>> {
        [Some(self.run), self.under_library, self.over_library].into_iter().flatten()
    }
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
    let isolated = side.run.test(kernel, LoadState::Isolated)?.samples()?;
    let loaded = side.run.test(kernel, LoadState::Loaded)?.samples()?;
    let at = |of: &Histogram<u64>, quantile: f64| of.value_at_quantile(quantile).max(1) as f64;
    let median = at(&isolated, 0.5);
    let quantile = |step: u32| f64::from(step) / f64::from(QUANTILES + 1);
    Some((1..=QUANTILES).map(|step| (at(&loaded, quantile(step)) / median).log10()).collect())
}

fn share(mpi: &Side<'_>, raw: &[Raw<'_>], kernel: Canary) -> Option<Share> {
    let factors = |side: &Side<'_>| side.run.factors(kernel, kernel.headline());
    let mixed = |side: Option<&Side<'_>>| side.and_then(factors).unwrap_or_default();
    let cells = |of: &Raw<'_>| {
        let (under_library, over_library) = (mixed(of.under_library), mixed(of.over_library));
        Some(RawCells { raw: factors(of.run)?, under_library, over_library })
    };
    let design = Design { library: factors(mpi)?, raw: raw.iter().map(cells).collect::<Option<Vec<_>>>()? };
    let shares = if raw.iter().flat_map(Raw::sides).all(|side| same_placements(mpi, side)) {
        Shares::of(&design, Scale::Log, mpi.file.seed).map_err(|why| why.to_string())
    } else {
        Err("the runs were on different placements".into())
    };
    Some(Share {
        kernel,
        title: mpi.run.test(kernel, LoadState::Loaded)?.title.clone(),
        mpi: mpi.run.impact(kernel, kernel.headline())?.factor,
        reference: shares.as_ref().ok().map(|shares| raw[shares.reference].run.label.clone()),
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
        let rest = match (shares.library.interval.low > 0.0, shares.library.interval.high < 0.0) {
            (true, _) => "the rest is consistent with the MPI library's doing",
            (_, true) => "the MPI library softens the impact",
            _ => "no share of the MPI library could be shown",
        };
        let sign = |share: stats::Share| match (share.interval.low > 0.0, share.interval.high < 0.0) {
            (true, _) => "more",
            (_, true) => "less",
            _ => "no difference shown",
        };
        match (shares.canary, shares.load) {
            (Some(canary), Some(load)) => format!(
                "{part}; {rest} (by what it costs the canary: {}; by what it makes of the load: {})",
                sign(canary),
                sign(load)
            ),
            _ => format!("{part}; {rest}"),
        }
    }

    /// Its parts: the network's, the library's, and what the latter is made of.
    fn parts(&self) -> [Option<String>; 4] {
        let percent = |of: stats::Share| {
            let [share, low, high] = [of.share, of.interval.low, of.interval.high].map(|part| 100.0 * part);
            format!("{share:.0}% [{low:.0}, {high:.0}]")
        };
        let Ok(shares) = &self.shares else { return [const { None }; 4] };
        [Some(shares.network), Some(shares.library), shares.canary, shares.load].map(|of| of.map(percent))
    }
}

impl Attribution {
    /// The parts of each canary's impact.
    pub fn shares_table(&self) -> Table {
        let parts = ["network's share", "library's share", "of it by canaries", "of it by congestors"];
        Table::of(&self.shares)
            .column("test", |share| &share.title)
            .column("MPI impact", |share| factor(share.mpi))
            .columns(parts.into_iter().enumerate(), |table, (at, part)| {
                table.column(part, |share| share.parts()[at].clone())
            })
            .done()
    }

    /// How near the raw runs are.
    pub fn distances_table(&self) -> Table {
        let three = |value| format!("{value:.3}");
        let rows = Table::of(&self.distances).column("raw run", |of| &of.side);
        rows.column("distance", |of| three(of.distance)).done()
    }

    /// For a terminal.
    pub fn render(&self) -> String {
        let mut out = format!("Attribution of {}'s impact (rules: docs/methodology.md)\n", self.mpi);
        out += &self.shares_table().text();
        for share in &self.shares {
            let _ = writeln!(out, "  {}: {}.", share.title, share.sentence());
        }
        let _ = writeln!(out, "\n{}", self.resemblance());
        out + &self.distances_table().text() + "\n"
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
    use crate::assemble::synthetic;
    use crate::result::ResultFile;

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
    fn the_mixed_runs_tell_what_the_library_costs_a_victim_from_what_it_makes_of_the_load() {
        let mut files = system(20.0, 10.0, 12.0, 15.0);
        assert!(attribute(&sides(&files)).unwrap().shares.iter().all(|of| of.parts()[2].is_none()));
        // MPI canaries suffer twice as much under whatever load; MPI's load is that of the raw congestors.
        let over = |backend, protocol| synthetic::file(backend, protocol, 1.0).runs[0].transport.clone();
        let mut mixed = |backend, protocol, impact, congestors| {
            let mut run = synthetic::file(backend, protocol, impact).runs.remove(0);
            run.congestors_over = Some(congestors);
            files[0].1.runs.push(run);
        };
        mixed("mpi", None, 20.0, over("libfabric", Some("eager")));
        mixed("libfabric", Some("eager"), 10.0, over("mpi", None));
        // Of a protocol that is not the reference, and so of no account.
        mixed("libfabric", Some("put"), 90.0, over("mpi", None));
        let found = attribute(&sides(&files)).unwrap();
        assert_eq!(found.distances.len(), 3, "mixed runs are no references: {found:?}");
        for share in &found.shares {
            let shares = share.shares.as_ref().unwrap();
            let (canary, load) = (shares.canary.unwrap(), shares.load.unwrap());
            assert!((canary.share - shares.library.share).abs() < 0.02 && load.share.abs() < 0.02, "{share:?}");
            let said = share.sentence();
            assert!(said.contains("costs the canary: more; by what it makes of the load: no difference"), "{said}");
        }
        assert!(found.render().contains("of it by congestors"), "{}", found.render());
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
