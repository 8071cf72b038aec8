//! Threads of a rank, for work that needs no network: the rank's own thread takes a part, and is the only one that sends.

use std::thread;

/// Has every part worked on at once, a thread each, the last one by this thread.
pub(crate) fn at_once<P: Send>(mut parts: Vec<P>, work: impl Fn(P) + Sync) {
    let own = parts.pop();
    thread::scope(|scope| {
        for part in parts {
            scope.spawn(|| work(part));
        }
        own.into_iter().for_each(&work);
    });
}

/// Where the `at`-th of so many nearly equal parts of `total` begins.
pub(crate) fn begin(total: usize, parts: usize, at: usize) -> usize {
    (total as u128 * at as u128 / parts.max(1) as u128) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_part_is_worked_on_once() {
        for parts in [0, 1, 3, 8] {
            let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            at_once((0..parts).collect(), |part: usize| {
                done[part].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
        }
        let begins: Vec<usize> = (0..=3).map(|at| begin(10, 3, at)).collect();
        assert_eq!(begins, [0, 3, 6, 10]);
    }
}
