//! Cases about send and receive.
//!
//! Tags stay below 32,768, the least an MPI has.

use std::thread::sleep;
use std::time::Duration;

use tailback_transport::{Bootstrap, Group, Operation, Rank, Result, Span, Tag, Transport};

use super::arena::{Arena, Case, fill, neighbours};
use super::sizes::{LARGEST, SIZES};

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    let case = |name, body| Case { name, needs: &[Operation::TwoSided], body };
    vec![
        case("send/recv: every size around the ring", ring),
        case("send/recv: one message at a time around the ring", one_at_a_time),
        case("send/recv: every pair", pairs),
        case("send/recv: to itself", to_itself),
        case("send/recv: 256 outstanding per peer", outstanding),
        case("send/recv: tags do not cross", tags),
        // Alike, so that a swap shows in the data; then short behind long, which may travel by another protocol.
        case("send/recv: one tag keeps its order", |arena| order(arena, |_| 8)),
        case("send/recv: short messages do not overtake long ones", |arena| {
            order(arena, |i| [131_072, 0, 8, 4096, 1][i % 5])
        }),
        case("send/recv: late receivers", |arena| late(arena, true)),
        case("send/recv: late senders", |arena| late(arena, false)),
        case("send/recv: unequal progress", unequal),
        case("send/recv: a thousand long messages, the last one first", last_first),
        case("send/recv: a flood that nobody receives yet is held back", flood),
    ]
}

fn ring<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(2 * LARGEST)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    for (index, len) in SIZES.into_iter().enumerate() {
        let (out, into) = (Span::new(0, len), Span::new(LARGEST, len));
        fill(&mut group, out, arena.seed(me, next, index));
        group.post_recv(previous, Tag(1), into)?;
        group.post_send(next, Tag(1), out)?;
        group.wait_all()?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("{len} B from rank {previous}"));
    }
    group.barrier()
}

/// Each is waited for where it is sent and where it is received; now and then beside one that was posted before.
fn one_at_a_time<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(2 * LARGEST)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    for (index, len) in SIZES.into_iter().enumerate() {
        let (out, into) = (Span::new(0, len), Span::new(LARGEST, len));
        fill(&mut group, out, arena.seed(me, next, index));
        if me.0 > 0 {
            group.recv(previous, Tag(1), into)?;
            group.send(next, Tag(1), out)?;
        } else if index % 2 == 0 || me == next {
            group.post_recv(previous, Tag(1), into)?;
            group.send(next, Tag(1), out)?;
        } else {
            group.send(next, Tag(1), out)?;
            group.recv(previous, Tag(1), into)?;
        }
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("{len} B from rank {previous}"));
    }
    group.barrier()
}

fn pairs<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const SLOT: usize = 131_072;
    let everyone = arena.everyone();
    let mut group = arena.world(2 * arena.size() * SLOT)?;
    let (me, size) = (group.rank(), group.size());
    for (index, len) in SIZES.into_iter().filter(|&len| len <= SLOT).enumerate() {
        let out = |peer: Rank| Span::new(peer.index() * SLOT, len);
        let into = |peer: Rank| Span::new((size + peer.index()) * SLOT, len);
        for &peer in &everyone {
            fill(&mut group, out(peer), arena.seed(me, peer, index));
            group.post_recv(peer, Tag(2), into(peer))?;
        }
        for &peer in &everyone {
            group.post_send(peer, Tag(2), out(peer))?;
        }
        group.wait_all()?;
        for &peer in &everyone {
            arena.verify(&group, into(peer), arena.seed(peer, me, index), || format!("{len} B from rank {peer}"));
        }
    }
    group.barrier()
}

fn to_itself<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(2 * LARGEST)?;
    let me = group.rank();
    for (index, len) in SIZES.into_iter().enumerate() {
        for receive_first in [true, false] {
            let index = 2 * index + usize::from(receive_first);
            let (out, into) = (Span::new(0, len), Span::new(LARGEST, len));
            fill(&mut group, out, arena.seed(me, me, index));
            if receive_first {
                group.post_recv(me, Tag(3), into)?;
            }
            group.post_send(me, Tag(3), out)?;
            if !receive_first {
                group.post_recv(me, Tag(3), into)?;
            }
            group.wait_all()?;
            arena.verify(&group, into, arena.seed(me, me, index), || format!("{len} B from itself"));
        }
    }
    group.barrier()
}

fn outstanding<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const COUNT: usize = 256;
    const SLOT: usize = 32;
    let everyone = arena.everyone();
    let size = arena.size();
    let mut group = arena.world(2 * size * COUNT * SLOT)?;
    let me = group.rank();
    let out = |peer: Rank, i: usize| Span::new((peer.index() * COUNT + i) * SLOT, i % (SLOT + 1));
    let into = |peer: Rank, i: usize| Span::new(((size + peer.index()) * COUNT + i) * SLOT, i % (SLOT + 1));
    for &peer in &everyone {
        for i in 0..COUNT {
            fill(&mut group, out(peer, i), arena.seed(me, peer, i));
        }
    }
    for i in 0..COUNT {
        for &peer in &everyone {
            group.post_send(peer, Tag(i as u32 % 4), out(peer, i))?;
            group.post_recv(peer, Tag(i as u32 % 4), into(peer, i))?;
        }
    }
    group.wait_all()?;
    for &peer in &everyone {
        for i in 0..COUNT {
            arena.verify(&group, into(peer, i), arena.seed(peer, me, i), || format!("message {i} from rank {peer}"));
        }
    }
    group.barrier()
}

fn tags<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let tags: Vec<Tag> = (0..30).chain([1000, 32_767]).map(Tag).collect();
    let mut group = arena.world(2 * 8 * tags.len())?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let into = |i: usize| Span::new((tags.len() + i) * 8, 8);
    for round in 0..arena.scaled(16) {
        let index = |i: usize| round * tags.len() + i;
        for (i, &tag) in tags.iter().enumerate() {
            fill(&mut group, Span::new(i * 8, 8), arena.seed(me, next, index(i)));
            group.post_send(next, tag, Span::new(i * 8, 8))?;
        }
        // Received in the opposite order: what arrived first is wanted last.
        for (i, &tag) in tags.iter().enumerate().rev() {
            group.post_recv(previous, tag, into(i))?;
        }
        group.wait_all()?;
        for (i, tag) in tags.iter().enumerate() {
            let seed = arena.seed(previous, me, index(i));
            arena.verify(&group, into(i), seed, || format!("tag {} from rank {previous}", tag.0));
        }
    }
    group.barrier()
}

/// Many messages of one tag around the ring; `length` gives the length of each.
fn order<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>, length: fn(usize) -> usize) -> Result<()> {
    const COUNT: usize = 64;
    const SLOT: usize = 131_072;
    let mut group = arena.world(2 * COUNT * SLOT)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let into = |i: usize| Span::new((COUNT + i) * SLOT, length(i));
    for i in 0..COUNT {
        let out = Span::new(i * SLOT, length(i));
        fill(&mut group, out, arena.seed(me, next, i));
        group.post_send(next, Tag(5), out)?;
    }
    for i in 0..COUNT {
        group.post_recv(previous, Tag(5), into(i))?;
    }
    group.wait_all()?;
    for i in 0..COUNT {
        let seed = arena.seed(previous, me, i);
        arena.verify(&group, into(i), seed, || format!("message {i} of tag 5 from rank {previous}"));
    }
    group.barrier()
}

/// Even ranks send to the odd rank after them; one side comes late.
fn late<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>, receivers: bool) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(50);
    let lengths = [8, 131_072, 0, LARGEST];
    let mut group = arena.world(lengths.iter().sum())?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    // With an odd size the last rank has no partner.
    let (sends, paired) = (me.index().is_multiple_of(2), me.index() ^ 1 < group.size());
    if paired && sends != receivers {
        sleep(PAUSE);
    }
    let mut offset = 0;
    for (index, len) in lengths.into_iter().enumerate().filter(|_| paired) {
        let span = Span::new(offset, len);
        offset += len;
        if sends {
            fill(&mut group, span, arena.seed(me, next, index));
            group.post_send(next, Tag(index as u32), span)?;
        } else {
            group.post_recv(previous, Tag(index as u32), span)?;
        }
    }
    group.wait_all()?;
    offset = 0;
    for (index, len) in lengths.into_iter().enumerate().filter(|_| paired && !sends) {
        let span = Span::new(offset, len);
        offset += len;
        arena.verify(&group, span, arena.seed(previous, me, index), || format!("{len} B from rank {previous}"));
    }
    group.barrier()
}

/// The last rank dawdles; the others run ahead as far as its messages let them.
fn unequal<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 4096;
    let mut group = arena.world(2 * LEN)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let (out, into) = (Span::new(0, LEN), Span::new(LEN, LEN));
    for index in 0..20 {
        if me.index() + 1 == group.size() {
            sleep(Duration::from_millis(2));
        }
        fill(&mut group, out, arena.seed(me, next, index));
        group.post_send(next, Tag(6), out)?;
        group.post_recv(previous, Tag(6), into)?;
        group.wait_all()?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("message {index} from {previous}"));
    }
    group.barrier()
}

/// Even ranks send to the odd rank after them more messages than any window holds, which takes them in reverse order, and
/// the last one before it asks for any other.
fn last_first<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const COUNT: usize = 1000;
    // Announced where a protocol says so, and in no case whole words.
    const LEN: usize = 1101;
    let mut group = arena.world(COUNT * LEN)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let (sends, paired) = (me.index().is_multiple_of(2), me.index() ^ 1 < group.size());
    let span = |i: usize| Span::new(i * LEN, LEN);
    if paired && sends {
        for i in 0..COUNT {
            fill(&mut group, span(i), arena.seed(me, next, i));
            group.post_send(next, Tag(i as u32), span(i))?;
        }
    }
    if paired && !sends {
        group.post_recv(previous, Tag(COUNT as u32 - 1), span(COUNT - 1))?;
        group.wait_all()?;
        for i in (0..COUNT - 1).rev() {
            group.post_recv(previous, Tag(i as u32), span(i))?;
        }
    }
    group.wait_all()?;
    for i in (0..COUNT).filter(|_| paired && !sends) {
        arena.verify(&group, span(i), arena.seed(previous, me, i), || format!("message {i} from rank {previous}"));
    }
    group.barrier()
}

/// Even ranks post more than a receiver should hold, and go on with other things, in which the receivers take part before
/// they receive anything.
fn flood<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 65_536;
    const COUNT: usize = 256;
    // What is sent comes from a few places again and again.
    const PLACES: usize = 7;
    let mut group = arena.world((PLACES + 1) * LEN)?;
    let (me, (next, previous)) = (group.rank(), neighbours(&group));
    let (sends, paired) = (me.index().is_multiple_of(2), me.index() ^ 1 < group.size());
    let (place, into) = (|i: usize| Span::new(i % PLACES * LEN, LEN), Span::new(PLACES * LEN, LEN));
    if paired && sends {
        for i in 0..PLACES {
            fill(&mut group, place(i), arena.seed(me, next, i));
        }
        for i in 0..COUNT {
            group.post_send(next, Tag(i as u32), place(i))?;
        }
    }
    for _ in 0..20 {
        group.barrier()?;
    }
    if paired && !sends {
        // The last, then the others in order.
        for i in [COUNT - 1].into_iter().chain(0..COUNT - 1) {
            group.post_recv(previous, Tag(i as u32), into)?;
            group.wait_all()?;
            arena.verify(&group, into, arena.seed(previous, me, i % PLACES), || {
                format!("message {i} of a flood from rank {previous}")
            });
        }
    }
    group.wait_all()?;
    group.barrier()
}
