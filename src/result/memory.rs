//! What the memory of messages was made of, and whether it was near: over all ranks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_host::pages::{HugePages, PagesHad};

/// All ranks' memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRecord {
    /// What was asked for with `--huge-pages`: `no`, `try` or `require`.
    pub huge_pages: String,
    /// Segments in usual pages. MPI's own memory is not counted here.
    pub usual_bytes: u64,
    /// Segments in huge pages that were reserved.
    pub reserved_huge_bytes: u64,
    /// Segments in huge pages that the kernel made.
    pub transparent_huge_bytes: u64,
    /// Why some rank's segment that should have had huge pages has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Memory of the processes that is near the core that the rank was on; absent where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_bytes: Option<u64>,
    /// The same in other NUMA nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_bytes: Option<u64>,
}

impl MemoryRecord {
    /// One rank's.
    pub fn of(wish: HugePages, had: PagesHad, placed: Option<(usize, usize)>) -> Self {
        MemoryRecord {
            huge_pages: wish.to_string(),
            usual_bytes: had.usual as u64,
            reserved_huge_bytes: had.reserved as u64,
            transparent_huge_bytes: had.transparent as u64,
            why: had.why,
            near_bytes: placed.map(|(near, _)| near as u64),
            away_bytes: placed.map(|(_, away)| away as u64),
        }
    }

    /// Both of them together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| one.zip(two).map(|(one, two)| one + two);
        MemoryRecord {
            huge_pages: self.huge_pages,
            usual_bytes: self.usual_bytes + other.usual_bytes,
            reserved_huge_bytes: self.reserved_huge_bytes + other.reserved_huge_bytes,
            transparent_huge_bytes: self.transparent_huge_bytes + other.transparent_huge_bytes,
            why: self.why.or(other.why),
            near_bytes: sum(self.near_bytes, other.near_bytes),
            away_bytes: sum(self.away_bytes, other.away_bytes),
        }
    }

    /// One line of what was had of huge pages, if they were asked for.
    pub fn huge(&self) -> Option<String> {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let why = self.why.as_ref().map(|why| format!("; not all, for there were {why}")).unwrap_or_default();
        (self.huge_pages != HugePages::No.to_string()).then(|| {
            format!(
                "memory of messages, over all ranks: {:.1} MiB in reserved huge pages, {:.1} MiB in transparent ones, {:.1} MiB in \
                 usual ones{why}",
                mib(self.reserved_huge_bytes),
                mib(self.transparent_huge_bytes),
                mib(self.usual_bytes)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_add_up_and_a_reason_is_kept() {
        let had = |usual, transparent, why: Option<&str>| PagesHad {
            usual,
            reserved: 0,
            transparent,
            why: why.map(Into::into),
        };
        let one = MemoryRecord::of(HugePages::Try, had(1 << 20, 4 << 20, None), Some((5, 1)));
        let two = MemoryRecord::of(HugePages::Try, had(3 << 20, 0, Some("none left")), Some((2, 0)));
        let both = one.clone().with(two);
        assert_eq!((both.near_bytes, both.away_bytes), (Some(7), Some(1)));
        let line = both.huge().expect("they were asked for");
        assert!(
            line.contains("4.0 MiB in transparent")
                && line.ends_with("4.0 MiB in usual ones; not all, for there were none left")
        );
        let unknown = MemoryRecord::of(HugePages::No, had(8, 0, None), None);
        assert_eq!((unknown.huge(), one.with(unknown).near_bytes), (None, None));
    }
}
