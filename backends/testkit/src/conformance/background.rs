//! Cases about the barrier and the agreement that run in the background, and about calls that must be refused.

use tailback_transport::{Bootstrap, Error, Group, Operation, Proposal, Rank, Result, Span, Tag, Transport};

use super::arena::{Arena, Case, fill, neighbours, patiently};

pub(super) fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    use Operation::TwoSided;
    vec![
        Case { name: "background barrier: not before the last member", needs: &[], body: barrier_waits_for_last },
        Case { name: "background barrier: many in a row", needs: &[], body: barriers_in_a_row },
        Case { name: "agreement: the maximum of what was proposed", needs: &[], body: maximum },
        Case { name: "agreement: not before the last proposal", needs: &[], body: agreement_waits_for_last },
        Case { name: "agreement: two thousand in a row", needs: &[], body: agreements_in_a_row },
        Case { name: "agreement: while messages flow", needs: &[TwoSided], body: under_traffic },
        Case { name: "agreement: waiting on data does not wait for it", needs: &[TwoSided], body: data_first },
        Case { name: "background: all lanes at once", needs: &[TwoSided], body: all_lanes },
        Case { name: "misuse: refused, and nothing changes", needs: &[], body: misuse },
    ]
}

fn finish_barrier<G: Group>(group: &mut G) -> Result<()> {
    patiently("poll_barrier", || group.poll_barrier().map(|done| done.then_some(())))
}

fn finish_agreement<G: Group>(group: &mut G) -> Result<Proposal> {
    patiently("poll_agreement", || group.poll_agreement())
}

/// What a member proposes: another one has the maximum in every word, and the maximum changes from round to round.
fn proposal(member: usize, size: usize, round: usize) -> Proposal {
    let around = |shift: usize| ((member + shift) % size) as u64;
    [around(round), 1000 + around(round + 1), around(2 * round) << 40, round as u64]
}

fn agreed(size: usize, round: usize) -> Proposal {
    let most = (size - 1) as u64;
    [most, 1000 + most, most << 40, round as u64]
}

fn barrier_waits_for_last<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    for last in arena.everyone().into_iter().take(5) {
        let is_last = group.rank() == last;
        if !is_last {
            group.start_barrier()?;
            for poll in 0..50 {
                let done = group.poll_barrier()?;
                arena.expect(!done, || format!("complete at poll {poll}, before rank {last} entered"));
                if done {
                    // Polling a barrier that is over would be refused; the fault is recorded.
                    group.start_barrier()?;
                }
            }
        }
        arena.bootstrap.barrier()?;
        if is_last {
            group.start_barrier()?;
        }
        finish_barrier(&mut group)?;
    }
    group.barrier()
}

fn barriers_in_a_row<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    for _ in 0..arena.scaled(500) {
        group.start_barrier()?;
        finish_barrier(&mut group)?;
    }
    group.barrier()
}

fn maximum<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    let (me, size) = (group.rank().index(), group.size());
    for owner in 0..size {
        // One member has it all, including the largest number there is.
        group.start_agreement(if me == owner { [u64::MAX, 1, 1 << 63, owner as u64] } else { [0; 4] })?;
        let found = finish_agreement(&mut group)?;
        let expected = [u64::MAX, 1, 1 << 63, owner as u64];
        arena.expect(found == expected, || format!("agreed on {found:?}, not {expected:?}, proposed by rank {owner}"));
    }
    group.barrier()
}

fn agreement_waits_for_last<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    let (me, size) = (group.rank().index(), group.size());
    for last in 0..size.min(5) {
        if me != last {
            group.start_agreement(proposal(me, size, last))?;
            let early = group.poll_agreement()?;
            arena.expect(early.is_none(), || format!("agreed on {early:?} before rank {last} proposed"));
            if early.is_some() {
                group.start_agreement(proposal(me, size, last))?;
            }
        }
        arena.bootstrap.barrier()?;
        if me == last {
            group.start_agreement(proposal(me, size, last))?;
        }
        let found = group.wait_agreement()?;
        arena.expect(found == agreed(size, last), || format!("agreed on {found:?}, not {:?}", agreed(size, last)));
    }
    group.barrier()
}

fn agreements_in_a_row<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    let mut group = arena.world(0)?;
    let (me, size) = (group.rank().index(), group.size());
    for round in 0..2000 {
        group.start_agreement(proposal(me, size, round))?;
        let found = if round % 2 == 0 { group.wait_agreement()? } else { finish_agreement(&mut group)? };
        arena.expect(found == agreed(size, round), || format!("round {round}: agreed on {found:?}"));
    }
    group.barrier()
}

/// A ring never pauses while one agreement after the other is polled beside it, once per message. Members agree at
/// different messages; the agreements left over are waited for at the end.
fn under_traffic<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 1024;
    let mut group = arena.world(2 * LEN)?;
    let (me, size, (next, previous)) = (group.rank(), group.size(), neighbours(&group));
    let (out, into) = (Span::new(0, LEN), Span::new(LEN, LEN));
    let (messages, mut round) = (arena.scaled(500), 0);
    group.start_agreement(proposal(me.index(), size, round))?;
    for index in 0..messages {
        fill(&mut group, out, arena.seed(me, next, index));
        group.post_recv(previous, Tag(1), into)?;
        group.post_send(next, Tag(1), out)?;
        group.wait_all()?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("message {index} from rank {previous}"));
        if let Some(found) = group.poll_agreement()? {
            arena.expect(found == agreed(size, round), || format!("agreement {round} under traffic: {found:?}"));
            round += 1;
            group.start_agreement(proposal(me.index(), size, round))?;
        }
    }
    // At most one agreement per message was possible, so every member has this last one still to come.
    for round in round..=messages {
        let found = group.wait_agreement()?;
        arena.expect(found == agreed(size, round), || format!("agreement {round} after traffic: {found:?}"));
        if round < messages {
            group.start_agreement(proposal(me.index(), size, round + 1))?;
        }
    }
    group.barrier()
}

/// Rank 0 proposes last, after messages and barriers that every other member, with its proposal made, must complete.
fn data_first<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 131_072;
    let mut group = arena.world(2 * LEN)?;
    let (me, size, (next, previous)) = (group.rank(), group.size(), neighbours(&group));
    let (out, into) = (Span::new(0, LEN), Span::new(LEN, LEN));
    for index in 0..5 {
        if me != Rank(0) {
            group.start_agreement(proposal(me.index(), size, index))?;
        }
        fill(&mut group, out, arena.seed(me, next, index));
        group.post_recv(previous, Tag(1), into)?;
        group.post_send(next, Tag(1), out)?;
        group.wait_all()?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("message {index} from rank {previous}"));
        group.barrier()?;
        if me == Rank(0) {
            group.start_agreement(proposal(me.index(), size, index))?;
        }
        let found = group.wait_agreement()?;
        arena.expect(found == agreed(size, index), || format!("agreement {index}: {found:?}"));
    }
    group.barrier()
}

/// A barrier and an agreement are under way while messages and blocking barriers come and go.
fn all_lanes<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 64;
    let mut group = arena.world(2 * LEN)?;
    let (me, size, (next, previous)) = (group.rank(), group.size(), neighbours(&group));
    let (out, into) = (Span::new(0, LEN), Span::new(LEN, LEN));
    for index in 0..arena.scaled(50) {
        fill(&mut group, out, arena.seed(me, next, index));
        group.post_send(next, Tag(0), out)?;
        group.start_agreement(proposal(me.index(), size, index))?;
        group.start_barrier()?;
        group.barrier()?;
        group.post_recv(previous, Tag(0), into)?;
        let found = finish_agreement(&mut group)?;
        arena.expect(found == agreed(size, index), || format!("agreement {index}: {found:?}"));
        group.barrier()?;
        finish_barrier(&mut group)?;
        group.wait_all()?;
        arena.verify(&group, into, arena.seed(previous, me, index), || format!("message {index} from rank {previous}"));
    }
    group.barrier()
}

fn misuse<B: Bootstrap, T: Transport>(arena: &mut Arena<'_, B, T>) -> Result<()> {
    const LEN: usize = 16;
    let mut group = arena.world(LEN)?;
    let (me, size) = (group.rank().index(), group.size());
    let mut refused = |what: &str, outcome: Result<()>| {
        let usage = matches!(outcome, Err(Error::Usage { .. }));
        arena.expect(usage, || format!("{what} gave {outcome:?}, not a usage error"));
    };
    refused("polling no barrier", group.poll_barrier().map(drop));
    refused("polling no agreement", group.poll_agreement().map(drop));
    refused("waiting for no agreement", group.wait_agreement().map(drop));
    let (peer, stranger) = (neighbours(&group).0, Rank::from(size));
    for span in [Span::new(LEN, 1), Span::new(0, LEN + 1), Span::new(usize::MAX, 2)] {
        refused("sending memory outside the segment", group.post_send(peer, Tag(0), span));
        refused("receiving outside the segment", group.post_recv(peer, Tag(0), span));
    }
    refused("sending to a stranger", group.post_send(stranger, Tag(0), Span::new(0, 1)));
    refused("receiving from a stranger", group.post_recv(stranger, Tag(0), Span::new(0, 1)));

    group.start_barrier()?;
    refused("a second background barrier", group.start_barrier());
    group.start_agreement(proposal(me, size, 1))?;
    refused("a second agreement", group.start_agreement([u64::MAX; 4]));
    let found = group.wait_agreement()?;
    finish_barrier(&mut group)?;
    arena.expect(found == agreed(size, 1), || format!("agreed on {found:?} after a refused proposal"));
    group.barrier()
}
