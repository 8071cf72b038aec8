//! Whose doing the time is that load adds over a library (MPI): the network's, a protocol's or the library's own.
//!
//! Everything is in added time, placement by placement: factors over baselines of different speed cannot be divided by
//! each other. Raw traffic meets the same network, so what load adds to the raw protocol that suffers least is the
//! network's part. Taking the least of several noisy figures is itself a choice by noise. So placements are cut in halves,
//! and the reference of each half is chosen on the other one (cross-fitting): its noise there is not the noise it is judged
//! by. Intervals are Student's, over placements.
//!
//! Canaries and congestors each run over the library or raw: a 2x2 design. With L for the library, R for raw and the
//! canaries' transport first, the time that load adds to LL divides into
//! - network: RR, what load adds to raw canaries under raw congestors;
//! - canary: what it costs a victim to go through the library, (LL - RL + LR - RR) / 2;
//! - load: what congestors do differently when they go through the library, (LL - LR + RL - RR) / 2.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student::t95;
use super::{Added, Interval, mean, variance};

/// Fewer placements cannot be cut in halves that say something.
pub const FEWEST_TO_HALVE: usize = 5;

/// Added times of every placement, in ns, in the same order in all cells.
#[derive(Clone, Debug, Default)]
pub struct Design {
    /// Canaries and congestors over the library.
    pub library: Vec<f64>,
    /// One for each raw protocol.
    pub raw: Vec<RawCells>,
}

/// One raw protocol's added times.
#[derive(Clone, Debug, Default)]
pub struct RawCells {
    /// Canaries and congestors raw.
    pub raw: Vec<f64>,
    /// Canaries raw, congestors over the library; empty when not measured.
    pub under_library: Vec<f64>,
    /// Canaries over the library, congestors raw; empty when not measured.
    pub over_library: Vec<f64>,
}

/// A part of the added time. Parts may be negative, where the library softens the impact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The time, in ns.
    pub added_ns: Added,
    /// Its share: 0.6 is 60%.
    pub share: f64,
    /// The 95% confidence interval of the share.
    pub interval: Interval,
}

impl Share {
    /// Whether there is such a part: more than nothing, with 95%.
    pub fn is_shown(&self) -> bool {
        self.added_ns.interval.is_some_and(|of| of.low > 0.0)
    }
}

/// Whose doing most of the added time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// Raw traffic suffers most of it as well.
    Network,
    /// Most of it is beyond what every raw protocol suffers.
    Library,
    /// Most of it is what some raw protocol suffers, and another does not.
    Protocol,
    /// None of them has more than half for certain.
    CannotTell,
}

impl Blame {
    /// As tables show it.
    pub fn word(self) -> &'static str {
        match self {
            Blame::Network => "network",
            Blame::Library => "library",
            Blame::Protocol => "protocol",
            Blame::CannotTell => "cannot tell",
        }
    }
}

/// The added time divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// What load adds over the library, in ns.
    pub added_ns: Added,
    /// Whose doing most of it is.
    pub blame: Blame,
    /// The raw protocol that suffers least over all placements.
    pub reference: usize,
    /// Whether it is the least in both halves.
    pub reference_held: bool,
    /// What raw traffic suffers as well.
    pub network: Share,
    /// The rest: canary and load together.
    pub library: Share,
    /// What the canary pays; absent without the mixed cells.
    pub canary: Option<Share>,
    /// What the congestors add; absent without the mixed cells.
    pub load: Option<Share>,
}

/// Why there are no shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NoShare {
    /// Too few placements.
    #[error("{placements} placements, {FEWEST_TO_HALVE} are needed")]
    TooFewPlacements {
        /// So many.
        placements: usize,
    },
    /// Cells of unequal length, without a raw protocol, or with what is no number.
    #[error("the cells do not pair up")]
    Unpaired,
    /// There may be nothing to divide.
    #[error("that load adds any time was not shown")]
    NothingAdded,
}

impl Shares {
    /// Divides the added time of `design`.
    pub fn of(design: &Design) -> Result<Self, NoShare> {
        let cells = Cells::of(design)?;
        let whole = Added::of(&design.library).ok_or(NoShare::Unpaired)?;
        if whole.interval.is_none_or(|of| of.low <= 0.0) {
            return Err(NoShare::NothingAdded);
        }
        let raw = |chosen| cells.crossed(chosen, |of| &of.raw).expect("every protocol has it");
        let (least, most) = (cells.chosen(f64::total_cmp), cells.chosen(|a, b| b.total_cmp(a)));
        let (network, worst) = (raw(least), raw(most));
        let beyond = minus(&design.library, &network);
        let mixed = cells.crossed(least, |of| &of.under_library).zip(cells.crossed(least, |of| &of.over_library));
        let (canary, load) = mixed
            .map(|(under_library, over_library)| {
                // (LL - RR) / 2 is half of either; what is left is the difference of the mixed cells.
                let half = |at: usize, sign: f64| (beyond[at] + sign * (over_library[at] - under_library[at])) / 2.0;
                let part = |sign: f64| (0..beyond.len()).map(|at| half(at, sign)).collect::<Vec<f64>>();
                (part(1.0), part(-1.0))
            })
            .unzip();
        let share = |part: &[f64]| share(part, &design.library);
        let everywhere = cells.best(|_| true, f64::total_cmp);
        Ok(Shares {
            added_ns: whole,
            blame: cells.blame(&network, &worst),
            reference: everywhere,
            reference_held: least == [everywhere; 2],
            network: share(&network),
            library: share(&beyond),
            canary: canary.as_deref().map(share),
            load: load.as_deref().map(share),
        })
    }
}

/// A part of the whole, with the interval of its share: Student's t on what is left of each placement's part when the
/// share of its whole is taken off. What placements do to part and whole alike cancels.
fn share(part: &[f64], whole: &[f64]) -> Share {
    let added_ns = Added::of(part).expect("cells are numbers");
    let all = mean(whole);
    let share = added_ns.value / all;
    let left: Vec<f64> = part.iter().zip(whole).map(|(part, whole)| part - share * whole).collect();
    let count = left.len() as f64;
    let half = t95(count - 1.0) * (variance(&left).unwrap_or(f64::NAN) / count).sqrt() / all;
    Share { added_ns, share, interval: Interval { low: share - half, high: share + half } }
}

fn minus(from: &[f64], take: &[f64]) -> Vec<f64> {
    from.iter().zip(take).map(|(from, take)| from - take).collect()
}

/// A design whose cells pair up.
struct Cells<'d> {
    placements: usize,
    design: &'d Design,
}

/// The half that a placement belongs to. Neighbours share one: networks take turns forwards on one placement and
/// backwards on the next, which halves of every other placement would not be rid of.
fn half(placement: usize) -> usize {
    placement / 2 % 2
}

impl<'d> Cells<'d> {
    fn of(design: &'d Design) -> Result<Self, NoShare> {
        let placements = design.library.len();
        let whole = |cell: &Vec<f64>| cell.len() == placements && cell.iter().all(|of| of.is_finite());
        let mixed = || design.raw.iter().flat_map(|of| [&of.under_library, &of.over_library]);
        let sound = whole(&design.library) && !design.raw.is_empty() && design.raw.iter().all(|of| whole(&of.raw));
        if !sound || !mixed().all(|cell| cell.is_empty() || whole(cell)) {
            return Err(NoShare::Unpaired);
        }
        if placements < FEWEST_TO_HALVE {
            return Err(NoShare::TooFewPlacements { placements });
        }
        Ok(Cells { placements, design })
    }

    /// The first raw protocol in this order, by its mean over some placements.
    fn best(&self, of: impl Fn(usize) -> bool, order: fn(&f64, &f64) -> Ordering) -> usize {
        let sum = |cells: &RawCells| (0..self.placements).filter(|&at| of(at)).map(|at| cells.raw[at]).sum::<f64>();
        let sums = self.design.raw.iter().map(sum).enumerate();
        sums.min_by(|a, b| order(&a.1, &b.1)).expect("there is a raw protocol").0
    }

    /// The protocol of each half, chosen on the other one.
    fn chosen(&self, order: fn(&f64, &f64) -> Ordering) -> [usize; 2] {
        [0, 1].map(|own| self.best(|at| half(at) != own, order))
    }

    /// A cell of the protocol of each placement's half; nothing where one of them was not measured.
    fn crossed(&self, chosen: [usize; 2], cell: fn(&RawCells) -> &Vec<f64>) -> Option<Vec<f64>> {
        (0..self.placements).map(|at| cell(&self.design.raw[chosen[half(at)]]).get(at).copied()).collect()
    }

    /// Who has more than half of the added time for certain.
    fn blame(&self, network: &[f64], worst: &[f64]) -> Blame {
        let library = &self.design.library;
        let most = |part: Vec<f64>| {
            let beyond_half: Vec<f64> = part.iter().zip(library).map(|(part, whole)| part - whole / 2.0).collect();
            Added::of(&beyond_half).and_then(|of| of.interval).is_some_and(|of| of.low > 0.0)
        };
        match () {
            () if most(network.to_vec()) => Blame::Network,
            () if most(minus(library, worst)) => Blame::Library,
            () if most(minus(worst, network)) => Blame::Protocol,
            () => Blame::CannotTell,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: [f64; 8] = [0.4, -0.3, 0.1, -0.5, 0.6, 0.0, -0.2, 0.3];

    /// Times around `added` that share half of what placements do, with some noise of their own.
    fn cell(added: f64, shift: usize) -> Vec<f64> {
        let noise = |at: usize| 0.1 * COMMON[(at * 3 + shift) % 8];
        (0..8).map(|at| added * (1.0 + 0.3 * COMMON[at] + noise(at))).collect()
    }

    /// A library of 40 ms above protocols of 20 and 10 ms; it is the victim that pays, and congestors do not differ.
    fn design() -> Design {
        let raw = |added: f64, shift| RawCells {
            raw: cell(added, shift),
            under_library: cell(added, shift + 1),
            over_library: cell(40e6, shift + 5),
        };
        Design { library: cell(40e6, 0), raw: vec![raw(20e6, 2), raw(10e6, 4)] }
    }

    fn near(share: Share, wanted: f64) -> bool {
        (share.share - wanted).abs() < 0.03 && !share.interval.excludes(wanted)
    }

    #[test]
    fn parts_add_up_and_the_least_protocol_is_the_reference() {
        let shares = Shares::of(&design()).unwrap();
        assert_eq!((shares.reference, shares.reference_held), (1, true));
        assert!(near(shares.network, 0.25) && near(shares.library, 0.75), "{shares:?}");
        let (canary, load) = (shares.canary.unwrap(), shares.load.unwrap());
        assert!(near(canary, 0.75) && near(load, 0.0), "{shares:?}");
        assert!(shares.network.is_shown() && canary.is_shown() && !load.is_shown(), "{shares:?}");
        let sum = |of: fn(Share) -> f64| of(shares.network) + of(canary) + of(load);
        assert!((sum(|of| of.share) - 1.0).abs() < 1e-12);
        assert!((sum(|of| of.added_ns.value) / shares.added_ns.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_a_share_is_as_in_the_textbook() {
        // 0.6 of wholes 2, 4, 4 leaves -0.2, -0.4 and 0.6: a variance of 0.28; t(2) = 4.302653, and 10/3 is the mean.
        let found = share(&[1.0, 2.0, 3.0], &[2.0, 4.0, 4.0]);
        let half = 4.302_653 * (0.28f64 / 3.0).sqrt() / (10.0 / 3.0);
        assert!((found.share - 0.6).abs() < 1e-12 && (found.interval.high - 0.6 - half).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_part_whose_interval_begins_at_nothing_is_not_shown() {
        let shown = |low| {
            let interval = Interval { low, high: 2.0 };
            Share { added_ns: Added { value: 1.0, interval: Some(interval) }, share: 0.5, interval }.is_shown()
        };
        assert_eq!([-0.1, 0.0, 0.1].map(shown), [false, false, true]);
    }

    #[test]
    fn whoever_has_most_for_certain_is_blamed() {
        let blame = |library: f64, raw: &[f64]| {
            let cells = raw.iter().enumerate();
            let raw = cells.map(|(at, &added)| RawCells { raw: cell(added, at + 1), ..RawCells::default() }).collect();
            Shares::of(&Design { library: cell(library, 0), raw }).unwrap().blame
        };
        assert_eq!(blame(5e6, &[5e6]), Blame::Network);
        assert_eq!(blame(5e6, &[8e6]), Blame::Network, "a library that softens has no part in it");
        assert_eq!(blame(20e6, &[5e6, 6e6]), Blame::Library);
        assert_eq!(blame(20e6, &[5e6, 19e6]), Blame::Protocol);
        assert_eq!(blame(20e6, &[10e6]), Blame::CannotTell);
        assert_eq!(blame(20e6, &[8e6, 14e6]), Blame::CannotTell);
    }

    #[test]
    fn without_mixed_cells_the_library_is_not_taken_apart() {
        let mut design = design();
        design.raw.iter_mut().for_each(|of| of.over_library.clear());
        let shares = Shares::of(&design).unwrap();
        assert!(shares.canary.is_none() && shares.load.is_none());
    }

    #[test]
    fn what_cannot_be_divided_says_why() {
        let with = |change: fn(&mut Design)| {
            let mut design = design();
            change(&mut design);
            Shares::of(&design).unwrap_err()
        };
        assert_eq!(with(|of| of.raw.clear()), NoShare::Unpaired);
        assert_eq!(with(|of| of.raw[0].raw.truncate(7)), NoShare::Unpaired);
        assert_eq!(with(|of| of.raw[1].under_library[2] = f64::NAN), NoShare::Unpaired);
        assert_eq!(with(|of| of.library = COMMON.map(|of| 1e6 * of).to_vec()), NoShare::NothingAdded);
        let few = |added| cell(added, 0)[..4].to_vec();
        let small = Design { library: few(40.0), raw: vec![RawCells { raw: few(10.0), ..RawCells::default() }] };
        assert_eq!(Shares::of(&small), Err(NoShare::TooFewPlacements { placements: 4 }));
    }

    #[test]
    fn a_protocol_is_judged_on_other_placements_than_it_was_chosen_on() {
        // Each protocol is the less in the half whose neighbours it is lucky in; judged there, the network's part were 5.
        let lucky = |own: usize| (0..8).map(|at| if half(at) == own { 5.0 } else { 9.0 }).collect::<Vec<f64>>();
        let raw = [0, 1].map(|own| RawCells { raw: lucky(own), ..RawCells::default() });
        let shares = Shares::of(&Design { library: vec![10.0; 8], raw: raw.into() }).unwrap();
        assert_eq!(shares.network.added_ns.value, 9.0);
        assert!(!shares.reference_held);
    }
}
