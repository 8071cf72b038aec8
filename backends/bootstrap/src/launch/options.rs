//! What to start, and how.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tailback_transport::Rank;

/// How ranks' output reaches the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// As it is.
    #[default]
    Merge,
    /// With `[rank] ` in front of every line.
    Prefix,
}

/// What differs between ranks.
#[derive(Clone, Debug, Default)]
pub struct RankSetup {
    /// Put in front of the command, for example `nsenter --net=/run/netns/a`. It must pass environment and open
    /// descriptors on.
    pub prefix: Vec<OsString>,
    /// Set for this rank, over everything else.
    pub env: Vec<(OsString, OsString)>,
}

/// Says whether what ranks depend on, such as a lab, is still there.
pub type HealthCheck = Box<dyn Fn() -> Result<(), String>>;

/// What to start.
pub struct LaunchOptions {
    /// How many ranks.
    pub size: usize,
    /// Program and arguments, the same for every rank.
    pub command: Vec<OsString>,
    /// How their output is shown.
    pub output: Output,
    /// Pretends nodes of so many consecutive ranks: sets `TAILBACK_HOST` to `node0`, `node1` and so on.
    pub ranks_per_node: Option<usize>,
    /// Where rank 0 listens.
    pub bind: IpAddr,
    /// Rank 0's port. By default a free one is chosen and held for rank 0; a rank 0 in another network namespace needs
    /// a fixed one, as a port held here means nothing there.
    pub port: Option<u16>,
    /// Set for every rank.
    pub env: Vec<(OsString, OsString)>,
    /// What differs between ranks.
    pub setup: Box<dyn Fn(Rank) -> RankSetup>,
    /// How long ranks have to end after a signal before they are killed.
    pub grace: Duration,
    /// How long a rank may stand still while others run. Those that have joined miss it earlier and can say in which phase,
    /// unless the machine is too busy for that.
    pub stopped_limit: Duration,
    /// Where ranks depend on something that may be lost: asked twice a second for a reason why the job cannot go on, which
    /// the ranks may be slow to notice or to name.
    pub health_check: Option<HealthCheck>,
}

impl LaunchOptions {
    /// `size` ranks of `command` on this host, talking over the loopback interface.
    #[must_use]
    pub fn new(size: usize, command: Vec<OsString>) -> Self {
        LaunchOptions {
            size,
            command,
            output: Output::default(),
            ranks_per_node: None,
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: None,
            env: Vec::new(),
            setup: Box::new(|_| RankSetup::default()),
            grace: Duration::from_secs(3),
            stopped_limit: Duration::from_secs(9),
            health_check: None,
        }
    }
}

impl fmt::Debug for LaunchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchOptions")
            .field("size", &self.size)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}
