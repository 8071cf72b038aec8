//! Numbers at the width a reader needs: three or four significant digits, never an exponent. What is no number, as the
//! quotient of two zeros in a damaged file, is a dash.

use crate::stats::{Factor, Interval};

/// A figure, with as many decimals as its size calls for.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v.is_nan() => "-".into(),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A part of one as a percentage, with its sign.
pub fn percent(part: f64) -> String {
    if part.is_finite() { format!("{:+.1}", 100.0 * part) } else { "-".into() }
}

/// An impact factor.
pub fn factor(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}x"),
        v if v >= 10.0 => format!("{value:.1}x"),
        _ => format!("{value:.2}x"),
    }
}

/// A factor with its interval, where it has one.
pub fn with_interval(measured: Factor) -> String {
    let Some(interval) = measured.interval else { return factor(measured.factor) };
    let bound = |value: f64| factor(value).trim_end_matches('x').to_owned();
    format!("{} [{}, {}]", factor(measured.factor), bound(interval.low), bound(interval.high))
}

/// A value as `shown`, with its interval where it has one.
pub fn within(value: f64, interval: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    match interval {
        Some(Interval { low, high }) => format!("{} [{}, {}]", shown(value), shown(low), shown(high)),
        None => shown(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_size() {
        assert_eq!([0.0123, 1.5, 42.0, 321.06, 98765.4].map(figure), ["0.012", "1.500", "42.00", "321.1", "98765"]);
        assert_eq!([0.99, 12.345, 417.2].map(factor), ["0.99x", "12.3x", "417x"]);
        let interval = Some(Interval { low: 1.0, high: 2.25 });
        assert_eq!([within(1.5, interval, figure), within(1.5, None, figure)], ["1.500 [1.000, 2.250]", "1.500"]);
        assert_eq!([0.0312, -1.5, f64::NAN].map(percent), ["+3.1", "-150.0", "-"]);
        assert_eq!(figure(f64::NAN), "-");
    }
}
