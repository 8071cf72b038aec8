//! Those who are not of the job, where ranks meet: floods, and listeners that only say that they are rank 0.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tailback_bootstrap::handshake::{HELLO_LEN, Hello, Plane, VERSION};
use tailback_bootstrap::{Secret, TcpBootstrap};
use tailback_transport::{Bootstrap, Rank};

use crate::job::Job;

/// As many as kept a job of the first version from joining.
const FLOOD: usize = 1400;

/// A root that answers one rank with a challenge of `version`, proven with `secret`; gives the rank's hello.
pub fn root_of(job: &Job, version: u8, secret: &Secret) -> thread::JoinHandle<[u8; HELLO_LEN]> {
    let (listener, secret) = (TcpListener::bind(job.root).unwrap(), secret.clone());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; HELLO_LEN];
        stream.read_exact(&mut bytes).unwrap();
        let hello = Hello::decode(Plane::Bootstrap, &bytes).unwrap();
        stream.write_all(&hello.challenge(&secret, version, &[7; 32])).unwrap();
        bytes
    })
}

/// One connection of a flood: silent, or with half a hello, or with a whole one and no proof.
fn knock(address: SocketAddr, number: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    let (plane, from, to) = (Plane::Bootstrap, Rank(1), Rank(0));
    let hello = Hello { plane, version: VERSION, from, to, nonce: [9; 32] }.encode();
    let said = [&[], &hello[..20], &hello[..]][number % 3];
    stream.write_all(said).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 128];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Holds connections open, and opens one again as soon as it is closed, until `over`.
fn flood(address: SocketAddr, held: &AtomicUsize, over: &AtomicBool) {
    let mut crowd: Vec<Option<TcpStream>> = (0..FLOOD).map(|_| None).collect();
    while !over.load(Ordering::Relaxed) {
        for (number, place) in crowd.iter_mut().enumerate() {
            if place.as_mut().is_none_or(is_closed) && !over.load(Ordering::Relaxed) {
                *place = knock(address, number);
            }
        }
        held.store(crowd.iter().flatten().count(), Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_job_joins_through_a_flood_of_strangers() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let mut job = Job::new(6, 2);
    job.join_timeout = Duration::from_secs(10);
    // Rank 0's own time starts before the flood has come to its full height.
    let mut patient = job.clone();
    patient.join_timeout = Duration::from_secs(60);
    let (held, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let root = scope.spawn(|| patient.join(0).and_then(TcpBootstrap::finish));
        scope.spawn(|| flood(job.root, &held, &over));
        while held.load(Ordering::Relaxed) < FLOOD && !root.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        let others = job.run(1..6, |job, rank| {
            let mut bootstrap = job.join(rank)?;
            bootstrap.barrier()
        });
        over.store(true, Ordering::Relaxed);
        for joined in others {
            joined.unwrap().unwrap();
        }
        root.join().unwrap().unwrap();
    });
}

#[test]
fn a_listener_that_is_not_of_the_job_does_not_end_a_rank() {
    let mut job = Job::new(2, 32);
    let rank = {
        let job = job.clone();
        thread::spawn(move || job.join(1)?.barrier())
    };
    // Of another version, with the wrong proof or none; of this one, with the wrong proof; not understood at all.
    for version in [9, 2, VERSION] {
        root_of(&job, version, &Secret::random().unwrap()).join().unwrap();
    }
    for answer in [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"[..], b"TAILBOOT", b""]
    {
        let (mut stream, _) = TcpListener::bind(job.root).unwrap().accept().unwrap();
        stream.write_all(answer).unwrap();
    }
    job.join_timeout = Duration::from_secs(60);
    let mut root = job.join(0).unwrap();
    root.barrier().unwrap();
    rank.join().unwrap().unwrap();
}
