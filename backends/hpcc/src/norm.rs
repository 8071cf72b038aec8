//! Maximum norms that do not lose what is no number.

/// The greatest of values that are not negative, 0 of none; not a number where any is none.
pub(crate) fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, next| if most.is_nan() || next <= most { most } else { next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_stays() {
        assert_eq!(greatest([1.0, 3.0, 2.0].into_iter()), 3.0);
        assert!(greatest([1.0, f64::NAN, 2.0].into_iter()).is_nan());
    }
}
