//! What the machine did in each phase, from what every rank saw of it.

use tailback_host::ActivitySince;

use crate::engine::PhaseId;
use crate::result::HostActivity;

impl HostActivity {
    /// One rank's.
    pub fn of(phase: PhaseId, seen: ActivitySince) -> Self {
        let mhz = seen.mhz.iter().copied().reduce(f64::min).zip(seen.mhz.iter().copied().reduce(f64::max));
        HostActivity {
            phase,
            seconds: seen.seconds,
            mhz: mhz.map(|(low, high)| [low, high]),
            governors: seen.governor.into_iter().collect(),
            steal: seen.steal,
            voluntary_switches: seen.voluntary_switches,
            involuntary_switches: seen.involuntary_switches,
        }
    }

    /// Both of them together.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.governors.extend(other.governors);
        self.governors.sort();
        self.governors.dedup();
        HostActivity {
            phase: self.phase,
            seconds: self.seconds.max(other.seconds),
            mhz: either(self.mhz, other.mhz, |one, two| [one[0].min(two[0]), one[1].max(two[1])]),
            governors: self.governors,
            steal: either(self.steal, other.steal, f64::max),
            voluntary_switches: either(self.voluntary_switches, other.voluntary_switches, |one, two| one + two),
            involuntary_switches: either(self.involuntary_switches, other.involuntary_switches, |one, two| one + two),
        }
    }

    /// The phases of two sets of ranks: all ranks hear of the same, in the same order.
    #[must_use]
    pub fn all_with(one: Vec<Self>, other: Vec<Self>) -> Vec<Self> {
        one.into_iter().zip(other).map(|(one, other)| one.with(other)).collect()
    }
}

fn either<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_add_up_or_give_a_range() {
        let seen = |seconds, mhz: &[f64], governor: Option<&str>, steal, involuntary_switches| ActivitySince {
            seconds,
            mhz: mhz.to_vec(),
            governor: governor.map(str::to_owned),
            steal,
            voluntary_switches: Some(1),
            involuntary_switches,
        };
        let one =
            HostActivity::of("isolated".into(), seen(1.0, &[2000.0, 1500.0], Some("powersave"), Some(0.1), Some(4)));
        let two = HostActivity::of("isolated".into(), seen(2.0, &[2500.0], Some("performance"), Some(0.3), Some(3)));
        let silent = HostActivity::of("isolated".into(), seen(0.5, &[], None, None, None));
        let all = one.with(silent).with(two);
        assert_eq!((all.seconds, all.mhz, all.steal), (2.0, Some([1500.0, 2500.0]), Some(0.3)));
        assert_eq!((all.voluntary_switches, all.involuntary_switches), (Some(3), Some(7)));
        assert_eq!(all.governors, ["performance", "powersave"]);
    }
}
