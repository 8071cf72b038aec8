//! From samples to a claim: an impact over placements with its interval, and a change in a series of nights.
//! `cargo run -p tailback-stats --example claim`
#![allow(clippy::print_stdout, reason = "it is an example")]

use tailback_stats::{Spread, change_points, needed};

/// Placements are what is independent in a job, and nights in a history.
pub fn main() {
    // How many times longer a message took under load, on each of five placements.
    let factors = [2.1, 2.6, 1.9, 3.0, 2.3];
    let spread = Spread::of(&factors).expect("there are some");
    let interval = spread.interval.expect("five are enough for one");
    println!("{:.2} times as long [{:.2}, {:.2}]", spread.factor, interval.low, interval.high);
    assert!(interval.low > 1.0, "load costs something, wherever canaries are");
    let (half, distance) = ((interval.high / interval.low).ln() / 2.0, (spread.factor / 2.0).ln());
    println!("placements to tell it from 2.00: {:?}", needed(factors.len(), 1, half, distance));

    // 40 nights, of which the last 15 are a tenth slower.
    let nights: Vec<f64> =
        (0..40).map(|night| if night < 25 { 10.0 } else { 11.0 } + 0.1 * f64::from(night * 7 % 5)).collect();
    for change in change_points(&nights, 0.05) {
        println!("since night {}: {:+.2} us, p = {:.4}", change.at, change.shift, change.p_value);
        assert_eq!(change.at, 25);
    }
}
