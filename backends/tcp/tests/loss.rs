//! A peer that goes is named by those who need it, and by nobody else.

use std::thread;
use std::time::Duration;

use tailback_engine::{Engine, Lane};
use tailback_host::WaitMode;
use tailback_tcp::TcpTransport;
use tailback_transport::{Bootstrap, Error, Rank, Result, Span, Tag};

use crate::common::{everyone, run};

const EIGHT: Span = Span { offset: 0, len: 8 };

fn meet(transport: &mut TcpTransport, group: usize, other: Rank) -> Result<()> {
    transport.post_recv(group, Lane::Data, other, Tag(0), Span::new(8, 8))?;
    transport.post_send(group, Lane::Data, other, Tag(0), EIGHT)?;
    transport.wait(group, Lane::Data)
}

fn names(outcome: Result<()>, rank: u32) {
    match outcome {
        Err(Error::PeerLost { peer, .. }) => assert_eq!(peer, Rank(rank)),
        other => panic!("expected rank {rank} to be lost, not {other:?}"),
    }
}

#[test]
fn waiting_for_a_rank_that_goes_is_an_error_that_names_it() {
    for wait in [WaitMode::Spin, WaitMode::Yield, WaitMode::Block] {
        run(3, wait, |bootstrap, mut transport| -> Result<()> {
            // Positions in the group differ from ranks in the job: the error names the latter.
            let members = [Rank(2), Rank(1)];
            match bootstrap.rank() {
                Rank(1) => {
                    let group = transport.make_group(&members, 64)?.slot;
                    meet(&mut transport, group, Rank(0))?;
                    // On a busy machine it is gone before the receive is posted.
                    let received = transport.post_recv(group, Lane::Data, Rank(0), Tag(1), EIGHT);
                    names(received.and_then(|()| transport.wait(group, Lane::Data)), 2);
                    names(transport.post_send(group, Lane::Data, Rank(0), Tag(1), EIGHT), 2);
                    names(transport.post_recv(group, Lane::Data, Rank(0), Tag(1), EIGHT), 2);
                    names(transport.put(group, Rank(0), EIGHT, 0), 2);
                    names(transport.get(group, Rank(0), EIGHT, 0), 2);
                }
                Rank(2) => {
                    let group = transport.make_group(&members, 64)?.slot;
                    meet(&mut transport, group, Rank(1))?;
                }
                _ => {}
            }
            Ok(())
        });
    }
}

#[test]
fn a_rank_that_went_before_the_first_message_is_named() {
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let group = everyone(&mut transport, 2, 64);
        if bootstrap.rank() == Rank(1) {
            drop(transport);
            return bootstrap.barrier();
        }
        bootstrap.barrier()?;
        names(
            transport
                .post_send(group, Lane::Data, Rank(1), Tag(0), EIGHT)
                .and_then(|()| transport.wait(group, Lane::Data)),
            1,
        );
        Ok(())
    });
}

#[test]
fn a_large_send_to_a_rank_that_goes_is_an_error() {
    run(2, WaitMode::Block, |bootstrap, mut transport| -> Result<()> {
        let group = everyone(&mut transport, 2, 64 << 20);
        let other = Rank::from(1 - bootstrap.rank().index());
        meet(&mut transport, group, other)?;
        if bootstrap.rank() == Rank(0) {
            let sent = transport.post_send(group, Lane::Data, other, Tag(1), Span::new(0, 64 << 20));
            names(sent.and_then(|()| transport.wait(group, Lane::Data)), 1);
        }
        Ok(())
    });
}

#[test]
fn a_rank_that_is_done_may_go_while_others_go_on() {
    for wait in [WaitMode::Yield, WaitMode::Block] {
        run(3, wait, |mut bootstrap, mut transport| -> Result<()> {
            let me = bootstrap.rank();
            let group = everyone(&mut transport, 3, 64);
            for other in (0..3).filter(|&r| r != me.0) {
                meet(&mut transport, group, Rank(other))?;
            }
            if me == Rank(2) {
                transport.write(group, 0, &[77; 8]);
                transport.post_send(group, Lane::Data, Rank(0), Tag(7), EIGHT)?;
                transport.wait(group, Lane::Data)?;
                drop(transport);
                return bootstrap.barrier();
            }
            bootstrap.barrier()?;
            let other = Rank(1 - me.0);
            for _ in 0..50 {
                meet(&mut transport, group, other)?;
                assert!(transport.test(group, Lane::Data)?);
                thread::sleep(Duration::from_millis(1));
            }
            if me == Rank(0) {
                // What rank 2 sent before it went is still there.
                transport.post_recv(group, Lane::Data, Rank(2), Tag(7), Span::new(16, 8))?;
                transport.wait(group, Lane::Data)?;
                let mut bytes = [0; 8];
                transport.read(group, 16, &mut bytes);
                assert_eq!(bytes, [77; 8]);
                names(transport.post_recv(group, Lane::Data, Rank(2), Tag(7), EIGHT), 2);
            }
            Ok(())
        });
    }
}
