//! Where the ranks of a job run, as they tell each other.

use tailback_transport::cpu_list::{core_numbers, number_list};

use crate::cores::Topology;

/// Where a rank runs. Hosts that share a machine, as containers and the lab's do, share its cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) machine: String,
    pub(crate) host: String,
    /// The threads that it may use, as the kernel writes them: `0-3,8`.
    pub(crate) cores: String,
    /// Their cores, each by its first thread.
    pub(crate) whole: String,
    /// How many threads' time its container may use, where that is less.
    pub(crate) quota: Option<usize>,
}

impl Seat {
    /// This rank's.
    pub(crate) fn mine(host: &str) -> Seat {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let machine = read("/proc/sys/kernel/random/boot_id").trim().to_owned();
        let status = read("/proc/self/status");
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // A system without these files: every rank of a host may use what this one may.
        let cores = if cores.is_empty() { format!("0-{}", usable - 1) } else { cores.trim().to_owned() };
        let quota = (usable < core_numbers(&cores).count()).then_some(usable);
        let machine = if machine.is_empty() { host.to_owned() } else { machine };
        let whole = number_list(Topology::this().cores(core_numbers(&cores)));
        Seat { machine, host: host.to_owned(), cores, whole, quota }
    }

    /// In lines that [`Seat::decode`] reads.
    pub(crate) fn encode(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.machine, self.cores, self.whole, self.host)
    }

    /// As told by a rank; its quota is its own affair.
    pub(crate) fn decode(text: &str) -> Seat {
        let mut lines = text.splitn(4, '\n').map(str::to_owned);
        let [machine, cores, whole, host] = std::array::from_fn(|_| lines.next().unwrap_or_default());
        Seat { machine, host, cores, whole, quota: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_and_garbage_is_no_core() {
        let mine = Seat::mine("this host");
        assert!(core_numbers(&mine.cores).count() >= 1, "{mine:?}");
        assert_eq!(Seat::decode(&mine.encode()), Seat { quota: None, ..mine });
        assert_eq!(core_numbers(&Seat::decode("").cores).count(), 0);
    }
}
