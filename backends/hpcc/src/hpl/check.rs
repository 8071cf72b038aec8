//! HPL's check: ||Ax - b|| / (eps (||A|| ||x|| + ||b||) N), all of them maximum norms, with the matrix made anew.

use tailback_transport::{Group, Result};

use super::place::Place;
use crate::EPSILON;
use crate::norm::greatest;
use crate::random::element;
use crate::share::sum;

/// The scaled residual of a solution, the same on every rank.
pub(super) fn residual<G: Group>(group: &mut G, place: &Place, x: &[f64]) -> Result<f64> {
    let (order, seed) = (place.problem.order, place.problem.seed);
    let (mut apart, mut weights, mut right) = (vec![0.0; order], vec![0.0; order], vec![0.0; order]);
    for local in 0..place.height {
        let row = place.row_at(local);
        for at in 0..place.width {
            let column = place.column_at(at);
            let number = element(seed, row, column);
            if column == order {
                apart[row] -= number;
                right[row] = number;
            } else {
                apart[row] += number * x[column];
                weights[row] += number.abs();
            }
        }
    }
    for numbers in [&mut apart, &mut weights, &mut right] {
        sum(group, 0, numbers)?;
    }
    let [apart, weight, size, right] = [&apart[..], &weights, x, &right].map(norm);
    Ok(apart / (EPSILON * (weight * size + right) * order as f64))
}

fn norm(numbers: &[f64]) -> f64 {
    greatest(numbers.iter().map(|number| number.abs()))
}
