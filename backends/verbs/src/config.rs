//! What the user may say about the device and the port.

use std::ops::RangeInclusive;
use std::time::Duration;

use tailback_bootstrap::Secret;
use tailback_host::WaitMode;
use tailback_host::near::DeviceSelection;

/// How to open a [`VerbsTransport`](crate::VerbsTransport). Every rank passes its own.
#[derive(Clone, Debug)]
pub struct VerbsConfig {
    /// Which devices; every rank takes as many of their ports as it has rails. As many names as rails are a rail each, in their
    /// order.
    pub device: DeviceSelection,
    /// How many rails: ports that a rank uses at once, with a pair for a peer on each.
    pub rails: usize,
    /// The port, from 1. None: the first that is active; over rails, any.
    pub port: Option<u8>,
    /// The entry of the port's table of addresses. None: on RoCE, version 2 with an IPv4 address if there is one.
    pub gid_index: Option<u8>,
    /// The service level, or RoCE priority, of everything that is sent.
    pub service_level: u8,
    /// The traffic class: on RoCE v2 the DSCP and ECN bits of everything that is sent.
    pub traffic_class: u8,
    /// How long and how often the device tries to reach a peer.
    pub tries: Tries,
    /// The longest packet in bytes, a power of two from 256 to 4096. None: the longest that both ports take.
    pub path_mtu: Option<u32>,
    /// What messages arrive in.
    pub buffers: Buffers,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
    /// What every rank of the job knows and nobody else: greetings are believed that were made with it.
    pub secret: Secret,
}

impl VerbsConfig {
    /// The defaults, for ranks that share `secret`.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        VerbsConfig {
            device: DeviceSelection::default(),
            rails: 1,
            port: None,
            gid_index: None,
            service_level: 0,
            traffic_class: 0,
            tries: Tries::default(),
            path_mtu: None,
            buffers: Buffers::default(),
            wait: None,
            secret,
        }
    }
}

/// What messages arrive in at their receiver, which has some for every peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of each; a longer message takes several.
    pub bytes: usize,
    /// How many there are for one peer at most, and so how many its messages may fill before one is free again. There are
    /// fewer as long as the peer does with fewer.
    pub credits: u32,
}

impl Buffers {
    /// Sizes that buffers can have: a message that travels inside its request fits the least.
    pub const BYTES: RangeInclusive<usize> = 512..=1 << 20;
    /// How many there can be for a peer.
    pub const CREDITS: RangeInclusive<u32> = 4..=8192;
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers { bytes: 8192, credits: 256 }
    }
}

/// What a device does about packets that are not answered. On a network that loses packets this is what the longest tails are
/// made of, so the defaults are those of UCX, which MPI libraries use: one second, seven times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// How long it waits for an answer; the device takes the nearest power of two times 4.096 us.
    pub timeout: Duration,
    /// How often it sends again. None: seven times; on Soft-RoCE, which takes that for "for ever", six.
    pub retries: Option<u8>,
    /// How often it asks again a peer that has no buffer. Credits see to it that this does not happen; seven is for ever, so
    /// the default is one less than UCX's.
    pub not_ready_retries: u8,
}

impl Default for Tries {
    fn default() -> Self {
        Tries { timeout: Duration::from_secs(1), retries: None, not_ready_retries: 6 }
    }
}

impl Tries {
    /// The timeout as devices take it: a power of two.
    pub(crate) fn timeout_code(&self) -> u8 {
        let code = (self.timeout.as_secs_f64() / UNIT_S).log2().round();
        code.clamp(1.0, 31.0) as u8
    }

    /// The timeout that the device then has, in milliseconds.
    pub(crate) fn timeout_ms(&self) -> f64 {
        UNIT_S * 1e3 * f64::from(self.timeout_code()).exp2()
    }

    /// How often a device of this name sends again.
    pub(crate) fn retries_on(&self, device: &str) -> u8 {
        self.retries.unwrap_or(if device.starts_with("rxe") { 6 } else { 7 })
    }
}

/// What timeouts of devices are powers of two of.
const UNIT_S: f64 = 4.096e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_the_nearest_that_devices_have() {
        let of = |timeout| Tries { timeout, ..Tries::default() };
        assert_eq!(Tries::default().timeout_code(), 18, "1.07 s");
        assert!((Tries::default().timeout_ms() - 1073.7).abs() < 0.1);
        assert_eq!(of(Duration::from_millis(270)).timeout_code(), 16);
        assert_eq!([Duration::ZERO, Duration::MAX].map(|timeout| of(timeout).timeout_code()), [1, 31]);
    }

    #[test]
    fn soft_roce_must_not_try_for_ever() {
        assert_eq!(["mlx5_0", "rxe0"].map(|device| Tries::default().retries_on(device)), [7, 6]);
        assert_eq!(Tries { retries: Some(3), ..Tries::default() }.retries_on("rxe0"), 3);
    }
}
