//! Student's t: the two-sided tail and its inverse, and the upper tail, for any positive number of degrees of freedom (Welch's are not
//! whole).
//!
//! The tail is a regularised incomplete beta function, by its continued fraction; good to ten digits up to a million
//! degrees of freedom. Written here because the crates that have it ask for a newer compiler than ours, or for much
//! else.

/// The probability that |T| exceeds |t|: a two-sided p-value. 1 when `t` is no number.
pub fn two_sided_p(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    // Either argument may be next to 1, where the other has the digits.
    let square = t * t;
    beta(freedom / (freedom + square), square / (freedom + square), freedom / 2.0, 0.5)
}

/// The probability that T exceeds t: a one-sided p-value.
pub fn upper_p(t: f64, freedom: f64) -> f64 {
    let tail = two_sided_p(t, freedom) / 2.0;
    if t > 0.0 { tail } else { 1.0 - tail }
}

/// The t that |T| exceeds with probability `alpha`.
pub fn two_sided_t(alpha: f64, freedom: f64) -> f64 {
    let mut high = 1.0;
    while two_sided_p(high, freedom) > alpha && high < 1e150 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Halving stops where no number is between them.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if two_sided_p(middle, freedom) > alpha { low = middle } else { high = middle }
    }
}

/// Half the width of a 95% interval, in standard errors.
pub fn t95(freedom: f64) -> f64 {
    two_sided_t(0.05, freedom)
}

/// The regularised incomplete beta function of x, with y = 1 - x.
fn beta(x: f64, y: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * y.ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp();
    // The fraction converges fast on this side of the mean only; the other is its mirror image.
    if x < (a + 1.0) / (a + b + 2.0) {
        (front / a * fraction(x, a, b)).min(1.0)
    } else {
        (1.0 - front / b * fraction(y, b, a)).max(0.0)
    }
}

/// The continued fraction 1 / (1 + d1 / (1 + d2 / (1 + ...))) of the incomplete beta function, after Lentz.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut above, mut below) = (1.0, 1.0 / kept(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = below;
    for step in 1..10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            below = 1.0 / kept(1.0 + term * below);
            above = kept(1.0 + term / above);
            change = above * below;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// ln of the gamma function of a positive number: Stirling's series, after moving up to where it is exact.
pub(super) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 12.0 {
        product *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (3.0, 3.182_446_305),
            (4.0, 2.776_445_105),
            (7.0, 2.364_624_252),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
            (120.0, 1.979_930_405),
            (1000.0, 1.962_339_081),
        ];
        for (freedom, t) in table {
            assert!((t95(freedom) - t).abs() < 1e-8, "{freedom}: {}", t95(freedom));
        }
        // 99% and 90%, and the normal distribution far out.
        assert!((two_sided_t(0.01, 7.0) - 3.499_483).abs() < 1e-6);
        assert!((two_sided_t(0.10, 7.0) - 1.894_579).abs() < 1e-6);
        assert!((t95(1e6) - 1.959_966).abs() < 1e-5);
    }

    #[test]
    fn tails_have_their_closed_forms() {
        for t in [0.0f64, 1e-9, 0.3, 1.0, 2.5, 40.0, 1e6] {
            // One degree of freedom is Cauchy's; two have a root.
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            assert!((two_sided_p(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided_p(-t, 2.0) - two).abs() < 1e-12, "{t}");
            let (above, below) = (upper_p(t, 2.0), upper_p(-t, 2.0));
            assert!((above - two / 2.0).abs() < 1e-12 && (above + below - 1.0).abs() < 1e-12, "{t}: {above}, {below}");
        }
        // Far tails keep their digits: 1 - t / sqrt(2 + t^2) is 1/t^2 there.
        assert!((two_sided_p(1e6, 2.0) * 1e12 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_number_is_no_evidence() {
        assert_eq!([two_sided_p(f64::NAN, 3.0), two_sided_p(1.0, f64::NAN), two_sided_p(1.0, 0.0)], [1.0; 3]);
        assert_eq!(two_sided_p(f64::INFINITY, 3.0), 0.0);
        // No t is far enough out.
        assert!([0.0, f64::NAN].map(t95).iter().all(|t| *t > 1e149 && t.is_finite()));
    }

    #[test]
    fn degrees_of_freedom_need_not_be_whole() {
        assert!((t95(2.5) - 3.574_654_842).abs() < 1e-8);
        assert!(t95(2.0) > t95(2.1) && t95(2.1) > t95(3.0));
    }
}
