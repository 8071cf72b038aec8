//! What an impact over a library (MPI) is made of: the part that raw traffic suffers as well, and what the library adds.
//!
//! Canaries and congestors each run over the library or raw: a 2x2 design. With L for the library, R for raw and the
//! canaries' transport first, the impact LL divides exactly into
//! - network: RR, what raw canaries suffer under raw congestors;
//! - canary: what it costs a victim to go through the library, (LL - RL + LR - RR) / 2;
//! - load: what congestors do differently when they go through the library, (LL - LR + RL - RR) / 2.
//!
//! The network's part is that of the least raw protocol. Taking the least of several noisy figures is itself a choice
//! by noise, so it is made anew in every draw. Draws are of whole placements, with all cells of each.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student::{t95, two_sided_p};
use super::{Interval, Spread};

const DRAWS: usize = 4000;
/// Fewer placements can be drawn in too few ways.
pub const FEWEST_TO_DRAW: usize = 5;
/// An impact that may be less than this is too small to divide.
pub const LEAST_IMPACT: f64 = 1.5;
/// A share less certain than this is none.
pub const WIDEST: f64 = 0.3;

/// On what scale parts add up to the impact F.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// ln F: parts are factors that multiply.
    Log,
    /// F - 1: parts are added cost, in units of the isolated figure.
    Added,
}

impl Scale {
    fn of(self, mean_log: f64) -> f64 {
        match self {
            Scale::Log => mean_log,
            Scale::Added => mean_log.exp_m1(),
        }
    }
}

/// Factors of every placement, in the same order in all cells.
#[derive(Clone, Debug, Default)]
pub struct Design {
    /// Canaries and congestors over the library.
    pub library: Vec<f64>,
    /// One for each raw protocol.
    pub raw: Vec<RawCells>,
}

/// One raw protocol's factors.
#[derive(Clone, Debug, Default)]
pub struct RawCells {
    /// Canaries and congestors raw.
    pub raw: Vec<f64>,
    /// Canaries raw, congestors over the library; empty when not measured.
    pub under_library: Vec<f64>,
    /// Canaries over the library, congestors raw; empty when not measured.
    pub over_library: Vec<f64>,
}

/// A part of the impact: 0.6 is 60%. Parts may be negative, where the library softens the impact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Share {
    pub share: f64,
    pub interval: Interval,
}

impl Share {
    fn width(&self) -> f64 {
        self.interval.high - self.interval.low
    }
}

/// The impact divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// The impact over the library.
    pub impact: Spread,
    /// Which raw protocol is the least.
    pub reference: usize,
    /// In what part of the draws it was; well below 1, the protocols are not told apart.
    pub reference_held: f64,
    /// What raw traffic suffers as well.
    pub network: Share,
    /// The rest: canary and load together.
    pub library: Share,
    /// What the canary pays; absent without the mixed cells, or when too wide.
    pub canary: Option<Share>,
    /// What the congestors add; absent without the mixed cells, or when too wide.
    pub load: Option<Share>,
}

/// Why there are no shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NoShare {
    /// Too few placements.
    #[error("{placements} placements, {FEWEST_TO_DRAW} are needed")]
    TooFewPlacements {
        /// So many.
        placements: usize,
    },
    /// Cells of unequal length, without a raw protocol, or with what is no factor.
    #[error("the cells do not pair up")]
    Unpaired,
    /// The impact itself is too small, or too uncertain, to be divided.
    #[error("the impact may be as little as {low:.2}x, too little to divide")]
    LittleImpact {
        /// The lower end of its interval.
        low: f64,
    },
    /// The library's share is too uncertain.
    #[error("the share is uncertain by {:.0} points", 100.0 * .points)]
    TooWide {
        /// Width of the interval, from 0 to 1 and more.
        points: f64,
    },
}

impl Shares {
    /// Divides the impact of `design`. `seed` makes the draws repeatable.
    pub fn of(design: &Design, scale: Scale, seed: u64) -> Result<Self, NoShare> {
        let cells = Cells::of(design)?;
        let impact = Spread::of(&design.library).ok_or(NoShare::Unpaired)?;
        let low = impact.interval.map_or(0.0, |interval| interval.low);
        if low < LEAST_IMPACT {
            return Err(NoShare::LittleImpact { low });
        }
        let everyone: Vec<usize> = (0..cells.placements).collect();
        let point = cells.parts(&everyone, scale);
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut draw = || {
            let drawn: Vec<usize> = everyone.iter().map(|_| rng.random_range(0..cells.placements)).collect();
            cells.parts(&drawn, scale)
        };
        let draws: Vec<Parts> = (0..DRAWS).map(|_| draw()).collect();
        let share = |of: fn(&Parts) -> f64| {
            let mut values: Vec<f64> = draws.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            let tail = tail(cells.placements);
            let at = |part: f64| values[(part * (DRAWS - 1) as f64).round() as usize];
            Share { share: of(&point), interval: Interval { low: at(tail), high: at(1.0 - tail) } }
        };
        let (network, library) = (share(|of| of.network), share(|of| 1.0 - of.network));
        // Of cells that were not measured the width is no number, and not narrow either.
        let narrow = |share: Share| (share.width() <= WIDEST).then_some(share);
        let library = narrow(library).ok_or(NoShare::TooWide { points: library.width() })?;
        let held = draws.iter().filter(|of| of.reference == point.reference).count();
        Ok(Shares {
            impact,
            reference: point.reference,
            reference_held: held as f64 / DRAWS as f64,
            network,
            library,
            canary: narrow(share(|of| of.canary)),
            load: narrow(share(|of| of.load)),
        })
    }
}

/// The part of the draws beyond each end of a 95% interval. Draws from few placements spread too little, by
/// sqrt((n-1)/n) and by having no t: a wider part of them makes up for both (T. Hesterberg's expanded percentiles).
fn tail(placements: usize) -> f64 {
    /// Enough degrees of freedom to be a normal distribution.
    const NORMAL: f64 = 1e5;
    let count = placements as f64;
    two_sided_p((count / (count - 1.0)).sqrt() * t95(count - 1.0), NORMAL) / 2.0
}

/// Parts of one draw; of the mixed cells NaN where there are none.
struct Parts {
    reference: usize,
    network: f64,
    canary: f64,
    load: f64,
}

/// Logarithms of the factors.
struct Cells {
    placements: usize,
    library: Vec<f64>,
    raw: Vec<RawCells>,
}

impl Cells {
    fn of(design: &Design) -> Result<Self, NoShare> {
        let placements = design.library.len();
        let whole = |cell: &Vec<f64>| cell.len() == placements && cell.iter().all(|of| of.is_finite() && *of > 0.0);
        let mixed = || design.raw.iter().flat_map(|of| [&of.under_library, &of.over_library]);
        let sound = whole(&design.library) && !design.raw.is_empty() && design.raw.iter().all(|of| whole(&of.raw));
        if !sound || !mixed().all(|cell| cell.is_empty() || whole(cell)) {
            return Err(NoShare::Unpaired);
        }
        if placements < FEWEST_TO_DRAW {
            return Err(NoShare::TooFewPlacements { placements });
        }
        let logs = |cell: &Vec<f64>| cell.iter().map(|of| of.ln()).collect::<Vec<_>>();
        Ok(Cells {
            placements,
            library: logs(&design.library),
            raw: design
                .raw
                .iter()
                .map(|of| RawCells {
                    raw: logs(&of.raw),
                    under_library: logs(&of.under_library),
                    over_library: logs(&of.over_library),
                })
                .collect(),
        })
    }

    fn parts(&self, drawn: &[usize], scale: Scale) -> Parts {
        let mean = |cell: &Vec<f64>| {
            if cell.is_empty() { f64::NAN } else { drawn.iter().map(|&at| cell[at]).sum::<f64>() / drawn.len() as f64 }
        };
        let raw = self.raw.iter().map(|of| mean(&of.raw)).enumerate();
        let (reference, least) = raw.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a raw protocol");
        let [whole, network] = [mean(&self.library), least].map(|log| scale.of(log));
        let under_raw = scale.of(mean(&self.raw[reference].over_library));
        let under_library = scale.of(mean(&self.raw[reference].under_library));
        Parts {
            reference,
            network: network / whole,
            canary: (whole - under_library + under_raw - network) / 2.0 / whole,
            load: (whole - under_raw + under_library - network) / 2.0 / whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: [f64; 8] = [0.4, -0.3, 0.1, -0.5, 0.6, 0.0, -0.2, 0.3];

    /// Factors around `factor` that share half of what placements do, with some noise of their own.
    fn cell(factor: f64, shift: usize) -> Vec<f64> {
        let noise = |at: usize| 0.2 * COMMON[(at * 3 + shift) % 8];
        (0..8).map(|at| factor * (0.3 * COMMON[at] + noise(at)).exp()).collect()
    }

    fn design() -> Design {
        let raw = |factor, shift| RawCells {
            raw: cell(factor, shift),
            under_library: cell(1.3 * factor, shift + 1),
            over_library: cell(2.5 * factor, shift + 5),
        };
        Design { library: cell(40.0, 0), raw: vec![raw(20.0, 2), raw(10.0, 4)] }
    }

    #[test]
    fn parts_add_up_and_the_least_protocol_is_the_reference() {
        let shares = Shares::of(&design(), Scale::Log, 1).unwrap();
        assert_eq!(shares.reference, 1);
        assert!(shares.reference_held > 0.99);
        let wanted = (10.0f64.ln() + 0.05 * 0.4) / (40.0f64.ln() + 0.05 * 0.4);
        assert!((shares.network.share - wanted).abs() < 0.01, "{shares:?}");
        assert!((shares.network.share + shares.library.share - 1.0).abs() < 1e-12);
        let (canary, load) = (shares.canary.unwrap().share, shares.load.unwrap().share);
        assert!((shares.network.share + canary + load - 1.0).abs() < 1e-12 && canary > load, "{shares:?}");
        assert!(!shares.network.interval.excludes(shares.network.share));
        assert_eq!(shares, Shares::of(&design(), Scale::Log, 1).unwrap());
        let added = Shares::of(&design(), Scale::Added, 1).unwrap();
        assert!(added.network.share < 0.3, "{added:?}");
    }

    #[test]
    fn without_mixed_cells_the_library_is_not_taken_apart() {
        let mut design = design();
        design.raw.iter_mut().for_each(|of| of.over_library.clear());
        let shares = Shares::of(&design, Scale::Log, 1).unwrap();
        assert!(shares.canary.is_none() && shares.load.is_none());
    }

    #[test]
    fn what_cannot_be_divided_says_why() {
        let with = |change: fn(&mut Design)| {
            let mut design = design();
            change(&mut design);
            Shares::of(&design, Scale::Log, 1).unwrap_err()
        };
        assert_eq!(with(|of| of.raw.clear()), NoShare::Unpaired);
        assert_eq!(with(|of| of.raw[0].raw.truncate(7)), NoShare::Unpaired);
        assert!(matches!(with(|of| of.library = cell(1.6, 0)), NoShare::LittleImpact { low } if low < 1.5));
        // Protocols whose placements go their own ways.
        let wild =
            with(|of| of.raw.iter_mut().for_each(|raw| raw.raw = COMMON.map(|of| (3.0 + 4.0 * of).exp()).into()));
        assert!(matches!(wild, NoShare::TooWide { points } if points > 0.3), "{wild:?}");
        let few = |cell: &[f64]| cell[..4].to_vec();
        let raw = vec![RawCells { raw: few(&cell(10.0, 0)), ..RawCells::default() }];
        let small = Design { library: few(&cell(40.0, 0)), raw };
        assert_eq!(Shares::of(&small, Scale::Log, 1), Err(NoShare::TooFewPlacements { placements: 4 }));
    }

    #[test]
    fn tails_are_wider_for_fewer_placements() {
        assert!((tail(8) - 0.0057).abs() < 2e-4, "{}", tail(8));
        assert!((tail(100_000) - 0.025).abs() < 1e-4);
    }
}
