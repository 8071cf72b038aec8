//! The lengths that cases are tried with.

/// Payload sizes that every kind of transfer is tried with: small, large, and around what the verbs backend sends inside
/// a request (204 bytes), in a buffer of 8 KiB with a short header and with a long one.
pub(super) const SIZES: [usize; 11] = [0, 1, 8, 204, 205, 4096, 8168, 8176, 8177, 131_072, LARGEST];

/// The largest of [`SIZES`].
pub(super) const LARGEST: usize = 6_553_600;
