//! What a rank has to know to join a job.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tailback_transport::{Error, Rank, Result};

use crate::failure::{ExitProcess, OnFailure};
use crate::hosts::hostname;
use crate::launcher_pipe::LauncherPipe;
use crate::secret::Secret;

/// Long enough for a busy machine, whose watchers only want to run for a moment each second, and short enough that
/// nobody wonders what the job is doing.
const SILENCE_LIMIT: Duration = Duration::from_secs(7);

/// More than any machine has cores; what rank 0 knows of each fits its memory.
const MAX_RANKS: usize = 1 << 22;

/// Everything a rank has to know to join a job. All ranks agree on `size`, `secret` and `fan_out`.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// This rank.
    pub rank: Rank,
    /// How many ranks the job has.
    pub size: usize,
    /// Where rank 0 is reached.
    pub root: SocketAddr,
    /// The address this rank listens on for the ranks below it, on the control network. By default rank 0 listens on
    /// `root`'s address and others on the one they reach rank 0 from.
    pub listen: Option<IpAddr>,
    /// Whether the launcher holds `root`'s port for rank 0, which then shares it.
    pub root_reserved: bool,
    /// What every rank has to prove to know.
    pub secret: Secret,
    /// How long ranks wait for each other to appear.
    pub join_timeout: Duration,
    /// How long a rank may give no sign of life (its process is stopped, its network is gone) before the job ends; `None`
    /// waits for ever. A rank's watcher gives one each second, whatever the rank itself does.
    pub silence_limit: Option<Duration>,
    /// How long a rank that lives may make no progress before the job ends; `None` waits for ever.
    pub stall_limit: Option<Duration>,
    /// Ranks with equal hosts share a node.
    pub host: String,
    /// How the ranks were started, for the result file.
    pub launcher: String,
    /// How many children a rank has in the tree.
    pub fan_out: usize,
    /// Ends this rank when the launcher is gone.
    pub launcher_pipe: Option<Arc<LauncherPipe>>,
    /// Says that the user wants the job to end.
    pub interrupt: Option<Interrupt>,
    /// What happens when the job fails.
    pub on_failure: Arc<dyn OnFailure>,
}

impl JoinConfig {
    /// A configuration with the defaults: 60 s to join, 7 s without a sign of life, 60 s without progress, fan-out 32, the system's host name.
    #[must_use]
    pub fn new(rank: Rank, size: usize, root: SocketAddr, secret: Secret) -> Self {
        JoinConfig {
            rank,
            size,
            root,
            listen: None,
            root_reserved: false,
            secret,
            join_timeout: Duration::from_secs(60),
            silence_limit: Some(SILENCE_LIMIT),
            stall_limit: Some(Duration::from_secs(60)),
            host: hostname(),
            launcher: "environment".to_owned(),
            fan_out: 32,
            launcher_pipe: None,
            interrupt: None,
            on_failure: Arc::new(ExitProcess),
        }
    }

    /// Whether nobody waits for this job any more: the launcher is gone, or the user has wanted its end for a while.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.launcher_pipe.as_ref().is_some_and(|pipe| pipe.is_closed())
            || self.interrupt.as_ref().is_some_and(Interrupt::is_over)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_raised)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=MAX_RANKS).contains(&self.size) {
            let size = self.size;
            return Err(Error::Setup(format!("a job of {size} ranks is not possible: it has 1 to {MAX_RANKS}")));
        }
        if self.rank.index() >= self.size {
            let last = self.size - 1;
            return Err(Error::Setup(format!("rank {} is out of range: the job has ranks 0 to {last}", self.rank)));
        }
        if self.fan_out == 0 {
            return Err(Error::Setup("the tree needs a fan-out of at least 1".into()));
        }
        Ok(())
    }
}

/// How long a rank goes on joining once it knows of the interrupt. By then every rank knows, so that nobody takes one that
/// has ended for lost; and a job whose ranks are all there ends in order instead.
const GRACE: Duration = Duration::from_secs(1);

/// A flag that the caller raises when the user wants the job to end. A rank that then still waits for others ends
/// without a word, and one lost while joining is no news: this is why it ended. Later it is the caller who ends in order.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    noticed: Arc<OnceLock<Instant>>,
}

impl Interrupt {
    /// Follows `raised`.
    #[must_use]
    pub fn new(raised: Arc<AtomicBool>) -> Self {
        Interrupt { raised, noticed: Arc::default() }
    }

    fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Whether to wait no longer for ranks that have not joined.
    fn is_over(&self) -> bool {
        self.is_raised() && self.noticed.get_or_init(Instant::now).elapsed() >= GRACE
    }
}
