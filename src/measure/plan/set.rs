//! One setting of a plan, as `--set` and `[set]` write it.

use super::{Counts, Plan};
use crate::units;

/// One `KERNEL.SETTING=VALUE`.
#[derive(Clone, Debug)]
pub struct Set {
    pub(super) key: String,
    pub(super) value: String,
}

impl std::str::FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| format!("invalid setting '{text}': expected KERNEL.SETTING=VALUE"))?;
        Ok(Set::of(key.trim(), value.trim()))
    }
}

impl Set {
    pub(super) fn of(key: &str, value: &str) -> Self {
        Set { key: key.into(), value: value.into() }
    }

    /// Whether it sets the message size of a kernel.
    pub fn is_of_bytes(&self) -> bool {
        self.key.ends_with(".bytes")
    }

    /// `lat.bytes` is the canary's, else the congestor's; `canary.a2a.bytes` and `congestor.a2a.bytes` say which;
    /// `congestor.rate` is that of all congestors.
    pub(super) fn apply(&self, plan: &mut Plan) -> Result<(), String> {
        let parts: Vec<&str> = self.key.split('.').collect();
        if let ["congestor", "rate"] = parts[..] {
            let rate = units::fraction(&self.value)?;
            plan.congestors.iter_mut().for_each(|test| test.rate = rate);
            return Ok(());
        }
        let (role, kernel, setting) = match parts[..] {
            [kernel, setting] => (None, kernel, setting),
            [role @ ("canary" | "congestor"), kernel, setting] => (Some(role), kernel, setting),
            _ => {
                return Err(format!(
                    "invalid setting '{}': expected KERNEL.SETTING or canary.KERNEL.SETTING",
                    self.key
                ));
            }
        };
        let mut found = 0;
        if role != Some("congestor") {
            for test in plan.canaries.iter_mut().filter(|test| test.kernel.info().key == kernel) {
                self.set(&mut test.counts, setting)?;
                found += 1;
            }
        }
        if role != Some("canary") {
            for test in plan.congestors.iter_mut().filter(|test| test.kernel.info().key == kernel) {
                let window = setting == "window" && test.kernel.info().window == 1;
                if (window || ["rings", "measurements"].contains(&setting)) && found == 0 {
                    return Err(format!(
                        "'{}': congestor {kernel} has no {setting}; congestors go on for as long as canaries measure",
                        self.key
                    ));
                }
                match setting {
                    "rate" => test.rate = units::fraction(&self.value)?,
                    _ => self.set(&mut test.counts, setting)?,
                }
                found += 1;
            }
        }
        match (found, role) {
            (0, _) => Err(format!("'{}': the plan has no {} '{kernel}'", self.key, role.unwrap_or("kernel"))),
            (1, _) => Ok(()),
            _ => Err(format!("'{}' names a canary and a congestor: write canary.{0} or congestor.{0}", self.key)),
        }
    }

    fn set(&self, counts: &mut Counts, setting: &str) -> Result<(), String> {
        let count = || {
            self.value
                .parse::<u32>()
                .map_err(|_| format!("{}: invalid count '{}': expected a whole number", self.key, self.value))
        };
        match setting {
            "bytes" => counts.bytes = units::bytes(&self.value)?,
            "window" => counts.window = count()? as usize,
            "iterations" => counts.iterations = count()?,
            "warmup" => counts.warmup = count()?,
            "rings" => counts.rings = count()?,
            "measurements" => counts.measurements = count()?,
            _ => {
                return Err(format!(
                    "unknown setting '{setting}' in '{}': choose from bytes, window, iterations, warmup, rings, measurements, and rate of a congestor",
                    self.key
                ));
            }
        }
        Ok(())
    }
}
