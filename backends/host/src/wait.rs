//! How a rank waits for the network, and which way is chosen when the user names none.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use tailback_transport::cpu_list::core_numbers;
use tailback_transport::{Bootstrap, Error, Nanos, Result};

use crate::cores::Topology;
use crate::post::spare;
use crate::seats::Seat;

/// What a blocking call does while nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Looks at the network again and again: lowest latency, takes a core.
    Spin,
    /// As spin, but lets the other thread of its core go first after each fruitless round.
    Pause,
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

/// What a round of progress does when it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Return.
    Return,
    /// Wait as the wait mode says until something arrives or leaves. The caller has looked at everything that earlier
    /// rounds completed: nothing else will wake it.
    Wait,
}

impl WaitMode {
    /// All of them.
    pub const ALL: [WaitMode; 4] = [WaitMode::Spin, WaitMode::Pause, WaitMode::Yield, WaitMode::Block];

    /// What a fruitless round ends with; the same on every backend. The processor's own pause is over when this returns.
    #[inline]
    #[must_use]
    pub fn rest(self, idle: Idle) -> Rest {
        match (self, idle) {
            (WaitMode::Spin, _) => Rest::None,
            (WaitMode::Pause, _) => {
                std::hint::spin_loop();
                Rest::None
            }
            (WaitMode::Block, Idle::Wait) => Rest::Sleep,
            (WaitMode::Yield | WaitMode::Block, _) => Rest::Yield,
        }
    }

    /// The mode to use and why: `asked`, or else what suits the ranks that run on this machine. The job's watcher thread, if it
    /// has one, is sent off the cores that ranks do not sleep on. Collective over the job.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn choose(asked: Option<WaitMode>, bootstrap: &mut dyn Bootstrap) -> Result<(WaitMode, String)> {
        let mine = Seat::mine(bootstrap.host());
        let seats = bootstrap.allgather(mine.encode().as_bytes())?;
        let seats: Vec<Seat> = seats.iter().map(|seat| Seat::decode(&String::from_utf8_lossy(seat))).collect();
        let (mode, reason) = asked.map_or_else(|| suit(&mine, &seats), |mode| (mode, "as asked for".into()));
        if let Some(monitor) = bootstrap.monitor() {
            let neighbours: Vec<&Seat> = seats.iter().filter(|seat| seat.machine == mine.machine).collect();
            monitor.post_watcher(match mode {
                WaitMode::Block => Err("ranks sleep while they wait".into()),
                _ => spare(&mine, &neighbours, &Topology::this()),
            });
        }
        Ok((mode, reason))
    }
}

/// Lets a part of `left` pass: asleep while much of it is left, then awake, as a sleeper wakes up late.
pub fn nap(left: Nanos) {
    const NAP: Nanos = Nanos(100_000);
    if left.0 > 3 * NAP.0 {
        std::thread::sleep(std::time::Duration::from_nanos(NAP.0));
    } else {
        std::thread::yield_now();
    }
}

/// Ranks that are bound to cores of their own, as launchers do, have as many as all of them together.
fn suit(mine: &Seat, seats: &[Seat]) -> (WaitMode, String) {
    let neighbours: Vec<&Seat> = seats.iter().filter(|seat| seat.machine == mine.machine).collect();
    let all = |list: fn(&Seat) -> &str| -> usize {
        neighbours.iter().flat_map(|seat| core_numbers(list(seat))).collect::<HashSet<usize>>().len()
    };
    let (ranks, threads, cores) = (neighbours.len(), all(|seat| &seat.cores), all(|seat| &seat.whole));
    let here = neighbours.iter().filter(|seat| seat.host == mine.host).count();
    let of_threads = if threads > cores { format!(", which have {threads} threads") } else { String::new() };
    match mine.quota {
        _ if ranks > threads => {
            (WaitMode::Block, format!("{ranks} ranks share {cores} cores of this machine{of_threads}"))
        }
        Some(quota) if here > quota => (WaitMode::Block, format!("{here} ranks share the time of {quota} cores")),
        _ if ranks > cores => {
            (WaitMode::Pause, format!("{ranks} ranks share {cores} cores of this machine{of_threads}"))
        }
        _ if shares(mine, &neighbours) => (WaitMode::Pause, "another rank is on a thread of the same core".into()),
        _ => (WaitMode::Spin, format!("{cores} cores for the {ranks} ranks of this machine")),
    }
}

/// Whether more ranks are bound to this rank's cores than there are of them: on threads of one core.
fn shares(mine: &Seat, neighbours: &[&Seat]) -> bool {
    neighbours.iter().filter(|seat| seat.whole == mine.whole).count() > core_numbers(&mine.whole).count().max(1)
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitMode::Spin => "spin",
            WaitMode::Pause => "pause",
            WaitMode::Yield => "yield",
            WaitMode::Block => "block",
        })
    }
}

impl FromStr for WaitMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        WaitMode::ALL
            .into_iter()
            .find(|mode| mode.to_string() == name)
            .ok_or_else(|| Error::Setup(format!("unknown wait mode \"{name}\": use spin, pause, yield or block")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailback_transport::cpu_list::number_list;

    fn seat(machine: &str, host: &str, cores: &str) -> Seat {
        let (cores, whole) = (cores.to_owned(), cores.to_owned());
        Seat { machine: machine.into(), host: host.into(), cores, whole, ..Seat::default() }
    }

    /// On a machine of four cores with two threads each: 0 and 4 are one.
    fn threaded(cores: &str) -> Seat {
        Seat { whole: number_list(Topology::of_pairs(4).cores(core_numbers(cores))), ..seat("m", "h", cores) }
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
    fn threads_of_one_core_are_no_cores() {
        let free = |ranks: usize| vec![threaded("0-7"); ranks];
        let of = |seats: &[Seat]| suit(&seats[0], seats);
        assert_eq!(of(&free(4)), (WaitMode::Spin, "4 cores for the 4 ranks of this machine".into()));
        let told = "8 ranks share 4 cores of this machine, which have 8 threads";
        assert_eq!(of(&free(8)), (WaitMode::Pause, told.into()));
        assert_eq!(of(&free(9)).0, WaitMode::Block);
        // As launchers bind them: a core each, both of its threads.
        assert_eq!(of(&["0,4", "1,5", "2,6", "3,7"].map(threaded)).0, WaitMode::Spin);
        // Bound to threads of one core, while others are idle.
        let beside = ["0", "4", "1"].map(threaded);
        assert_eq!(of(&beside).0, WaitMode::Pause);
        assert_eq!(suit(&beside[2], &beside).0, WaitMode::Pause, "three ranks on two cores");
        let apart = ["0", "4", "1-3"].map(threaded);
        assert_eq!([0, 1, 2].map(|at| suit(&apart[at], &apart).0), [WaitMode::Pause, WaitMode::Pause, WaitMode::Spin]);
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
    fn only_ranks_that_block_sleep_and_only_if_they_may() {
        let rests = |idle| WaitMode::ALL.map(|mode| mode.rest(idle));
        assert_eq!(rests(Idle::Wait), [Rest::None, Rest::None, Rest::Yield, Rest::Sleep]);
        assert_eq!(rests(Idle::Return), [Rest::None, Rest::None, Rest::Yield, Rest::Yield]);
    }

    #[test]
    fn names_are_read_back() {
        for mode in WaitMode::ALL {
            assert_eq!(mode.to_string().parse::<WaitMode>().expect("a mode's own name"), mode);
        }
        assert!("sleep".parse::<WaitMode>().is_err());
    }
}
