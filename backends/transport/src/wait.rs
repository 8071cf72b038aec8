//! How a rank waits for the network, and which way is chosen when the user names none.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use crate::{Bootstrap, Error, Idle, Result};

/// What a blocking call does while nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Looks at the network again and again: lowest latency, takes a core.
    Spin,
    /// As spin, but offers the core to others after each fruitless round.
    Yield,
    /// Sleeps in the kernel until the network has something.
    Block,
}

/// What a rank does between two rounds of progress that find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the next round follows at once.
    None,
    /// Offers its core to others: a caller that keeps asking would keep it from the rank that it waits for.
    Yield,
    /// Sleeps until the network has something.
    Sleep,
}

impl WaitMode {
    /// What a fruitless round ends with; the same on every backend.
    #[inline]
    #[must_use]
    pub fn rest(self, idle: Idle) -> Rest {
        match (self, idle) {
            (WaitMode::Spin, _) => Rest::None,
            (WaitMode::Block, Idle::Wait) => Rest::Sleep,
            (WaitMode::Yield | WaitMode::Block, _) => Rest::Yield,
        }
    }

    /// The mode to use and why: `asked`, or else what suits the ranks that run on this machine. Collective over the job.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn choose(asked: Option<WaitMode>, bootstrap: &mut impl Bootstrap) -> Result<(WaitMode, String)> {
        let mine = Seat::mine(bootstrap.host());
        let seats = bootstrap.allgather(mine.encode().as_bytes())?;
        let seats: Vec<Seat> = seats.iter().map(|seat| Seat::decode(&String::from_utf8_lossy(seat))).collect();
        Ok(asked.map_or_else(|| suit(&mine, &seats), |mode| (mode, "as asked for".into())))
    }
}

/// Where a rank runs. Hosts that share a machine, as containers and the lab's do, share its cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seat {
    machine: String,
    host: String,
    /// The cores that it may use, as the kernel writes them: `0-3,8`.
    cores: String,
    /// How many cores' time its container may use, where that is less.
    quota: Option<usize>,
}

impl Seat {
    fn mine(host: &str) -> Seat {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let machine = read("/proc/sys/kernel/random/boot_id").trim().to_owned();
        let status = read("/proc/self/status");
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // A system without these files: every rank of a host may use what this one may.
        let cores = if cores.is_empty() { format!("0-{}", usable - 1) } else { cores.trim().to_owned() };
        let quota = (usable < core_numbers(&cores).count()).then_some(usable);
        let machine = if machine.is_empty() { host.to_owned() } else { machine };
        Seat { machine, host: host.to_owned(), cores, quota }
    }

    fn encode(&self) -> String {
        format!("{}\n{}\n{}", self.machine, self.cores, self.host)
    }

    /// As told by a rank; its quota is its own affair.
    fn decode(text: &str) -> Seat {
        let mut lines = text.splitn(3, '\n').map(str::to_owned);
        let [machine, cores, host] = std::array::from_fn(|_| lines.next().unwrap_or_default());
        Seat { machine, host, cores, quota: None }
    }
}

/// The numbers in a list such as `0-3,8`.
pub(crate) fn core_numbers(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

/// Ranks that are bound to cores of their own, as launchers do, have as many as all of them together.
fn suit(mine: &Seat, seats: &[Seat]) -> (WaitMode, String) {
    let neighbours: Vec<&Seat> = seats.iter().filter(|seat| seat.machine == mine.machine).collect();
    let cores: HashSet<usize> = neighbours.iter().flat_map(|seat| core_numbers(&seat.cores)).collect();
    let (ranks, cores) = (neighbours.len(), cores.len());
    let here = neighbours.iter().filter(|seat| seat.host == mine.host).count();
    match mine.quota {
        _ if ranks > cores => (WaitMode::Block, format!("{ranks} ranks share {cores} cores of this machine")),
        Some(quota) if here > quota => (WaitMode::Block, format!("{here} ranks share the time of {quota} cores")),
        _ => (WaitMode::Spin, format!("{cores} cores for the {ranks} ranks of this machine")),
    }
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitMode::Spin => "spin",
            WaitMode::Yield => "yield",
            WaitMode::Block => "block",
        })
    }
}

impl FromStr for WaitMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [WaitMode::Spin, WaitMode::Yield, WaitMode::Block]
            .into_iter()
            .find(|mode| mode.to_string() == name)
            .ok_or_else(|| Error::Setup(format!("unknown wait mode \"{name}\": use spin, yield or block")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(machine: &str, host: &str, cores: &str) -> Seat {
        Seat { machine: machine.into(), host: host.into(), cores: cores.into(), quota: None }
    }

    #[test]
    fn oversubscribed_machines_block_and_say_why() {
        let ten: Vec<Seat> = (0..10).map(|at| seat("m", &format!("h{at}"), "0-1")).collect();
        assert_eq!(suit(&ten[0], &ten), (WaitMode::Block, "10 ranks share 2 cores of this machine".into()));
        assert_eq!(suit(&ten[0], &ten[..2]).0, WaitMode::Spin);
    }

    #[test]
    fn ranks_with_a_core_each_spin() {
        let mut bound: Vec<Seat> = (0..4).map(|core| seat("m", "h", &core.to_string())).collect();
        bound.push(seat("another", "i", "0"));
        assert_eq!(suit(&bound[0], &bound), (WaitMode::Spin, "4 cores for the 4 ranks of this machine".into()));
        bound.push(seat("m", "h", "2"));
        assert_eq!(suit(&bound[0], &bound).0, WaitMode::Block, "two on one core");
    }

    #[test]
    fn a_containers_share_of_time_counts() {
        let all = [seat("m", "a", "0-63"), seat("m", "a", "0-63"), seat("m", "b", "0-63")];
        let of = |quota| suit(&Seat { quota, ..all[0].clone() }, &all);
        assert_eq!(of(None).0, WaitMode::Spin);
        assert_eq!(of(Some(2)).0, WaitMode::Spin);
        assert_eq!(of(Some(1)), (WaitMode::Block, "2 ranks share the time of 1 cores".into()));
    }

    #[test]
    fn what_is_told_is_understood_and_garbage_is_no_core() {
        let mine = Seat::mine("this host");
        assert!(core_numbers(&mine.cores).count() >= 1, "{mine:?}");
        assert_eq!(Seat::decode(&mine.encode()), Seat { quota: None, ..mine });
        assert_eq!(core_numbers("0-2,5,7-8").collect::<Vec<_>>(), [0, 1, 2, 5, 7, 8]);
        assert_eq!(core_numbers("3-,x,9-1").count() + core_numbers(&Seat::decode("").cores).count(), 0);
    }

    #[test]
    fn only_ranks_that_block_sleep_and_only_if_they_may() {
        let rests = |idle| [WaitMode::Spin, WaitMode::Yield, WaitMode::Block].map(|mode| mode.rest(idle));
        assert_eq!(rests(Idle::Wait), [Rest::None, Rest::Yield, Rest::Sleep]);
        assert_eq!(rests(Idle::Return), [Rest::None, Rest::Yield, Rest::Yield]);
    }

    #[test]
    fn names_are_read_back() {
        for mode in [WaitMode::Spin, WaitMode::Yield, WaitMode::Block] {
            assert_eq!(mode.to_string().parse::<WaitMode>().expect("a mode's own name"), mode);
        }
        assert!("sleep".parse::<WaitMode>().is_err());
    }
}
