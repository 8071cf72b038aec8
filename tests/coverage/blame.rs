//! Who is blamed for the time that load adds, where it is known whose doing it is. The truth is in how the times are made:
//! a queue that everyone meets, and what a library adds to it.

use tailback::stats::{Blame, Design, RawCells, Shares};

use super::process::Draw;

const DRAWS: u64 = 2000;
/// The queue of every placement adds so much, in ns.
const QUEUE: f64 = 5e6;

/// Placements whose queues differ by 30%, each network with its own noise of 5%: the library of `library` times the
/// queue, raw protocols of `raw` times.
fn design(placements: usize, library: f64, raw: &[f64], draw: &mut Draw) -> Design {
    let queues: Vec<f64> = (0..placements).map(|_| QUEUE * (0.3 * draw.normal()).exp()).collect();
    let mut cell = |times: f64| queues.iter().map(|queue| times * queue * (0.05 * draw.normal()).exp()).collect();
    let library = cell(library);
    Design { library, raw: raw.iter().map(|&times| RawCells { raw: cell(times), ..RawCells::default() }).collect() }
}

/// The part of the draws in which `claim` holds of the shares.
fn part(placements: usize, library: f64, raw: &[f64], claim: impl Fn(&Shares) -> bool) -> f64 {
    let holds =
        |seed: &u64| Shares::of(&design(placements, library, raw, &mut Draw::new(*seed))).is_ok_and(|of| claim(&of));
    (0..DRAWS).filter(holds).count() as f64 / DRAWS as f64
}

#[test]
fn of_equal_networks_the_library_is_blamed_in_at_most_one_of_twenty() {
    for placements in [5, 8] {
        for protocols in [1, 3, 6] {
            let raw = vec![1.0; protocols];
            let claimed = part(placements, 1.0, &raw, |of| of.library.is_shown());
            println!("{placements} placements, {protocols} protocols: a library's part in {:.1}%", 100.0 * claimed);
            assert!(claimed <= 0.05, "{placements} placements, {protocols} protocols: {claimed}");
            let network = part(placements, 1.0, &raw, |of| of.blame == Blame::Network);
            assert!(network > 0.95, "{placements} placements, {protocols} protocols: {network}");
        }
    }
}

#[test]
fn the_guilty_are_found() {
    for (library, raw, guilty) in [
        (3.0, &[1.0, 1.0, 1.0][..], Blame::Library),
        (3.0, &[1.0, 3.0], Blame::Protocol),
        (1.3, &[1.0, 1.05], Blame::Network),
        (2.0, &[1.0], Blame::CannotTell),
    ] {
        let found = part(5, library, raw, |of| of.blame == guilty);
        assert!(found > 0.9, "{library} over {raw:?}: {guilty:?} in {found}");
    }
}

#[test]
fn shares_hold_the_truth_about_as_often_as_they_say() {
    // A little less than 95%: halves that choose the same protocol by luck err to the same side.
    let held = part(8, 2.0, &[1.0, 1.0], |of| !of.network.interval.excludes(0.5));
    println!("shares hold the truth in {:.1}%", 100.0 * held);
    assert!(held > 0.92 && held < 0.97, "{held}");
}
