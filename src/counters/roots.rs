//! Where the kernel's files are.

use std::path::PathBuf;

/// Where the kernel shows what it counts; tests have recorded trees instead, and containers the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Usually `/sys`.
    pub sys: PathBuf,
    /// Usually `/proc`.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sys: "/sys".into(), proc: "/proc".into() }
    }
}
