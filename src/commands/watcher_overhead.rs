//! What ranks take beside what is measured: the wake-ups of their watcher threads, and memory.

use std::time::Instant;

use tailback_host::pages;
use tailback_transport::{Bootstrap, Monitor, Result};

use super::reduce_json::reduce_json;
use crate::result::{MemoryRecord, WatchRecord};

/// Where this rank's watcher began.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatcherOverhead {
    begun: Instant,
    wakeups: u64,
}

impl WatcherOverhead {
    pub(super) fn begin(monitor: &Monitor) -> Self {
        WatcherOverhead { begun: Instant::now(), wakeups: monitor.wakeups() }
    }

    /// All ranks' since the beginning, on rank 0; nothing where no rank has a watcher. Collective over the job.
    pub(super) fn collect(&self, bootstrap: &mut dyn Bootstrap, monitor: &Monitor) -> Result<Option<WatchRecord>> {
        let woken = monitor.wakeups() - self.wakeups;
        let mine = WatchRecord::of(bootstrap.rank().0, woken, self.begun.elapsed().as_secs_f64());
        let has_watcher = bootstrap.monitor().is_some();
        reduce_json(bootstrap, has_watcher.then_some(&mine), WatchRecord::with)
    }
}

/// The memory of all ranks, on rank 0. Collective over the job.
pub(super) fn memory(bootstrap: &mut dyn Bootstrap) -> Result<Option<MemoryRecord>> {
    let mine = MemoryRecord::of(pages::wished(), pages::had(), pages::near_and_away());
    reduce_json(bootstrap, Some(&mine), MemoryRecord::with)
}
