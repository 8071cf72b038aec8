//! Load that comes in bursts: for how long it is on, and for how long it then pauses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::Nanos;

use super::Plan;

/// Canaries begin so many iterations in a burst and its pause, where they have no pace of their own.
const SLOTS: f64 = 48.0;
/// A block has so many bursts at least.
const FEWEST: f64 = 4.0;

/// A burst and its pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// How long load is on, in seconds.
    pub on_s: f64,
    /// How long it pauses then, in seconds.
    pub off_s: f64,
}

impl Burst {
    /// How long load is on.
    pub fn on(&self) -> Nanos {
        nanos(self.on_s)
    }

    /// From onset to onset.
    pub fn period(&self) -> Nanos {
        Nanos(self.on().0 + nanos(self.off_s).0)
    }

    /// From onset to onset, in seconds.
    pub fn period_s(&self) -> f64 {
        self.on_s + self.off_s
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos(((1e9 * seconds).round() as u64).max(1))
}

impl Plan {
    /// How far apart canaries begin iterations in bursts, where an iteration is short enough.
    pub(super) fn pace_in_bursts(&self) -> Option<Nanos> {
        Some(nanos((self.burst?.period_s() / SLOTS).max(self.preset.shortest().pace)))
    }

    /// What is wrong with its bursts.
    pub(super) fn check_burst(&self) -> Result<(), String> {
        let Some(burst) = self.burst else { return Ok(()) };
        let ms = |seconds: f64| format!("{} ms", (1e6 * seconds).round() / 1e3);
        for (option, seconds) in [("--on", burst.on_s), ("--off", burst.off_s)] {
            if !(1e-6..=600.0).contains(&seconds) {
                return Err(format!("{option}: invalid time {}: expected 1 us to 10 minutes", ms(seconds)));
            }
        }
        if self.congestors.is_empty() {
            return Err("bursts without congestors load nothing".into());
        }
        if let Some(test) = self.canaries.iter().find(|test| self.pace_of(test).is_none()) {
            return Err(format!("{}: bursts are felt by latency canaries in an open loop only", test.kernel));
        }
        if let Some(slow) = self.congestors.iter().find(|test| test.rate < 1.0) {
            return Err(format!("{}: in bursts congestors are at full rate, not at {}", slow.kernel, slow.rate));
        }
        // By their shares of the budget, all states have a block of at least so long.
        let loaded_s = self.block_s() * self.share_of(crate::stats::TestState::Loaded);
        if FEWEST * burst.period_s() > loaded_s {
            let needed_s = FEWEST * burst.period_s() / loaded_s * self.budget_s;
            return Err(format!(
                "a burst and its pause take {}: a block of {} has fewer than {FEWEST} of them; give a --budget of at least {}, or fewer \
                 --placements",
                ms(burst.period_s()),
                ms(loaded_s),
                ms(needed_s)
            ));
        }
        Ok(())
    }
}
