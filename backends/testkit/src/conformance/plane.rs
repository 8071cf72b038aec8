//! Cases about the bootstrap and about what a transport says of itself.

use tailback_transport::{Bootstrap, Error, Group, Operation, Rank, Result, Span, Support, Tag, Transport};

use super::arena::{Arena, Case};

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    vec![
        Case { name: "bootstrap: who is here", needs: &[], body: who },
        Case { name: "bootstrap: allgather", needs: &[], body: allgather },
        Case { name: "bootstrap: broadcast", needs: &[], body: broadcast },
        Case { name: "bootstrap: reduce", needs: &[], body: reduce },
        Case { name: "capabilities: the same on every rank", needs: &[], body: capabilities },
        Case { name: "capabilities: what is missing is refused as such", needs: &[], body: unsupported },
        Case { name: "clock: never goes back", needs: &[], body: clock },
    ]
}

/// Bytes of a length and content that depend on the rank; empty on some.
fn personal(rank: Rank, round: usize) -> Vec<u8> {
    vec![rank.0 as u8 ^ round as u8; (rank.index() + round) % 4 * 1000]
}

fn who<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let (me, size) = (arena.rank(), arena.size());
    let all = arena.bootstrap.allgather(&me.0.to_le_bytes())?;
    let seen = all.get(me.index()).is_some_and(|bytes| *bytes == me.0.to_le_bytes());
    arena.expect(seen && all.len() == size, || format!("rank {me} is not in its place among {size}"));
    let named = !arena.bootstrap.host().is_empty() && !arena.bootstrap.launcher().is_empty();
    arena.expect(named, || "host or launcher has no name".into());
    Ok(())
}

fn allgather<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    for round in 0..8 {
        let all = arena.bootstrap.allgather(&personal(arena.rank(), round))?;
        arena.expect(all.len() == arena.size(), || format!("{} answers", all.len()));
        for (rank, bytes) in all.into_iter().enumerate() {
            let rank = Rank::from(rank);
            arena.expect(bytes == personal(rank, round), || format!("round {round}: wrong bytes from rank {rank}"));
        }
        arena.bootstrap.barrier()?;
    }
    Ok(())
}

fn broadcast<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    for round in 0..8 {
        let got = arena.bootstrap.broadcast(personal(arena.rank(), round))?;
        arena.expect(got == personal(Rank(0), round), || format!("round {round}: not the bytes of rank 0"));
    }
    Ok(())
}

fn reduce<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut orders = Vec::new();
    for _ in 0..3 {
        let mine = arena.rank().0.to_le_bytes().to_vec();
        let folded = arena.bootstrap.reduce(mine, &mut |own, child| {
            own.extend_from_slice(child);
            Ok(())
        })?;
        let me = arena.rank();
        arena.expect(folded.is_some() == (me == Rank(0)), || format!("rank {me} has a result: {}", folded.is_some()));
        orders.extend(folded);
    }
    for order in &orders {
        let mut ranks: Vec<u32> = order.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        ranks.sort_unstable();
        let everyone: Vec<u32> = arena.everyone().iter().map(|rank| rank.0).collect();
        arena.expect(ranks == everyone, || format!("folded ranks {ranks:?}"));
    }
    arena.expect(orders.windows(2).all(|pair| pair[0] == pair[1]), || "the order changes from run to run".into());
    Ok(())
}

fn capabilities<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let capabilities = arena.transport.capabilities();
    let mine = Operation::ALL.map(|operation| u8::from(capabilities.of(operation) == Support::Yes));
    let all = arena.bootstrap.allgather(&mine)?;
    arena.expect(all.iter().all(|theirs| *theirs == mine), || format!("here {mine:?}, in all {all:?}"));
    let name = arena.transport.describe().backend;
    arena.expect(!name.is_empty(), || "the description does not name the backend".into());
    Ok(())
}

fn unsupported<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let capabilities = arena.transport.capabilities();
    let mut group = arena.world(8)?;
    let (me, span) = (group.rank(), Span::new(0, 8));
    for asked in Operation::ALL {
        if capabilities.of(asked) == Support::Yes {
            continue;
        }
        let outcome = match asked {
            Operation::TwoSided => group.post_send(me, Tag(0), span),
            Operation::Put => group.put(me, span, 0),
            Operation::Get => group.get(me, span, 0),
            Operation::Allreduce => group.allreduce(span),
        };
        let refused = matches!(&outcome, Err(Error::Unsupported { operation, .. }) if *operation == asked);
        arena.expect(refused, || format!("{asked}, which is missing, gave {outcome:?}"));
    }
    group.barrier()
}

fn clock<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    let first = group.now();
    let mut before = first;
    for _ in 0..1000 {
        let now = group.now();
        arena.expect(now >= before, || format!("{} ns came after {} ns", now.0, before.0));
        before = now;
    }
    // Some time passes in a barrier, in a simulator too; how much is not ours to say.
    for _ in 0..10 {
        group.barrier()?;
    }
    let last = group.now();
    arena.expect(last >= before, || format!("{} ns came after {} ns", last.0, before.0));
    group.barrier()
}
