//! A simulated network: what an incast of 62 ranks does to two others, on a machine that the crate ships.
//! `cargo run -p tailback-sim --example network`
#![allow(clippy::print_stdout, reason = "it is an example")]

use tailback_engine::Collective;
use tailback_sim::Simulation;
use tailback_sim::machine::Machine;
use tailback_transport::{Bootstrap as _, Error, Group as _, Rank, Span, Tag, Transport as _};

/// The longest exchange between ranks 0 and 8, while the others write this much to rank 1; in ns of virtual time.
fn longest_exchange(incast_bytes: usize) -> u64 {
    let machine = Machine::load("small").expect("the crate has it");
    let job = Simulation::new(machine).seed(1).run(|bootstrap, transport| {
        let (pair, rest): (Vec<Rank>, Vec<Rank>) =
            bootstrap.everyone().iter().copied().partition(|rank| [Rank(0), Rank(8)].contains(rank));
        let is_canary = pair.contains(&bootstrap.rank());
        let mut group = Collective::new(transport).group(if is_canary { &pair } else { &rest }, 1 << 20)?;
        let mut longest = 0;
        for _ in 0..if is_canary { 50 } else { 0 } {
            let (peer, start) = (Rank(1 - group.rank().0), group.now());
            group.post_recv(peer, Tag(0), Span::new(64, 8))?;
            group.send(peer, Tag(0), Span::new(0, 8))?;
            longest = longest.max(group.now().since(start).0);
        }
        if !is_canary && group.rank() != Rank(0) {
            group.put(Rank(0), Span::new(0, incast_bytes), 0)?;
            group.flush(Rank(0))?;
        }
        Ok::<_, Error>(longest)
    });
    job.expect("nobody fails").results.into_iter().max().expect("there are ranks")
}

/// The same job gives the same times, bit for bit.
pub fn main() {
    let [idle, loaded] = [0, 1 << 20].map(longest_exchange);
    println!("longest of 50 exchanges: {idle} ns idle, {loaded} ns beside an incast");
    assert!(loaded > 2 * idle, "the incast fills the links that both share");
}
