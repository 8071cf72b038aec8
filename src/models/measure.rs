//! What the studies share: one group of all ranks, checked data, and figures gathered outside timed regions.
//!
//! Ranks of the group are ranks of the job, so that a message about wrong data names the right ones.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailback_transport::{Bootstrap, Error, Group, Monitor, Nanos, Rank, Result, Span, Tag, Transport};

use crate::kernel::{check_pattern, fill_pattern};

/// Untimed exchanges before a timed loop: connections are made, caches are warm.
pub(super) const WARM_UP: usize = 2;

/// What a study heeds between its steps.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    /// Told where the study is.
    pub monitor: &'a Monitor,
    /// Raised when the user wants it to end.
    pub interrupt: &'a AtomicBool,
}

impl Control<'_> {
    /// All ranks meet before a step; whether they take it. None does when any of them was interrupted: a signal may
    /// reach some ranks sooner than others, and those that went on alone would wait for ever.
    pub(super) fn goes_on<G: Group>(&self, group: &mut G) -> Result<bool> {
        let interrupted = u64::from(self.interrupt.load(Ordering::Relaxed));
        self.monitor.wait();
        group.start_agreement([interrupted, 0, 0, 0])?;
        let agreed = group.wait_agreement()?;
        self.monitor.tick();
        Ok(agreed[0] == 0)
    }
}

/// What a study found, and how many of its repetitions were complete: fewer than asked for when it was interrupted.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Repeated<V> {
    pub found: V,
    pub complete: usize,
}

/// All ranks, each with a segment of [sent | received], `bytes` each, and once more received when `sides` is 2.
pub(super) fn everyone<B: Bootstrap, T: Transport>(
    bootstrap: &B,
    transport: &mut T,
    bytes: usize,
    sides: usize,
) -> Result<T::Group> {
    let all: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&all, bytes * (1 + sides))?;
    fill_pattern(&mut group, 0, bytes);
    Ok(group)
}

/// Checks that `bytes` received at `offset` are those that `sender` sends, and names it if they are not.
pub(super) fn check<G: Group>(group: &G, sender: Rank, offset: usize, bytes: usize) -> Result<()> {
    check_pattern(group, sender, offset, bytes).map_err(|error| match error {
        Error::Protocol { operation, detail, .. } => Error::Protocol { operation, peer: Some(sender), detail },
        other => other,
    })
}

/// Overwrites what was received, so that data which never came cannot pass for data which did.
pub(super) fn forget<G: Group>(group: &mut G, offset: usize, bytes: usize) {
    let zeros = [0u8; 4096];
    for start in (0..bytes).step_by(zeros.len()) {
        group.write(offset + start, &zeros[..zeros.len().min(bytes - start)]);
    }
}

/// Which side of a ping-pong this rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Serves,
    Returns,
}

/// `iterations` round trips of `bytes` with `peer`; gives the one-way time. The received area begins at `received`.
/// Data is checked after the loop.
pub(super) fn ping_pong<G: Group>(
    group: &mut G,
    partner: (Rank, Side),
    (bytes, received): (usize, usize),
    iterations: usize,
) -> Result<Nanos> {
    let round_trip = round_trips(group, partner, (bytes, bytes), received, iterations)?;
    Ok(Nanos(round_trip.0 / 2))
}

/// The time of a round trip of `ping` bytes there and `pong` bytes back. Data is checked after the loop.
pub(super) fn round_trips<G: Group>(
    group: &mut G,
    (peer, side): (Rank, Side),
    (ping, pong): (usize, usize),
    received: usize,
    iterations: usize,
) -> Result<Nanos> {
    let (outward, inward) = if side == Side::Serves { (ping, pong) } else { (pong, ping) };
    let (sent, got) = (Span::new(0, outward), Span::new(received, inward));
    forget(group, received, inward);
    let mut begin = group.now();
    for round in 0..WARM_UP + iterations {
        if round == WARM_UP {
            begin = group.now();
        }
        if side == Side::Serves {
            group.post_send(peer, Tag(0), sent)?;
            group.wait_all()?;
        }
        group.post_recv(peer, Tag(0), got)?;
        group.wait_all()?;
        if side == Side::Returns {
            group.post_send(peer, Tag(0), sent)?;
            group.wait_all()?;
        }
    }
    let time = group.now().since(begin);
    check(group, peer, received, inward)?;
    Ok(Nanos(time.0 / (iterations as u64).max(1)))
}

/// Every rank's value, on every rank.
pub(super) fn share<B: Bootstrap, V: Serialize + DeserializeOwned>(bootstrap: &mut B, mine: &V) -> Result<Vec<V>> {
    let mine = serde_json::to_vec(mine).expect("plain data");
    let all = bootstrap.allgather(&mine)?;
    Ok(all.iter().map(|bytes| serde_json::from_slice(bytes).expect("every rank sends the same form")).collect())
}

/// The geometric mean; 1 of nothing.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

/// The middle of the values; none when there are none.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
