//! Weighted least squares for the models.
//!
//! The models have a min() in them, on which iterative solvers stop at kinks. They are linear, though, in the latency
//! and the inverse rates once it is known for how many pairs the node binds and, for the extended model, the ratio
//! q = R_Ci / R_Cb. So every number of pairs at which the node may begin to bind is tried, q is searched on a line, and
//! each trial is an exact linear solution from per-k sums: the global minimum, in a time that does not depend on the
//! number of observations. Intervals come from [`super::covariance`]. Formula (5) binds by size too,
//! and is searched in [`super::hidden`].
//!
//! Parameters stay within what they can be, no latency and no further pair's rate below zero, unless the [`Method`] is
//! signed. One that the data say nothing about, such as the rate of a pair that a full node never let be seen, has no interval.

use super::covariance::{Seen, covariance, quadratic, used};
use super::linear::solve;
use super::{Method, Model, Observation, Values, Weighting, hidden};
use tailback_stats::t95;

/// A parameter with its 95% interval; none when the data cannot tell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Parameter {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// A model fitted to observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Which formula.
    pub model: Model,
    /// Its parameters as numbers.
    pub values: Values,
    /// Latency in seconds.
    pub latency: Parameter,
    /// R_C or R_Cb in bytes per second.
    pub first: Parameter,
    /// R_Ci in bytes per second, of the extended model.
    pub further: Option<Parameter>,
    /// R_N in bytes per second; none when it never binds (infinite), and in the postal model.
    pub node: Option<Parameter>,
    /// Sum over the cells (k, n) of the relative error of the modelled time.
    pub error_sum: f64,
    /// Bayesian information criterion of those errors: the smaller, the more the data speak for the model.
    pub criterion: f64,
}

/// How many standard errors the node's limit must be below what the pairs could do, to count as binding.
const BINDING_SIGMAS: f64 = 4.0;
/// When all further pairs add less than this part of the first one's rate, the node is full.
const LITTLE: f64 = 0.1;
/// The square of a relative error that nothing measures.
const EXACT: f64 = 1e-18;

/// Fits `model`; none when the observations do not determine it (too few sizes or numbers of pairs).
pub fn fit(model: Model, method: impl Into<Method>, observations: &[Observation]) -> Option<Fit> {
    fit_subset(model, method, observations, observations)
}

/// Fits `model` to some observations and judges it by its errors on all of them, as the paper's table 2 does with postal
/// models of one pair and of the most pairs.
pub fn fit_subset(model: Model, method: impl Into<Method>, some: &[Observation], all: &[Observation]) -> Option<Fit> {
    let Method { weighting, signed } = method.into();
    let first = Data::new(model, some, some.iter().map(|seen| weighting.of(seen)).collect(), signed);
    let values = first.best()?;
    if weighting == Weighting::InverseSize {
        return Some(finish(&first, values, all));
    }
    // A time that chance made short would count for more than one that it made long: the modelled times weigh alike.
    let modelled = |seen: &Observation| values.seconds(model, seen.pairs, seen.bytes).powi(-2);
    let again = Data::new(model, some, some.iter().map(modelled).collect(), signed);
    Some(again.best().map_or_else(|| finish(&first, values, all), |values| finish(&again, values, all)))
}

/// What a model is fitted to.
struct Data<'a> {
    model: Model,
    observations: &'a [Observation],
    weights: Vec<f64>,
    cells: Cells,
}

impl<'a> Data<'a> {
    fn new(model: Model, observations: &'a [Observation], weights: Vec<f64>, signed: bool) -> Self {
        let cells = Cells::new(observations, &weights, signed);
        Data { model, observations, weights, cells }
    }

    fn best(&self) -> Option<Values> {
        let model = self.model;
        let unlimited = search(model, &self.cells, None);
        let kinds: Vec<usize> = self.cells.rows.iter().map(|row| row.pairs).collect();
        if model == Model::Postal || kinds.len() < 2 {
            return unlimited;
        }
        let best_from = |kinds: &[usize]| {
            let limited = kinds.iter().filter_map(|&from| search(model, &self.cells, Some(from)));
            limited.min_by(|a, b| self.cost(a).total_cmp(&self.cost(b)))
        };
        let limited = match model {
            Model::HiddenLatency => hidden::search(self.observations, &self.weights, self.cells.signed),
            _ => best_from(&kinds),
        };
        let is_full =
            |limited: &Values| self.binds(limited, unlimited.as_ref()) && !self.falls(limited, unlimited.as_ref());
        if let Some(limited) = limited.filter(is_full) {
            return Some(limited);
        }
        let free = unlimited?;
        if model != Model::Extended || self.cells.signed {
            return Some(free);
        }
        // Further pairs that add nothing to be told from zero, or next to nothing all together, mean a node that is full.
        let most = kinds[kinds.len() - 1];
        let little = free.rate(model, most) < (1.0 + LITTLE) * free.first;
        let further = parameters(self, &free)[2];
        let stands_still = little || further.low.is_none_or(|low| low <= 0.0);
        let full = best_from(&kinds[..2]).filter(|values| stands_still && self.is_known(values));
        Some(full.unwrap_or(free))
    }

    /// Whether the data are rather those of further pairs that take rate away than of a full node.
    fn falls(&self, limited: &Values, unlimited: Option<&Values>) -> bool {
        unlimited.is_some_and(|free| free.further < 0.0 && self.cost(free) < self.cost(limited))
    }

    /// The weighted sum of squares that `values` leave.
    fn cost(&self, values: &Values) -> f64 {
        hidden::cost(self.model, values, self.observations, &self.weights)
    }

    /// Whether the node's rate is surely below what the largest number of pairs could do without it.
    fn binds(&self, values: &Values, unlimited: Option<&Values>) -> bool {
        let model = self.model;
        let (Some(node), Some(most)) = (values.node, self.cells.rows.last().map(|row| row.pairs)) else { return false };
        let seen = Seen::of(model, values, self.observations);
        if !seen.first || (model == Model::Extended && !seen.further) {
            // What the pairs could do without it was never seen: no more parameters than without a limit, so the misfit tells.
            let worse = unlimited.is_none_or(|free| self.cost(free) > self.cost(values));
            return worse && self.is_known(values);
        }
        let Some(covariance) = covariance(model, values, self.observations, &self.weights) else { return false };
        let largest = self.observations.iter().map(|seen| seen.bytes).max().unwrap_or(0);
        let free = Values { node: None, ..*values };
        let (free_s, full_s) = match model {
            Model::HiddenLatency => (free.seconds(model, most, largest), (most * largest) as f64 / node),
            _ => (1.0 / free.rate(model, most), 1.0 / node),
        };
        // In relative parameters: ln(full) - ln(free), with its gradient.
        let gradient = match model {
            Model::Extended => {
                let share = values.first / free.rate(model, most);
                [0.0, share, 1.0 - share, -1.0]
            }
            Model::HiddenLatency => {
                let share = values.latency / free_s;
                [-share, 1.0 - share, 0.0, -1.0]
            }
            Model::Postal | Model::MaxRate => [0.0, 1.0, 0.0, -1.0],
        };
        let variance = quadratic(&covariance.matrix, &gradient);
        (full_s / free_s).ln() > BINDING_SIGMAS * variance.max(0.0).sqrt() && full_s > free_s
    }

    /// Whether the node's rate itself is told from nothing.
    fn is_known(&self, values: &Values) -> bool {
        covariance(self.model, values, self.observations, &self.weights)
            .is_some_and(|of| values.node.is_some() && BINDING_SIGMAS * of.matrix[3][3].max(0.0).sqrt() < 1.0)
    }
}

/// Latency, first, further and node with their intervals; a node that never binds is infinite.
fn parameters(data: &Data<'_>, values: &Values) -> [Parameter; 4] {
    let covariance = covariance(data.model, values, data.observations, &data.weights);
    let used = used(data.model, values, data.observations);
    let of = [values.latency, values.first, values.further, values.node.unwrap_or(f64::INFINITY)];
    let mut found = std::array::from_fn(|at| {
        let known = covariance.as_ref().filter(|of| used[at] && of.freedom[at] > 0.0);
        let value = of[at];
        let spread = known.map(|of| t95(of.freedom[at]) * of.matrix[at][at].max(0.0).sqrt() * value.abs());
        Parameter { value, low: spread.map(|spread| value - spread), high: spread.map(|spread| value + spread) }
    });
    if !used[1] {
        // Never seen below the node's rate: that is what it has at least.
        found[1].low = values.node;
    }
    found
}

fn finish(data: &Data<'_>, values: Values, judged: &[Observation]) -> Fit {
    let model = data.model;
    let [latency, first, further, node] = parameters(data, &values);
    let error = |seen: &Observation| values.seconds(model, seen.pairs, seen.bytes) / seen.seconds - 1.0;
    Fit {
        model,
        values,
        latency,
        first,
        further: (model == Model::Extended).then_some(further),
        node: values.node.map(|_| node),
        error_sum: judged.iter().map(|seen| error(seen).abs()).sum::<f64>() / repeats(judged),
        criterion: criterion(&values, model, judged.iter().map(error)),
    }
}

/// The Bayesian information criterion of relative errors, which are what the paper judges models by.
fn criterion(values: &Values, model: Model, errors: impl Iterator<Item = f64>) -> f64 {
    let (squares, count) = errors.fold((0.0, 0.0), |(squares, count), error| (squares + error * error, count + 1.0));
    let parameters = match model {
        Model::Extended => 3.0,
        Model::Postal | Model::MaxRate | Model::HiddenLatency => 2.0,
    } + f64::from(u8::from(values.node.is_some()));
    // A misfit below any clock's precision is none.
    count * (squares / f64::max(count, 1.0)).max(EXACT).ln() + parameters * f64::max(count, 1.0).ln()
}

/// Observations per (k, n), on average.
fn repeats(observations: &[Observation]) -> f64 {
    let mut sizes: Vec<(usize, usize)> = observations.iter().map(|seen| (seen.pairs, seen.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    (observations.len() / sizes.len().max(1)).max(1) as f64
}

/// What the observations of one number of pairs add to the normal equations.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    pairs: usize,
    w: f64,
    wn: f64,
    wnn: f64,
    wy: f64,
    wny: f64,
    wyy: f64,
}

/// The observations, as sums by number of pairs.
struct Cells {
    rows: Vec<Row>,
    /// Whether values below zero are let be.
    signed: bool,
}

impl Cells {
    fn new(observations: &[Observation], weights: &[f64], signed: bool) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for (seen, &weight) in observations.iter().zip(weights) {
            let at = rows.binary_search_by_key(&seen.pairs, |row| row.pairs).unwrap_or_else(|at| {
                rows.insert(at, Row { pairs: seen.pairs, ..Row::default() });
                at
            });
            let (n, y) = (seen.bytes as f64, seen.seconds);
            let row = &mut rows[at];
            row.w += weight;
            row.wn += weight * n;
            row.wnn += weight * n * n;
            row.wy += weight * y;
            row.wny += weight * n * y;
            row.wyy += weight * y * y;
        }
        Cells { rows, signed }
    }
}

/// The best values when the node binds from `from` pairs on (never, if none).
fn search(model: Model, cells: &Cells, from: Option<usize>) -> Option<Values> {
    if model != Model::Extended {
        return linear(model, cells, from, 1.0);
    }
    let free = cells.rows.iter().map(|row| row.pairs).filter(|&pairs| from.is_none_or(|from| pairs < from));
    let most = free.max().unwrap_or(0);
    if most < 2 {
        // No further pair is seen: nothing depends on q.
        return from.and_then(|_| linear(model, cells, from, 1.0));
    }
    let cost =
        |q: f64| linear(model, cells, from, q).map_or(f64::INFINITY, |values| partition_cost(cells, from, q, &values));
    // A grid that is fine near zero, where the curve bends, then golden sections between the best point's neighbours.
    let mut grid: Vec<f64> = (0..=48).map(|at| 4.0 * (f64::from(at) / 48.0).powi(3)).collect();
    if cells.signed && from.is_none() {
        // Down to where the most pairs have no rate at all.
        let lowest = -1.0 / (most - 1) as f64;
        grid.splice(0..0, (1..48).rev().map(|at| lowest * f64::from(at) / 48.0));
    }
    let costs: Vec<f64> = grid.iter().map(|&q| cost(q)).collect();
    let best = (0..grid.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b]))?;
    let (mut low, mut high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    for _ in 0..40 {
        const GOLDEN: f64 = 0.618_033_988_75;
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if cost(left) < cost(right) { high = right } else { low = left }
    }
    // The lowest q is a point of its own: sections only come near it.
    let q = if cost(0.0) <= cost((low + high) / 2.0) { 0.0 } else { (low + high) / 2.0 };
    linear(model, cells, from, q)
}

/// The cost with the node binding from `from` on by decree, whatever min() would say.
fn partition_cost(cells: &Cells, from: Option<usize>, q: f64, values: &Values) -> f64 {
    let cost = |row: &Row| {
        let slope = slopes(row.pairs, from, q);
        let slope = slope[0] / values.first + values.node.map_or(0.0, |node| slope[1] / node);
        let a = values.latency;
        row.wyy + a * a * row.w + slope * slope * row.wnn - 2.0 * a * row.wy - 2.0 * slope * row.wny
            + 2.0 * a * slope * row.wn
    };
    cells.rows.iter().map(cost).sum()
}

/// How often a byte of a message counts against the pairs' inverse rate, and against the node's.
fn slopes(pairs: usize, from: Option<usize>, q: f64) -> [f64; 2] {
    let k = pairs as f64;
    match from {
        Some(from) if pairs >= from => [0.0, k],
        _ => [k / (1.0 + (k - 1.0) * q), 0.0],
    }
}

/// Latency and inverse rates by linear least squares, q given.
fn linear(model: Model, cells: &Cells, from: Option<usize>, q: f64) -> Option<Values> {
    let q = if model == Model::Extended { q } else { 1.0 };
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for row in &cells.rows {
        let [pair, node] = slopes(row.pairs, from, q);
        matrix[0][0] += row.w;
        right[0] += row.wy;
        for (at, slope) in [(1, pair), (2, node)] {
            matrix[0][at] += row.wn * slope;
            matrix[at][0] += row.wn * slope;
            matrix[at][at] += row.wnn * slope * slope;
            right[at] += row.wny * slope;
        }
    }
    let columns: &[usize] = match from {
        None => &[0, 1],
        Some(from) if cells.rows.first().is_some_and(|row| row.pairs >= from) => &[0, 2],
        Some(_) => &[0, 1, 2],
    };
    let mut found = reduced(&matrix, &right, columns)?;
    if found[0] < 0.0 && !cells.signed {
        // The least squares with the latency held at zero are the best among those that are not negative.
        found = reduced(&matrix, &right, &columns[1..])?;
    }
    let [latency, pair, node] = found;
    if columns[1..].iter().any(|&column| found[column] <= 0.0) {
        return None;
    }
    // A pair that the node never let be seen is at least as fast as the node.
    let first = if columns.contains(&1) { 1.0 / pair } else { 1.0 / node };
    Some(Values { latency, first, further: q * first, node: from.map(|_| 1.0 / node) })
}

/// The solution in some of the unknowns, the others being zero.
fn reduced(matrix: &[[f64; 3]; 3], right: &[f64; 3], columns: &[usize]) -> Option<[f64; 3]> {
    let mut small = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut known = [0.0; 3];
    for &row in columns {
        known[row] = right[row];
        for &column in columns {
            small[row][column] = matrix[row][column];
        }
    }
    solve(small, known)
}
