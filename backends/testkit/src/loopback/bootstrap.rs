//! The bootstrap of a loopback job: every call is a meeting to which each rank brings bytes.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Merge, Rank, Result};

use super::shared::Shared;

/// One rank's place at the meeting.
#[derive(Debug)]
pub struct LoopbackBootstrap {
    shared: Arc<Shared>,
    rank: Rank,
}

impl LoopbackBootstrap {
    pub(super) fn new(shared: Arc<Shared>, rank: Rank) -> Self {
        LoopbackBootstrap { shared, rank }
    }

    /// Brings `mine` and waits for what everyone brought.
    fn meet(&self, operation: &'static str, mine: &[u8]) -> Result<Arc<Vec<Vec<u8>>>> {
        let me = self.rank.index();
        let round = self.shared.meeting.change(|meeting| {
            let round = meeting.round;
            meeting.brought[me] = Some(mine.to_vec());
            if meeting.brought.iter().all(Option::is_some) {
                meeting.taken = Arc::new(meeting.brought.iter_mut().filter_map(Option::take).collect());
                meeting.round += 1;
            }
            round
        });
        self.shared.wait(
            operation,
            &self.shared.meeting,
            |meeting| (meeting.round > round).then(|| Arc::clone(&meeting.taken)),
            |meeting| {
                let brought = meeting.brought.iter().enumerate();
                let missing: Vec<_> = brought.filter(|(_, bytes)| bytes.is_none()).map(|(rank, _)| rank).collect();
                let missing: Vec<_> = missing.iter().map(|rank| format!("rank {rank}")).collect();
                format!("{} did not come", missing.join(", "))
            },
        )
    }
}

impl Bootstrap for LoopbackBootstrap {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size()
    }

    fn host(&self) -> &str {
        &self.shared.hosts[self.rank.index()]
    }

    fn launcher(&self) -> String {
        "threads of one process".into()
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(self.meet("allgather", mine)?.to_vec())
    }

    fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mine = if self.rank == Rank(0) { bytes } else { Vec::new() };
        Ok(self.meet("broadcast", &mine)?[0].clone())
    }

    /// A binomial tree, one meeting per level: ranks whose bit is set hand over to the rank without it.
    fn reduce(&mut self, mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>> {
        let (me, size) = (self.rank.index(), self.shared.size());
        let mut mine = mine;
        let mut bit = 1;
        while bit < size {
            let gives = me % (2 * bit) == bit;
            let level = self.meet("reduce", if gives { &mine } else { &[] })?;
            if me % (2 * bit) == 0 && me + bit < size {
                merge(&mut mine, &level[me + bit])?;
            }
            bit *= 2;
        }
        Ok((me == 0).then_some(mine))
    }

    fn barrier(&mut self) -> Result<()> {
        self.meet("barrier", &[]).map(drop)
    }

    fn abort(&self, reason: &str) -> ! {
        let message = format!("rank {} on {}: {reason}", self.rank, self.host());
        self.shared.fail(self.rank, &message);
        panic!("{message}");
    }
}
