//! The end of virtual time, which is in picoseconds.

/// The longest virtual time that can be simulated, in picoseconds: eleven days. No wait inside the network is longer than ten
/// times this, so that sums of times never wrap.
pub const LONGEST_PS: u64 = 1_000_000_000_000_000_000;

/// A time that no network reaches, and to which waits can be added.
pub(crate) const NO_TIME: u64 = 2 * LONGEST_PS;
