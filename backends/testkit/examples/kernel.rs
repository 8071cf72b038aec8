//! A kernel of one's own over any backend: every rank passes a message to its right neighbour and waits for that of its left one.
//! `cargo run -p tailback-testkit --example kernel`
#![allow(clippy::print_stdout, reason = "it is an example")]

use tailback_engine::Collective;
use tailback_testkit::loopback;
use tailback_transport::{Bootstrap as _, Group, Rank, Result, Span, Tag, Transport};

const BYTES: usize = 1024;
const ITERATIONS: usize = 100;

/// The kernel knows no backend: it is compiled anew for each, with no call through a table in the loop.
fn ring<G: Group>(group: &mut G) -> Result<Vec<u64>> {
    let (me, size) = (group.rank().index(), group.size());
    let (left, right) = (Rank::from((me + size - 1) % size), Rank::from((me + 1) % size));
    let (out, inward) = (Span::new(0, BYTES), Span::new(BYTES, BYTES));
    group.write(0, &[me as u8; BYTES]);
    group.barrier()?;
    let mut samples = Vec::with_capacity(ITERATIONS);
    for _ in 0..ITERATIONS {
        let start = group.now();
        group.post_recv(left, Tag(1), inward)?;
        group.post_send(right, Tag(1), out)?;
        group.wait_all()?;
        samples.push(group.now().since(start).0);
    }
    let mut received = [0; BYTES];
    group.read(BYTES, &mut received);
    assert!(received.iter().all(|byte| *byte == left.0 as u8), "what came is what the left neighbour sent");
    Ok(samples)
}

/// Four ranks as threads of this process. Over sockets, MPI or a simulated network only this part is another.
pub fn main() {
    let times = loopback::run(4, |bootstrap, transport| {
        let mut group = Collective::new(transport).group(&bootstrap.everyone(), 2 * BYTES)?;
        ring(&mut group)
    });
    for (rank, mut samples) in times.expect("the job comes to its end").into_iter().enumerate() {
        samples.sort_unstable();
        println!("rank {rank}: {ITERATIONS} messages of {BYTES} B, median {} ns", samples[ITERATIONS / 2]);
    }
}
