//! Who is here: the plane that is never measured.

use std::sync::Arc;

use crate::{Monitor, Rank, Result};

/// Folds a child's bytes (second) into one's own (first). Called in an order that is the same on every run.
pub type Merge<'a> = &'a mut dyn FnMut(&mut Vec<u8>, &[u8]) -> Result<()>;

/// The ranks of the job and slow, reliable ways to exchange bytes between them, used outside timed phases.
///
/// All calls but [`Bootstrap::abort`] are collective over the whole job and are made in the same order by every rank.
pub trait Bootstrap {
    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks the job has.
    fn size(&self) -> usize;

    /// All ranks in order. Where ranks share a process they share the list: one each would be gigabytes.
    fn everyone(&self) -> Arc<[Rank]> {
        (0..self.size()).map(Rank::from).collect()
    }

    /// What identifies the host this rank runs on: ranks with equal hosts share a node.
    fn host(&self) -> &str;

    /// How the ranks came together, for the result file: "tailback launch", "Slurm", "Open MPI 4.1.4".
    fn launcher(&self) -> String;

    /// Every rank's bytes, in rank order, on every rank. Lengths may differ.
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Rank 0's bytes, on every rank; what others pass is ignored.
    fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>>;

    /// Folds every rank's bytes with `merge` up a tree; rank 0 gets `Some`. A tree node holds its own bytes and one
    /// child's at a time.
    fn reduce(&mut self, mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>>;

    /// Returns once every rank has called it.
    fn barrier(&mut self) -> Result<()>;

    /// What this rank's watcher thread reads, where it has one.
    fn monitor(&self) -> Option<&Monitor> {
        None
    }

    /// Ends the whole job with exit code 2 because of `reason`: one message names this rank, its host and its phase,
    /// and every other rank ends too.
    fn abort(&self, reason: &str) -> !;
}
