//! The protocols: they conform at every size, move bytes the way they say, and break where they should.

mod crowd;

use std::sync::{Arc, Mutex};

use crowd::{Crowd, TOGETHER};
use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Engine, Lane, Protocol, Rendezvous};
use tailback_testkit::conformance::{self, Failure, Report};
use tailback_testkit::loopback::{self, Fault, Job, Transfer};
use tailback_transport::{Bytes, Capabilities, Error, Group, Operation, Rank, Result, Span, Support, Tag, Transport};

fn conforms(size: usize, protocol: Protocol, threshold: Bytes) {
    let reports = loopback::run(size, |mut bootstrap, raw| {
        conformance::run(&mut bootstrap, &mut Collective::new(Rendezvous::new(raw, protocol, threshold)))
    });
    for report in reports.unwrap_or_else(|failure: Failure| panic!("{protocol} above {threshold}: {failure}")) {
        assert!(report.passed() > 40 && report.skipped().count() == 0, "{report}");
    }
}

macro_rules! conforms {
    ($($name:ident: $size:expr,)*) => { $(
        #[test]
        fn $name() {
            conforms($size, Protocol::Eager, DEFAULT_THRESHOLD);
            for protocol in [Protocol::Put, Protocol::Get] {
                conforms($size, protocol, Bytes(0));
                conforms($size, protocol, DEFAULT_THRESHOLD);
            }
        }
    )* };
}

conforms! {
    one_rank: 1,
    two_ranks: 2,
    three_ranks: 3,
    five_ranks: 5,
    eight_ranks: 8,
}

/// Sees everything that travels, with its length.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<(Transfer, usize)>>>);

impl Fault for Witness {
    fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
        self.0.lock().unwrap().push((transfer, payload.len()));
    }
}

const LONG: usize = 100_000;

/// Sends one message of `len` bytes from rank 1 to rank 0 of a group of three; what travelled but for collectives.
fn travelled(protocol: Protocol, len: usize) -> Vec<(Transfer, usize)> {
    let witness = Witness::default();
    let outcome = Job::new(3).fault(witness.clone()).run(|_, raw| {
        let mut transport = Collective::new(Rendezvous::new(raw, protocol, DEFAULT_THRESHOLD));
        let mut group = transport.group(&[Rank(0), Rank(1), Rank(2)], 2 * LONG)?;
        match group.rank() {
            Rank(0) => group.post_recv(Rank(1), Tag(7), Span::new(LONG, len))?,
            Rank(1) => {
                group.write(3, &[0x5a; LONG][..len]);
                group.post_send(Rank(0), Tag(7), Span::new(3, len))?;
            }
            _ => {}
        }
        group.wait_all()?;
        let mut got = vec![0; len];
        group.read(LONG, &mut got);
        assert!(group.rank() != Rank(0) || got == vec![0x5a; len]);
        group.barrier()
    });
    outcome.unwrap_or_else(|error: Error| panic!("{error}"));
    let seen = witness.0.lock().unwrap();
    let message = |lane| matches!(lane, Lane::Data | Lane::Protocol);
    seen.iter().filter(|(transfer, _)| transfer.label.is_none_or(|(lane, _)| message(lane))).copied().collect()
}

/// How something travelled: operation, from, to, lane, length.
type Step = (Operation, u32, u32, Option<Lane>, usize);

fn steps(protocol: Protocol, len: usize) -> Vec<Step> {
    let step = |(transfer, len): (Transfer, usize)| {
        (transfer.operation, transfer.from.0, transfer.to.0, transfer.label.map(|label| label.0), len)
    };
    travelled(protocol, len).into_iter().map(step).collect()
}

#[test]
fn an_eager_message_is_one_message() {
    let message = (Operation::TwoSided, 1, 0, Some(Lane::Data), LONG);
    assert_eq!(steps(Protocol::Eager, LONG), [message]);
    for protocol in Protocol::ALL {
        let short = (Operation::TwoSided, 1, 0, Some(Lane::Data), 1024);
        assert_eq!(steps(protocol, 1024), [short], "{protocol}: the threshold itself is eager");
        assert_eq!(travelled(protocol, 1024)[0].0.label, Some((Lane::Data, Tag(7))));
    }
}

#[test]
fn put_is_rts_cts_put_fin() {
    let rts = (Operation::TwoSided, 1, 0, Some(Lane::Data), 24);
    let cts = (Operation::TwoSided, 0, 1, Some(Lane::Protocol), 16);
    let put = (Operation::Put, 1, 0, None, LONG);
    let fin = (Operation::TwoSided, 1, 0, Some(Lane::Protocol), 8);
    assert_eq!(steps(Protocol::Put, LONG), [rts, cts, put, fin]);
    assert_eq!(steps(Protocol::Put, 1025)[2], (Operation::Put, 1, 0, None, 1025));
}

#[test]
fn get_is_rts_get_fin() {
    let rts = (Operation::TwoSided, 1, 0, Some(Lane::Data), 24);
    let get = (Operation::Get, 1, 0, None, LONG);
    let fin = (Operation::TwoSided, 0, 1, Some(Lane::Protocol), 8);
    assert_eq!(steps(Protocol::Get, LONG), [rts, get, fin]);
}

/// Two ranks of which each sends `count` long messages to the other before it receives any.
fn storm(protocol: Protocol, count: usize) {
    const LEN: usize = 40;
    let outcome = loopback::run(2, |_, raw| -> Result<()> {
        let mut transport = Collective::new(Rendezvous::new(raw, protocol, Bytes(0)));
        let mut group = transport.group(&[Rank(0), Rank(1)], 2 * count * LEN)?;
        let (me, other) = (group.rank(), Rank(1 - group.rank().0));
        for round in 0..3_u8 {
            for i in 0..count {
                group.write(i * LEN, &[i as u8 ^ round ^ me.0 as u8; LEN]);
                // Some eager ones in between, which must not overtake those that queue.
                let len = if i % 7 == 3 { 5 } else { LEN };
                group.post_send(other, Tag(i as u32 % 2), Span::new(i * LEN, len))?;
            }
            for i in (0..count).step_by(2).chain((1..count).step_by(2)) {
                let len = if i % 7 == 3 { 5 } else { LEN };
                group.post_recv(other, Tag(i as u32 % 2), Span::new((count + i) * LEN, len))?;
            }
            group.wait_all()?;
            for i in 0..count {
                let mut got = [0; 5];
                group.read((count + i) * LEN, &mut got);
                assert_eq!(got, [i as u8 ^ round ^ other.0 as u8; 5], "message {i} of round {round}");
            }
        }
        group.barrier()
    });
    outcome.unwrap_or_else(|error| panic!("{protocol}: {error}"));
}

#[test]
fn any_number_of_messages_may_be_posted() {
    for protocol in Protocol::ALL {
        storm(protocol, 1000);
    }
}

#[test]
fn a_wrong_length_names_the_peer_and_both_lengths() {
    for protocol in [Protocol::Put, Protocol::Get] {
        let outcome = loopback::run(2, |_, raw| {
            let mut transport = Collective::new(Rendezvous::new(raw, protocol, Bytes(100)));
            let mut group = transport.group(&[Rank(1), Rank(0)], 1000)?;
            match group.rank() {
                Rank(1) => group.post_recv(Rank(0), Tag(0), Span::new(0, 500))?,
                _ => group.post_send(Rank(1), Tag(0), Span::new(0, 400))?,
            }
            group.wait_all()
        });
        let message = outcome.unwrap_err().to_string();
        assert_eq!(message, "rendezvous with rank 1: a message of 400 bytes met a receive of 500");
    }
}

#[test]
fn a_protocol_whose_operation_is_missing_is_refused_with_the_reason() {
    for (protocol, missing) in [(Protocol::Put, Operation::Put), (Protocol::Get, Operation::Get)] {
        let job = Job::new(1).capabilities(Capabilities::all().without(missing, "sold separately"));
        let outcome = job.run(|_, raw| {
            let transport = Rendezvous::new(raw, protocol, DEFAULT_THRESHOLD);
            let reason = format!("the {protocol} protocol needs {missing}: sold separately");
            assert_eq!(transport.capabilities().of(Operation::TwoSided), Support::No(reason));
            let mut group = Collective::new(transport).group(&[Rank(0)], 8)?;
            let refused = group.post_send(Rank(0), Tag(0), Span::new(0, 8));
            assert!(matches!(refused, Err(Error::Unsupported { operation: Operation::TwoSided, .. })), "{refused:?}");
            group.barrier()
        });
        outcome.unwrap_or_else(|error: Error| panic!("{error}"));
    }
}

#[test]
fn the_description_says_protocol_and_threshold() {
    let ranks = loopback::job(1);
    let (_, raw) = ranks.into_iter().next().expect("one rank");
    let details = Rendezvous::new(raw, Protocol::Get, Bytes(4096)).describe().details;
    assert_eq!((details["protocol"].as_str(), details["eager threshold"].as_str()), ("get", "4 KiB"));
}

struct Liar;

impl Fault for Liar {
    fn skips_flush(&self) -> bool {
        true
    }
}

/// Runs the suite over a backend that says everything is flushed before it is: what a FIN before the flush would be.
fn suite_over_a_liar(protocol: Protocol) -> std::result::Result<Vec<Report>, Failure> {
    Job::new(2).fault(Liar).run(|mut bootstrap, raw| {
        let raw = Rendezvous::new(raw, protocol, DEFAULT_THRESHOLD);
        conformance::run_only(&mut bootstrap, &mut Collective::new(raw), |name| name.starts_with("send/recv"))
    })
}

#[test]
fn a_fin_before_the_flush_is_caught() {
    suite_over_a_liar(Protocol::Eager).unwrap_or_else(|failure| panic!("{failure}"));
    for protocol in [Protocol::Put, Protocol::Get] {
        let failure = suite_over_a_liar(protocol).expect_err("stale bytes went unnoticed");
        assert!(failure.detail.contains("byte"), "{protocol}: {failure}");
    }
}

#[test]
fn a_message_is_over_when_its_own_bytes_are_there_whatever_comes_behind_it() {
    for protocol in [Protocol::Put, Protocol::Get] {
        let done = loopback::run(2, |_, raw| -> Result<()> {
            let mut transport = Collective::new(Rendezvous::new(Crowd::over(raw), protocol, DEFAULT_THRESHOLD));
            let mut group = transport.group(&[Rank(0), Rank(1)], TOGETHER as usize * LONG)?;
            let other = Rank(1 - group.rank().0);
            for message in 0..TOGETHER as usize {
                let (tag, span) = (Tag(message as u32), Span::new(message * LONG, LONG));
                if group.rank() == Rank(0) {
                    group.write(span.offset, &[message as u8 + 1; LONG]);
                    group.post_send(other, tag, span)?;
                } else {
                    group.post_recv(other, tag, span)?;
                }
            }
            group.wait_all()?;
            for message in 0..TOGETHER as usize {
                let mut seen = [0; LONG];
                group.read(message * LONG, &mut seen);
                assert!(seen.iter().all(|&byte| byte == message as u8 + 1), "{protocol}: message {message}");
            }
            group.barrier()
        });
        done.unwrap_or_else(|error| panic!("{protocol}: {error}"));
    }
}
