//! Cases about barrier and allreduce.

use std::thread::sleep;
use std::time::Duration;

use tailback_transport::{Bootstrap, Group, Operation, Rank, Result, Span, Transport};

use super::arena::{Arena, Case, fill};
use super::sizes::LARGEST;

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    use Operation::{Allreduce, Put};
    vec![
        Case { name: "barrier: nobody leaves before all are in", needs: &[Put], body: barrier_waits },
        Case { name: "barrier: a thousand in a row", needs: &[], body: barriers_in_a_row },
        Case { name: "allreduce: 8 B, many times", needs: &[Allreduce], body: allreduce_small },
        Case { name: "allreduce: every size, exact, nothing else touched", needs: &[Allreduce], body: allreduce_sizes },
        Case { name: "allreduce: the same bits on every member", needs: &[Allreduce], body: allreduce_bits },
        Case { name: "barrier and allreduce: back to back", needs: &[Allreduce], body: back_to_back },
    ]
}

/// Every member marks every other's memory before it enters, a different one late each time; whoever left finds the
/// marks of all.
fn barrier_waits<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let mut group = arena.world((1 + everyone.len()) * 8)?;
    let me = group.rank();
    let slot = |rank: Rank| Span::new((1 + rank.index()) * 8, 8);
    for round in 0..everyone.len().max(4) {
        if me.index() == round % everyone.len() {
            sleep(Duration::from_millis(10));
        }
        for &peer in &everyone {
            fill(&mut group, Span::new(0, 8), arena.seed(me, peer, round));
            group.put(peer, Span::new(0, 8), slot(me).offset)?;
            group.flush(peer)?;
        }
        group.barrier()?;
        for &peer in &everyone {
            let seed = arena.seed(peer, me, round);
            arena.verify(&group, slot(peer), seed, || format!("mark of rank {peer} after barrier {round}"));
        }
        // Keeps the marks of the next round away from the checks of this one.
        group.barrier()?;
    }
    Ok(())
}

fn barriers_in_a_row<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    for _ in 0..1000 {
        group.barrier()?;
    }
    Ok(())
}

/// `count` doubles as bytes: whole numbers, so that sums are exact. Not generic, so that it is compiled once.
fn values(member: usize, count: usize, round: usize) -> Vec<u8> {
    (0..count).map(|i| (i % 1000 + 1) * (member + 1) + round).flat_map(|value| (value as f64).to_ne_bytes()).collect()
}

/// The sum of value `i` of [`values`] over `size` members.
fn sum(size: usize, i: usize, round: usize) -> f64 {
    ((i % 1000 + 1) * (size * (size + 1) / 2) + size * round) as f64
}

/// The first double in `bytes` that is not the [`sum`] it should be.
fn first_wrong(bytes: &[u8], size: usize, round: usize) -> Option<(usize, f64)> {
    let found = bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_ne_bytes(*chunk));
    found.enumerate().find(|&(i, found)| found != sum(size, i, round))
}

/// One allreduce of `span` with known values, checked.
fn reduce_once<B: Bootstrap, T: Transport>(
    arena: &mut Arena<'_, B, T>,
    group: &mut T::Group,
    span: Span,
    round: usize,
) -> Result<()> {
    let (me, size) = (group.rank().index(), group.size());
    let mut bytes = values(me, span.len / 8, round);
    group.write(span.offset, &bytes);
    group.allreduce(span)?;
    group.read(span.offset, &mut bytes);
    if let Some((i, found)) = first_wrong(&bytes, size, round) {
        let (byte, expected) = (8 * i, sum(size, i, round));
        let what = format!("round {round}, {} B: value {i} (byte {byte}) is {found}, not {expected}", span.len);
        arena.expect(false, || what);
    }
    Ok(())
}

fn allreduce_small<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(8)?;
    for round in 0..arena.scaled(1000) {
        reduce_once(arena, &mut group, Span::new(0, 8), round)?;
    }
    group.barrier()
}

fn allreduce_sizes<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const GUARD: usize = 24;
    let mut group = arena.world(LARGEST + 2 * GUARD)?;
    let me = group.rank();
    // Around 64 KiB, where the chunks of the collectives written here end.
    let lengths = [0, 8, 16, 4096, 65_528, 65_536, 65_544, 131_072, 196_616, LARGEST];
    for (round, len) in lengths.into_iter().enumerate() {
        let (before, after) = (Span::new(0, GUARD), Span::new(GUARD + len, GUARD));
        let seed = arena.seed(me, me, round);
        fill(&mut group, before, seed);
        fill(&mut group, after, seed);
        reduce_once(arena, &mut group, Span::new(GUARD, len), round)?;
        arena.verify(&group, before, seed, || format!("memory before an allreduce of {len} B"));
        arena.verify(&group, after, seed, || format!("memory after an allreduce of {len} B"));
    }
    group.barrier()
}

/// Doubles as bytes whose sum depends on the order of addition.
fn uneven(member: usize, count: usize) -> Vec<u8> {
    let root = |i: usize| (1.0 + (i * 31 + member * 17) as f64).sqrt();
    let scale = |i: usize| 10_f64.powi(((i + member * 5) % 13) as i32 - 6);
    (0..count).flat_map(|i| (root(i) * scale(i)).to_ne_bytes()).collect()
}

/// Members that add in different orders would get different bits.
fn allreduce_bits<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const COUNT: usize = 9000;
    let mut group = arena.world(8 * COUNT)?;
    let me = group.rank().index();
    group.write(0, &uneven(me, COUNT));
    group.allreduce(Span::new(0, 8 * COUNT))?;
    let mut mine = vec![0; 8 * COUNT];
    group.read(0, &mut mine);
    for (rank, theirs) in arena.bootstrap.allgather(&mine)?.into_iter().enumerate() {
        let differs = mine.iter().zip(&theirs).position(|(mine, theirs)| mine != theirs);
        arena.expect(differs.is_none(), || {
            format!("byte {} of the sums differs from rank {rank}'s", differs.unwrap_or_default())
        });
    }
    Ok(())
}

fn back_to_back<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(131_072)?;
    for round in 0..arena.scaled(100) {
        reduce_once(arena, &mut group, Span::new(0, 8), round)?;
        group.barrier()?;
        let len = if round % 10 == 0 { 131_072 } else { 64 };
        reduce_once(arena, &mut group, Span::new(0, len), round)?;
    }
    group.barrier()
}
