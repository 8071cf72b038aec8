//! Whoever connects without knowing the job's secret is dropped, and the job goes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tailback_bootstrap::Secret;
use tailback_bootstrap::handshake::{Hello, Plane, VERSION};
use tailback_engine::{Engine, Lane};
use tailback_host::WaitMode;
use tailback_tcp::{TcpConfig, TcpTransport, open};
use tailback_testkit::loopback;
use tailback_transport::{Bootstrap, Error, Rank, Result, Span, Tag};

use crate::common::{config, everyone, run};

/// Longer than a stranger's time limit of 5 s, by what a loaded machine may add.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the listener takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream
}

/// Reads until the other end closes; the bytes it sent before.
fn until_closed(mut stream: TcpStream) -> usize {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => all.len(),
        Err(e) if e.kind() == ErrorKind::ConnectionReset => all.len(),
        Err(e) => panic!("not dropped: {e}"),
    }
}

fn hello(from: u32, to: u32) -> Vec<u8> {
    Hello { plane: Plane::Data, version: VERSION, from: Rank(from), to: Rank(to), nonce: [9; 32] }.encode()
}

fn garbage(address: SocketAddr) {
    for text in [b"GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: */*\r\n\r\n".repeat(3), vec![0xff; 100_000]] {
        let mut stream = connect(address);
        // The other end may close before all is written.
        let _ = stream.write_all(&text);
        assert_eq!(until_closed(stream), 0, "a stranger is answered nothing");
    }
}

/// A stranger that knows the protocol but not the secret.
fn impostor(address: SocketAddr, to: u32) {
    let mut stream = connect(address);
    stream.write_all(&hello(1 - to, to)).expect("hello");
    let mut challenge = [0; 74];
    stream.read_exact(&mut challenge).expect("a challenge");
    stream.write_all(&challenge[42..]).expect("the acceptor's own proof, played back");
    assert_eq!(until_closed(stream), 0, "no verdict for an impostor");
}

fn wrong_ranks(address: SocketAddr, to: u32) {
    for (from, to) in [(to, to), (77, to), (1 - to, 99)] {
        let mut stream = connect(address);
        stream.write_all(&hello(from, to)).expect("hello");
        assert_eq!(until_closed(stream), 0, "no challenge for {from} -> {to}");
    }
}

fn scan(address: SocketAddr) {
    for _ in 0..300 {
        drop(connect(address));
    }
}

fn silence(address: SocketAddr) {
    let mut half = connect(address);
    half.write_all(&hello(0, 0)[..20]).expect("half a hello");
    assert_eq!(until_closed(connect(address)), 0);
    assert_eq!(until_closed(half), 0);
}

/// Ping-pong until the other plane says stop; returns the rounds made.
fn traffic(transport: &mut TcpTransport, group: usize, me: Rank, stop: &mut dyn FnMut() -> bool) -> Result<u64> {
    let other = Rank::from(1 - me.index());
    for round in 1.. {
        transport.write(group, 0, &[u8::from(me == Rank(0) && stop())]);
        transport.post_recv(group, Lane::Data, other, Tag(0), Span::new(8, 8))?;
        transport.post_send(group, Lane::Data, other, Tag(0), Span::new(0, 8))?;
        transport.wait(group, Lane::Data)?;
        let (mut mine, mut theirs) = ([0], [0]);
        transport.read(group, 0, &mut mine);
        transport.read(group, 8, &mut theirs);
        if mine == [1] || theirs == [1] {
            return Ok(round);
        }
    }
    unreachable!("the rounds have no end but stop")
}

fn under_attack(wait: WaitMode, attack: impl Fn(SocketAddr, u32) + Sync) {
    let rounds = run(2, wait, |bootstrap, mut transport| -> Result<u64> {
        let (me, address) = (bootstrap.rank().0, transport.wire().local_addr());
        let group = everyone(&mut transport, 2, 64);
        thread::scope(|scope| {
            let attacker = scope.spawn(|| attack(address, me));
            let rounds = traffic(&mut transport, group, Rank(me), &mut || me == 0 && attacker.is_finished())?;
            // The other rank's attacker may still wait to be dropped.
            while !attacker.is_finished() {
                transport.test(group, Lane::Data)?;
            }
            attacker.join().expect("the attack went as expected");
            Ok(rounds)
        })
    });
    assert!(rounds[0] > 0 && rounds[0] == rounds[1]);
}

#[test]
fn garbage_impostors_and_scans_are_dropped_while_traffic_runs() {
    for wait in [WaitMode::Spin, WaitMode::Yield, WaitMode::Block] {
        under_attack(wait, |address, me| {
            garbage(address);
            impostor(address, me);
            wrong_ranks(address, me);
            scan(address);
        });
    }
}

#[test]
fn the_silent_are_dropped_in_time() {
    under_attack(WaitMode::Block, |address, _| silence(address));
}

/// A crowd at one rank's door, of which some say half of what a rank says, and some all but the proof.
fn crowd(address: SocketAddr, me: u32) -> Vec<TcpStream> {
    let hello = hello(1 - me, me);
    let said = [&[], &hello[..20], &hello[..]];
    let knock = |number: usize| {
        let mut stream = connect(address);
        // Whoever came long ago may have been put out.
        let _ = stream.write_all(said[number % said.len()]);
        stream
    };
    (0..700).map(knock).collect()
}

#[test]
fn a_crowd_of_strangers_does_not_keep_a_rank_out() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    run(2, WaitMode::Block, |mut bootstrap, mut transport| -> Result<()> {
        let crowd = crowd(transport.wire().local_addr(), bootstrap.rank().0);
        bootstrap.barrier()?;
        let group = everyone(&mut transport, 2, 64);
        assert_eq!(traffic(&mut transport, group, bootstrap.rank(), &mut || true)?, 1);
        bootstrap.barrier()?;
        drop(crowd);
        Ok(())
    });
}

#[test]
fn a_rank_with_another_secret_is_named() {
    let outcome = loopback::run(2, |mut bootstrap, _| -> Result<()> {
        let me = bootstrap.rank();
        let config = TcpConfig { secret: Secret::from_bytes([me.0 as u8; 32]), ..config(WaitMode::Block) };
        let mut transport = open(&mut bootstrap, &config)?;
        let group = everyone(&mut transport, 2, 64);
        if me == Rank(0) {
            transport.post_send(group, Lane::Data, Rank(1), Tag(0), Span::new(0, 8))?;
            let error = transport.wait(group, Lane::Data).expect_err("another secret");
            assert!(matches!(error, Error::Protocol { peer: Some(Rank(1)), .. }), "{error}");
            assert!(error.to_string().contains("secret"), "{error}");
            return bootstrap.barrier();
        }
        // Rank 0 is answered while this rank tests; its attempt never becomes a connection here.
        for _ in 0..200 {
            transport.test(group, Lane::Data)?;
            thread::sleep(Duration::from_millis(5));
        }
        bootstrap.barrier()
    });
    outcome.expect("only rank 0's wait fails");
}
