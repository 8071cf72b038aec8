//! How far pairs of nodes are from each other in a max-rate study.

use tailback_transport::Bytes;

use crate::models::maxrate::{self, Observation};
use crate::result::{BetweenResult, MaxRateResult};
use crate::stats::median;

/// One figure over all pairs of nodes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Span {
    /// Whether messages went both ways at once.
    pub both: bool,
    pub kind: Kind,
    pub figure: String,
    pub unit: &'static str,
    /// Its least and its most, with between which nodes.
    pub least: (f64, String),
    pub median: f64,
    pub most: (f64, String),
}

/// What a figure of two nodes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A measured time.
    Time,
    /// A measured rate.
    Rate,
    /// A parameter of the max-rate model.
    Parameter,
}

/// A figure of two nodes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Figure {
    pub kind: Kind,
    pub name: String,
    pub unit: &'static str,
    /// None where they have none.
    pub value: Option<f64>,
}

impl BetweenResult {
    /// What tells pairs of nodes apart: times and rates of `pairs` pairs and of one, and rates of the max-rate model. A node
    /// that was never full has an infinite rate.
    pub fn figures(&self, pairs: usize) -> Vec<Figure> {
        let seen = maxrate::medians(&self.observations);
        let of_pairs = |pairs: usize| seen.iter().filter(move |of| of.pairs == pairs);
        let rate = |pairs: usize| of_pairs(pairs).max_by_key(|of| of.bytes).map(|of| of.rate() * 1e-6);
        let size = |of: Option<&Observation>| of.map_or_else(String::new, |of| Bytes(of.bytes as u64).to_string());
        let (least, most) = (of_pairs(1).min_by_key(|of| of.bytes), of_pairs(1).max_by_key(|of| of.bytes));
        let fit = self.regimes.last().and_then(|regime| regime.fit(maxrate::Model::MaxRate));
        let node = fit.map(|fit| fit.node_bytes_per_s.map_or(f64::INFINITY, |node| node.value * 1e-6));
        let figure = |kind, name, value| {
            let unit = if kind == Kind::Time { "us" } else { "MB/s" };
            Figure { kind, name, unit, value }
        };
        let mut all = vec![
            figure(Kind::Time, format!("time of {}, 1 pair", size(least)), least.map(|of| of.seconds * 1e6)),
            figure(Kind::Rate, format!("rate of {}, 1 pair", size(most)), rate(1)),
            figure(Kind::Rate, format!("rate of {}, {pairs} pairs", size(most)), rate(pairs)),
            figure(Kind::Parameter, "R_C".to_owned(), fit.map(|fit| fit.pair_bytes_per_s.value * 1e-6)),
            figure(Kind::Parameter, "R_N".to_owned(), node),
        ];
        if pairs == 1 {
            all.remove(2);
        }
        all
    }
}

impl MaxRateResult {
    /// The most pairs that every two nodes were measured with.
    pub fn common_pairs(&self) -> usize {
        let most = |of: &BetweenResult| of.observations.iter().map(|seen| seen.pairs).max();
        self.between.iter().filter_map(most).min().unwrap_or(1)
    }

    /// Each figure over all pairs of nodes; messages both ways at once stand apart.
    pub fn spans(&self) -> Vec<Span> {
        spans(&self.between, self.common_pairs())
    }
}

fn spans(all: &[BetweenResult], pairs: usize) -> Vec<Span> {
    let of_kind = |both: bool| {
        let some: Vec<&BetweenResult> = all.iter().filter(|of| of.is_both() == both).collect();
        let figures: Vec<Vec<Figure>> = some.iter().map(|of| of.figures(pairs)).collect();
        let names = figures.first().cloned().unwrap_or_default();
        let span = move |(at, Figure { kind, name, unit, .. }): (usize, Figure)| {
            let known = some.iter().zip(&figures).filter_map(|(of, row)| Some((row.get(at)?.value?, of.name())));
            let mut values: Vec<(f64, String)> = known.collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let median = median(&mut values.iter().map(|(value, _)| *value).collect::<Vec<f64>>())?;
            let (least, most) = (values.first()?.clone(), values.last()?.clone());
            Some(Span { both, kind, figure: name, unit, least, median, most })
        };
        names.into_iter().enumerate().filter_map(span).collect::<Vec<_>>()
    };
    [false, true].into_iter().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::maxrate::Direction;

    fn between(second: &str, direction: Option<Direction>, rates: [f64; 2]) -> BetweenResult {
        let cell = |(pairs, bytes): (usize, usize), rate: f64| Observation {
            pairs,
            bytes,
            seconds: pairs as f64 * bytes as f64 / rate,
        };
        let observations = vec![cell((1, 1), 1e6), cell((1, 1000), rates[0]), cell((2, 1000), rates[1])];
        BetweenResult { nodes: ["a".into(), second.into()], direction, observations, regimes: Vec::new() }
    }

    #[test]
    fn spans_name_the_slowest_and_the_fastest_nodes() {
        let of = |second, rates| between(second, None, rates);
        let spans = spans(&[of("b", [2e6, 4e6]), of("c", [1e6, 6e6]), of("d", [3e6, 5e6])], 2);
        let told: Vec<_> = spans.iter().map(|span| (&*span.figure, &*span.least.1, &*span.most.1)).collect();
        assert_eq!(
            told[1..],
            [("rate of 1000 B, 1 pair", "a - c", "a - d"), ("rate of 1000 B, 2 pairs", "a - b", "a - c")]
        );
        assert!((spans[2].median / 5.0 - 1.0).abs() < 1e-9 && (spans[0].median / 1.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn both_ways_at_once_stand_apart_and_arrows_say_the_way() {
        let [there, back, both] = Direction::ALL.map(Some);
        let all = vec![between("b", there, [2e6, 2e6]), between("b", back, [1e6, 1e6]), between("b", both, [5e5, 5e5])];
        let names: Vec<String> = all.iter().map(BetweenResult::name).collect();
        assert_eq!(names, ["a > b", "b > a", "a <> b"]);
        let spans = spans(&all, 2);
        let of = |both: bool| spans.iter().filter(move |span| span.both == both);
        assert!(of(false).count() == 3 && of(true).count() == 3);
        assert!(of(false).all(|span| span.least.1 != "a <> b" && span.most.1 != "a <> b"));
        assert_eq!(of(true).next_back().unwrap().most.1, "a <> b");
    }
}
