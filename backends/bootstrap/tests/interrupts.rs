//! A user who wants the job to end: while ranks look for each other, and later.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tailback_bootstrap::TcpBootstrap;
use tailback_transport::{Bootstrap, Monitor};

use crate::job::Job;

#[test]
fn an_interrupt_ends_ranks_that_wait_for_others_without_a_word() {
    // Rank 4 is missing, and rank 1 is its parent; later rank 0 is missing too.
    for present in [0..4, 1..4] {
        let job = Job::new(5, 3);
        let count = present.len();
        let user = {
            let flag = Arc::clone(&job.interrupt);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                flag.store(true, Ordering::Relaxed);
            })
        };
        let begun = Instant::now();
        for result in job.run(present, |job, rank| job.join(rank).err().map(|e| e.to_string())) {
            assert_eq!(result.unwrap().as_deref(), Some("the job ended; another rank says why"));
        }
        user.join().unwrap();
        assert!(begun.elapsed() < job.join_timeout / 2, "they waited on: {:?}", begun.elapsed());
        assert_eq!(job.record.ended.lock().unwrap().len(), count);
        assert_eq!(job.said(), Vec::<String>::new());
    }
}

#[test]
fn a_complete_job_that_is_interrupted_still_joins_and_ends_in_order() {
    let job = Job::new(5, 2);
    job.interrupt.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let results = job.run(0..5, |job, rank| job.join(rank)?.finish());
    // A machine that took longer than a rank's patience proves nothing but the silence.
    if begun.elapsed() < Duration::from_secs(1) {
        results.into_iter().for_each(|result| result.unwrap().unwrap());
    }
    assert_eq!(job.said(), Vec::<String>::new());
}

#[test]
fn after_an_interrupt_a_loss_is_no_news_but_a_mistake_is() {
    for (reason, said) in [(None, None), (Some("no space left"), Some("no space left"))] {
        let job = Job::new(4, 2);
        let results = job.run(0..4, move |job, rank| {
            let mut b = job.join(rank).unwrap();
            job.interrupt.store(true, Ordering::Relaxed);
            match reason {
                None if rank == 3 => true,
                Some(reason) if rank == 3 => b.abort(reason),
                _ => b.barrier().is_err(),
            }
        });
        assert!(results.into_iter().all(|r| r.unwrap_or(true)));
        let heard = job.said();
        assert_eq!(heard.len(), usize::from(said.is_some()), "{heard:?}");
        assert!(said.is_none_or(|said| heard[0].ends_with(said)), "{heard:?}");
    }
}

#[test]
fn a_rank_that_is_lost_at_work_is_named_even_after_an_interrupt() {
    let mut job = Job::new(4, 2);
    job.stall_limit = Some(Duration::from_secs(8));
    let results = job.run(0..4, |job, rank| {
        let monitor = Arc::new(Monitor::new());
        let mut b = TcpBootstrap::join(job.config(rank), monitor.clone()).unwrap();
        monitor.enter("loaded test");
        if rank == 3 {
            // Long enough for a sign of life to tell of the phase, at most a second apart.
            thread::sleep(Duration::from_secs(3));
            job.interrupt.store(true, Ordering::Relaxed);
            return true;
        }
        b.barrier().is_err()
    });
    assert!(results.into_iter().all(|r| r.unwrap()));
    assert_eq!(job.said(), ["rank 3 (host node3) was lost in phase \"loaded test\": it ended before the others"]);
}

#[test]
fn a_rank_that_dials_a_silent_address_hears_of_an_interrupt_soon() {
    // Nobody accepts: the first case connects and is never answered, the second does not even connect, as the few places
    // of those who wait to be accepted are taken.
    for places in [0, 8] {
        let job = Job::new(2, 2);
        let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        silent.bind(&job.root.into()).unwrap();
        silent.listen(if places == 0 { 128 } else { 1 }).unwrap();
        let _taken: Vec<Socket> = (0..places).map(|_| dial(job.root)).collect();
        let user = {
            let flag = Arc::clone(&job.interrupt);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                flag.store(true, Ordering::Relaxed);
                Instant::now()
            })
        };
        let error = job.join(1).err().expect("nobody answers").to_string();
        let took = user.join().unwrap().elapsed();
        assert_eq!(error, "the job ended; another rank says why");
        // A second to end in order, and less than the five that one step of dialling may take.
        assert!(took < Duration::from_secs(4), "{places}: it dialled on for {took:?}");
        assert_eq!(job.said(), Vec::<String>::new());
    }
}

/// Begins to connect, and leaves it at that.
fn dial(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_nonblocking(true).unwrap();
    let _ = socket.connect(&address.into());
    socket
}
