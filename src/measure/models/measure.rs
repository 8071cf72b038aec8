//! What the studies share: one group of all ranks, checked data, and figures gathered outside timed regions.
//!
//! Ranks of the group are ranks of the job, so that a message about wrong data names the right ones.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailback_transport::{Bootstrap, Error, Group, Monitor, Nanos, Rank, Result, Span, Tag, Transport};

use crate::kernel::{check_pattern, fill_pattern, until_steady};
use crate::layout::Nodes;
use crate::stats::{Rested, Rule};

/// What a study heeds between its steps.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    /// Told where the study is.
    pub monitor: &'a Monitor,
    /// Raised when the user wants it to end.
    pub interrupt: &'a AtomicBool,
    /// When a step's rate is steady, but for what the step itself says of that.
    pub rule: Rule,
}

impl Control<'_> {
    /// Repeats a step until its rate is steady; see [`until_steady`]. All ranks meet after every batch. None goes on when
    /// any of them was interrupted: a signal may reach some ranks sooner than others, and those that went on alone would
    /// wait for ever.
    pub(super) fn until_steady<G: Group>(
        &self,
        group: &mut G,
        rule: Rule,
        batch: impl FnMut(&mut G, u64) -> Result<Nanos>,
    ) -> Result<Option<Rested>> {
        until_steady(group, rule, self.monitor, || self.interrupt.load(Ordering::Relaxed), batch)
    }
}

/// The job that a study is made in.
#[allow(missing_docs)]
pub struct StudyJob<'a> {
    pub bootstrap: &'a mut dyn Bootstrap,
    pub nodes: &'a Nodes,
    /// Of everything that is drawn.
    pub seed: u64,
    pub control: Control<'a>,
}

/// What a study found, and how many of its repetitions were complete: fewer than asked for when it was interrupted.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Repeated<V> {
    pub found: V,
    pub complete: usize,
}

/// All ranks, each with a segment of [sent | received], `bytes` each, and once more received when `sides` is 2.
pub(super) fn everyone<T: Transport>(
    bootstrap: &dyn Bootstrap,
    transport: &mut T,
    bytes: usize,
    sides: usize,
) -> Result<T::Group> {
    let mut group = transport.group(&bootstrap.everyone(), bytes * (1 + sides))?;
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

/// The time of so many round trips of `ping` bytes there and `pong` bytes back; 0 on the side that returns. The received
/// area begins at `received`.
pub(super) fn round_trips<G: Group>(
    group: &mut G,
    (peer, side): (Rank, Side),
    (ping, pong): (usize, usize),
    received: usize,
    iterations: u64,
) -> Result<Nanos> {
    // One byte each way first: the two come from an agreement, which they may have left at different times.
    trips(group, (peer, side), (ping.min(1), pong.min(1)), received, 1)?;
    let begin = group.now();
    trips(group, (peer, side), (ping, pong), received, iterations)?;
    let time = group.now().since(begin);
    Ok(if side == Side::Serves { time } else { Nanos(0) })
}

fn trips<G: Group>(
    group: &mut G,
    (peer, side): (Rank, Side),
    (ping, pong): (usize, usize),
    received: usize,
    iterations: u64,
) -> Result<()> {
    let (outward, inward) = if side == Side::Serves { (ping, pong) } else { (pong, ping) };
    let (sent, got) = (Span::new(0, outward), Span::new(received, inward));
    for _ in 0..iterations {
        if side == Side::Serves {
            group.send(peer, Tag(0), sent)?;
        }
        group.recv(peer, Tag(0), got)?;
        if side == Side::Returns {
            group.send(peer, Tag(0), sent)?;
        }
    }
    Ok(())
}

/// The time of so many exchanges with `peer`, `bytes` each way at once. The received area begins at `received`.
pub(super) fn exchanges<G: Group>(
    group: &mut G,
    peer: Rank,
    bytes: usize,
    received: usize,
    iterations: u64,
) -> Result<Nanos> {
    let exchange = |group: &mut G, bytes: usize| {
        group.post_recv(peer, Tag(0), Span::new(received, bytes))?;
        group.post_send(peer, Tag(0), Span::new(0, bytes))?;
        group.wait_all()
    };
    // As before round trips.
    exchange(group, bytes.min(1))?;
    let begin = group.now();
    for _ in 0..iterations {
        exchange(group, bytes)?;
    }
    Ok(group.now().since(begin))
}

/// Every rank's value, on every rank.
pub(super) fn share<V: Serialize + DeserializeOwned>(bootstrap: &mut dyn Bootstrap, mine: &V) -> Result<Vec<V>> {
    let mine = serde_json::to_vec(mine).expect("plain data");
    let all = bootstrap.allgather(&mine)?;
    Ok(all.iter().map(|bytes| serde_json::from_slice(bytes).expect("every rank sends the same form")).collect())
}

/// The geometric mean; 1 of nothing.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

/// For the tests of studies: a job on the loopback transport.
#[cfg(test)]
pub(super) mod testing {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::{Job, Loopback};

    use super::*;

    /// Runs a study on every rank of `job`; `interrupted` is told to end before it begins.
    pub(in crate::models) fn study<V: Send>(
        job: Job,
        nodes: &Nodes,
        interrupted: Option<Rank>,
        study: impl Fn(StudyJob<'_>, &mut Collective<Loopback>) -> Result<V> + Sync,
    ) -> Result<Vec<V>> {
        job.run(|mut bootstrap, raw| {
            let interrupt = AtomicBool::new(interrupted == Some(bootstrap.rank()));
            let control = Control { monitor: &Monitor::new(), interrupt: &interrupt, rule: Rule::default() };
            let job = StudyJob { bootstrap: &mut bootstrap, nodes, seed: 7, control };
            study(job, &mut Collective::new(raw))
        })
    }
}
