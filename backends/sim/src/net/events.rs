//! The events to come, in order of time and, at one time, in order of arrival: the order is total, so runs repeat.
//!
//! A calendar: a wheel of buckets for the near future, a heap for the rest. A bucket is a list that is sorted when its turn
//! comes, which costs less per event than keeping a heap of everything; the lists share one slab, so that memory in use
//! stays in cache. Invariant: everything in the heap is later than everything in the wheel.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Buckets of the wheel.
const BUCKETS: usize = 4096;

/// Buckets that a typical wait spans.
const SPAN: u64 = 512;

/// No node.
const END: u32 = u32::MAX;

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time: u64,
    /// The event's number, then its kind in the last byte: comparing keys compares numbers.
    key: u64,
    pub(crate) a: u32,
    pub(crate) b: u32,
}

impl Event {
    pub(crate) fn kind(&self) -> u8 {
        self.key as u8
    }

    #[inline]
    fn order(&self) -> (u64, u64) {
        (self.time, self.key)
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed: the heap has the earliest on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Events {
    /// A bucket is 2^shift picoseconds wide.
    shift: u32,
    /// The bucket under way, counted from time zero.
    base: u64,
    /// What is left of it, the next event last.
    current: Vec<Event>,
    /// The first node of each bucket.
    wheel: Box<[u32; BUCKETS]>,
    /// Events with the node behind each.
    nodes: Vec<(Event, u32)>,
    free: u32,
    occupied: [u64; BUCKETS / 64],
    far: BinaryHeap<Event>,
    numbered: u64,
}

impl Events {
    /// For events that are typically some `scale` picoseconds away.
    pub(crate) fn new(scale: u64) -> Self {
        Events {
            shift: (scale / SPAN).max(1).ilog2(),
            base: 0,
            current: Vec::new(),
            wheel: Box::new([END; BUCKETS]),
            nodes: Vec::new(),
            free: END,
            occupied: [0; BUCKETS / 64],
            far: BinaryHeap::new(),
            numbered: 0,
        }
    }

    /// Adds an event; its time is not before that of the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, kind: u8, a: u32, b: u32) {
        self.numbered += 1;
        self.place(Event { time, key: self.numbered << 8 | u64::from(kind), a, b });
    }

    #[inline]
    fn place(&mut self, event: Event) {
        let slot = event.time >> self.shift;
        if slot <= self.base {
            let at = self.current.partition_point(|other| other.order() > event.order());
            self.current.insert(at, event);
        } else if slot - self.base < BUCKETS as u64 {
            let bucket = slot as usize % BUCKETS;
            let node = (event, self.wheel[bucket]);
            self.wheel[bucket] = match self.free {
                END => {
                    self.nodes.push(node);
                    (self.nodes.len() - 1) as u32
                }
                free => {
                    self.free = std::mem::replace(&mut self.nodes[free as usize], node).1;
                    free
                }
            };
            self.occupied[bucket / 64] |= 1 << (bucket % 64);
        } else {
            self.far.push(event);
        }
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.current.is_empty() && !self.turn() {
            return None;
        }
        self.current.pop()
    }

    /// Goes on to the next bucket that has events.
    fn turn(&mut self) -> bool {
        let next = match (self.next_bucket(), self.far.peek()) {
            (Some(slot), _) => slot,
            (None, Some(event)) => event.time >> self.shift,
            (None, None) => return false,
        };
        self.base = next;
        let bucket = next as usize % BUCKETS;
        let mut at = std::mem::replace(&mut self.wheel[bucket], END);
        while at != END {
            let (event, next) = self.nodes[at as usize];
            self.current.push(event);
            self.nodes[at as usize].1 = self.free;
            self.free = at;
            at = next;
        }
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        // The latest comes first: the next event is taken from the end.
        self.current.sort_unstable();
        while let Some(event) = self.far.peek().copied().filter(|e| (e.time >> self.shift) - next < BUCKETS as u64) {
            self.far.pop();
            self.place(event);
        }
        true
    }

    /// The first bucket after the one under way that has events.
    fn next_bucket(&self) -> Option<u64> {
        let start = (self.base as usize + 1) % BUCKETS;
        let words = BUCKETS / 64;
        let mut word = self.occupied[start / 64] & !0 << (start % 64);
        for step in 0..=words {
            if word != 0 {
                let bucket = (start / 64 + step) % words * 64 + word.trailing_zeros() as usize;
                let ahead = (bucket + BUCKETS - start) % BUCKETS;
                return Some(self.base + 1 + ahead as u64);
            }
            word = self.occupied[(start / 64 + step + 1) % words];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn events_come_in_order_of_time_then_of_arrival() {
        for scale in [64, 4096, 1 << 20] {
            let mut events = Events::new(scale);
            let mut rng = Rng::new(scale);
            let (mut now, mut expected) = (0, std::collections::BTreeMap::new());
            for number in 0..200_000u32 {
                // Far ahead, near, and at once, with many ties.
                let ahead = match number % 7 {
                    0 => u64::from(rng.below(1 << 30)),
                    1 => 0,
                    _ => u64::from(rng.below(1000)) * 64,
                };
                events.push(now + ahead, 3, number, 0);
                expected.insert((now + ahead, number), ());
                if rng.below(5) > 1 || number > 190_000 {
                    for _ in 0..2 {
                        let event = events.pop();
                        let first = expected.pop_first().map(|(key, ())| key);
                        assert_eq!(event.map(|e| (e.time, e.a)), first);
                        now = event.map_or(now, |e| e.time);
                    }
                }
            }
            while let Some(event) = events.pop() {
                assert_eq!(expected.pop_first().map(|(key, ())| key), Some((event.time, event.a)));
                assert_eq!(event.kind(), 3);
            }
            assert!(expected.is_empty());
        }
    }
}
