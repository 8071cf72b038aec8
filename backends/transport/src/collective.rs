//! Barrier, allreduce and agreement, written once over [`RawGroup`](crate::RawGroup).

/// A raw transport with collectives.
#[derive(Debug)]
pub struct Collective<T> {
    /// The transport under it.
    pub raw: T,
}
