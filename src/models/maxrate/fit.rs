//! Weighted least squares for the three models.
//!
//! The models have a min() in them, on which iterative solvers stop at kinks. They are linear, though, in the latency
//! and the inverse rates once it is known for how many pairs the node binds and, for the extended model, the ratio
//! q = R_Ci / R_Cb. So every number of pairs at which the node may begin to bind is tried, q is searched on a line, and
//! each trial is an exact linear solution from per-k sums: the global minimum, in a time that does not depend on the
//! number of observations. Intervals come from a sandwich covariance, which holds for noise of any size by cell: HC2,
//! which undoes each observation's own pull on the fit, and Student's t with Satterthwaite's degrees of freedom (G. W.
//! Imbens and M. Kolesár, 2016). HC3 with n - p degrees of freedom holds 89 to 95% of what it should at the size of a
//! lab run, because the weights let a few long messages decide the rates.
//!
//! Parameters stay within what they can be: no latency and no further pair's rate below zero. One that the data say
//! nothing about, such as the rate of a pair that a full node never let be seen, has no interval.

use super::linear::{invert, solve};
use super::{Model, Observation, Values, Weighting};
use crate::stats::t95;

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
}

/// How many standard errors the node's limit must be below what the pairs could do, to count as binding.
const BINDING_SIGMAS: f64 = 4.0;
/// When all further pairs add less than this part of the first one's rate, the node is full.
const LITTLE: f64 = 0.1;
/// An observation that pulls the fit this close to itself leaves no residual to judge by.
const ALL_OF_IT: f64 = 1.0 - 1e-9;

/// Fits `model`; none when the observations do not determine it (too few sizes or numbers of pairs).
pub fn fit(model: Model, weighting: Weighting, observations: &[Observation]) -> Option<Fit> {
    let cells = Cells::new(weighting, observations);
    let unlimited = search(model, &cells, None);
    let kinds: Vec<usize> = cells.rows.iter().map(|row| row.pairs).collect();
    if model == Model::Postal || kinds.len() < 2 {
        return Some(finish(model, unlimited?, &cells, observations));
    }
    let best_from = |kinds: &[usize]| {
        let limited = kinds.iter().filter_map(|&from| search(model, &cells, Some(from)));
        limited.min_by(|a, b| cells.cost(model, a).total_cmp(&cells.cost(model, b)))
    };
    if let Some(limited) = best_from(&kinds)
        && binds(model, &limited, unlimited.as_ref(), &cells, observations)
    {
        return Some(finish(model, limited, &cells, observations));
    }
    let free = finish(model, unlimited?, &cells, observations);
    // Further pairs that add nothing to be told from zero, or next to nothing all together, mean a node that is full.
    let most = kinds[kinds.len() - 1];
    let little = free.values.rate(model, most) < (1.0 + LITTLE) * free.values.first;
    let stands_still = free.further.is_some_and(|further| little || further.low.is_none_or(|low| low <= 0.0));
    let full = best_from(&kinds[..2]).filter(|values| stands_still && is_known(model, values, &cells, observations));
    Some(full.map_or(free, |values| finish(model, values, &cells, observations)))
}

/// Whether the node's rate is surely below what the largest number of pairs could do without it.
fn binds(
    model: Model,
    values: &Values,
    unlimited: Option<&Values>,
    cells: &Cells,
    observations: &[Observation],
) -> bool {
    let (Some(node), Some(most)) = (values.node, cells.rows.last().map(|row| row.pairs)) else { return false };
    let seen = Seen::of(model, values, cells);
    if !seen.first || (model == Model::Extended && !seen.further) {
        // What the pairs could do without it was never seen: as many parameters as without a limit, so the misfit tells.
        let worse = unlimited.is_none_or(|free| cells.cost(model, free) > cells.cost(model, values));
        return worse && is_known(model, values, cells, observations);
    }
    let free = Values { node: None, ..*values }.rate(model, most);
    let Some(covariance) = covariance(model, values, cells, observations) else { return false };
    // In relative parameters: ln(free) - ln(node), with the gradient of ln(free).
    let share = values.first / free;
    let gradient = match model {
        Model::Extended => [0.0, share, 1.0 - share, -1.0],
        _ => [0.0, 1.0, 0.0, -1.0],
    };
    let variance = quadratic(&covariance.matrix, &gradient);
    (free / node).ln() > BINDING_SIGMAS * variance.max(0.0).sqrt() && node < free
}

/// Whether the node's rate itself is told from nothing.
fn is_known(model: Model, values: &Values, cells: &Cells, observations: &[Observation]) -> bool {
    covariance(model, values, cells, observations)
        .is_some_and(|of| values.node.is_some() && BINDING_SIGMAS * of.matrix[3][3].max(0.0).sqrt() < 1.0)
}

/// Which rates the node let be seen.
struct Seen {
    first: bool,
    further: bool,
}

impl Seen {
    fn of(model: Model, values: &Values, cells: &Cells) -> Self {
        let free = |row: &&Row| Some(values.rate(model, row.pairs)) != values.node;
        Seen {
            first: cells.rows.iter().any(|row| free(&row)),
            further: model == Model::Extended && cells.rows.iter().any(|row| row.pairs > 1 && free(&row)),
        }
    }
}

fn finish(model: Model, values: Values, cells: &Cells, observations: &[Observation]) -> Fit {
    let covariance = covariance(model, &values, cells, observations);
    let used = used(model, &values, cells);
    let parameter = |at: usize, value: f64| {
        let known = covariance.as_ref().filter(|of| used[at] && of.freedom[at] > 0.0);
        let spread = known.map(|of| t95(of.freedom[at]) * of.matrix[at][at].max(0.0).sqrt() * value.abs());
        Parameter { value, low: spread.map(|spread| value - spread), high: spread.map(|spread| value + spread) }
    };
    let error = |observation: &Observation| {
        (values.seconds(model, observation.pairs, observation.bytes) / observation.seconds - 1.0).abs()
    };
    let repeats = cells.repeats.max(1) as f64;
    let mut first = parameter(1, values.first);
    if !used[1] {
        // Never seen below the node's rate: that is what it has at least.
        first.low = values.node;
    }
    Fit {
        model,
        values,
        latency: parameter(0, values.latency),
        first,
        further: (model == Model::Extended).then(|| parameter(2, values.further)),
        node: values.node.map(|node| parameter(3, node)),
        error_sum: observations.iter().map(error).sum::<f64>() / repeats,
    }
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
    weighting: Weighting,
    rows: Vec<Row>,
    /// Observations per (k, n), on average.
    repeats: usize,
}

impl Cells {
    fn new(weighting: Weighting, observations: &[Observation]) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let mut sizes: Vec<(usize, usize)> = observations.iter().map(|seen| (seen.pairs, seen.bytes)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for seen in observations {
            let at = rows.binary_search_by_key(&seen.pairs, |row| row.pairs).unwrap_or_else(|at| {
                rows.insert(at, Row { pairs: seen.pairs, ..Row::default() });
                at
            });
            let (weight, n, y) = (weight(weighting, seen), seen.bytes as f64, seen.seconds);
            let row = &mut rows[at];
            row.w += weight;
            row.wn += weight * n;
            row.wnn += weight * n * n;
            row.wy += weight * y;
            row.wny += weight * n * y;
            row.wyy += weight * y * y;
        }
        Cells { weighting, rows, repeats: observations.len() / sizes.len().max(1) }
    }

    /// The weighted sum of squares that `values` leave.
    fn cost(&self, model: Model, values: &Values) -> f64 {
        let cost = |row: &Row| {
            let (a, slope) = (values.latency, row.pairs as f64 / values.rate(model, row.pairs));
            row.wyy + a * a * row.w + slope * slope * row.wnn - 2.0 * a * row.wy - 2.0 * slope * row.wny
                + 2.0 * a * slope * row.wn
        };
        self.rows.iter().map(cost).sum()
    }
}

fn weight(weighting: Weighting, seen: &Observation) -> f64 {
    match weighting {
        Weighting::InverseSize => 1.0 / seen.bytes.max(1) as f64,
        Weighting::Relative => 1.0 / (seen.seconds * seen.seconds),
    }
}

/// The best values when the node binds from `from` pairs on (never, if none).
fn search(model: Model, cells: &Cells, from: Option<usize>) -> Option<Values> {
    if model != Model::Extended {
        return linear(model, cells, from, 1.0);
    }
    let free = cells.rows.iter().map(|row| row.pairs).filter(|&pairs| from.is_none_or(|from| pairs < from));
    if free.max().is_none_or(|most| most < 2) {
        // No further pair is seen: nothing depends on q.
        return from.and_then(|_| linear(model, cells, from, 1.0));
    }
    let cost =
        |q: f64| linear(model, cells, from, q).map_or(f64::INFINITY, |values| partition_cost(cells, from, q, &values));
    // A grid that is fine near zero, where the curve bends, then golden sections between the best point's neighbours.
    let grid: Vec<f64> = (0..=48).map(|at| 4.0 * (f64::from(at) / 48.0).powi(3)).collect();
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
    if found[0] < 0.0 {
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

/// Which of latency, first, further and node the observations say something about.
fn used(model: Model, values: &Values, cells: &Cells) -> [bool; 4] {
    let seen = Seen::of(model, values, cells);
    [values.latency > 0.0, seen.first, seen.further && values.further > 0.0, values.node.is_some()]
}

/// How certain the parameters (latency, first, further, node) are, each relative to its value.
struct Covariance {
    matrix: [[f64; 4]; 4],
    /// Degrees of freedom of each one's variance. A few long messages may decide a rate, however many short ones there
    /// are: so many as if noise were a part of the time, after Satterthwaite, and no more than observations to spare.
    freedom: [f64; 4],
}

/// Parameters that the model does not have, and a node that never binds, have none; nor has anything when one
/// observation alone decides something.
fn covariance(model: Model, values: &Values, cells: &Cells, observations: &[Observation]) -> Option<Covariance> {
    let mut bread = [[0.0; 4]; 4];
    for seen in observations {
        add(&mut bread, weight(cells.weighting, seen), &gradient(model, values, seen));
    }
    let used = used(model, values, cells);
    for at in (0..4).filter(|&at| !used[at]) {
        bread[at][at] = 1.0;
    }
    let inverse = invert(bread)?;
    let mut meat = [[0.0; 4]; 4];
    let mut moments = [(0.0, 0.0); 4];
    for seen in observations {
        let gradient = gradient(model, values, seen);
        let weight = weight(cells.weighting, seen);
        let pull = weight * quadratic(&inverse, &gradient);
        if pull >= ALL_OF_IT {
            return None;
        }
        let modelled = values.seconds(model, seen.pairs, seen.bytes);
        add(&mut meat, (weight * (seen.seconds - modelled)).powi(2) / (1.0 - pull), &gradient);
        for (at, moments) in moments.iter_mut().enumerate() {
            let influence = (0..4).map(|column| inverse[at][column] * gradient[column]).sum::<f64>();
            let square = (weight * influence * modelled).powi(2) / (1.0 - pull);
            *moments = (moments.0 + square, moments.1 + square * square);
        }
    }
    let spare = observations.len().saturating_sub(used.iter().filter(|used| **used).count()) as f64;
    let freedom = moments.map(|(sum, squares)| if squares > 0.0 { (sum * sum / squares).min(spare) } else { 0.0 });
    let times = |a: &[[f64; 4]; 4], b: &[[f64; 4]; 4]| -> [[f64; 4]; 4] {
        std::array::from_fn(|row| std::array::from_fn(|column| (0..4).map(|at| a[row][at] * b[at][column]).sum()))
    };
    Some(Covariance { matrix: times(&times(&inverse, &meat), &inverse), freedom })
}

/// Adds `scale` times the product of `vector` with itself.
fn add(matrix: &mut [[f64; 4]; 4], scale: f64, vector: &[f64; 4]) {
    for row in 0..4 {
        for column in 0..4 {
            matrix[row][column] += scale * vector[row] * vector[column];
        }
    }
}

/// What `matrix` makes of `vector` from both sides.
fn quadratic(matrix: &[[f64; 4]; 4], vector: &[f64; 4]) -> f64 {
    let row = |row: usize| (0..4).map(|column| matrix[row][column] * vector[column]).sum::<f64>();
    (0..4).map(|at| vector[at] * row(at)).sum()
}

/// Change of the modelled time per relative change of each parameter.
fn gradient(model: Model, values: &Values, seen: &Observation) -> [f64; 4] {
    let k = seen.pairs as f64;
    let rate = values.rate(model, seen.pairs);
    let transfer = k * seen.bytes as f64 / rate;
    if values.node == Some(rate) {
        return [values.latency, 0.0, 0.0, -transfer];
    }
    match model {
        Model::Extended => {
            [values.latency, -transfer * values.first / rate, -transfer * (k - 1.0) * values.further / rate, 0.0]
        }
        Model::Postal | Model::MaxRate => [values.latency, -transfer, 0.0, 0.0],
    }
}
