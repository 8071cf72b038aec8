//! Memory and time per rank: jobs of 1k to 64k ranks make a group of all, meet in barriers and agreements, and move 8 B
//! around a ring. Each size is a process of its own, so that its peak is its own.
//!
//! Arguments: sizes, in ranks.

use std::process::Command;

use tailback_engine::Collective;
use tailback_sim::Simulation;
use tailback_sim::machine::Machine;
use tailback_transport::{Bootstrap, Error, Group, Rank, Span, Tag, Transport};

const PER_NODE: usize = 32;
const ROUNDS: usize = 10;

#[allow(clippy::print_stdout)]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [only, size] = arguments.as_slice()
        && only == "one"
    {
        return measure(size.parse().expect("a number of ranks"));
    }
    let sizes = if arguments.is_empty() { vec!["1024", "4096", "16384", "65536"] } else { Vec::new() };
    println!("ranks of 32 per node on a fat tree: group of all, {ROUNDS} x (ring of 8 B, agreement), barriers");
    println!("{:>8} {:>10} {:>12} {:>10} {:>14} {:>12}", "ranks", "core s", "us per rank", "MB", "KB per rank", "hops");
    for size in sizes.into_iter().map(str::to_owned).chain(arguments) {
        let myself = std::env::current_exe().expect("this program");
        let done = Command::new(myself).args(["one", &size]).status().expect("a child process");
        assert!(done.success(), "{size} ranks");
    }
}

/// A fat tree that has room for the ranks: 32 nodes to a leaf.
fn tree(nodes: usize) -> Machine {
    let mut machine = Machine::load("small").expect("a shipped machine");
    let tailback_sim::machine::Topology::FatTree(tree) = &mut machine.topology else { panic!("small is a tree") };
    machine.nodes.count = nodes;
    (tree.leaves, tree.ports_per_leaf, tree.spines) = (nodes.div_ceil(32), 32, 16);
    machine
}

#[allow(clippy::print_stdout)]
fn measure(size: usize) {
    let job = Simulation::new(tree(size.div_ceil(PER_NODE))).ranks_per_node(PER_NODE).ranks(size);
    // Once for all: a list per rank would be gigabytes.
    let everyone: Vec<Rank> = (0..size).map(Rank::from).collect();
    let finished = job.run(|mut bootstrap, transport| {
        let mut group = Collective::new(transport).group(&everyone, 64)?;
        let (me, size) = (group.rank().index(), group.size());
        // Across nodes, not to the neighbour in memory.
        let (to, from) = (Rank::from((me + PER_NODE) % size), Rank::from((me + size - PER_NODE) % size));
        for _ in 0..ROUNDS {
            group.post_recv(from, Tag(0), Span::new(8, 8))?;
            group.post_send(to, Tag(0), Span::new(0, 8))?;
            group.wait_all()?;
            group.start_agreement([0; 4])?;
            group.wait_agreement()?;
        }
        bootstrap.barrier()?;
        Ok::<_, Error>(())
    });
    let finished = finished.unwrap_or_else(|error| panic!("{error}"));
    assert!(finished.audit.is_clean(), "{:?}", finished.audit.faults);
    let (seconds, kb) = (cpu_seconds(), peak_kb());
    println!(
        "{size:>8} {seconds:>10.2} {:>12.1} {:>10} {:>14.1} {:>12}",
        1e6 * seconds / size as f64,
        kb / 1024,
        kb as f64 / size as f64,
        finished.work.hops
    );
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
}

/// Processor time of this process: on a machine that others use too, it says more than the clock.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, in hundredths of a second.
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
