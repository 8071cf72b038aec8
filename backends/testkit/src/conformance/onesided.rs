//! Cases about put, get and flush. The target checks after a barrier or a message: a flush is a promise about the
//! target's memory, not about the origin's.

use tailback_transport::{Bootstrap, Group, Nanos, Operation, Rank, Result, Span, Tag, Transport};

use super::arena::{Arena, Case, fill, neighbours};
use super::sizes::{LARGEST, SIZES};

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    use Operation::{Get, Put, TwoSided};
    vec![
        Case { name: "put: every size around the ring", needs: &[Put], body: put_ring },
        Case { name: "get: every size around the ring", needs: &[Get], body: get_ring },
        Case { name: "put: every pair", needs: &[Put], body: put_pairs },
        Case { name: "get: every pair", needs: &[Get], body: get_pairs },
        Case { name: "put and get: on itself", needs: &[Put, Get], body: on_itself },
        Case { name: "put: many small ones, one flush", needs: &[Put], body: many_puts },
        Case { name: "get: many small ones, one flush", needs: &[Get], body: many_gets },
        Case { name: "flush: the target sees the put", needs: &[Put, TwoSided], body: flush_shows },
        Case { name: "flush: a get sees the put before it", needs: &[Put, Get], body: put_then_get },
        Case { name: "wait_until: who waits serves others", needs: &[Put, Get], body: waiting_serves },
        Case { name: "put and get: at the same time, at different offsets", needs: &[Put, Get], body: mixed },
    ]
}

/// The first member does nothing but wait for a time, again and again, until the others have got and put through it.
fn waiting_serves<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const WORD: usize = 8;
    const STEP: Nanos = Nanos(2_000_000);
    const STEPS: usize = 15_000;
    let size = arena.size();
    let mut group = arena.world((size + 1) * WORD)?;
    let (me, first) = (group.rank(), Rank(0));
    group.write(0, &[7; WORD]);
    group.barrier()?;
    let mine = Span::new(me.index() * WORD, WORD);
    if me != first {
        group.get(first, mine, 0)?;
        group.flush(first)?;
        group.put(first, mine, mine.offset)?;
        group.flush(first)?;
        return group.barrier();
    }
    let mut steps = 0;
    let served = |group: &T::Group| {
        let mut word = [0; WORD];
        (1..size).all(|peer| {
            group.read(peer * WORD, &mut word);
            word == [7; WORD]
        })
    };
    while steps == 0 || !served(&group) && steps < STEPS {
        let at = Nanos(group.now().0 + STEP.0);
        group.wait_until(at)?;
        let now = group.now();
        arena.expect(now.0 >= at.0, || format!("it returned at {} ns, before {} ns", now.0, at.0));
        steps += 1;
    }
    arena.expect(steps < STEPS, || format!("after {STEPS} waits the others have not been served"));
    group.barrier()
}

fn put_ring<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(2 * LARGEST)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    for (index, len) in SIZES.into_iter().enumerate() {
        fill(&mut group, Span::new(0, len), arena.seed(me, next, index));
        // A put of nothing may name the very end of the segment.
        let remote = if len == 0 { 2 * LARGEST } else { LARGEST };
        group.put(next, Span::new(0, len), remote)?;
        group.flush(next)?;
        group.barrier()?;
        let seed = arena.seed(previous, me, index);
        arena.verify(&group, Span::new(LARGEST, len), seed, || format!("{len} B put by rank {previous}"));
        group.barrier()?;
    }
    Ok(())
}

fn get_ring<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(2 * LARGEST)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    for (index, len) in SIZES.into_iter().enumerate() {
        fill(&mut group, Span::new(0, len), arena.seed(me, next, index));
        group.barrier()?;
        let into = Span::new(LARGEST, len);
        group.get(previous, into, 0)?;
        group.flush(previous)?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("{len} B got from rank {previous}"));
        group.barrier()?;
    }
    Ok(())
}

const PAIR_SLOT: usize = 131_072;

fn put_pairs<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let mut group = arena.world(2 * arena.size() * PAIR_SLOT)?;
    let (me, size) = (group.rank(), group.size());
    for (index, len) in SIZES.into_iter().filter(|&len| len <= PAIR_SLOT).enumerate() {
        for &peer in &everyone {
            let local = Span::new(peer.index() * PAIR_SLOT, len);
            fill(&mut group, local, arena.seed(me, peer, index));
            group.put(peer, local, (size + me.index()) * PAIR_SLOT)?;
        }
        for &peer in everyone.iter().rev() {
            group.flush(peer)?;
        }
        group.barrier()?;
        for &peer in &everyone {
            let landed = Span::new((size + peer.index()) * PAIR_SLOT, len);
            arena.verify(&group, landed, arena.seed(peer, me, index), || format!("{len} B put by rank {peer}"));
        }
        group.barrier()?;
    }
    Ok(())
}

fn get_pairs<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let mut group = arena.world(2 * arena.size() * PAIR_SLOT)?;
    let (me, size) = (group.rank(), group.size());
    for (index, len) in SIZES.into_iter().filter(|&len| len <= PAIR_SLOT).enumerate() {
        for &peer in &everyone {
            fill(&mut group, Span::new(peer.index() * PAIR_SLOT, len), arena.seed(me, peer, index));
        }
        group.barrier()?;
        let into = |peer: Rank| Span::new((size + peer.index()) * PAIR_SLOT, len);
        for &peer in &everyone {
            group.get(peer, into(peer), me.index() * PAIR_SLOT)?;
        }
        for &peer in everyone.iter().rev() {
            group.flush(peer)?;
        }
        for &peer in &everyone {
            arena.verify(&group, into(peer), arena.seed(peer, me, index), || format!("{len} B got from rank {peer}"));
        }
        group.barrier()?;
    }
    Ok(())
}

fn on_itself<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(3 * LARGEST)?;
    let me = group.rank();
    for (index, len) in SIZES.into_iter().enumerate() {
        let (source, middle, end) = (Span::new(0, len), Span::new(LARGEST, len), Span::new(2 * LARGEST, len));
        let seed = arena.seed(me, me, index);
        fill(&mut group, source, seed);
        group.put(me, source, middle.offset)?;
        group.flush(me)?;
        arena.verify(&group, middle, seed, || format!("{len} B put to itself"));
        group.get(me, end, middle.offset)?;
        group.flush(me)?;
        arena.verify(&group, end, seed, || format!("{len} B got from itself"));
    }
    group.barrier()
}

const SMALL: usize = 8;

fn many_puts<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let (count, size) = (arena.scaled(1024), arena.size());
    let mut group = arena.world(2 * size * count * SMALL)?;
    let me = group.rank();
    for i in (0..count).rev() {
        for &peer in &everyone {
            let local = Span::new((peer.index() * count + i) * SMALL, SMALL);
            fill(&mut group, local, arena.seed(me, peer, i));
            group.put(peer, local, ((size + me.index()) * count + i) * SMALL)?;
        }
    }
    for &peer in &everyone {
        group.flush(peer)?;
    }
    group.barrier()?;
    for &peer in &everyone {
        for i in 0..count {
            let landed = Span::new(((size + peer.index()) * count + i) * SMALL, SMALL);
            arena.verify(&group, landed, arena.seed(peer, me, i), || format!("put {i} by rank {peer}"));
        }
    }
    group.barrier()
}

fn many_gets<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let everyone = arena.everyone();
    let (count, size) = (arena.scaled(256), arena.size());
    let mut group = arena.world((size + 1) * count * SMALL)?;
    let me = group.rank();
    for i in 0..count {
        fill(&mut group, Span::new(i * SMALL, SMALL), arena.seed(me, me, i));
    }
    group.barrier()?;
    let into = |peer: Rank, i: usize| Span::new(((1 + peer.index()) * count + i) * SMALL, SMALL);
    for i in (0..count).rev() {
        for &peer in &everyone {
            group.get(peer, into(peer, i), i * SMALL)?;
        }
    }
    for &peer in &everyone {
        group.flush(peer)?;
    }
    for &peer in &everyone {
        for i in 0..count {
            arena.verify(&group, into(peer, i), arena.seed(peer, peer, i), || format!("get {i} from rank {peer}"));
        }
    }
    group.barrier()
}

/// Put, flush, tell the target; it looks at once and answers, so that the next put cannot overtake its look.
fn flush_shows<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 1024;
    let mut group = arena.world(2 * LEN)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let nothing = Span::new(0, 0);
    for index in 0..arena.scaled(200) {
        fill(&mut group, Span::new(0, LEN), arena.seed(me, next, index));
        group.put(next, Span::new(0, LEN), LEN)?;
        group.flush(next)?;
        group.post_send(next, Tag(1), nothing)?;
        group.post_recv(previous, Tag(1), nothing)?;
        group.wait_all()?;
        let seed = arena.seed(previous, me, index);
        arena.verify(&group, Span::new(LEN, LEN), seed, || format!("put {index} of rank {previous} after its flush"));
        group.post_send(previous, Tag(2), nothing)?;
        group.post_recv(next, Tag(2), nothing)?;
        group.wait_all()?;
    }
    group.barrier()
}

fn put_then_get<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 4096;
    let everyone = arena.everyone();
    let mut group = arena.world((2 + arena.size()) * LEN)?;
    let me = group.rank();
    let (source, back) = (Span::new(0, LEN), Span::new(LEN, LEN));
    for index in 0..arena.scaled(20) {
        for &peer in &everyone {
            let (seed, remote) = (arena.seed(me, peer, index), (2 + me.index()) * LEN);
            fill(&mut group, source, seed);
            group.put(peer, source, remote)?;
            group.flush(peer)?;
            group.get(peer, back, remote)?;
            group.flush(peer)?;
            arena.verify(&group, back, seed, || format!("round trip {index} through rank {peer}"));
        }
    }
    group.barrier()
}

fn mixed<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 1024;
    const COUNT: usize = 64;
    const AREA: usize = LEN * COUNT;
    // Four areas: what peers get, what is put, where puts land, where gets arrive.
    let mut group = arena.world(4 * AREA)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let span = |area: usize, i: usize| Span::new(area * AREA + i * LEN, LEN);
    for i in 0..COUNT {
        fill(&mut group, span(0, i), arena.seed(me, me, i));
        fill(&mut group, span(1, i), arena.seed(me, next, COUNT + i));
    }
    group.barrier()?;
    for i in 0..COUNT {
        group.put(next, span(1, i), span(2, i).offset)?;
        group.get(next, span(3, COUNT - 1 - i), span(0, COUNT - 1 - i).offset)?;
    }
    group.flush(next)?;
    for i in 0..COUNT {
        arena.verify(&group, span(3, i), arena.seed(next, next, i), || format!("get {i} from rank {next}"));
    }
    group.barrier()?;
    for i in 0..COUNT {
        let seed = arena.seed(previous, me, COUNT + i);
        arena.verify(&group, span(2, i), seed, || format!("put {i} by rank {previous}"));
    }
    group.barrier()
}
