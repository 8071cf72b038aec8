//! Facts about the program and the host that a reader of a result needs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Build {
    pub version: String,
    /// Commit it was built from, with `+` when the tree had changes; absent outside a checkout.
    pub git: Option<String>,
    /// Backends compiled in, beside tcp.
    pub features: Vec<String>,
    pub rustc: String,
    /// `release` or `debug`: figures of a debug build are not worth comparing.
    pub profile: String,
}

impl Build {
    /// This program.
    pub fn this() -> Self {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Build {
            version: env!("CARGO_PKG_VERSION").into(),
            git: set(env!("TAILBACK_GIT")),
            features: env!("TAILBACK_FEATURES").split(',').filter_map(set).collect(),
            rustc: env!("TAILBACK_RUSTC").into(),
            profile: env!("TAILBACK_PROFILE").into(),
        }
    }
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct HostFacts {
    pub name: String,
    pub kernel: String,
    pub cpu: Option<String>,
    /// Processors this process may use.
    pub cores: usize,
    pub memory_mib: Option<u64>,
}

impl HostFacts {
    /// This host.
    pub fn this() -> Self {
        let uname = rustix::system::uname();
        let field = |file: &str, key: &str| -> Option<String> {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        HostFacts {
            name: uname.nodename().to_string_lossy().into_owned(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            cpu: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: memory.map(|kib| kib / 1024),
        }
    }
}

/// Variables that steer MPI libraries, libfabric, UCX and Tailback itself. The job's secret is never kept.
pub fn environment() -> BTreeMap<String, String> {
    const PREFIXES: [&str; 8] = ["OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "UCX_", "FI_", "RDMAV_", "TAILBACK_"];
    std::env::vars()
        .filter(|(key, _)| PREFIXES.iter().any(|prefix| key.starts_with(prefix)) && !key.contains("SECRET"))
        .collect()
}

/// The time now, UTC, RFC 3339, to the second.
pub fn now_rfc3339() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    rfc3339(seconds)
}

/// Civil date from a count of days, after Howard Hinnant's algorithm for the proleptic Gregorian calendar.
fn rfc3339(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
