//! Cases about several groups: of other members, in other orders, at the same time.

use std::thread::sleep;
use std::time::Duration;

use tailback_transport::{Bootstrap, Group, Operation, Rank, Result, Span, Tag, Transport};

use super::arena::{Arena, Case, LARGEST, fill, neighbours, patiently};

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    use Operation::{Get, Put, TwoSided};
    vec![
        Case { name: "groups: a fresh segment is zero", needs: &[], body: zeroed },
        Case { name: "groups: words of a segment are added", needs: &[], body: added },
        Case { name: "groups: segments exist once a group is made", needs: &[Put], body: segments_exist },
        Case { name: "groups: disjoint", needs: &[TwoSided], body: disjoint },
        Case { name: "groups: overlapping, all busy", needs: &[TwoSided], body: overlapping },
        Case { name: "groups: members in reverse order", needs: &[TwoSided], body: reversed },
        Case { name: "groups: one member", needs: &[TwoSided], body: alone },
        Case { name: "groups: twins of the same members", needs: &[TwoSided], body: twins },
        Case { name: "groups: messages progress in a foreign barrier", needs: &[TwoSided], body: foreign_messages },
        Case { name: "groups: put and get progress in a foreign barrier", needs: &[Put, Get], body: foreign_access },
    ]
}

const LEN: usize = 4096;
const OUT: Span = Span { offset: 0, len: LEN };
const INTO: Span = Span { offset: LEN, len: LEN };

/// Posts one message around `group`'s ring.
fn post_ring<B: Bootstrap, T: Transport>(
    arena: &Arena<'_, B, T>,
    group: &mut T::Group,
    members: &[Rank],
    index: usize,
) -> Result<()> {
    let (next, previous) = neighbours(group);
    fill(group, OUT, arena.seed(arena.rank(), members[next.index()], index));
    group.post_send(next, Tag(9), OUT)?;
    group.post_recv(previous, Tag(9), INTO)
}

/// Waits for it and checks it.
fn wait_ring<B: Bootstrap, T: Transport>(
    arena: &mut Arena<'_, B, T>,
    group: &mut T::Group,
    members: &[Rank],
    index: usize,
) -> Result<()> {
    group.wait_all()?;
    let (me, previous) = (arena.rank(), members[neighbours(group).1.index()]);
    let seed = arena.seed(previous, me, index);
    arena.verify(group, INTO, seed, || format!("message {index} from rank {previous} in group {members:?}"));
    Ok(())
}

fn zeroed<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    for index in 0..20 {
        let len = index * 1000;
        let mut group = arena.world(len)?;
        let mut found = vec![0xff; len];
        group.read(0, &mut found);
        let dirty = found.iter().position(|&byte| byte != 0);
        arena.expect(dirty.is_none(), || format!("byte {} of group {index}", dirty.unwrap_or_default()));
        // Whoever gets this memory next must not see it. The barrier keeps peers' checks apart from it.
        group.barrier()?;
        group.write(0, &vec![0xa5; len]);
    }
    Ok(())
}

/// In a segment of several blocks and pages, over their boundaries; what is around the sums stays.
fn added<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const WORDS: usize = 1500;
    let len = 8 * WORDS;
    let mut group = arena.world(3 * len + 24)?;
    let word = |index: usize| (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let all: Vec<u8> = (0..3 * WORDS + 3).flat_map(|index| word(index).to_le_bytes()).collect();
    group.write(0, &all);
    group.add_words(Span::new(0, len), len + 8, 2 * len + 16);
    group.add_words(Span::new(0, 0), 0, 0);
    let mut found = vec![0; all.len()];
    group.read(0, &mut found);
    let sums = 2 * WORDS + 2;
    let wrong = found.as_chunks().0.iter().enumerate().find(|(index, found)| {
        let is_sum = (sums..sums + WORDS).contains(index);
        let expected =
            if is_sum { word(index - sums).wrapping_add(word(index - sums + WORDS + 1)) } else { word(*index) };
        u64::from_le_bytes(**found) != expected
    });
    arena.expect(wrong.is_none(), || format!("word {}", wrong.map_or(0, |(index, _)| index)));
    group.barrier()
}

fn segments_exist<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let (everyone, me) = (arena.everyone(), arena.rank());
    for (index, &late) in everyone.iter().enumerate().take(4) {
        if me == late {
            sleep(Duration::from_millis(20));
        }
        let mut group = arena.world((everyone.len() + 1) * 8)?;
        let slot = |rank: Rank| (1 + rank.index()) * 8;
        fill(&mut group, Span::new(0, 8), arena.seed(me, late, index));
        group.put(late, Span::new(0, 8), slot(me))?;
        group.flush(late)?;
        group.barrier()?;
        for &peer in everyone.iter().filter(|_| me == late) {
            let seed = arena.seed(peer, late, index);
            arena.verify(&group, Span::new(slot(peer), 8), seed, || format!("put by rank {peer} to a late rank"));
        }
    }
    Ok(())
}

fn disjoint<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let half = arena.rank().index() % 2;
    let members: Vec<Rank> = arena.everyone().into_iter().filter(|rank| rank.index() % 2 == half).collect();
    let mut group = arena.transport.group(&members, 2 * LEN)?;
    let (rank, size) = (group.rank(), group.size());
    let right = size == members.len() && members[rank.index()] == arena.rank();
    arena.expect(right, || format!("member {rank} of {size} in group {members:?}"));
    // The halves have different amounts of work: neither may wait for the other.
    for index in 0..10 + 10 * half {
        post_ring(arena, &mut group, &members, index)?;
        wait_ring(arena, &mut group, &members, index)?;
        group.barrier()?;
    }
    Ok(())
}

fn overlapping<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let (me, middle) = (arena.rank(), everyone.len() / 2);
    let lists = [everyone.clone(), everyone[..=middle].to_vec(), everyone[middle..].to_vec()];
    let mut groups = Vec::new();
    for (list, members) in lists.into_iter().enumerate().filter(|(_, members)| members.contains(&me)) {
        groups.push((list, arena.transport.group(&members, 2 * LEN)?, members));
    }
    for index in 0..10 {
        for (list, group, members) in &mut groups {
            post_ring(arena, group, members, 10 * index + *list)?;
        }
        for (list, group, members) in groups.iter_mut().rev() {
            wait_ring(arena, group, members, 10 * index + *list)?;
        }
    }
    groups[0].1.barrier()
}

fn reversed<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let (me, members) = (arena.rank(), arena.everyone().into_iter().rev().collect::<Vec<_>>());
    let mut group = arena.transport.group(&members, 2 * LEN)?;
    let rank = group.rank();
    let mirrored = rank.index() + me.index() + 1 == members.len();
    arena.expect(mirrored, || format!("rank {me} is member {rank} of {members:?}"));
    for index in 0..10 {
        post_ring(arena, &mut group, &members, index)?;
        wait_ring(arena, &mut group, &members, index)?;
    }
    group.barrier()
}

fn alone<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let me = arena.rank();
    let mut group = arena.transport.group(&[me], 2 * LEN)?;
    let (rank, size) = (group.rank(), group.size());
    arena.expect((rank, size) == (Rank(0), 1), || format!("member {rank} of {size}, alone"));
    for index in 0..10 {
        post_ring(arena, &mut group, &[me], index)?;
        wait_ring(arena, &mut group, &[me], index)?;
        group.barrier()?;
        group.start_barrier()?;
        patiently("poll_barrier", || group.poll_barrier().map(|done| done.then_some(())))?;
        group.start_agreement([3, 1, 2, index as u64])?;
        let agreed = group.wait_agreement()?;
        arena.expect(agreed == [3, 1, 2, index as u64], || format!("agreed with itself on {agreed:?}"));
    }
    Ok(())
}

fn twins<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let members = arena.everyone();
    let mut groups = [arena.world(2 * LEN)?, arena.world(2 * LEN)?, arena.world(2 * LEN)?];
    for index in 0..10 {
        for (twin, group) in groups.iter_mut().enumerate() {
            post_ring(arena, group, &members, 10 * index + twin)?;
        }
        for (twin, group) in groups.iter_mut().enumerate().rev() {
            wait_ring(arena, group, &members, 10 * index + twin)?;
        }
    }
    groups[0].barrier()
}

/// Even ranks wait for messages of all sizes to leave; the odd receivers sit in another group's barrier meanwhile.
fn foreign_messages<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let (mut busy, mut other) = (arena.world(LARGEST)?, arena.world(0)?);
    let (me, (next, previous)) = (busy.rank(), neighbours(&busy));
    let (sends, paired) = (me.index().is_multiple_of(2), me.index() ^ 1 < busy.size());
    for (index, len) in [8, 131_072, LARGEST].into_iter().enumerate() {
        let span = Span::new(0, len);
        if paired && sends {
            fill(&mut busy, span, arena.seed(me, next, index));
            busy.post_send(next, Tag(0), span)?;
            busy.wait_all()?;
        } else if paired {
            busy.post_recv(previous, Tag(0), span)?;
        }
        other.barrier()?;
        if paired && !sends {
            busy.wait_all()?;
            arena.verify(&busy, span, arena.seed(previous, me, index), || format!("{len} B from rank {previous}"));
        }
    }
    busy.barrier()
}

/// As [`foreign_messages`], for puts and gets on ranks that sit in another group's barrier.
fn foreign_access<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let (mut busy, mut other) = (arena.world(3 * LARGEST)?, arena.world(0)?);
    let (me, (next, _)) = (busy.rank(), neighbours(&busy));
    for (index, len) in [8, 131_072, LARGEST].into_iter().enumerate() {
        if me.index().is_multiple_of(2) {
            let (out, back, seed) = (Span::new(0, len), Span::new(LARGEST, len), arena.seed(me, next, index));
            fill(&mut busy, out, seed);
            busy.put(next, out, 2 * LARGEST)?;
            busy.flush(next)?;
            busy.get(next, back, 2 * LARGEST)?;
            busy.flush(next)?;
            arena.verify(&busy, back, seed, || format!("{len} B through rank {next}"));
        }
        other.barrier()?;
    }
    busy.barrier()
}
