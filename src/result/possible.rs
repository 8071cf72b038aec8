//! Numbers that no result holds: every number of a file is looked at, wherever it stands, so that a field cannot be
//! forgotten. What is known of single fields beyond that is checked by [`super::read`].
//!
//! The text is walked as it is read: nothing of it is kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// No figure is larger, and none but 0 closer to 0: neither their squares nor their ratios leave the range of a double.
const LARGEST: f64 = 1e30;
const SMALLEST: f64 = 1e-60;

/// No count of a job is larger: ten thousand nodes take an hour to send so many bytes at 25 GB/s each. Tens of them
/// have a sum.
const MOST: u64 = 1_000_000_000_000_000_000;

/// Numbers of any size: they count nothing.
const SEED: &str = "seed";

/// What may be negative: differences, logarithms, and ends of intervals.
const SIGNED: [&str; 9] =
    ["added", "added_ns", "control_added_ns", "control_share", "criterion", "difference", "high", "low", "value"];

/// Whether a file may hold this figure, if it cannot be negative.
pub(crate) fn is_possible(figure: f64) -> bool {
    figure == 0.0 || (SMALLEST..=LARGEST).contains(&figure)
}

/// Bytes of a result for each of its values, at least on average. In memory a value takes some dozens; a text of nothing
/// but `{},{},` would take many times its size.
const BYTES_A_VALUE: usize = 4;
/// Values that any file may have.
const FEW: usize = 1024;

/// Finds a number in a JSON text that cannot be, and says where it is.
pub(super) fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut so_far = SoFar { path: String::new(), left: FEW + text.len() / BYTES_A_VALUE };
    Walk { so_far: &mut so_far, key: "" }.deserialize(&mut deserializer)
}

/// The place of a value, and how many more there may be.
struct SoFar {
    path: String,
    left: usize,
}

/// A value, and the name of the field that it is in.
struct Walk<'w> {
    so_far: &'w mut SoFar,
    key: &'w str,
}

impl Walk<'_> {
    fn refuse<E: Error>(&self, number: impl fmt::Display) -> E {
        E::custom(format!("{}: {number} cannot be", self.so_far.path.trim_start_matches('.')))
    }

    /// Looks at what is inside.
    fn step<R>(&mut self, step: &str, key: &str, into: impl FnOnce(Walk<'_>) -> R) -> R {
        let length = self.so_far.path.len();
        self.so_far.path.push_str(step);
        let found = into(Walk { so_far: self.so_far, key });
        self.so_far.path.truncate(length);
        found
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let more = self.so_far.left.checked_sub(1);
        self.so_far.left = more.ok_or_else(|| D::Error::custom("more values than a result of this size has"))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        if number <= MOST || self.key == SEED { Ok(()) } else { Err(self.refuse(number)) }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        let magnitude = if SIGNED.contains(&self.key) { number.abs() } else { number };
        if is_possible(magnitude) { Ok(()) } else { Err(self.refuse(format_args!("{number:e}"))) }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let key = self.key;
        let mut at = 0;
        while self.step(&format!("[{at}]"), key, |walk| items.next_element_seed(walk))?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<String>()? {
            self.step(&format!(".{key}"), &key, |walk| fields.next_value_seed(walk))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_refused_wherever_it_stands_and_its_place_is_named() {
        for (text, place) in [
            (r#"{"a": [{"b": 1}, {"b": 1e308}]}"#, "a[1].b: 1e308 cannot be"),
            (r#"{"a": [[0.5, -1.5]]}"#, "a[0][1]: -1.5e0 cannot be"),
            (r#"{"rx_bytes": -1}"#, "rx_bytes: -1e0 cannot be"),
            (r#"{"p50": 1e-300}"#, "p50: 1e-300 cannot be"),
            (r#"{"ranks": 18446744073709551615}"#, "ranks: 18446744073709551615 cannot be"),
            (r#"{"low": -1e40}"#, "low: -1e40 cannot be"),
            (r#"{"a": 1e999}"#, "number out of range"),
        ] {
            let said = check(text).unwrap_err().to_string();
            assert!(said.starts_with(place), "{said}");
        }
        check(r#"{"low": -1.5, "seed": 18446744073709551615, "a": [0, 0.0, null, true, "NaN", 1e30, {"b": []}]}"#)
            .unwrap();
    }

    #[test]
    fn a_text_of_nothing_but_values_is_refused() {
        let values = |count| format!("[{}0]", "0,".repeat(count));
        check(&values(1000)).unwrap();
        let said = check(&values(100_000)).unwrap_err().to_string();
        assert!(said.starts_with("more values than a result of this size has"), "{said}");
    }

    #[test]
    fn what_may_be_negative_is_a_field_of_results() {
        for key in SIGNED.iter().chain([&SEED]) {
            assert!(crate::result::SCHEMA.contains(&format!("\"{key}\":")), "{key}");
        }
    }
}
