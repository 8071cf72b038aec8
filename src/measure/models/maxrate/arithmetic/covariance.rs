//! How certain fitted parameters are: a sandwich covariance, which holds for noise of any size by cell.
//!
//! HC2, which undoes each observation's own pull on the fit, and Student's t with Satterthwaite's degrees of freedom (G. W.
//! Imbens and M. Kolesár, 2016). HC3 with n - p degrees of freedom holds 89 to 95% of what it should at the size of a lab
//! run, because the weights let a few long messages decide the rates.

use super::linear::invert;
use super::{Model, Observation, Values};

/// An observation that pulls the fit this close to itself leaves no residual to judge by.
const ALL_OF_IT: f64 = 1.0 - 1e-9;

/// Which of latency, first, further and node the observations say something about.
pub(super) fn used(model: Model, values: &Values, observations: &[Observation]) -> [bool; 4] {
    let seen = Seen::of(model, values, observations);
    let latency = values.latency != 0.0 && (seen.first || model != Model::HiddenLatency);
    [latency, seen.first, seen.further && values.further != 0.0, values.node.is_some()]
}

/// Which rates the node let be seen.
pub(super) struct Seen {
    pub(super) first: bool,
    pub(super) further: bool,
}

impl Seen {
    pub(super) fn of(model: Model, values: &Values, observations: &[Observation]) -> Self {
        let mut free = observations.iter().filter(|seen| !values.is_full(model, seen.pairs, seen.bytes)).peekable();
        Seen { first: free.peek().is_some(), further: model == Model::Extended && free.any(|seen| seen.pairs > 1) }
    }
}

/// How certain the parameters (latency, first, further, node) are, each relative to its value.
pub(super) struct Covariance {
    pub(super) matrix: [[f64; 4]; 4],
    /// Degrees of freedom of each one's variance. A few long messages may decide a rate, however many short ones there
    /// are: so many as if noise were a part of the time, after Satterthwaite, and no more than observations to spare.
    pub(super) freedom: [f64; 4],
}

/// Parameters that the model does not have, and a node that never binds, have none; nor has anything when one
/// observation alone decides something.
pub(super) fn covariance(
    model: Model,
    values: &Values,
    observations: &[Observation],
    weights: &[f64],
) -> Option<Covariance> {
    let mut bread = [[0.0; 4]; 4];
    for (seen, &weight) in observations.iter().zip(weights) {
        add(&mut bread, weight, &gradient(model, values, seen));
    }
    let used = used(model, values, observations);
    for at in (0..4).filter(|&at| !used[at]) {
        bread[at][at] = 1.0;
    }
    let inverse = invert(bread)?;
    let mut meat = [[0.0; 4]; 4];
    let mut moments = [(0.0, 0.0); 4];
    for (seen, &weight) in observations.iter().zip(weights) {
        let gradient = gradient(model, values, seen);
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
pub(super) fn quadratic(matrix: &[[f64; 4]; 4], vector: &[f64; 4]) -> f64 {
    let row = |row: usize| (0..4).map(|column| matrix[row][column] * vector[column]).sum::<f64>();
    (0..4).map(|at| vector[at] * row(at)).sum()
}

/// Change of the modelled time per relative change of each parameter.
fn gradient(model: Model, values: &Values, seen: &Observation) -> [f64; 4] {
    let k = seen.pairs as f64;
    let rate = values.rate(model, seen.pairs);
    let transfer = k * seen.bytes as f64 / rate;
    let full = values.is_full(model, seen.pairs, seen.bytes);
    match model {
        Model::HiddenLatency if full => [0.0, 0.0, 0.0, -values.seconds(model, seen.pairs, seen.bytes)],
        Model::HiddenLatency => [values.latency, -(seen.bytes as f64) / values.first, 0.0, 0.0],
        _ if full => [values.latency, 0.0, 0.0, -transfer],
        Model::Extended => {
            [values.latency, -transfer * values.first / rate, -transfer * (k - 1.0) * values.further / rate, 0.0]
        }
        Model::Postal | Model::MaxRate => [values.latency, -transfer, 0.0, 0.0],
    }
}
