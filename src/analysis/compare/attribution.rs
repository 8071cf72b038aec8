//! Whose fault the congestion is: MPI's impact beside the raw fabric's, on one system.
//!
//! The rules are in docs/methodology.md, section "Attribution". In short: of the time that load adds over MPI, what it adds
//! to the raw protocol that suffers least is the network's part, with an interval over placements; that protocol is chosen
//! on other placements than those it is judged on. Whoever has more than half for certain is named: network, library or
//! protocol. Where canaries also ran over the one under congestors over the other (the 2x2 design), the library's part is
//! taken apart into what it costs a victim and what it changes in the load; else it holds both.

use std::fmt::Write as _;

use serde::Serialize;

use super::Side;
use super::verdict::same_placements;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::{TransportFacts, distinct};
use crate::stats::{self, Added, Blame, Design, RawCells, Shares};
use crate::text::{Table, figure, share_within, within};

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

/// What load adds to one canary, taken apart.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Share {
    pub kernel: Canary,
    pub title: String,
    /// What load adds over MPI to the headline's figure, in us, or us per MiB for a bandwidth.
    pub added_us: Option<Added>,
    /// Whose doing most of it is.
    pub blame: Blame,
    /// The parts; or why there are none.
    pub shares: Result<Shares, String>,
    /// The raw run that suffers least, by name.
    pub reference: Option<String>,
}

/// What the time that load adds over MPI is made of.
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
    let median = stats::quantile_ns(&isolated, 0.5).max(1.0);
    let quantile = |step: u32| f64::from(step) / f64::from(QUANTILES + 1);
    Some((1..=QUANTILES).map(|step| (stats::quantile_ns(&loaded, quantile(step)).max(1.0) / median).log10()).collect())
}

fn share(mpi: &Side<'_>, raw: &[Raw<'_>], kernel: Canary) -> Option<Share> {
    let added = |side: &Side<'_>| side.run.each_added_ns(kernel, kernel.headline());
    let sound = |side: &Side<'_>| side.run.judgement(kernel).is_reportable() && same_placements(mpi, side);
    // Mixed runs take the library's part apart, no more: without them there is still what the two others say.
    let mixed = |side: Option<&Side<'_>>| side.filter(|side| sound(side)).and_then(added).unwrap_or_default();
    let cells = |of: &Raw<'_>| {
        let (under_library, over_library) = (mixed(of.under_library), mixed(of.over_library));
        Some(RawCells { raw: added(of.run)?, under_library, over_library })
    };
    let design = Design { library: added(mpi)?, raw: raw.iter().map(cells).collect::<Option<Vec<_>>>()? };
    let all = || std::iter::once(mpi).chain(raw.iter().map(|of| of.run));
    let why_not = |side: &Side<'_>| Some(format!("{}: {}", side.label, side.run.judgement(kernel).why_not()?));
    let shares = match all().find_map(why_not) {
        Some(why) => Err(format!("not reportable: {why}")),
        None if all().all(|side| same_placements(mpi, side)) => Shares::of(&design).map_err(|why| why.to_string()),
        None => Err("the runs were on different placements".into()),
    };
    Some(Share {
        kernel,
        title: mpi.run.test(kernel, LoadState::Loaded)?.title.clone(),
        added_us: mpi.run.added_ns(kernel, kernel.headline()).map(|of| of.scaled(1e-3)),
        blame: shares.as_ref().map_or(Blame::CannotTell, |shares| shares.blame),
        reference: shares.as_ref().ok().map(|shares| raw[shares.reference].run.label.clone()),
        shares,
    })
}

impl Share {
    /// The answer with the shares of network and library, in a few words.
    fn short(&self) -> String {
        match &self.shares {
            Ok(shares) => {
                let (network, library) = (percent(shares.network), percent(shares.library));
                format!("{} (network {network}, library {library})", shares.blame.word())
            }
            // The reasons of what is not reportable are many; tables have them.
            Err(why) => format!("cannot tell ({})", why.split(':').next().unwrap_or_default()),
        }
    }

    /// The answer in words.
    pub fn sentence(&self) -> String {
        let shares = match &self.shares {
            Err(why) => return format!("cannot tell: {why}"),
            Ok(shares) => shares,
        };
        let reference = self.reference.as_deref().unwrap_or("raw");
        let part = format!("{}: load adds {} of it to {reference} as well", self.blame.word(), percent(shares.network));
        let softens = shares.library.interval.high < 0.0;
        let rest = match self.blame {
            _ if softens => "the MPI library softens the impact",
            Blame::Protocol => "most of the rest it also adds to another raw protocol",
            _ if shares.library.is_shown() => "the rest is consistent with the MPI library's doing",
            _ => "no part of the MPI library was shown",
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
        let Ok(shares) = &self.shares else { return [const { None }; 4] };
        [Some(shares.network), Some(shares.library), shares.canary, shares.load].map(|of| of.map(percent))
    }
}

fn percent(of: stats::Share) -> String {
    share_within(of.share, of.interval)
}

impl Attribution {
    /// The answer in a line: what most of the added time of every test comes from, as far as that can be told.
    pub fn verdict(&self) -> String {
        let told = distinct(self.shares.iter().map(|of| of.blame).filter(|blame| *blame != Blame::CannotTell));
        let word = match told[..] {
            [] => "CANNOT TELL".to_owned(),
            [blame] => blame.word().to_uppercase(),
            _ => "DIFFERS BY TEST".to_owned(),
        };
        format!("{word}. {}", self.line())
    }

    /// Whose doing it is, canary by canary, in a line.
    pub fn line(&self) -> String {
        let each: Vec<String> = self.shares.iter().map(|of| format!("{}: {}", of.kernel, of.short())).collect();
        let beyond = match self.is_beyond_all() {
            true => ". Above 100%: load adds more time to the raw network than to MPI",
            false => "",
        };
        format!("Where the time added over MPI comes from: {}{beyond}", each.join("; "))
    }

    /// Whether load adds more to raw traffic than to the library's, by any canary.
    fn is_beyond_all(&self) -> bool {
        self.shares.iter().any(|of| of.shares.as_ref().is_ok_and(|shares| shares.network.share > 1.0))
    }

    /// The parts of what load adds to each canary.
    pub fn shares_table(&self) -> Table {
        let parts = ["network's share", "library's share", "of it by canaries", "of it by congestors"];
        let added = |share: &Share| {
            let unit = share.kernel.info().direction.added_unit();
            share.added_us.map(|of| format!("{} {unit}", within(of.value, of.interval, figure)))
        };
        Table::of(&self.shares)
            .column("test", |share| &share.title)
            .column("added over MPI", |share| added(share))
            .column("comes from", |share| share.blame.word())
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
        let mut out =
            format!("Attribution of the time that load adds over {} (rules: docs/methodology.md)\n", self.mpi);
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
    use crate::result::{ResultFile, Run};

    fn system(mpi: f64, eager: f64, put: f64, get: f64) -> Vec<(PathBuf, ResultFile)> {
        let mut file = synthetic::file("mpi", None, mpi);
        for (protocol, impact) in [("eager", eager), ("put", put), ("get", get)] {
            file.runs.extend(synthetic::file("libfabric", Some(protocol), impact).runs);
        }
        vec![("a.json".into(), file)]
    }

    #[test]
    fn a_library_that_adds_most_of_the_time_is_found_out() {
        let files = system(30.0, 10.0, 11.0, 13.0);
        let found = attribute(&sides(&files)).unwrap();
        assert_eq!(found.mpi, "mpi");
        for share in &found.shares {
            let shares = share.shares.as_ref().unwrap();
            assert!((shares.network.share - 9.0 / 29.0).abs() < 0.02, "{share:?}");
            assert_eq!((share.reference.as_deref(), share.blame), (Some("libfabric, eager"), Blame::Library));
            assert!(share.sentence().contains("consistent with the MPI library's doing"), "{}", share.sentence());
        }
        assert!(found.render().contains("MPI resembles libfabric, get most"), "{}", found.render());
    }

    fn over(backend: &str, protocol: Option<&str>) -> TransportFacts {
        synthetic::file(backend, protocol, 1.0).runs[0].transport.clone()
    }

    /// A run whose congestors went over another network.
    fn mixed_run(backend: &str, protocol: Option<&str>, impact: f64, congestors: TransportFacts) -> Run {
        Run { congestors_over: Some(congestors), ..synthetic::file(backend, protocol, impact).runs.remove(0) }
    }

    #[test]
    fn the_mixed_runs_tell_what_the_library_costs_a_victim_from_what_it_makes_of_the_load() {
        let mut files = system(20.0, 10.0, 12.0, 15.0);
        assert!(attribute(&sides(&files)).unwrap().shares.iter().all(|of| of.parts()[2].is_none()));
        // MPI canaries suffer twice as much under whatever load; MPI's load is that of the raw congestors.
        let mut mixed = |backend, protocol, impact, congestors| {
            files[0].1.runs.push(mixed_run(backend, protocol, impact, congestors));
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
    fn what_another_protocol_suffers_as_well_is_the_protocols() {
        let files = system(20.0, 3.0, 19.0, 10.0);
        let found = attribute(&sides(&files)).unwrap();
        assert!(found.shares.iter().all(|share| share.blame == Blame::Protocol), "{found:?}");
        assert!(found.render().contains("protocol: load adds"), "{}", found.render());
    }

    #[test]
    fn where_load_adds_nothing_there_is_nothing_to_tell() {
        let files = system(1.0, 1.1, 1.1, 1.2);
        let found = attribute(&sides(&files)).unwrap();
        let told: Vec<String> = found.shares.iter().map(Share::sentence).collect();
        assert!(told.iter().all(|told| told == "cannot tell: that load adds any time was not shown"), "{told:?}");
        assert!(found.render().contains(" -"), "{}", found.render());
    }

    #[test]
    fn a_queue_that_adds_the_same_to_quick_and_slow_blames_nobody() {
        // MPI takes 20 us idle and raw 40: factors of 251 and 126 over queues that add about 5 ms to both.
        let mut files = system(20.0, 10.0, 12.0, 15.0);
        for (at, run) in files[0].1.runs.iter_mut().enumerate() {
            let idle = if at == 0 { 20.0 } else { 40.0 };
            for (place, placement) in run.placements.iter_mut().enumerate() {
                for test in &mut placement.tests {
                    let queue = 5000.0 + 100.0 * place as f64 + 10.0 * ((3 * place + 2 * at) % 5) as f64;
                    let time = idle + if test.phase == LoadState::Loaded { queue } else { 0.0 };
                    let figure = if test.kernel.info().key == "bw-sync" { 1e6 / time } else { time };
                    let summary = test.summary.as_mut().unwrap();
                    (summary.mean, summary.times.as_mut().unwrap().p90) = (figure, figure);
                    test.blocks.iter_mut().for_each(|block| block.headline = Some(figure));
                }
            }
        }
        let found = attribute(&sides(&files)).unwrap();
        for share in &found.shares {
            let shares = share.shares.as_ref().unwrap();
            assert_eq!(share.blame, Blame::Network, "{share:?}");
            assert!(!shares.library.is_shown() && shares.library.share.abs() < 0.01, "{share:?}");
            assert!(share.sentence().ends_with("no part of the MPI library was shown"), "{}", share.sentence());
        }
    }

    #[test]
    fn what_is_not_reportable_is_not_attributed() {
        let mut files = system(20.0, 10.0, 12.0, 15.0);
        files[0].1.runs[2].tests.iter_mut().for_each(|test| test.covered = Some(0.1));
        let found = attribute(&sides(&files)).unwrap();
        let said = found.shares[0].sentence();
        assert!(said.starts_with("cannot tell: not reportable: libfabric, put: idle, samples cover 10%"), "{said}");
    }

    #[test]
    fn a_mixed_run_that_is_not_reportable_leaves_the_rest() {
        let mut files = system(20.0, 10.0, 12.0, 15.0);
        let mut mixed = |backend, protocol, impact, congestors| {
            files[0].1.runs.push(mixed_run(backend, protocol, impact, congestors));
        };
        mixed("mpi", None, 20.0, over("libfabric", Some("eager")));
        mixed("libfabric", Some("eager"), 10.0, over("mpi", None));
        files[0].1.runs[5].tests.iter_mut().for_each(|test| test.covered = Some(0.1));
        let found = attribute(&sides(&files)).unwrap();
        for share in &found.shares {
            assert!(share.parts()[0].is_some() && share.parts()[2].is_none(), "{share:?}");
        }
        let line = found.line();
        assert!(line.contains("lat: ") && line.contains(" (network ") && !line.contains("Above 100%"), "{line}");
    }

    #[test]
    fn a_library_that_softens_is_said_to() {
        let files = system(3.0, 12.0, 12.0, 30.0);
        let found = attribute(&sides(&files)).unwrap();
        let said: Vec<String> = found.shares.iter().map(Share::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("the MPI library softens the impact")), "{said:?}");
        let line = found.line();
        assert!(line.contains(": network (network ") && line.contains("Above 100%: load adds more time"), "{line}");
    }

    #[test]
    fn without_both_kinds_there_is_nothing_to_attribute() {
        for backend in ["mpi", "libfabric"] {
            let files = vec![(PathBuf::from("a.json"), synthetic::file(backend, None, 2.0))];
            assert!(attribute(&sides(&files)).is_none());
        }
    }
}
