//! Properties of the collectives over the loopback, for any number of members.

use proptest::prelude::*;
use tailback_engine::Collective;
use tailback_testkit::loopback;
use tailback_transport::{Bootstrap, Error, Group, Rank, Result, Span, Transport};

/// Runs `body` on every member of a group of the whole job.
fn on_all<R, F>(size: usize, segment: usize, body: F) -> Vec<R>
where
    R: Send,
    F: Fn(&mut dyn FnMut() -> Result<()>, &mut dyn Group) -> Result<R> + Sync,
{
    let members: Vec<Rank> = (0..size).map(Rank::from).collect();
    let run = loopback::run(size, |mut bootstrap, transport| {
        let mut group = Collective::new(transport).group(&members, segment)?;
        body(&mut || bootstrap.barrier(), &mut group)
    });
    run.unwrap_or_else(|error| panic!("{error}"))
}

fn doubles(group: &dyn Group, count: usize) -> Vec<f64> {
    let mut bytes = vec![0; count * 8];
    group.read(0, &mut bytes);
    bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_ne_bytes(*chunk)).collect()
}

fn write_doubles(group: &mut dyn Group, values: impl Iterator<Item = f64>) {
    let bytes: Vec<u8> = values.flat_map(f64::to_ne_bytes).collect();
    group.write(0, &bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn allreduce_sums_exactly_what_is_exact(size in 1usize..20, count in 0usize..20_000, repeats in 1usize..4) {
        on_all(size, count * 8, |_, group| {
            let me = group.rank().index();
            for repeat in 0..repeats {
                write_doubles(group, (0..count).map(|i| (i * (me + 1) + repeat) as f64));
                group.allreduce(Span::new(0, count * 8))?;
                let members = size * (size + 1) / 2;
                for (i, sum) in doubles(group, count).into_iter().enumerate() {
                    assert_eq!(sum, (i * members + size * repeat) as f64, "value {i} on member {me} of {size}");
                }
            }
            Ok(())
        });
    }

    #[test]
    fn allreduce_gives_every_member_the_same_bits(
        values in prop::collection::vec(prop::collection::vec(-1e300f64..1e300, 5), 1..20),
    ) {
        let sums = on_all(values.len(), 40, |_, group| {
            let me = group.rank().index();
            write_doubles(group, values[me].iter().copied());
            group.allreduce(Span::new(0, 40))?;
            Ok(doubles(group, 5).into_iter().map(f64::to_bits).collect::<Vec<_>>())
        });
        prop_assert!(sums.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn agreement_is_the_maximum(proposals in prop::collection::vec(any::<[u64; 4]>(), 1..20), repeats in 1u64..20) {
        let mut expected = [0; 4];
        for proposal in &proposals {
            expected.iter_mut().zip(proposal).for_each(|(max, word)| *max = (*max).max(*word));
        }
        on_all(proposals.len(), 8, |_, group| {
            let mine = proposals[group.rank().index()];
            for shift in 0..repeats {
                group.start_agreement(mine.map(|word| word >> shift))?;
                let agreed = if shift % 2 == 0 { group.wait_agreement()? } else { poll(group)? };
                assert_eq!(agreed, expected.map(|word| word >> shift));
            }
            Ok(())
        });
    }

    #[test]
    fn no_member_leaves_a_barrier_before_all_are_in(size in 1usize..20, late in 0usize..20, background: bool) {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let entered = AtomicUsize::new(0);
        on_all(size, 8, |_, group| {
            for round in 1..=5 {
                if group.rank().index() == (late + round) % size {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                entered.fetch_add(1, Ordering::SeqCst);
                if background {
                    group.start_barrier()?;
                    while !group.poll_barrier()? {}
                } else {
                    group.barrier()?;
                }
                assert!(entered.load(Ordering::SeqCst) >= round * size, "round {round} of {size} members");
            }
            Ok(())
        });
    }
}

fn poll(group: &mut dyn Group) -> Result<[u64; 4]> {
    loop {
        if let Some(agreed) = group.poll_agreement()? {
            return Ok(agreed);
        }
    }
}

#[test]
fn a_background_barrier_waits_for_the_last_member() {
    on_all(5, 8, |meet, group| {
        let last = group.rank() == Rank(3);
        if !last {
            group.start_barrier()?;
            for _ in 0..100 {
                assert!(!group.poll_barrier()?, "complete without member 3");
            }
        }
        meet()?;
        if last {
            group.start_barrier()?;
        }
        while !group.poll_barrier()? {}
        Ok(())
    });
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let refused = |outcome: Result<()>| assert!(matches!(outcome, Err(Error::Usage { .. })), "{outcome:?}");
    on_all(2, 16, |_, group| {
        let peer = Rank::from(1 - group.rank().index());
        refused(group.poll_barrier().map(drop));
        refused(group.poll_agreement().map(drop));
        refused(group.wait_agreement().map(drop));
        refused(group.allreduce(Span::new(0, 12)));
        for outside in [Span::new(16, 1), Span::new(0, 17), Span::new(9, 8), Span::new(usize::MAX, 2)] {
            refused(group.post_send(peer, Default::default(), outside));
            refused(group.post_recv(peer, Default::default(), outside));
            refused(group.put(peer, outside, 0));
            refused(group.get(peer, outside, 0));
            refused(group.put(peer, Span::new(0, outside.len), outside.offset));
            refused(group.get(peer, Span::new(0, outside.len), outside.offset));
            refused(group.allreduce(outside));
        }
        refused(group.post_send(Rank(2), Default::default(), Span::default()));
        refused(group.flush(Rank(2)));

        group.start_barrier()?;
        refused(group.start_barrier());
        group.start_agreement([1, 2, 3, u64::from(peer.0)])?;
        refused(group.start_agreement([9; 4]));
        assert_eq!(group.wait_agreement()?, [1, 2, 3, 1]);
        while !group.poll_barrier()? {}
        Ok(())
    });
}

#[test]
fn a_job_of_one_needs_no_peers() {
    on_all(1, 8, |_, group| {
        write_doubles(group, [2.5].into_iter());
        group.barrier()?;
        group.allreduce(Span::new(0, 8))?;
        assert_eq!(doubles(group, 1), [2.5]);
        group.start_agreement([7; 4])?;
        assert_eq!(group.poll_agreement()?, Some([7; 4]));
        group.start_barrier()?;
        assert!(group.poll_barrier()?);
        Ok(())
    });
}
