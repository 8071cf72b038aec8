//! Several connections to a peer: the executable definition of the traits over each protocol, what is cut into parts and
//! what is not, and a rail that is lost.

use tailback_engine::matching::STRIPED_ABOVE;
use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Engine, Lane, Protocol, Rendezvous};
use tailback_host::Idle;
use tailback_host::WaitMode;
use tailback_testkit::{conformance, loopback};
use tailback_transport::{Bootstrap, Bytes, Error, Rank, Result, Span, Tag};

use crate::common::{config, config_with_rails, everyone, pattern, read, run_with};

fn conforms(size: usize, rails: usize, wait: WaitMode, protocols: &[Protocol]) {
    for &protocol in protocols {
        let config = |rank| config_with_rails(wait, rails, rank);
        let reports = run_with(size, config, |mut bootstrap, raw| {
            conformance::run(&mut bootstrap, &mut Collective::new(Rendezvous::new(raw, protocol, DEFAULT_THRESHOLD)))
        });
        for report in &reports {
            let all = report.passed() > 40 && report.skipped().next().is_none();
            assert!(all, "{protocol} over {rails} rails: {report}");
        }
    }
}

#[test]
fn one_rank_with_two_rails() {
    conforms(1, 2, WaitMode::Block, &[Protocol::Eager]);
}

#[test]
fn two_ranks_with_two_rails() {
    conforms(2, 2, WaitMode::Block, &Protocol::ALL);
}

#[test]
fn two_ranks_with_two_rails_that_spin() {
    conforms(2, 2, WaitMode::Spin, &[Protocol::Put]);
}

#[test]
fn three_ranks_with_three_rails_that_yield() {
    conforms(3, 3, WaitMode::Yield, &[Protocol::Eager]);
}

#[test]
fn five_ranks_with_three_rails() {
    conforms(5, 3, WaitMode::Block, &Protocol::ALL);
}

#[test]
fn eight_ranks_with_three_rails() {
    conforms(8, 3, WaitMode::Block, &[Protocol::Get]);
}

#[test]
fn two_ranks_with_eight_rails() {
    conforms(2, 8, WaitMode::Block, &[Protocol::Eager]);
}

/// Lengths on both sides of where messages are cut.
const LENGTHS: [usize; 6] = [8, STRIPED_ABOVE + 1, STRIPED_ABOVE, 3 * STRIPED_ABOVE + 17, 0, 1 << 20];

#[test]
fn messages_of_one_tag_keep_their_order_whether_cut_or_not() {
    for (rails, early) in [(2, false), (2, true), (3, false), (3, true)] {
        let config = |rank| config_with_rails(WaitMode::Block, rails, rank);
        run_with(2, config, |mut bootstrap, mut transport| -> Result<()> {
            let starts: Vec<usize> = (0..LENGTHS.len()).map(|at| LENGTHS[..at].iter().sum()).collect();
            let all = LENGTHS.iter().sum::<usize>();
            let group = everyone(&mut transport, 2, all);
            if bootstrap.rank() == Rank(0) {
                transport.write(group, 0, &pattern(3, all));
                for (&begin, &len) in starts.iter().zip(&LENGTHS) {
                    transport.post_send(group, Lane::Data, Rank(1), Tag(4), Span::new(begin, len))?;
                }
                transport.wait(group, Lane::Data)?;
                assert!(transport.is_sent(group, Lane::Data, Rank(1))?);
                bootstrap.barrier()?;
            } else {
                if early {
                    // All of it is there before a receive is.
                    while transport.held(Rank(0)) < all {
                        transport.progress(Idle::Wait)?;
                    }
                }
                for (&begin, &len) in starts.iter().zip(&LENGTHS) {
                    transport.post_recv(group, Lane::Data, Rank(0), Tag(4), Span::new(begin, len))?;
                }
                transport.wait(group, Lane::Data)?;
                assert_eq!(transport.held(Rank(0)), 0);
                assert_eq!(read(&transport, group, 0, all), pattern(3, all), "{rails} rails");
                bootstrap.barrier()?;
            }
            Ok(())
        });
    }
}

#[test]
fn a_flush_is_over_when_every_part_is_there() {
    const LEN: usize = 1 << 20;
    for rails in [2, 3] {
        let config = |rank| config_with_rails(WaitMode::Block, rails, rank);
        run_with(2, config, |mut bootstrap, mut transport| -> Result<()> {
            let group = everyone(&mut transport, 2, 4 * LEN);
            if bootstrap.rank() == Rank(0) {
                transport.write(group, 0, &pattern(9, LEN));
                transport.put(group, Rank(1), Span::new(0, 8), 3 * LEN)?;
                let short = transport.accesses(group, Rank(1));
                transport.put(group, Rank(1), Span::new(0, LEN), LEN)?;
                transport.get(group, Rank(1), Span::new(2 * LEN, LEN), LEN)?;
                let long = transport.accesses(group, Rank(1));
                assert!(long > short && !transport.is_flushed(group, Rank(1))?);
                while !transport.are_flushed(group, Rank(1), long)? {
                    transport.progress(Idle::Wait)?;
                }
                assert_eq!(read(&transport, group, 2 * LEN, LEN), pattern(9, LEN), "what was put is what was got");
                assert!(transport.are_flushed(group, Rank(1), short)? && transport.is_flushed(group, Rank(1))?);
                transport.post_send(group, Lane::Data, Rank(1), Tag(0), Span::new(0, 8))?;
                transport.wait(group, Lane::Data)?;
            } else {
                transport.post_recv(group, Lane::Data, Rank(0), Tag(0), Span::new(0, 8))?;
                transport.wait(group, Lane::Data)?;
                assert_eq!(read(&transport, group, LEN, LEN), pattern(9, LEN));
                assert_eq!(read(&transport, group, 3 * LEN, 8), pattern(9, 8));
            }
            bootstrap.barrier()
        });
    }
}

#[test]
fn a_rank_that_goes_is_named_with_the_rail() {
    run_with(
        2,
        |rank| config_with_rails(WaitMode::Block, 2, rank),
        |bootstrap, mut transport| -> Result<()> {
            const LONG: Span = Span { offset: 0, len: 1 << 20 };
            let group = everyone(&mut transport, 2, LONG.len);
            if bootstrap.rank() == Rank(1) {
                transport.post_send(group, Lane::Data, Rank(0), Tag(0), LONG)?;
                return transport.wait(group, Lane::Data);
            }
            transport.post_recv(group, Lane::Data, Rank(1), Tag(0), LONG)?;
            transport.wait(group, Lane::Data)?;
            let received = transport.post_recv(group, Lane::Data, Rank(1), Tag(1), LONG);
            match received.and_then(|()| transport.wait(group, Lane::Data)) {
                Err(Error::PeerLost { peer: Rank(1), detail, .. }) => {
                    assert!(detail.contains("; rail ") && detail.contains(", 127.7.1."), "{detail}");
                }
                other => panic!("expected rank 1 to be lost, not {other:?}"),
            }
            Ok(())
        },
    );
}

/// What a rank sent last is still received, whichever of its connections is seen to end first.
#[test]
fn the_last_words_of_a_rank_that_ends_are_heard_on_every_rail() {
    const WORDS: u32 = 20;
    run_with(
        3,
        |rank| config_with_rails(WaitMode::Block, 3, rank),
        |mut bootstrap, mut transport| -> Result<()> {
            let me = bootstrap.rank();
            let group = everyone(&mut transport, 3, 1 << 20);
            if me == Rank(0) {
                bootstrap.barrier()?;
                for tag in 0..WORDS {
                    for from in [Rank(1), Rank(2)] {
                        let len = if tag % 2 == 0 { 8 } else { STRIPED_ABOVE + 8 };
                        transport.post_recv(group, Lane::Data, from, Tag(tag), Span::new(0, len))?;
                        transport.wait(group, Lane::Data)?;
                        assert_eq!(read(&transport, group, 0, len), pattern(from.index(), len));
                    }
                }
                return Ok(());
            }
            transport.write(group, 0, &pattern(me.index(), STRIPED_ABOVE + 8));
            for tag in 0..WORDS {
                let len = if tag % 2 == 0 { 8 } else { STRIPED_ABOVE + 8 };
                transport.post_send(group, Lane::Data, Rank(0), Tag(tag), Span::new(0, len))?;
            }
            bootstrap.barrier()?;
            transport.wait(group, Lane::Data)
        },
    );
}

#[test]
fn the_description_has_every_rail() {
    run_with(
        2,
        |rank| config_with_rails(WaitMode::Block, 2, rank),
        |bootstrap, transport| -> Result<()> {
            let description = transport.describe();
            let own = |rail| Some(format!("127.7.{}.{rail}", bootstrap.rank().0 + 1));
            assert_eq!((description.rails(), description.of_rail(0, "address")), (2, own(1)));
            assert_eq!(description.of_rail(1, "address"), own(2));
            assert_eq!(description.of_rail(1, "interfaces").as_deref(), Some("lo: ranks 0-1"));
            assert_eq!(description.details["striped_above_bytes"], STRIPED_ABOVE.to_string());
            Ok(())
        },
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |rails: usize, of_rank_1: usize| {
        let outcome = loopback::run(2, |mut bootstrap, _| {
            let rails = if bootstrap.rank() == Rank(1) { of_rank_1 } else { rails };
            let config = config_with_rails(WaitMode::Block, rails, bootstrap.rank());
            tailback_tcp::open(&mut bootstrap, &config).map(drop)
        });
        outcome.expect_err("nothing that works").to_string()
    };
    assert!(refusal(9, 9).contains("9 rails: there can be 1 to 8"));
    assert!(refusal(0, 0).contains("0 rails: there can be 1 to 8"));
    let unlike = refusal(2, 3);
    assert!(unlike.contains("rank 1 has 3 rails, rank 0 2"), "{unlike}");
    // Loopback and what else is up: no machine has eight.
    let outcome = loopback::run(1, |mut bootstrap, _| {
        let config = tailback_tcp::TcpConfig { rails: 8, ..config(WaitMode::Block) };
        tailback_tcp::open(&mut bootstrap, &config).map(drop)
    });
    let few = outcome.expect_err("too few interfaces").to_string();
    assert!(
        few.contains("--rails 8: rank 0 on ") && few.contains("has too few ends for that: 127.0.0.1 on lo"),
        "{few}"
    );
}

#[test]
fn a_threshold_of_the_protocols_does_not_mind() {
    let config = |rank| config_with_rails(WaitMode::Block, 2, rank);
    for protocol in [Protocol::Put, Protocol::Get] {
        let reports = run_with(3, config, |mut bootstrap, raw| {
            conformance::run(&mut bootstrap, &mut Collective::new(Rendezvous::new(raw, protocol, Bytes(0))))
        });
        assert!(reports.iter().all(|report| report.skipped().next().is_none()), "{protocol}");
    }
}
