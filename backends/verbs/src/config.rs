//! What the user may say about the device and the port.

use tailback_transport::WaitMode;

/// How to open a [`VerbsTransport`](crate::VerbsTransport). Every rank passes its own.
#[derive(Clone, Debug, Default)]
pub struct VerbsConfig {
    /// The device, such as mlx5_0. None: the first with an active port.
    pub device: Option<String>,
    /// The port, from 1. None: the first that is active.
    pub port: Option<u8>,
    /// The entry of the port's table of addresses. None: on RoCE, version 2 with an IPv4 address if there is one.
    pub gid_index: Option<u8>,
    /// The service level, or RoCE priority, of everything that is sent.
    pub service_level: u8,
    /// The traffic class: on RoCE v2 the DSCP and ECN bits of everything that is sent.
    pub traffic_class: u8,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
}
