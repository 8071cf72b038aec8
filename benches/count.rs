//! The same work a given number of times, for counting instructions: `ci/bench instructions` runs it under callgrind
//! with two counts and prints the difference per operation, which no other load on the machine can change.

#![allow(clippy::print_stdout)]

use std::hint::black_box;

use tailback::layout::random_rings;
use tailback::stats::Samples;
use tailback_transport::Rank;

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let (Some(what), Some(times)) = (arguments.get(1), arguments.get(2).and_then(|text| text.parse::<u64>().ok()))
    else {
        eprintln!("usage: count record|rings|encode TIMES (ci/bench instructions calls it)");
        return;
    };
    match what.as_str() {
        "record" => {
            let mut samples = Samples::new();
            (0..times).for_each(|i| samples.record(black_box(1000 + i % 5000)));
            black_box(samples.total().mean_ns());
        }
        "rings" => (0..times).for_each(|i| {
            black_box(random_rings(black_box(i), 0, 1000, Rank(17), 1));
        }),
        "encode" => {
            let mut samples = Samples::new();
            (0..5000).for_each(|i| samples.record(1000 + i));
            samples.close_pass(Some(1.0));
            (0..times).for_each(|_| {
                black_box(samples.encode());
            });
        }
        other => eprintln!("unknown work '{other}': record, rings or encode"),
    }
}
