//! Every number that the paper prints and that follows from its rules, with its place. What differs is in docs/models.md.

use super::{Alone, Model, PAPER_BYTES, PAPER_T_REF, Prediction, Shape, penalties, predict_messages};

/// What was printed with so many digits.
fn assert_printed(what: &str, own: f64, printed: f64, part: f64) {
    assert!((own - printed).abs() <= part * printed.abs(), "{what}: {own}, printed {printed}");
}

fn predicted(shape: &str, model: Model) -> Prediction {
    let alone = Alone { bytes: PAPER_BYTES, seconds: PAPER_T_REF };
    let graph = shape.parse::<Shape>().unwrap().graph();
    predict_messages(&graph, |live| penalties(live, model), alone)
}

/// Section 5: "an effective bandwidth of 1.82 GB/s", "α = 5.105 × 10^-10", "lasts for 0.010706 seconds".
#[test]
fn the_bandwidth_the_time_and_the_coefficient_are_one() {
    let alpha = PAPER_T_REF / PAPER_BYTES as f64;
    assert_printed("α", alpha, 5.105e-10, 1e-4);
    // Of 2^30 bytes: of 10^9 it would be 1.96.
    assert_printed("GB/s", 1.0 / alpha / f64::from(1 << 30), 1.82, 5e-3);
}

/// Figure 2 and the text under it.
#[test]
fn figure_2() {
    let printed: [(&str, &[f64]); 4] = [
        ("fig2.1", &[3.0, 3.0, 3.0]),
        ("fig2.2", &[2.0, 2.0, 2.0, 2.0]),
        // 2.66 and 1.33 are cut, not rounded.
        ("fig2.3", &[4.0, 4.0, 4.0, 2.66, 2.66]),
        ("fig2.4", &[4.0, 4.0, 1.33, 1.33]),
    ];
    for (shape, printed) in printed {
        let found = penalties(&shape.parse::<Shape>().unwrap().graph(), Model::Text);
        assert_eq!(found.len(), printed.len());
        found.iter().zip(printed).for_each(|(own, printed)| assert_printed(shape, *own, *printed, 3e-3));
    }
}

/// Rule (b) as written is for any number of rivals, of which it takes the largest penalty: 1.25 for the messages c and d of graph A,
/// and c, d and e of graph B, whose rival has 5. Figure 4 prints 2.5 and 3.5, which is rule (c).
#[test]
fn rule_b_with_its_maximum_is_not_figure_4() {
    for (shape, lone, printed) in [("graph-a", &[2, 3][..], 2.5), ("graph-b", &[2, 3, 4], 3.5)] {
        let found = penalties(&shape.parse::<Shape>().unwrap().graph(), Model::Text);
        let largest = found.iter().copied().fold(0.0, f64::max);
        assert_printed("as written", 1.0 + 1.0 / (largest - 1.0), 1.25, 1e-9);
        lone.iter().for_each(|edge| assert_printed(shape, found[*edge], printed, 1e-9));
    }
}

/// Section 3.3's system for three messages prints T3 - T2 where T2 - T1 must be, and the other way round: with what it prints, the
/// penalties that made the times do not come back.
#[test]
fn the_times_of_section_3_3_are_swapped() {
    // Penalties by step: 2, 4 and 5; then 2 and 3; then 1. In units of α m.
    let [[r11, r21, r31], [r22, r32, r33]] = [[2.0, 4.0, 5.0], [2.0, 3.0, 1.0]];
    let t1 = r11;
    let (left2, left3) = (1.0 - t1 / r21, 1.0 - t1 / r31);
    let t2 = t1 + left2 * r22;
    let t3 = t2 + (left3 - (t2 - t1) / r32) * r33;
    let solved = |second: f64, third: f64| {
        let m21 = 1.0 - second / r22;
        let m31 = 1.0 - second / r32 - third / r33;
        [t1, t1 / m21, t1 / m31]
    };
    solved(t2 - t1, t3 - t2)
        .iter()
        .zip([r11, r21, r31])
        .for_each(|(own, made)| assert_printed("put right", *own, made, 1e-9));
    let printed = solved(t3 - t2, t2 - t1);
    assert!((printed[1] / r21 - 1.0).abs() > 0.1 && (printed[2] / r31 - 1.0).abs() > 0.1, "{printed:?}");
}

/// Figure 3: penalty, data remaining and time spent of every message in every step, and section 5's sentences on them.
#[test]
fn figure_3() {
    let found = predicted("fig3", Model::Figure3);
    let size = PAPER_BYTES as f64;
    // Penalty (0 once it has arrived), what remains and when, for a to f.
    let abc = [(3.5, 11_983_700.0, 0.016_059_0), (3.5, 4_294_170.0, 0.029_798_4), (3.0, 0.0, 0.036_374_9)];
    let de = [(3.33, 11_534_300.0, 0.016_059_0), (2.33, 0.0, 0.029_798_4)];
    let f = [(1.5, 0.0, 0.016_059_0)];
    let messages: [&[(f64, f64, f64)]; 6] = [&abc, &abc, &abc, &de, &de, &f];
    assert_eq!(found.steps.len(), 3);
    for (edge, printed) in messages.iter().enumerate() {
        let (mut left, mut begin) = (size, 0.0);
        assert_eq!(found.penalties_of(edge).len(), printed.len(), "message {edge}");
        for (step, (penalty, remaining, time)) in found.steps.iter().zip(*printed) {
            let own = step.penalties[edge].expect("it is under way");
            left -= (step.end - begin) / own * size;
            begin = step.end;
            assert_printed("penalty", own, *penalty, 2e-3);
            assert_printed("time spent", step.end * PAPER_T_REF, *time, 1e-4);
            // Printed from rounded penalties: to a part of the message.
            assert!((left - remaining).abs() < 1e-4 * size, "message {edge}: {left} left, printed {remaining}");
        }
    }
    let sent = (found.steps[0].end / 3.5) * size;
    assert_printed("section 5: what a, b and c have sent when f arrives", sent, 8_987_820.0, 1e-4);
    // By the text of rule (b) f has another penalty, and everything after it moves.
    let text = predicted("fig3", Model::Text);
    assert_printed("f by rule (b)", text.times[5] * PAPER_T_REF, 0.015_294, 1e-3);
}

/// Figure 4: penalties, predicted times, and errors against the measured ones (data/contention-figure4.csv).
#[test]
fn figure_4() {
    let steps: [(&str, &[&[f64]]); 2] = [
        // The column of e prints 1.5; its time is that of 1.25.
        ("graph-a", &[&[5.0, 4.0, 2.0], &[5.0, 4.0, 2.0], &[2.5, 2.5], &[2.5, 2.5], &[1.25]]),
        ("graph-b", &[&[5.0, 2.0], &[5.0, 2.0], &[3.5], &[3.5], &[3.5]]),
    ];
    let rows: Vec<Vec<&str>> = include_str!("../../../../data/contention-figure4.csv")
        .lines()
        .skip(1)
        .map(|row| row.split(',').collect())
        .collect();
    for (shape, steps) in steps {
        let (found, graph) = (predicted(shape, Model::Text), shape.parse::<Shape>().unwrap().graph());
        for (edge, steps) in steps.iter().enumerate() {
            let own = found.penalties_of(edge);
            assert_eq!(own.len(), steps.len(), "{shape} {edge}: {own:?}");
            own.iter().zip(*steps).for_each(|(own, printed)| assert_printed(shape, *own, *printed, 1e-9));
            let label = graph.label(graph.edges()[edge]);
            let row = rows.iter().find(|row| row[0] == shape && row[1] == label).expect("every message is printed");
            let number = |at: usize| row[at].parse::<f64>().unwrap();
            assert_printed(shape, found.times[edge] * PAPER_T_REF, number(2), 1e-4);
            // Errors are cut, not rounded: -2.97% is printed as -2%.
            let error = 100.0 * (number(2) / number(3) - 1.0);
            assert_eq!(error.trunc(), number(4), "{shape} {label}: {error}");
        }
    }
}
