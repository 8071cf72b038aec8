//! The built-in bootstrap: ranks meet at rank 0, form a tree, exchange bytes along it and watch over each other.
//!
//! It is the control plane and is never measured. Every connection proves the job secret; strangers are turned away
//! without harm. A failure anywhere ends the whole job with one message and exit code 2. Out of scope: starting
//! processes ([`crate::launch`]) and the network under test.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tailback_transport::{Bootstrap, Error, Merge, Monitor, Rank, Result};

use crate::config::JoinConfig;
use crate::hosts;
use crate::join::{self, JoinError, Joined};
use crate::secret::Secret;
use crate::tree::Tree;
use crate::watcher::{Command, Watcher, WatcherHandle};

/// How long a failed call waits for the watcher to end the job before it returns.
const END_LIMIT: Duration = Duration::from_secs(8);

/// A rank's membership in a job of the built-in bootstrap.
pub struct TcpBootstrap {
    config: JoinConfig,
    tree: Tree,
    shared: Arc<WatcherHandle>,
    watcher: Option<JoinHandle<()>>,
}

impl TcpBootstrap {
    /// Joins the job; returns once every rank has joined. `monitor` says where this rank is, for messages and for the
    /// watchdog. If another rank is the reason that the job ends, this process ends without a message.
    pub fn join(config: JoinConfig, monitor: Arc<Monitor>) -> Result<Self> {
        config.check()?;
        let joined = match join::join(&config) {
            Ok(joined) => joined,
            Err(JoinError::Reported(error)) if !config.is_interrupted() => return Err(error),
            Err(_) => {
                config.on_failure.end(None);
                return Err(ended());
            }
        };
        let Joined { tree, parent, children, hosts: named, temporary, broken } = joined;
        let (shared, watcher) = Watcher::start(&config, &tree, (parent, children), named, monitor)
            .map_err(|e| Error::Setup(format!("the watcher could not be started: {e}")))?;
        let mut bootstrap = TcpBootstrap { config, tree, shared, watcher: Some(watcher) };
        if let Some(error) = broken {
            bootstrap.shared.command(Command::Abort(error.to_string()));
            bootstrap.shared.wait_failed(END_LIMIT);
            return Err(ended());
        }
        // Nobody leaves this before everyone is there.
        let card = hosts::card(&bootstrap.config.host, &hosts::machine());
        let cards = bootstrap.allgather(&card)?;
        bootstrap.config.host = hosts::known_as(bootstrap.config.rank, &bootstrap.config.host, &cards);
        drop(temporary);
        Ok(bootstrap)
    }

    /// The secret that the ranks of this job share.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.config.secret
    }

    /// Waits for every rank and leaves the job: from here on a rank that ends is no loss.
    pub fn finish(mut self) -> Result<()> {
        self.barrier()
    }

    fn collective<T>(&mut self, run: impl FnOnce(&mut Tree) -> Result<T>) -> Result<T> {
        self.shared.enter_collective();
        let result = run(&mut self.tree);
        self.shared.leave_collective();
        if let Err(Error::PeerLost { peer, detail, .. }) = &result {
            // The watcher knows the cause, or is about to; it ends the job with the one message.
            self.shared.command(Command::Lost(*peer, detail.clone()));
            self.shared.wait_failed(END_LIMIT);
        }
        result
    }
}

impl Bootstrap for TcpBootstrap {
    fn rank(&self) -> Rank {
        self.config.rank
    }

    fn size(&self) -> usize {
        self.config.size
    }

    fn host(&self) -> &str {
        &self.config.host
    }

    fn launcher(&self) -> String {
        self.config.launcher.clone()
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.collective(|tree| tree.allgather(mine))
    }

    fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.collective(|tree| tree.broadcast(bytes))
    }

    fn reduce(&mut self, mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>> {
        self.collective(|tree| tree.reduce(mine, merge))
    }

    fn barrier(&mut self) -> Result<()> {
        self.collective(Tree::barrier)
    }

    fn monitor(&self) -> Option<&Monitor> {
        Some(&self.shared.monitor)
    }

    fn abort(&self, reason: &str) -> ! {
        self.shared.command(Command::Abort(reason.to_owned()));
        if !self.shared.wait_failed(END_LIMIT) {
            let message = format!("rank {} (host {}): {reason}", self.rank(), self.host());
            self.config.on_failure.report(&message);
            self.config.on_failure.end(Some(&message));
        }
        // Only a rank that is a thread gets here; the watcher's handler ends processes.
        std::panic::resume_unwind(Box::new("the job was aborted"))
    }
}

impl Drop for TcpBootstrap {
    /// Leaves without waiting for the others; unless in a panic, which ends the job.
    fn drop(&mut self) {
        if std::thread::panicking() && !self.shared.has_failed() {
            self.shared.command(Command::Abort("it panicked".into()));
            self.shared.wait_failed(END_LIMIT);
        }
        self.shared.command(Command::Finish);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

fn ended() -> Error {
    Error::Setup("the job ended; another rank says why".into())
}
