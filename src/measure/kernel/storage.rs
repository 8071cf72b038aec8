//! Bursts of writes to storage: all clients write a stripe to few servers at once, wait until it is written, and pause.

use tailback_transport::{Group, Nanos, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern};
use crate::layout::Neighbours;

const UNIT: Tag = Tag(0);
const WRITTEN: Tag = Tag(1);
/// One member of so many is a server.
const SHARE: usize = 8;
/// A pause is so many times as long as the burst before it: a quarter of the time is burst.
const PAUSE: u64 = 3;
/// And no longer than this: whoever ends a load does not wait for it.
const LONGEST: Nanos = Nanos(20_000_000);

/// Clients cut a stripe into a window of units, which go to the servers in turn, each client beginning with another. A server
/// tells its clients when it has all of their units, so clients' bursts stay together.
pub struct Storage {
    bytes: usize,
    /// Of a client: the server of each unit.
    stripe: Vec<Rank>,
    /// Of a server: the client of each unit, in the order they come; of a client: the servers that tell it.
    told_by: Vec<Rank>,
    units: Vec<Rank>,
    told: Vec<Rank>,
}

impl Storage {
    /// The first members are the servers.
    fn servers(size: usize) -> usize {
        size.div_ceil(SHARE)
    }

    /// The server of each unit of a client's stripe.
    fn stripe(window: usize, size: usize, client: usize) -> impl Iterator<Item = usize> {
        let servers = Self::servers(size);
        (0..window).map(move |unit| (client + unit) % servers)
    }

    /// The clients of a server, one for each unit.
    fn units(window: usize, size: usize, server: usize) -> impl Iterator<Item = usize> {
        let clients = Self::servers(size)..size;
        clients.flat_map(move |client| {
            Self::stripe(window, size, client).filter(move |to| *to == server).map(move |_| client)
        })
    }

    fn unit_span(&self, unit: usize) -> Span {
        Span::new(self.bytes * (1 + unit), self.bytes)
    }

    /// One byte says it.
    fn written_span(at: usize, bytes: usize) -> Span {
        Span::new(bytes + at, 1)
    }
}

/// Segment of a server: [sent | unit | unit | ...]; of a client: [sent | a byte from each of its servers].
impl Kernel for Storage {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        let (me, Sizes { bytes, window }) = (rank.index(), sizes);
        let ranks = |of: &mut dyn Iterator<Item = usize>| of.map(Rank::from).collect::<Vec<_>>();
        let once = |mut all: Vec<Rank>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        if me < Self::servers(size) {
            let units = ranks(&mut Self::units(window, size, me));
            return Storage { bytes, stripe: Vec::new(), told_by: Vec::new(), told: once(units.clone()), units };
        }
        let stripe = ranks(&mut Self::stripe(window, size, me));
        Storage { bytes, told_by: once(stripe.clone()), stripe, units: Vec::new(), told: Vec::new() }
    }

    fn segment(sizes: Sizes, size: usize) -> usize {
        let units = |server| Self::units(sizes.window, size, server).count();
        let most = (0..Self::servers(size)).map(units).max().unwrap_or_default();
        (sizes.bytes * (1 + most)).max(sizes.bytes + sizes.window)
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let begun = group.now();
        for (unit, client) in self.units.iter().enumerate() {
            group.post_recv(*client, UNIT, self.unit_span(unit))?;
        }
        for (at, server) in self.told_by.iter().enumerate() {
            group.post_recv(*server, WRITTEN, Self::written_span(at, self.bytes))?;
        }
        for server in &self.stripe {
            group.post_send(*server, UNIT, Span::new(0, self.bytes))?;
        }
        group.wait_all()?;
        if self.stripe.is_empty() {
            self.told.iter().try_for_each(|client| group.post_send(*client, WRITTEN, Span::new(0, 1)))?;
            return group.wait_all();
        }
        let written = group.now();
        let pause = LONGEST.0.min(PAUSE * written.since(begun).0);
        group.wait_until(Nanos(written.0 + pause))
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for (unit, client) in self.units.iter().enumerate() {
            check_pattern(group, *client, self.unit_span(unit).offset, self.bytes)?;
        }
        for (at, server) in self.told_by.iter().enumerate() {
            check_pattern(group, *server, Self::written_span(at, self.bytes).offset, 1)?;
        }
        Ok(())
    }

    fn payload(&self) -> usize {
        self.bytes * self.stripe.len()
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_of, run_on_loopback as run};
    use super::*;

    #[test]
    fn stripes_are_shared_out_among_the_servers() {
        assert_eq!([1, 2, 8, 9, 64].map(Storage::servers), [1, 1, 1, 2, 8]);
        assert_eq!(Storage::stripe(8, 20, 4).collect::<Vec<_>>(), [1, 2, 0, 1, 2, 0, 1, 2]);
        let units: Vec<usize> = (0..3).map(|server| Storage::units(8, 20, server).count()).collect();
        assert_eq!((units.iter().sum::<usize>(), units.iter().max()), (8 * 17, Some(&46)));
    }

    #[test]
    fn stripes_arrive_on_any_number_of_members() {
        for size in [1, 2, 3, 7, 8, 9] {
            let servers = Storage::servers(size);
            let sent: Vec<usize> = (0..size).map(|rank| if rank < servers { 0 } else { 2000 }).collect();
            assert_eq!(run::<Storage>(Job::new(size), size).unwrap(), sent);
        }
        // One unit, of one byte, goes to one of two servers.
        run_of::<Storage>(Job::new(9), 9, Sizes { bytes: 1, window: 1 }).unwrap();
    }

    #[test]
    fn corruption_is_detected() {
        let found = run::<Storage>(Job::new(2).fault(BadCard), 2).unwrap_err().to_string();
        assert!(found.contains("byte 77 of 1000 from member 1"), "{found}");
    }
}
