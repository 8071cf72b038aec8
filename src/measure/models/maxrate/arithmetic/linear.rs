//! Small dense systems: normal equations of a handful of parameters need no library.

/// Solves `matrix · x = right` by elimination with pivoting; none when the matrix is singular to working precision.
/// Rows and columns are scaled first, for parameters of very different size.
pub(super) fn solve<const N: usize>(matrix: [[f64; N]; N], right: [f64; N]) -> Option<[f64; N]> {
    let inverse = invert(matrix)?;
    Some(std::array::from_fn(|row| (0..N).map(|column| inverse[row][column] * right[column]).sum()))
}

/// The inverse of a symmetric matrix.
pub(super) fn invert<const N: usize>(matrix: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let scale: [f64; N] = std::array::from_fn(|at| matrix[at][at].sqrt());
    if scale.iter().any(|scale| !(*scale > 0.0 && scale.is_finite())) {
        return None;
    }
    let mut left: [[f64; N]; N] =
        std::array::from_fn(|row| std::array::from_fn(|column| matrix[row][column] / scale[row] / scale[column]));
    let mut right: [[f64; N]; N] =
        std::array::from_fn(|row| std::array::from_fn(|column| f64::from(u8::from(row == column))));
    for column in 0..N {
        let pivot = (column..N).max_by(|&a, &b| left[a][column].abs().total_cmp(&left[b][column].abs()))?;
        // The scaled diagonal is 1: what is left after elimination is the part that no other column explains.
        if left[pivot][column].abs() < 1e-12 {
            return None;
        }
        left.swap(column, pivot);
        right.swap(column, pivot);
        let factor = 1.0 / left[column][column];
        left[column].iter_mut().chain(&mut right[column]).for_each(|cell| *cell *= factor);
        for row in (0..N).filter(|&row| row != column) {
            let factor = left[row][column];
            for at in 0..N {
                left[row][at] -= factor * left[column][at];
                right[row][at] -= factor * right[column][at];
            }
        }
    }
    for row in 0..N {
        for column in 0..N {
            right[row][column] /= scale[row] * scale[column];
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_parameters_of_very_different_size() {
        let matrix = [[4e12, 2.0, 1e-6], [2.0, 5e-12, 1e-19], [1e-6, 1e-19, 3e-24]];
        let wanted: [f64; 3] = [1e-6, 3e6, -2e12];
        let right = std::array::from_fn(|row| (0..3).map(|column| matrix[row][column] * wanted[column]).sum());
        let found = solve(matrix, right).unwrap();
        assert!(found.iter().zip(wanted).all(|(a, b)| (a / b - 1.0).abs() < 1e-6), "{found:?}");
    }

    #[test]
    fn singular_is_said() {
        assert_eq!(solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]), None);
        assert_eq!(solve([[0.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), None);
    }
}
