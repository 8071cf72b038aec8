//! How often the watcher threads of ranks woke up: what they may have taken from ranks that spin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All ranks' watchers, from the first placement on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecord {
    /// Ranks that have one.
    pub watchers: u32,
    /// How often all of them woke up.
    pub wakeups: u64,
    /// How long that was.
    pub seconds: f64,
    /// The rank whose watcher woke up most.
    pub most_on_rank: u32,
    /// How often a second that one did.
    pub most_per_s: f64,
}

impl WatchRecord {
    /// One rank's watcher.
    pub fn of(rank: u32, wakeups: u64, seconds: f64) -> Self {
        WatchRecord {
            watchers: 1,
            wakeups,
            seconds,
            most_on_rank: rank,
            most_per_s: wakeups as f64 / seconds.max(1e-9),
        }
    }

    /// Both of them together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let most = if other.most_per_s > self.most_per_s { other } else { self };
        WatchRecord {
            watchers: self.watchers + other.watchers,
            wakeups: self.wakeups + other.wakeups,
            seconds: self.seconds.max(other.seconds),
            ..most
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_add_up_and_the_busiest_is_named() {
        let all = WatchRecord::of(0, 30, 2.0).with(WatchRecord::of(1, 90, 2.0)).with(WatchRecord::of(2, 4, 2.5));
        let expected = WatchRecord { watchers: 3, wakeups: 124, seconds: 2.5, most_on_rank: 1, most_per_s: 45.0 };
        assert_eq!(all, expected);
    }
}
