//! What the machine did with the calling thread and its core: frequency, governor, time stolen by a hypervisor, context
//! switches. Nothing is told where the kernel does not tell it.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::process_stat::running_on;

/// What the kernel shows at one moment.
#[derive(Clone, Debug)]
pub struct Activity {
    at: Instant,
    /// Of the thread's core, in MHz.
    mhz: Option<f64>,
    governor: Option<String>,
    /// Clock ticks of all cores, and how many of them were stolen.
    ticks: Option<(u64, u64)>,
    /// Of the thread: it waited, or another had its core.
    switches: Option<(u64, u64)>,
}

/// What happened between two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivitySince {
    /// How long it was.
    pub seconds: f64,
    /// The core's frequency before and after, in MHz.
    pub mhz: Vec<f64>,
    /// What decides on the frequency.
    pub governor: Option<String>,
    /// The part of the host's processor time, from 0 to 1, that a hypervisor gave to others.
    pub steal: Option<f64>,
    /// Context switches of the thread because it waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches of the thread because another had its core.
    pub involuntary_switches: Option<u64>,
}

impl Activity {
    /// Of the calling thread, now.
    pub fn now() -> Self {
        let core = running_on();
        let text = |path: &str| fs::read_to_string(Path::new(path)).ok();
        let of_core = |name: &str| text(&format!("/sys/devices/system/cpu/cpu{}/cpufreq/{name}", core?));
        let khz = of_core("scaling_cur_freq").and_then(|text| text.trim().parse::<f64>().ok());
        Activity {
            at: Instant::now(),
            mhz: khz.map(|khz| khz / 1e3).or_else(|| mhz_of(&text("/proc/cpuinfo")?, core?)),
            governor: of_core("scaling_governor").map(|text| text.trim().to_owned()),
            ticks: text("/proc/stat").and_then(|text| ticks(&text)),
            switches: text("/proc/thread-self/status").and_then(|text| switches(&text)),
        }
    }

    /// What happened from `earlier` until then.
    pub fn since(&self, earlier: &Activity) -> ActivitySince {
        let steal = self.ticks.zip(earlier.ticks).and_then(|(now, then)| {
            let all = now.0.checked_sub(then.0).filter(|all| *all > 0)?;
            Some(now.1.checked_sub(then.1)? as f64 / all as f64)
        });
        let switches = self.switches.zip(earlier.switches);
        ActivitySince {
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
            mhz: earlier.mhz.into_iter().chain(self.mhz).collect(),
            governor: self.governor.clone(),
            steal,
            voluntary_switches: switches.and_then(|(now, then)| now.0.checked_sub(then.0)),
            involuntary_switches: switches.and_then(|(now, then)| now.1.checked_sub(then.1)),
        }
    }
}

/// The frequency of a core, from /proc/cpuinfo.
fn mhz_of(text: &str, core: usize) -> Option<f64> {
    let value = |line: &str, key: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    let mut lines = text.lines().skip_while(|line| value(line, "processor") != Some(core.to_string()));
    lines.next()?;
    lines.take_while(|line| value(line, "processor").is_none()).find_map(|line| value(line, "cpu MHz")?.parse().ok())
}

/// Ticks of all cores and those that were stolen, from /proc/stat.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // Guests' time is counted in the first two already, so the eighth is the last of the sum.
    let of: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    Some((of.iter().sum(), *of.get(7)?))
}

/// Voluntary and involuntary context switches, from a thread's status.
fn switches(text: &str) -> Option<(u64, u64)> {
    let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some((of("voluntary_ctxt_switches:")?, of("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "cpu  10 1 5 100 2 0 1 7 3 0\ncpu0 10 1 5 100 2 0 1 7 3 0\n";
        assert_eq!(ticks(stat), Some((126, 7)));
        assert_eq!(ticks("cpu  10 1 5 100\n"), None, "an old kernel counts no steal");
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), Some((12, 3)));
        let info = "processor\t: 0\ncpu MHz\t\t: 800.5\n\nprocessor\t: 1\ncpu MHz\t\t: 2100.0\n";
        assert_eq!((mhz_of(info, 1), mhz_of(info, 0), mhz_of(info, 2)), (Some(2100.0), Some(800.5), None));
        assert_eq!(mhz_of("processor : 0\nprocessor : 1\ncpu MHz : 7\n", 0), None, "another core's");
    }

    #[test]
    fn a_thread_that_waits_is_switched_from() {
        let before = Activity::now();
        (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        let since = Activity::now().since(&before);
        assert!(since.voluntary_switches.is_some_and(|count| count >= 20), "{since:?}");
        assert!(since.seconds >= 0.02 && since.steal.is_none_or(|part| (0.0..=1.0).contains(&part)), "{since:?}");
    }
}
