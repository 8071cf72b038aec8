//! What a mix would show that was not run: Gaussian processes over the mixes that were, one for each value, with one kernel.
//!
//! Modelling all that runs show, rather than how far they are, makes every run tell of the whole space: a run that is far
//! off in one direction says where the others lie.

/// Distances over which values change, and parts of the variance that are noise: the likeliest pair is taken.
const LENGTHS: [f64; 6] = [0.25, 0.4, 0.6, 1.0, 1.6, 2.5];
const NOISES: [f64; 5] = [1e-6, 1e-3, 1e-2, 0.05, 0.2];

/// A model of what mixes show.
pub struct Surrogate {
    places: Vec<Vec<f64>>,
    length: f64,
    factor: Vec<Vec<f64>>,
    means: Vec<f64>,
    variances: Vec<f64>,
    /// For each value, what every run adds to a prediction.
    weights: Vec<Vec<f64>>,
}

/// What a mix would show.
pub struct Prediction {
    /// Each value.
    pub mean: Vec<f64>,
    /// How uncertain each is, squared.
    pub variance: Vec<f64>,
}

impl Surrogate {
    /// Of at least one run: where they lie, and what they showed.
    pub fn fit(places: &[Vec<f64>], runs: &[Vec<f64>]) -> Self {
        let fits = LENGTHS.iter().flat_map(|&length| NOISES.iter().map(move |&noise| (length, noise)));
        let fits = fits.filter_map(|(length, noise)| Self::with(places, runs, length, noise));
        let likeliest = fits.reduce(|best, fit| if fit.0 > best.0 { fit } else { best });
        likeliest.expect("noise makes every covariance definite").1
    }

    /// With this kernel, and its likelihood.
    fn with(places: &[Vec<f64>], runs: &[Vec<f64>], length: f64, noise: f64) -> Option<(f64, Self)> {
        let count = places.len();
        let covariance = |a: usize, b: usize| kernel(&places[a], &places[b], length) + if a == b { noise } else { 0.0 };
        let factor = cholesky(count, covariance)?;
        let log_determinant: f64 = (0..count).map(|at| 2.0 * factor[at][at].ln()).sum();
        let mut model = Surrogate {
            places: places.to_vec(),
            length,
            factor,
            means: Vec::new(),
            variances: Vec::new(),
            weights: Vec::new(),
        };
        let mut likelihood = 0.0;
        for value in 0..runs[0].len() {
            let mean = runs.iter().map(|run| run[value]).sum::<f64>() / count as f64;
            let off: Vec<f64> = runs.iter().map(|run| run[value] - mean).collect();
            let weights = model.solve(&off);
            let squares = dot(&off, &weights);
            // What does not move says nothing about the kernel.
            let variance = (squares / count as f64).max(1e-12);
            likelihood -= 0.5 * (count as f64 * variance.ln() + log_determinant);
            model.means.push(mean);
            model.variances.push(variance);
            model.weights.push(weights);
        }
        Some((likelihood, model))
    }

    /// What a mix at this place would show.
    pub fn at(&self, place: &[f64]) -> Prediction {
        let near: Vec<f64> = self.places.iter().map(|of| kernel(of, place, self.length)).collect();
        let known = self.forward(&near);
        let unknown = (1.0 - dot(&known, &known)).max(0.0);
        let mean = self.weights.iter().zip(&self.means);
        let mean = mean.map(|(weights, mean)| mean + dot(weights, &near));
        Prediction { mean: mean.collect(), variance: self.variances.iter().map(|of| of * unknown).collect() }
    }

    fn forward(&self, right: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::with_capacity(right.len());
        for (row, value) in self.factor.iter().zip(right) {
            let at = solved.len();
            solved.push((value - dot(row, &solved)) / row[at]);
        }
        solved
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solved = self.forward(right);
        for at in (0..solved.len()).rev() {
            let known: f64 = (at + 1..solved.len()).map(|below| self.factor[below][at] * solved[below]).sum();
            solved[at] = (solved[at] - known) / self.factor[at][at];
        }
        solved
    }
}

/// Matern's kernel of order 5/2: smooth, and not smoother than queues are.
fn kernel(one: &[f64], other: &[f64], length: f64) -> f64 {
    let square: f64 = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
    let near = 5f64.sqrt() * square.sqrt() / length;
    (1.0 + near + near * near / 3.0) * (-near).exp()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The lower factor of a covariance; nothing where it is not definite.
fn cholesky(count: usize, covariance: impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<f64>>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(count);
    for row in 0..count {
        let mut line: Vec<f64> = Vec::with_capacity(row + 1);
        for (column, above) in factor.iter().enumerate() {
            line.push((covariance(row, column) - dot(&line, above)) / above[column]);
        }
        let left = covariance(row, row) - dot(&line, &line);
        line.push((left > 1e-12).then(|| left.sqrt())?);
        factor.push(line);
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Vec<Vec<f64>> {
        (0..4).flat_map(|x| (0..4 - x).map(move |y| vec![f64::from(x) / 3.0, f64::from(y) / 3.0])).collect()
    }

    fn truth(place: &[f64]) -> Vec<f64> {
        vec![2.0 * place[0] - place[1] + 3.0, (4.0 * place[0]).tanh(), 7.0]
    }

    #[test]
    fn what_was_run_is_known_and_what_lies_between_is_near() {
        let places = grid();
        let model = Surrogate::fit(&places, &places.iter().map(|place| truth(place)).collect::<Vec<_>>());
        for place in &places {
            let found = model.at(place);
            assert!(
                found.mean.iter().zip(truth(place)).all(|(found, truth)| (found - truth).abs() < 0.02),
                "{:?}",
                found.mean
            );
        }
        let between = model.at(&[0.5, 0.2]);
        assert!(between.mean.iter().zip(truth(&[0.5, 0.2])).all(|(found, truth)| (found - truth).abs() < 0.1));
        let far = model.at(&[9.0, 9.0]);
        assert!(far.variance[0] > 10.0 * between.variance[0], "{} {}", far.variance[0], between.variance[0]);
    }

    #[test]
    fn noise_is_not_followed() {
        let places: Vec<Vec<f64>> = (0..20).map(|at| vec![f64::from(at) / 19.0]).collect();
        let runs: Vec<Vec<f64>> =
            (0..20).map(|at| vec![f64::from(at) / 19.0 + if at % 2 == 0 { 0.1 } else { -0.1 }]).collect();
        let model = Surrogate::fit(&places, &runs);
        assert!((model.at(&[0.5]).mean[0] - 0.5).abs() < 0.06, "{}", model.at(&[0.5]).mean[0]);
    }
}
