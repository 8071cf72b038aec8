//! The figure in a program's output: what a regular expression's only group matched last.

use regex_lite::Regex;

/// A pattern that finds a figure.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let regex = Regex::new(text).map_err(|error| format!("'{text}' is no regular expression: {error}"))?;
        match regex.captures_len() {
            2 => Ok(Pattern(regex)),
            groups => Err(format!("'{text}' has {} groups: one in parentheses is the figure", groups - 1)),
        }
    }

    /// The last figure in a text: programs print a summary at their end.
    pub(super) fn find(&self, text: &str) -> Result<f64, String> {
        let last = self.0.captures_iter(text).last().and_then(|found| found.get(1));
        let word = last.ok_or_else(|| format!("printed nothing that matches '{}'", self.0.as_str()))?.as_str().trim();
        match word.parse::<f64>() {
            Ok(figure) if figure.is_finite() && figure > 0.0 => Ok(figure),
            _ => Err(format!("printed '{word}' where its figure was looked for: no number above 0")),
        }
    }
}

/// Whether a text can be a pattern for a figure.
pub fn check_pattern(text: &str) -> Result<String, String> {
    Pattern::new(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_is_the_figure() {
        let pattern = Pattern::new("Loop time of ([0-9.]+)").unwrap();
        let output = "Loop time of 1.5 on 4 procs\nnoise\nLoop time of 12.25 on 4 procs for 100 steps\n";
        assert_eq!(pattern.find(output), Ok(12.25));
        assert!(pattern.find("no loop").unwrap_err().contains("printed nothing that matches 'Loop time"));
        let loose = Pattern::new("time (.*)").unwrap();
        for bad in ["time soon", "time 0", "time -3", "time inf", "time NaN"] {
            assert!(loose.find(bad).unwrap_err().contains("no number above 0"), "{bad}");
        }
        assert_eq!(loose.find("time  3e2 "), Ok(300.0));
    }

    #[test]
    fn a_pattern_has_one_group() {
        assert!(check_pattern("([0-9]+) of ([0-9]+)").unwrap_err().contains("has 2 groups"));
        assert!(check_pattern("[0-9]+").unwrap_err().contains("has 0 groups"));
        assert!(check_pattern("([0-9]+").unwrap_err().contains("is no regular expression"));
        assert_eq!(check_pattern("(?:a|b) ([0-9]+)").unwrap(), "(?:a|b) ([0-9]+)");
    }
}
