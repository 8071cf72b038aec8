//! Whatever a graph file holds: it is a graph whose messages all arrive, or an error of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback::models::contention::{Alone, Graph, Model, penalties, predict, predict_messages};

/// Larger ones are only read: following them takes long enough to keep the fuzzer from others.
const MOST_FOLLOWED: usize = 64;

fuzz_target!(|text: &str| {
    tailback_fuzz::within(64, || match text.parse::<Graph>() {
        Err(error) => tailback_fuzz::one_line(&error),
        Ok(graph) if graph.edges().len() <= MOST_FOLLOWED => {
            for model in [Model::Text, Model::Figure3, Model::PortLimited, Model::PacedApart] {
                let times = predict(&graph, model).times;
                assert!(times.iter().all(|time| time.is_finite() && *time > 0.999), "{times:?}");
                let times =
                    predict_messages(&graph, |live| penalties(live, model), Alone { bytes: 1000, seconds: 1e-3 }).times;
                assert!(times.iter().all(|time| time.is_finite() && *time >= 0.0), "{times:?}");
            }
        }
        Ok(_) => {}
    });
});
