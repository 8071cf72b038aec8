//! Thresholds for CI: `lat.time-p90.added > 500` fails a command, with exit code 1 and a JUnit file that says which.
//!
//! Grammar: `KERNEL[.STAT].STATE [.ratio|.cv|.change|.level] [.low|.high] OP NUMBER [UNIT]`, where STAT is a statistic's key (without it: the one that decides), STATE is idle
//! (GPCNeT's isolated), loaded, added (loaded minus idle) or impact, OP is one of > >= < <=. Without a unit times are in us,
//! rates in MiB/s, and what load adds to the time of a rate in us/MiB. With `.ratio` the figure is how many times worse a side
//! is than the first one of a comparison, with `.cv` its coefficient of variation between repeated jobs, with `.change` how much worse
//! the last night of a history is than those before it, with `.level` how much worse its present level is than the best one before;
//! `.low` and `.high` are the ends of its 95% interval.
//!
//! What is read here is held against figures in `judge`.

mod judge;

use std::fmt;
use std::str::FromStr;

use crate::analysis::compare::State;
use crate::kernel::Canary;
use crate::stats::{Direction, FailsIf, Statistic};

/// Which part of a figure is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The figure with its interval.
    Whole,
    Low,
    High,
}

/// What the figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A job.
    Job,
    /// A side of a comparison: its ratio to the first.
    Ratio,
    /// Repeated jobs: their coefficient of variation.
    Variation,
    /// The last night of a history: how much worse it is than those before.
    Change,
    /// The present level of a history: how much worse it is than the best one before.
    Level,
}

impl Of {
    /// Whether it is of a history.
    pub fn is_over_nights(self) -> bool {
        matches!(self, Of::Change | Of::Level)
    }
}

/// A condition that fails a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The canary it looks at.
    pub kernel: Canary,
    statistic: Statistic,
    state: State,
    /// What the figure is of.
    pub of: Of,
    part: Part,
    operator: FailsIf,
    /// The limit in the unit of the figure, and as it was given.
    number: f64,
    given: String,
    /// The unit that it was given in, if it was, and how much of the figure's unit that is.
    unit: Option<Unit>,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "expected KERNEL.STATE OP NUMBER or KERNEL.STAT.STATE OP NUMBER, e.g. 'lat.added > 500us'";
        let operator = FailsIf::ALL
            .into_iter()
            .find(|operator| text.contains(operator.sign()))
            .ok_or_else(|| format!("it has no >, >=, < or <=: {FORM}"))?;
        let (figure, number) = text.split_once(operator.sign()).expect("it contains the sign");
        let (figure, number) = (figure.trim(), number.trim());
        let mut parts: Vec<&str> = figure.split('.').collect();
        let part = match parts.last() {
            Some(&"low") => Part::Low,
            Some(&"high") => Part::High,
            _ => Part::Whole,
        };
        parts.truncate(if part == Part::Whole { parts.len() } else { parts.len() - 1 });
        let of = match parts.last() {
            Some(&"ratio") => Of::Ratio,
            Some(&"cv") => Of::Variation,
            Some(&"change") => Of::Change,
            Some(&"level") => Of::Level,
            _ => Of::Job,
        };
        parts.truncate(if of == Of::Job { parts.len() } else { parts.len() - 1 });
        let (kernel, statistic, state) = match parts[..] {
            [kernel, state] => (kernel, None, state),
            [kernel, statistic, state] => (kernel, Some(statistic), state),
            _ => return Err(format!("invalid figure '{figure}': {FORM}")),
        };
        let kernel: Canary = kernel.parse()?;
        let named = |key: &str| {
            let known = Statistic::ALL.into_iter().find(|known| known.key() == key);
            let all = || Statistic::ALL.map(Statistic::key).join(", ");
            known.ok_or_else(|| format!("unknown statistic '{key}': choose from {}", all()))
        };
        let statistic = statistic.map_or_else(|| Ok(kernel.headline()), named)?;
        let state = State::ALL
            .into_iter()
            .find(|known| known.key() == if state == "isolated" { "idle" } else { state })
            .ok_or_else(|| format!("unknown state '{state}': choose from idle, loaded, added, impact"))?;
        match (state, of) {
            (State::Added, Of::Ratio) => {
                return Err(
                    "added times are compared by their difference, not by a ratio: see `compare --within`".into()
                );
            }
            (State::Added, Of::Variation) => {
                return Err(
                    "an added time may be about 0, which has no coefficient of variation: choose idle, loaded or \
                            impact"
                        .into(),
                );
            }
            _ => {}
        }
        let given = number.to_owned();
        let (number, unit) = limit(number, kernel, state, of)?;
        Ok(Threshold { kernel, statistic, state, of, part, operator, number, given, unit })
    }
}

/// A unit, and how much of the figure's unit it is.
type Unit = (&'static str, f64);

/// A number with or without a unit, in the unit of the figure; and its own.
fn limit(text: &str, kernel: Canary, state: State, of: Of) -> Result<(f64, Option<Unit>), String> {
    const MIB: f64 = 1_048_576.0;
    let times = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let rates = [("MiB/s", 1.0), ("GiB/s", 1024.0), ("Mbit/s", 1e6 / 8.0 / MIB), ("Gbit/s", 1e9 / 8.0 / MIB)];
    let per_mib = [("us/MiB", 1.0), ("ms/MiB", 1e3), ("s/MiB", 1e6)];
    let units: &[Unit] = match (state, kernel.info().direction) {
        _ if matches!(of, Of::Variation | Of::Change | Of::Level) => &[("%", 0.01)],
        _ if of == Of::Ratio || state == State::Impact => &[("x", 1.0)],
        // A program's figure has a unit of its own.
        _ if kernel.is_application() => &[],
        (State::Added, Direction::Bandwidth) => &per_mib,
        (_, Direction::Bandwidth) => &rates,
        (_, Direction::Latency) => &times,
    };
    let end =
        text.find(|c: char| c == '%' || (c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'))).unwrap_or(text.len());
    let (number, unit) = (text[..end].trim(), text[end..].trim());
    let known = units.iter().find(|of| of.0 == unit).copied();
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && (unit.is_empty() || known.is_some()));
    number.map(|number| (number * known.map_or(1.0, |of| of.1), known)).ok_or_else(|| {
        let units: Vec<&str> = units.iter().map(|of| of.0).collect();
        let units = if units.is_empty() { String::new() } else { format!(" with or without {}", units.join(", ")) };
        format!("invalid limit '{text}': expected a number{units}")
    })
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.condition(self.operator.sign()))
    }
}

impl Threshold {
    /// The condition under another sign.
    fn condition(&self, sign: &str) -> String {
        let Threshold { kernel, statistic, state, given, .. } = self;
        let of = match self.of {
            Of::Job => "",
            Of::Ratio => ".ratio",
            Of::Variation => ".cv",
            Of::Change => ".change",
            Of::Level => ".level",
        };
        let part = match self.part {
            Part::Whole => "",
            Part::Low => ".low",
            Part::High => ".high",
        };
        format!("{kernel}.{}.{}{of}{part} {sign} {given}", statistic.key(), state.key())
    }

    /// What a run has to be to pass: the opposite of what fails it.
    fn required(&self) -> String {
        self.condition(self.operator.opposite().sign())
    }

    /// What a history calls the figure.
    pub fn key(&self) -> String {
        format!("{}.{}.{}", self.kernel, self.statistic.key(), self.state.key())
    }

    /// Whether its figure is one under load, or has one in it.
    pub fn needs_load(&self) -> bool {
        self.state != State::Isolated
    }

    /// What the figure is held against.
    pub fn limit(&self) -> f64 {
        self.number
    }

    /// Whether the condition holds for a figure.
    pub fn holds(&self, figure: f64) -> bool {
        self.operator.holds(figure, self.number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thresholds_read_back_as_written() {
        for text in [
            "lat.p99.impact > 10",
            "bw-sync.avg.idle < 500.5",
            "bw-sync.avg.loaded < 5 Gbit/s",
            "allreduce.p999.loaded.ratio >= 1.2",
            "lat.time-p90.impact.high > 3",
            "lat.p99.loaded.ratio.low > 1.1",
            "bw-sync.time-p90.added > 500",
            "lat.avg.loaded.cv > 0.05",
            "bw-sync.time-p90.impact.cv.high > 0.1",
            "lat.time-p90.added.change > 10%",
            "bw-sync.avg.loaded.change.low >= 0.1",
            "lat.time-p90.added.level > 10%",
        ] {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        let read = |text: &str| text.parse::<Threshold>().unwrap();
        assert_eq!(read("lat.p99.isolated>=1e1").to_string(), "lat.p99.idle >= 1e1");
        let numbers =
            ["lat.p99.added > 1e1", "lat.p99.added > 2ms", "bw.avg.idle < 8.388608 Gbit/s", "bw.avg.added > 3 ms/MiB"];
        assert_eq!(numbers.map(|text| read(text).number), [10.0, 2000.0, 1000.0, 3000.0]);
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, expected) in [
            ("lat.p99.impact = 10", "no >, >=, < or <="),
            ("lat.p99 > 10", "unknown state 'p99': choose from idle, loaded, added, impact"),
            ("lat > 10", "invalid figure 'lat': expected KERNEL.STATE OP NUMBER or"),
            ("latency.p99.impact > 10", "unknown canary 'latency': choose from lat,"),
            ("lat.p42.impact > 10", "unknown statistic 'p42': choose from avg,"),
            ("lat.p99.factor > 10", "unknown state 'factor': choose from idle, loaded, added, impact"),
            ("lat.p99.impact > ten", "invalid limit 'ten': expected a number with or without x"),
            ("lat.p99.impact > inf", "invalid limit 'inf'"),
            ("lat.p99.loaded > 5 Gbit/s", "expected a number with or without ns, us, ms, s"),
            ("lat.p99.added.ratio > 1", "compared by their difference"),
            ("lat.p99.added.cv > 0.05", "which has no coefficient of variation"),
            ("lat.p99.loaded.cv.ratio > 1", "invalid figure 'lat.p99.loaded.cv"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn without_a_statistic_it_is_the_one_that_decides() {
        for (short, long) in [
            ("lat.added > 500us", "lat.time-p90.added > 500us"),
            ("bw-sync.idle < 5 Gbit/s", "bw-sync.avg.idle < 5 Gbit/s"),
            ("lat.impact.high > 3", "lat.time-p90.impact.high > 3"),
            ("app.impact > 2", "app.avg.impact > 2"),
            ("lat.loaded.change > 10%", "lat.time-p90.loaded.change > 10%"),
        ] {
            assert_eq!(short.parse::<Threshold>(), long.parse(), "{short}");
            assert_eq!(short.parse::<Threshold>().unwrap().to_string(), long);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            if let Ok(threshold) = text.parse::<Threshold>() {
                prop_assert_eq!(threshold.to_string().parse::<Threshold>().unwrap(), threshold);
            }
        }
    }
}
