//! Values of ranks as JSON: told by rank 0, and added up or gathered there. Among them what ranks take beside what is measured:
//! the wake-ups of their watcher threads, and memory.

use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailback_host::pages;
use tailback_transport::{Bootstrap, Error, Monitor, Result};

use crate::result::{HostActivity, MemoryRecord, WatchRecord};

/// Rank 0's value, on every rank; what others have is ignored. Collective over the job.
pub(crate) fn tell<T: Serialize + DeserializeOwned>(bootstrap: &mut dyn Bootstrap, mine: Option<&T>) -> Result<T> {
    let told = bootstrap.broadcast(mine.map(encode).unwrap_or_default())?;
    decode(&told)
}

/// The ranks' values `with` each other, on rank 0; nothing on others, and where no rank has one. Collective over the job.
fn reduce_json<T: Serialize + DeserializeOwned>(
    bootstrap: &mut dyn Bootstrap,
    mine: Option<&T>,
    with: fn(T, T) -> T,
) -> Result<Option<T>> {
    let told = bootstrap.reduce(encode(&mine), &mut |mine, theirs| {
        let both = match (decode::<Option<T>>(mine)?, decode::<Option<T>>(theirs)?) {
            (Some(mine), Some(theirs)) => Some(with(mine, theirs)),
            (one, other) => one.or(other),
        };
        *mine = encode(&both);
        Ok(())
    })?;
    told.map_or(Ok(None), |told| decode(&told))
}

/// All ranks' values, on rank 0, in no order; nothing on others. Collective over the job.
pub(crate) fn gather<T: Serialize + DeserializeOwned>(bootstrap: &mut dyn Bootstrap, mine: &[T]) -> Result<Vec<T>> {
    // A value is a line: lines need not be read on the way.
    let lines = mine.iter().flat_map(|value| [encode(value), b"\n".to_vec()].concat()).collect();
    let told = bootstrap.reduce(lines, &mut |mine, theirs| {
        mine.extend(theirs);
        Ok(())
    })?;
    let told = told.unwrap_or_default();
    told.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(decode).collect()
}

pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Protocol {
        operation: "reading what ranks tell",
        peer: None,
        detail: error.to_string(),
    })
}

/// Where this rank's watcher began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatcherOverhead {
    begun: Instant,
    wakeups: u64,
}

impl WatcherOverhead {
    pub(crate) fn begin(monitor: &Monitor) -> Self {
        WatcherOverhead { begun: Instant::now(), wakeups: monitor.wakeups() }
    }

    /// All ranks' since the beginning, on rank 0; nothing where no rank has a watcher. Collective over the job.
    pub(crate) fn collect(&self, bootstrap: &mut dyn Bootstrap, monitor: &Monitor) -> Result<Option<WatchRecord>> {
        let woken = monitor.wakeups() - self.wakeups;
        let mine = WatchRecord::of(bootstrap.rank().0, woken, self.begun.elapsed().as_secs_f64());
        let has_watcher = bootstrap.monitor().is_some();
        reduce_json(bootstrap, has_watcher.then_some(&mine), WatchRecord::with)
    }
}

/// What the machine did in the phases since this was last asked, over all ranks, on rank 0. Collective over the job.
pub(crate) fn activity(bootstrap: &mut dyn Bootstrap, mine: &Vec<HostActivity>) -> Result<Vec<HostActivity>> {
    Ok(reduce_json(bootstrap, Some(mine), HostActivity::all_with)?.unwrap_or_default())
}

/// The memory of all ranks, on rank 0. Collective over the job.
pub(crate) fn memory(bootstrap: &mut dyn Bootstrap) -> Result<Option<MemoryRecord>> {
    let mine = MemoryRecord::of(pages::requested(), pages::had(), pages::near_and_away());
    reduce_json(bootstrap, Some(&mine), MemoryRecord::with)
}
