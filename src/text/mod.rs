//! What every view is written with: numbers at the width a reader needs, tables in their forms, text inside markup and on terminals.
//!
//! Numbers have three or four significant digits, never an exponent. What is no number, as the quotient of two zeros in a
//! damaged file, is a dash.

mod table;

use std::borrow::Cow;

use crate::stats::{Factor, Interval};

pub use table::{Cell, Rows, Table, section};

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

/// A part of one as a percentage.
pub fn in_percent(part: f64) -> String {
    if part.is_finite() { format!("{:.1}", 100.0 * part) } else { "-".into() }
}

/// A part of one in whole percent.
pub fn whole_percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}

/// So many of something: `1 node`, `2 nodes`.
pub fn plural(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// A time, in the unit that suits it.
pub fn duration(ns: f64) -> String {
    let (unit, per_unit) = match ns.abs() {
        v if v >= 1e9 => ("s", 1e9),
        v if v >= 1e6 => ("ms", 1e6),
        v if v >= 1e3 => ("us", 1e3),
        _ => ("ns", 1.0),
    };
    format!("{} {unit}", short(ns / per_unit))
}

/// A rate that is known in MiB/s, as networks are rated.
pub fn rate(mib_per_s: f64) -> String {
    let mbit = mib_per_s * 8.0 * 1.048_576;
    if mbit >= 1e3 { format!("{} Gbit/s", short(mbit / 1e3)) } else { format!("{} Mbit/s", short(mbit)) }
}

/// Three digits, which is what a first look needs.
fn short(value: f64) -> String {
    match value.abs() {
        v if v.is_nan() => "-".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Words in lines of at most `columns` characters, those after the first with an indent. A longer word has a line of its own.
pub fn wrap(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        if last.is_empty() {
            *last = word.to_owned();
        } else if last.chars().count() + 1 + word.chars().count() <= columns {
            *last += &format!(" {word}");
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join("\n") + "\n"
}

/// An impact factor.
pub fn factor(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}x"),
        v if v >= 10.0 => format!("{value:.1}x"),
        _ => format!("{value:.2}x"),
    }
}

/// Ends of intervals are shown up to this.
const MOST_FACTOR: f64 = 1e4;

/// A factor with its interval, where it has one that bounds it.
pub fn with_interval(measured: Factor) -> String {
    if measured.is_bounded() { with_ends(measured) } else { format!("{} [uncertain]", factor(measured.factor)) }
}

/// The same, however far apart the ends are.
pub fn with_ends(measured: Factor) -> String {
    let Some(interval) = measured.interval else { return factor(measured.factor) };
    // Beyond these the data only say that they do not know.
    let bound = |value: f64| match value {
        v if v > MOST_FACTOR => format!(">{MOST_FACTOR:.0}"),
        v => factor(v).trim_end_matches('x').to_owned(),
    };
    format!("{} [{}, {}]", factor(measured.factor), bound(interval.low), bound(interval.high))
}

/// A value as `shown`, with its interval where it has one.
pub fn within(value: f64, interval: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    match interval {
        Some(Interval { low, high }) => format!("{} [{}, {}]", shown(value), shown(low), shown(high)),
        None => shown(value),
    }
}

/// A part of one with its interval, in whole percent: `44% [28, 65]`.
pub fn share_within(part: f64, of: Interval) -> String {
    let [part, low, high] = [part, of.low, of.high].map(|part| 100.0 * part);
    format!("{part:.0}% [{low:.0}, {high:.0}]")
}

/// Text that may stand in XML or HTML, in content and in quoted attributes. Characters XML 1.0 has no form for go.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(character),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The text with every character that a terminal acts on replaced by one that shows that something was there; line ends
/// and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(acts, "\u{fffd}"))
}

fn acts(character: char) -> bool {
    // Controls, and those that turn the direction of what follows.
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_bounds_nothing_is_not_shown() {
        let shown = |low, high| with_interval(Factor { factor: 15.4, interval: Some(Interval { low, high }) });
        assert_eq!(shown(1.41, 140.0), "15.4x [1.41, 140]");
        assert_eq!(shown(1.19, 199.0), "15.4x [uncertain]");
        assert_eq!(shown(0.0, 30.0), "15.4x [uncertain]");
    }

    #[test]
    fn digits_follow_size() {
        assert_eq!([0.0123, 1.5, 42.0, 321.06, 98765.4].map(figure), ["0.012", "1.500", "42.00", "321.1", "98765"]);
        assert_eq!([0.99, 12.345, 417.2].map(factor), ["0.99x", "12.3x", "417x"]);
        let interval = Some(Interval { low: 1.0, high: 2.25 });
        assert_eq!([within(1.5, interval, figure), within(1.5, None, figure)], ["1.500 [1.000, 2.250]", "1.500"]);
        assert_eq!([0.0312, -1.5, f64::NAN].map(percent), ["+3.1", "-150.0", "-"]);
        assert_eq!(figure(f64::NAN), "-");
    }

    #[test]
    fn units_suit_what_is_shown() {
        assert_eq!(
            [0.4, 999.0, 8.44e6, 131_400.0, 61.2e9].map(duration),
            ["0.40 ns", "999 ns", "8.44 ms", "131 us", "61.2 s"]
        );
        assert_eq!([8.1, 0.05, 20_000.0].map(rate), ["67.9 Mbit/s", "0.42 Mbit/s", "168 Gbit/s"]);
    }

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrap("a bc def ghij", 6), "a bc\n  def\n  ghij\n");
        assert_eq!(wrap("longer than that", 3), "longer\n  than\n  that\n");
        assert_eq!(wrap("", 80), "\n");
    }

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(escape("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escape("bell\u{7}"), "bell\u{fffd}");
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        assert_eq!(printable("latency\t1 µs\n"), "latency\t1 µs\n");
        assert_eq!(
            printable("a\u{1b}[2Jb\u{7}\rc\u{9b}1md\u{202e}e"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}1md\u{fffd}e"
        );
    }
}
