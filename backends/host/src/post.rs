//! Where a rank's watcher thread runs: off the cores that ranks spin on, where there are others.
//!
//! A watcher that wakes up on a core on which a rank spins takes it for some microseconds, which a sample then shows. Cores that
//! no rank may use are surely free; threads of the processor that no rank may use take a part of a core at most. Where ranks may
//! use more cores than there are of them, nobody knows which are idle but the scheduler, and it wakes threads there.

use std::collections::BTreeSet;

use tailback_transport::cpu_list::core_numbers;

use crate::cores::Topology;
use crate::seats::Seat;

/// The threads of the machine that a watcher may use, best kind first; or why it stays where it is.
pub(crate) fn spare(mine: &Seat, neighbours: &[&Seat], topology: &Topology) -> Result<Vec<usize>, String> {
    let used: BTreeSet<usize> = neighbours.iter().flat_map(|seat| core_numbers(&seat.cores)).collect();
    let taken = topology.cores(used.iter().copied());
    let is_free = |thread: &usize| !taken.contains(&topology.core(*thread));
    let free: Vec<usize> = topology.online.iter().copied().filter(is_free).collect();
    if !free.is_empty() {
        return Ok(free);
    }
    // Ranks that may use the same cores, and those that are bound to some of them.
    let own: BTreeSet<usize> = core_numbers(&mine.cores).collect();
    let within = |seat: &&&Seat| core_numbers(&seat.cores).any(|thread| own.contains(&thread));
    let (ranks, cores) = (neighbours.iter().filter(within).count(), topology.cores(own.iter().copied()).len());
    if cores > ranks {
        return Err(format!("the scheduler has {cores} cores for {ranks} ranks and wakes it on an idle one"));
    }
    let beside: Vec<usize> = topology.online.iter().copied().filter(|thread| !used.contains(thread)).collect();
    if beside.is_empty() { Err(format!("ranks are on all of the {} cores", taken.len())) } else { Ok(beside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cores: &[&str], topology: &Topology) -> Result<Vec<usize>, String> {
        let seats: Vec<Seat> = cores.iter().map(|cores| Seat { cores: (*cores).into(), ..Seat::default() }).collect();
        spare(&seats[0], &seats.iter().collect::<Vec<_>>(), topology)
    }

    #[test]
    fn watchers_go_to_cores_that_no_rank_may_use() {
        // Four cores of two threads: 0 and 4 are one.
        let machine = Topology::of_pairs(4);
        assert_eq!(found(&["0,4", "1,5", "2"], &machine), Ok(vec![3, 7]));
        assert_eq!(found(&["0-1", "0-1"], &machine), Ok(vec![2, 3, 6, 7]));
        assert_eq!(found(&["0", "0"], &Topology::of_cores(2)), Ok(vec![1]), "the machine has another");
    }

    #[test]
    fn the_other_thread_of_a_core_is_better_than_a_ranks_own() {
        assert_eq!(found(&["0", "1"], &Topology::of_pairs(2)), Ok(vec![2, 3]));
        let told = found(&["0,2", "1,3"], &Topology::of_pairs(2)).unwrap_err();
        assert!(told.contains("all of the 2 cores"), "a rank may be on either thread of its core: {told}");
    }

    #[test]
    fn idle_cores_are_the_schedulers_to_find() {
        let told = found(&["0-7", "0-7"], &Topology::of_pairs(4)).unwrap_err();
        assert_eq!(told, "the scheduler has 4 cores for 2 ranks and wakes it on an idle one");
        let told = found(&["0-3", "0"], &Topology::of_cores(4)).unwrap_err();
        assert!(told.starts_with("the scheduler has 4 cores for 2 ranks"), "{told}");
        assert!(found(&["0-1", "0-1"], &Topology::of_cores(2)).unwrap_err().contains("all of the 2 cores"));
    }
}
