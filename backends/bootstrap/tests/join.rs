//! Ranks as threads: joining, collectives, failures and mistakes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tailback_bootstrap::handshake::{Hello, Plane, Role, VERSION};
use tailback_bootstrap::{JoinConfig, Secret, TcpBootstrap};
use tailback_transport::{Bootstrap, Monitor, Rank};

use crate::job::{Job, free_address};
use crate::strangers::root_of;

#[test]
fn collectives_agree_on_every_size_and_depth() {
    for (size, fan_out) in [(1, 32), (2, 32), (3, 1), (7, 2), (40, 32), (40, 3), (100, 32)] {
        let job = Job::new(size, fan_out);
        let results = job.run(0..size, |job, rank| {
            let mut b = job.join(rank).unwrap();
            assert_eq!((b.rank(), b.size(), b.host()), (Rank::from(rank), job.size, format!("node{rank}").as_str()));
            let mine = vec![rank as u8; rank * 7 % 13];
            let all = b.allgather(&mine).unwrap();
            for (r, bytes) in all.iter().enumerate() {
                assert_eq!(*bytes, vec![r as u8; r * 7 % 13]);
            }
            let text = if rank == 0 { b"from the root".to_vec() } else { b"ignored".to_vec() };
            assert_eq!(b.broadcast(text).unwrap(), b"from the root");
            b.barrier().unwrap();
            let sum = b.reduce((rank as u64).to_be_bytes().to_vec(), &mut |mine, theirs| {
                let sum =
                    u64::from_be_bytes(mine[..].try_into().unwrap()) + u64::from_be_bytes(theirs.try_into().unwrap());
                *mine = sum.to_be_bytes().to_vec();
                Ok(())
            });
            let expected = (job.size * (job.size - 1) / 2) as u64;
            assert_eq!(sum.unwrap(), (rank == 0).then(|| expected.to_be_bytes().to_vec()));
            b.finish().unwrap();
        });
        for (rank, result) in results.into_iter().enumerate() {
            assert!(result.is_ok(), "size {size}, fan-out {fan_out}, rank {rank}");
        }
        assert_eq!(job.said(), Vec::<String>::new(), "size {size}, fan-out {fan_out}");
    }
}

#[test]
fn merge_order_is_the_same_every_time_and_large_messages_pass() {
    let orders: Vec<Vec<u8>> = (0..3)
        .map(|_| {
            let job = Job::new(12, 3);
            let results = job.run(0..12, |job, rank| {
                let mut b = job.join(rank).unwrap();
                let large = vec![rank as u8; 3 << 20];
                let total = b.reduce(large, &mut |mine, theirs| {
                    assert!(theirs.len() >= 3 << 20);
                    let distinct: Vec<u8> = theirs[..].chunk_by(|a, b| a == b).map(|c| c[0]).collect();
                    mine.splice(0..0, distinct);
                    Ok(())
                });
                b.finish().unwrap();
                total.unwrap()
            });
            results.into_iter().next().unwrap().unwrap().unwrap()
        })
        .collect();
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
}

/// Connects as soon as somebody listens.
fn stranger(address: SocketAddr) -> TcpStream {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn strangers_are_refused_and_the_job_goes_on() {
    let job = Job::new(3, 2);
    let root = {
        let job = job.clone();
        thread::spawn(move || job.join(0).unwrap().finish())
    };
    let _silent = stranger(job.root);
    let mut garbage = stranger(job.root);
    garbage.write_all(&[b'x'; 5000]).unwrap();
    stranger(job.root).write_all(b"TAILBOOT").unwrap();
    let mut sink = Vec::new();
    garbage.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // Closed, or reset because it was not read to the end; either way nothing came.
    let _ = garbage.read_to_end(&mut sink);
    assert!(sink.is_empty(), "a stranger got {} bytes", sink.len());

    let mut wrong = job.config(1);
    wrong.secret = Secret::random().unwrap();
    wrong.join_timeout = Duration::from_secs(1);
    let refused = TcpBootstrap::join(wrong, Arc::new(Monitor::new())).err().expect("a wrong secret is refused");
    let expected = format!(
        "rank 1 (host node1) could not reach rank 0 at {0} within 1 s: what listens at {0} does not know the job secret of \
         rank 1: check TAILBACK_SECRET is the same for all ranks",
        job.root
    );
    assert_eq!(refused.to_string(), expected);

    for result in job.run(1..3, |job, rank| job.join(rank).unwrap().finish()) {
        result.unwrap().unwrap();
    }
    root.join().unwrap().unwrap();
    assert_eq!(job.said(), Vec::<String>::new());
}

#[test]
fn missing_ranks_are_named() {
    let mut job = Job::new(10, 32);
    job.join_timeout = Duration::from_secs(3);
    let results = job.run([0, 1, 2, 4, 5, 6], |job, rank| job.join(rank).err().map(|e| e.to_string()));
    let errors: Vec<String> = results.into_iter().map(|r| r.unwrap().unwrap()).collect();
    assert_eq!(errors[0], "ranks 3, 7-9 did not join within 3 s");
    assert!(errors[1..].iter().all(|e| e == "the job ended; another rank says why"), "{errors:?}");
    assert_eq!(job.record.ended.lock().unwrap().len(), 5);
    assert_eq!(job.said(), Vec::<String>::new());
}

#[test]
fn without_rank_0_the_address_is_named() {
    let mut job = Job::new(2, 32);
    job.join_timeout = Duration::from_secs(1);
    let error = job.join(1).err().unwrap().to_string();
    let expected = format!("rank 1 (host node1) could not reach rank 0 at {} within 1 s: ", job.root);
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_port_in_use_is_said() {
    let job = Job::new(2, 32);
    let _holder = TcpListener::bind(job.root).unwrap();
    let error = job.join(0).err().unwrap().to_string();
    assert!(error.starts_with(&format!("rank 0 cannot listen on {}", job.root)), "{error}");
    assert!(error.contains("another job or program uses this port"), "{error}");
}

/// Runs rank 0 and `impostor` (whose configuration `change` spoils) and gives both errors.
fn misfits(impostor: usize, change: impl Fn(&mut JoinConfig)) -> (String, String) {
    let job = Job::new(4, 32);
    let root = {
        let job = job.clone();
        thread::spawn(move || job.join(0).err().unwrap().to_string())
    };
    let first = {
        let job = job.clone();
        thread::spawn(move || job.join(2).err().unwrap().to_string())
    };
    // The first one must be in before its double comes.
    thread::sleep(Duration::from_millis(500));
    let mut config = job.config(impostor);
    change(&mut config);
    let error = TcpBootstrap::join(config, Arc::new(Monitor::new())).err().unwrap().to_string();
    assert_eq!(first.join().unwrap(), "the job ended; another rank says why");
    (root.join().unwrap(), error)
}

#[test]
fn misfits_are_told_and_so_is_rank_0() {
    let (root, own) = misfits(2, |c| c.host = "other".into());
    assert!(root.starts_with("two processes say they are rank 2 (hosts node2 and other"), "{root}");
    assert_eq!(root, own);
    let (root, own) = misfits(1, |c| c.size = 5);
    assert!(root.starts_with("rank 1 (host node1) was told that the job has 5 ranks, rank 0 that it has 4"), "{root}");
    assert_eq!(root, own);
    let (root, own) = misfits(1, |c| c.fan_out = 5);
    assert!(root.contains("fan-out 5"), "{root}");
    assert_eq!(root, own);
}

#[test]
fn an_abort_ends_everyone_with_one_message() {
    let job = Job::new(13, 3);
    let results = job.run(0..13, |job, rank| {
        let monitor = Arc::new(Monitor::new());
        let mut b = TcpBootstrap::join(job.config(rank), monitor.clone()).unwrap();
        monitor.enter("loaded test");
        if rank == 11 {
            b.abort("the buffer is wrong");
        }
        b.barrier().err().map(|e| e.to_string())
    });
    for (rank, result) in results.iter().enumerate() {
        match result {
            Ok(error) => assert!(error.is_some() && rank != 11, "rank {rank} must not pass"),
            Err(_) => assert_eq!(rank, 11),
        }
    }
    assert_eq!(job.said(), ["rank 11 (host node11), phase \"loaded test\": the buffer is wrong"]);
    let ended = job.record.ended.lock().unwrap();
    assert_eq!((ended.len(), ended.iter().flatten().count()), (13, 1));
}

#[test]
fn a_rank_without_progress_is_named_with_its_phase() {
    let mut job = Job::new(7, 2);
    job.stall_limit = Some(Duration::from_secs(3));
    let results = job.run(0..7, |job, rank| {
        let monitor = Arc::new(Monitor::new());
        let mut b = TcpBootstrap::join(job.config(rank), monitor.clone()).unwrap();
        monitor.enter("isolated test");
        let deadline = Instant::now() + Duration::from_secs(60);
        // Rank 5 hangs, rank 3 goes on, the others wait for them.
        while (rank == 5 || rank == 3) && job.record.ended.lock().unwrap().is_empty() && Instant::now() < deadline {
            if rank == 3 {
                monitor.tick();
            }
            thread::sleep(Duration::from_millis(20));
        }
        b.barrier().is_err()
    });
    assert!(results.into_iter().all(|r| r.unwrap()));
    assert_eq!(job.said(), ["rank 5 (host node5) made no progress for 3 s in phase \"isolated test\""]);
}

#[test]
fn a_rank_that_leaves_early_is_named_by_those_who_need_it() {
    let job = Job::new(4, 2);
    let results = job.run(0..4, |job, rank| {
        let mut b = job.join(rank).unwrap();
        if rank == 3 {
            return true;
        }
        b.barrier().is_err()
    });
    assert!(results.into_iter().all(|r| r.unwrap()));
    assert_eq!(job.said(), ["rank 3 (host node3) was lost in phase \"start-up\": it ended before the others"]);
}

#[test]
fn other_protocol_versions_are_told_apart() {
    let mut job = Job::new(2, 32);
    // A root of the future. It proves that it is one, so waiting a minute for another would be in vain.
    let root = root_of(&job, 9, &job.secret);
    let error = job.join(1).err().unwrap().to_string();
    let expected =
        format!("rank 0 at {} speaks bootstrap protocol 9, rank 1 speaks {VERSION}: run the same tailback", job.root);
    assert!(error.starts_with(&expected), "{error}");

    // A rank of the future: it gets the challenge, to know what differs, and nothing more.
    let mut hello = root.join().unwrap();
    hello[9] = 9;
    job.root = free_address();
    job.join_timeout = Duration::from_secs(2);
    let root = {
        let job = job.clone();
        thread::spawn(move || job.join(0).err().unwrap().to_string())
    };
    let mut stream = stranger(job.root);
    stream.write_all(&hello).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!((answer.len(), &answer[..10]), (74, &[&b"TAILBOOT\0"[..], &[VERSION]].concat()[..]));
    let (hello, nonce) = (Hello::decode(Plane::Bootstrap, &hello).unwrap(), answer[10..42].try_into().unwrap());
    assert!(hello.verify(&job.secret, Role::Acceptor, VERSION, &nonce, &answer[42..]));
    assert_eq!(root.join().unwrap(), "rank 1 did not join within 2 s");
}
