//! What the data plane promises beyond the conformance suite: connections made at once from both ends, back-pressure,
//! groups that come and go while traffic runs, and its own description.

use tailback_engine::matching::HELD_LIMIT;
use tailback_engine::{Engine, Lane};
use tailback_host::Idle;
use tailback_host::WaitMode;
use tailback_tcp::TcpTransport;
use tailback_transport::{Bootstrap, Error, Rank, Result, Span, Tag};

use crate::common::{everyone, pattern, read, run};

const MODES: [WaitMode; 3] = [WaitMode::Spin, WaitMode::Yield, WaitMode::Block];

#[test]
fn messages_of_all_sizes_go_both_ways_at_once() {
    for mode in MODES {
        run(2, mode, |bootstrap, mut transport| -> Result<()> {
            let me = bootstrap.rank().index();
            let group = everyone(&mut transport, 2, 8 << 20);
            let other = Rank::from(1 - me);
            for (round, len) in [0, 1, 8, 31, 4096, 8192, 8193, 131_072, 1 << 20, 3_000_001].into_iter().enumerate() {
                transport.write(group, 0, &pattern(me + round, len));
                transport.post_recv(group, Lane::Data, other, Tag(round as u32), Span::new(4 << 20, len))?;
                transport.post_send(group, Lane::Data, other, Tag(round as u32), Span::new(0, len))?;
                transport.wait(group, Lane::Data)?;
                assert_eq!(read(&transport, group, 4 << 20, len), pattern(1 - me + round, len), "{mode}, {len} bytes");
            }
            Ok(())
        });
    }
}

#[test]
fn everyone_connects_to_everyone_at_once() {
    const SIZE: usize = 8;
    for round in 0..4 {
        let mode = MODES[round % 3];
        run(SIZE, mode, |mut bootstrap, mut transport| -> Result<()> {
            let me = bootstrap.rank().index();
            let group = everyone(&mut transport, SIZE, 4096);
            transport.write(group, 0, &pattern(me, 64));
            bootstrap.barrier()?;
            for step in 0..SIZE {
                let (to, from) = ((me + step) % SIZE, (me + SIZE - step) % SIZE);
                transport.post_send(group, Lane::Data, Rank::from(to), Tag(0), Span::new(0, 64))?;
                transport.post_recv(group, Lane::Data, Rank::from(from), Tag(0), Span::new(64 + from * 64, 64))?;
            }
            transport.wait(group, Lane::Data)?;
            for from in 0..SIZE {
                assert_eq!(read(&transport, group, 64 + from * 64, 64), pattern(from, 64));
            }
            Ok(())
        });
    }
}

/// The most that the kernel keeps for a connection, at both ends.
fn kernel_limit() -> usize {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("the kernel's limits");
        text.split_whitespace().last().and_then(|max| max.parse::<usize>().ok()).expect("a largest buffer")
    };
    largest("tcp_rmem") + largest("tcp_wmem")
}

#[test]
fn a_flood_nobody_receives_is_held_back_at_the_sender_and_arrives_in_the_end() {
    const LEN: usize = 64 * 1024;
    let count = (kernel_limit() + (8 << 20)) / LEN;
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let me = bootstrap.rank();
        let group = everyone(&mut transport, 2, LEN * count + 8);
        if me == Rank(0) {
            transport.write(group, 0, &pattern(0, LEN * count));
            for i in 0..count {
                transport.post_send(group, Lane::Data, Rank(1), Tag(i as u32), Span::new(i * LEN, LEN))?;
            }
        }
        // Progress without a receive: the flood arrives up to the limit, and what was under way by then; the rest waits.
        // Rank 1 says when it is there: until then rank 0 goes on sending.
        let note = Span::new(LEN * count, 8);
        let begin = std::time::Instant::now();
        if me == Rank(0) {
            transport.post_recv(group, Lane::Barrier, Rank(1), Tag(0), note)?;
            while !transport.test(group, Lane::Barrier)? {
                assert!(begin.elapsed() < std::time::Duration::from_secs(60), "nobody says that the flood is there");
            }
            assert!(!transport.test(group, Lane::Data)?, "all was sent, and nothing received");
        } else {
            while transport.held(Rank(0)) <= HELD_LIMIT {
                assert!(transport.test(group, Lane::Data)?, "nothing was posted");
                assert!(begin.elapsed() < std::time::Duration::from_secs(60), "the flood does not come");
            }
            for _ in 0..3000 {
                assert!(transport.test(group, Lane::Data)?, "nothing was posted");
            }
            transport.post_send(group, Lane::Barrier, Rank(0), Tag(0), note)?;
            transport.wait(group, Lane::Barrier)?;
        }
        bootstrap.barrier()?;
        let held = transport.held(Rank(0));
        assert!(held <= HELD_LIMIT + kernel_limit() + (1 << 20), "{held} bytes are held");
        assert!(me == Rank(0) || held > HELD_LIMIT, "{held} bytes are held");
        bootstrap.barrier()?;
        if me == Rank(1) {
            for i in (0..count).rev() {
                transport.post_recv(group, Lane::Data, Rank(0), Tag(i as u32), Span::new(i * LEN, LEN))?;
            }
        }
        transport.wait(group, Lane::Data)?;
        assert_eq!(read(&transport, group, 0, LEN * count), pattern(0, LEN * count));
        Ok(())
    });
}

/// The bound on what is held stops messages, and nothing else.
#[test]
fn puts_and_gets_pass_a_flood_that_nobody_receives_yet() {
    const LEN: usize = 64 * 1024;
    let count = (kernel_limit() + (8 << 20)) / LEN;
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let group = everyone(&mut transport, 2, 3 * LEN);
        if bootstrap.rank() == Rank(0) {
            transport.write(group, 0, &pattern(3, LEN));
            for i in 0..count {
                transport.post_send(group, Lane::Data, Rank(1), Tag(i as u32), Span::new(0, LEN))?;
            }
            transport.put(group, Rank(1), Span::new(0, 100), 2 * LEN)?;
            transport.flush(group, Rank(1))?;
            transport.get(group, Rank(1), Span::new(LEN, 100), 2 * LEN)?;
            transport.flush(group, Rank(1))?;
            assert_eq!(read(&transport, group, LEN, 100), pattern(3, 100));
            transport.post_send(group, Lane::Barrier, Rank(1), Tag(0), Span::new(0, 8))?;
            transport.wait(group, Lane::Data)?;
        } else {
            transport.post_recv(group, Lane::Barrier, Rank(0), Tag(0), Span::new(LEN, 8))?;
            transport.wait(group, Lane::Barrier)?;
            assert_eq!(read(&transport, group, 2 * LEN, 100), pattern(3, 100));
            for i in 0..count {
                transport.post_recv(group, Lane::Data, Rank(0), Tag(i as u32), Span::new(0, LEN))?;
                transport.wait(group, Lane::Data)?;
                assert_eq!(read(&transport, group, 0, LEN), pattern(3, LEN), "message {i}");
            }
        }
        bootstrap.barrier()
    });
}

#[test]
fn what_comes_before_the_group_is_made_is_held_in_order() {
    run(2, WaitMode::Block, |bootstrap, mut transport| -> Result<()> {
        let first = everyone(&mut transport, 2, 64);
        if bootstrap.rank() == Rank(0) {
            let second = everyone(&mut transport, 2, 1 << 20);
            transport.write(second, 0, &pattern(5, 400_000));
            transport.post_send(second, Lane::Data, Rank(1), Tag(1), Span::new(0, 100_000))?;
            transport.put(second, Rank(1), Span::new(0, 200_000), 300_000)?;
            transport.put(second, Rank(1), Span::new(8, 16), 300_000)?;
            transport.get(second, Rank(1), Span::new(600_000, 50), 300_000)?;
            transport.post_send(first, Lane::Data, Rank(1), Tag(9), Span::new(0, 8))?;
            transport.wait(first, Lane::Data)?;
            transport.flush(second, Rank(1))?;
            assert_eq!(read(&transport, second, 600_000, 16), pattern(5, 24)[8..]);
            transport.post_send(first, Lane::Data, Rank(1), Tag(10), Span::new(0, 8))?;
            transport.wait(first, Lane::Data)?;
        } else {
            // What was sent before this message has arrived with it.
            transport.post_recv(first, Lane::Data, Rank(0), Tag(9), Span::new(0, 8))?;
            transport.wait(first, Lane::Data)?;
            let second = everyone(&mut transport, 2, 1 << 20);
            transport.post_recv(second, Lane::Data, Rank(0), Tag(1), Span::new(0, 100_000))?;
            transport.wait(second, Lane::Data)?;
            assert_eq!(read(&transport, second, 0, 100_000), pattern(5, 100_000));
            assert_eq!(read(&transport, second, 300_000, 16), pattern(5, 24)[8..]);
            assert_eq!(read(&transport, second, 300_016, 199_984), pattern(5, 200_000)[16..]);
            // Waiting for the last message serves the flush that comes before it.
            transport.post_recv(first, Lane::Data, Rank(0), Tag(10), Span::new(0, 8))?;
            transport.wait(first, Lane::Data)?;
        }
        Ok(())
    });
}

#[test]
fn late_messages_for_a_dropped_group_are_discarded() {
    run(2, WaitMode::Block, |bootstrap, mut transport| -> Result<()> {
        let lasting = everyone(&mut transport, 2, 1 << 20);
        let passing = everyone(&mut transport, 2, 1 << 20);
        let other = Rank::from(1 - bootstrap.rank().index());
        if bootstrap.rank() == Rank(0) {
            for len in [8, 100_000, 1 << 20] {
                transport.post_send(passing, Lane::Data, other, Tag(0), Span::new(0, len))?;
                transport.put(passing, other, Span::new(0, len), 0)?;
            }
            transport.wait(passing, Lane::Data)?;
        }
        transport.drop_group(passing);
        transport.write(lasting, 0, &pattern(other.index(), 500_000));
        transport.post_send(lasting, Lane::Data, other, Tag(3), Span::new(0, 500_000))?;
        transport.post_recv(lasting, Lane::Data, other, Tag(3), Span::new(500_000, 500_000))?;
        transport.wait(lasting, Lane::Data)?;
        assert_eq!(read(&transport, lasting, 500_000, 500_000), pattern(1 - other.index(), 500_000));
        Ok(())
    });
}

#[test]
fn a_message_longer_than_its_receive_is_an_error_that_names_the_peer() {
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let group = everyone(&mut transport, 2, 64);
        if bootstrap.rank() == Rank(0) {
            transport.post_send(group, Lane::Data, Rank(1), Tag(0), Span::new(0, 16))?;
            transport.wait(group, Lane::Data)?;
        } else {
            transport.post_recv(group, Lane::Data, Rank(0), Tag(0), Span::new(0, 8))?;
            let error = transport.wait(group, Lane::Data).expect_err("16 bytes do not fit 8");
            assert!(matches!(error, Error::Protocol { peer: Some(Rank(0)), .. }), "{error}");
        }
        bootstrap.barrier()
    });
}

#[test]
fn arguments_that_do_not_exist_are_usage_errors() {
    run(1, WaitMode::Block, |_, mut transport| -> Result<()> {
        assert!(matches!(transport.make_group(&[Rank(1)], 8), Err(Error::Usage { .. })));
        assert!(matches!(transport.make_group(&[Rank(0), Rank(0)], 8), Err(Error::Usage { .. })));
        let group = everyone(&mut transport, 1, 64);
        let past_end = transport.post_send(group, Lane::Data, Rank(0), Tag(0), Span::new(60, 8));
        assert!(matches!(past_end, Err(Error::Usage { .. })));
        assert!(matches!(transport.put(group, Rank(0), Span::new(0, 8), usize::MAX), Err(Error::Usage { .. })));
        assert!(matches!(transport.flush(group, Rank(1)), Err(Error::Usage { .. })));
        Ok(())
    });
}

#[test]
fn the_description_says_what_was_chosen_and_why() {
    run(3, WaitMode::Yield, |_, transport| -> Result<()> {
        let description = transport.describe();
        assert_eq!(description.backend, "tcp");
        assert!(description.library.starts_with("Linux "), "{}", description.library);
        let said = |key: &str| description.details.get(key).map(String::as_str);
        assert_eq!(said("wait"), Some("yield"));
        assert_eq!(said("wait_reason"), Some("as asked for"));
        assert_eq!(said("address"), Some("127.0.0.1"));
        assert_eq!(said("interface"), Some("lo"));
        assert_eq!(said("address_reason"), Some("all ranks share one host"));
        assert!(said("default_congestion_control").is_some_and(|name| !name.is_empty()));
        Ok(())
    });
}

#[test]
fn the_first_puts_and_gets_are_over_whatever_was_made_since() {
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let group = everyone(&mut transport, 2, 4096);
        if bootstrap.rank() == Rank(0) {
            let peer = Rank(1);
            transport.write(group, 0, &pattern(1, 64));
            transport.put(group, peer, Span::new(0, 64), 1024)?;
            transport.get(group, peer, Span::new(128, 64), 2048)?;
            let first = transport.accesses(group, peer);
            assert_eq!(first, 2);
            let wait = |transport: &mut TcpTransport, count| -> Result<()> {
                while !transport.are_flushed(group, peer, count)? {
                    transport.progress(Idle::Wait)?;
                }
                Ok(())
            };
            wait(&mut transport, first)?;
            transport.put(group, peer, Span::new(0, 64), 3072)?;
            assert!(transport.are_flushed(group, peer, first)?, "a put made since");
            assert!(
                !transport.are_flushed(group, peer, transport.accesses(group, peer))?
                    && !transport.is_flushed(group, peer)?,
                "not yet answered"
            );
            let all = transport.accesses(group, peer);
            wait(&mut transport, all)?;
            assert!(transport.is_flushed(group, peer)?);
            transport.post_send(group, Lane::Data, peer, Tag(0), Span::new(0, 8))?;
            transport.wait(group, Lane::Data)?;
        } else {
            // Waiting for the last message serves all that comes before it.
            transport.post_recv(group, Lane::Data, Rank(0), Tag(0), Span::new(0, 8))?;
            transport.wait(group, Lane::Data)?;
            assert_eq!(read(&transport, group, 3072, 64), pattern(1, 64));
        }
        bootstrap.barrier()
    });
}
