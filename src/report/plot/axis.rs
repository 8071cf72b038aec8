//! A logarithmic axis and its ticks.

/// Maps values to positions, by their logarithm.
pub(super) struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// An axis over positive values from `low` to `high`, drawn between two positions. Narrow ranges are widened: noise
    /// is not to look like a mountain.
    pub(super) fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        const NARROWEST: f64 = 4.0;
        let (mut low, mut high) = (low.clamp(1e-9, 1e15), high.clamp(1e-9, 1e15));
        if low > high {
            (low, high) = (high, low);
        }
        let spare = (NARROWEST / (high / low)).max(1.0).sqrt();
        LogAxis { low: low / spare, high: high * spare, from, to }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let part = (value.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        self.from + part * (self.to - self.from)
    }

    /// Values worth a label: decades, and the steps between them when there are few.
    pub(super) fn ticks(&self) -> Vec<f64> {
        const STEPS: [&[f64]; 3] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0]];
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let with = |steps: &[f64]| -> Vec<f64> {
            let all = (first..=last).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            all.filter(|&tick| tick >= self.low * 0.999 && tick <= self.high * 1.001).collect()
        };
        let found = STEPS.iter().map(|steps| with(steps)).find(|ticks| ticks.len() >= 3);
        let ticks = found.unwrap_or_else(|| with(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]));
        let every = ticks.len().div_ceil(8).max(1);
        ticks.into_iter().step_by(every).collect()
    }
}

/// A tick's label: short, with k, M and G for large values.
pub(super) fn label(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value {
        v if v >= 0.999e9 => format!("{}G", short(v / 1e9)),
        v if v >= 0.999e6 => format!("{}M", short(v / 1e6)),
        v if v >= 0.999e4 => format!("{}k", short(v / 1e3)),
        v => short(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_inside_for_any_range() {
        for (low, high) in [(1.0, 1.0), (0.3, 0.31), (1.0, 10.0), (2.0, 9e6), (1e-9, 1e15), (7.0, 3.0)] {
            let axis = LogAxis::new(low, high, 0.0, 100.0);
            let ticks = axis.ticks();
            assert!((2..=9).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|&tick| (-1.0..=101.0).contains(&axis.at(tick))), "{low}..{high}: {ticks:?}");
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0.5, 1.0, 1500.0, 20_000.0, 3e6, 1e9].map(label), ["0.5", "1", "1500", "20k", "3M", "1G"]);
    }
}
