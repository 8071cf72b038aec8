//! The ranks of an MPI job and slow, plain ways to exchange bytes between them.

use std::rc::Rc;

use tailback_host::WaitMode;
use tailback_transport::{Bootstrap, Error, Merge, Monitor, Rank, Result};

use crate::session::Session;

/// One message carries at most this much: MPI counts are 32 bits wide.
const CHUNK: usize = 1 << 30;

/// [`Bootstrap`] over a copy of MPI_COMM_WORLD.
pub struct MpiBootstrap {
    session: Rc<Session>,
}

impl MpiBootstrap {
    pub(crate) fn new(session: Rc<Session>) -> Self {
        MpiBootstrap { session }
    }

    /// Settles how this rank waits from here on. Collective over the job; before the session has other users.
    pub(crate) fn choose_waiting(mut self, asked: Option<WaitMode>) -> Result<Rc<Session>> {
        let (mode, reason) = WaitMode::choose(asked, &mut self)?;
        // Every rank chose for itself; what it means for the others is settled there.
        Rc::get_mut(&mut self.session).expect("no other user yet").wait(mode, reason)?;
        Ok(self.session)
    }

    fn send(&self, bytes: &[u8], to: Rank) -> Result<()> {
        self.session.world.send(&(bytes.len() as u64).to_le_bytes(), to)?;
        bytes.chunks(CHUNK).try_for_each(|chunk| self.session.world.send(chunk, to))
    }

    fn receive(&self, from: Rank) -> Result<Vec<u8>> {
        let mut length = [0; 8];
        self.session.world.receive(&mut length, from)?;
        let mut bytes = vec![0; length_of(u64::from_le_bytes(length))?];
        bytes.chunks_mut(CHUNK).try_for_each(|chunk| self.session.world.receive(chunk, from))?;
        Ok(bytes)
    }
}

fn length_of(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::Protocol {
        operation: "bootstrap",
        peer: None,
        detail: format!("a message of {number} bytes was announced"),
    })
}

impl Bootstrap for MpiBootstrap {
    fn rank(&self) -> Rank {
        self.session.rank
    }

    fn size(&self) -> usize {
        self.session.size
    }

    fn host(&self) -> &str {
        &self.session.node
    }

    fn launcher(&self) -> String {
        match &self.session.launcher {
            Some(launcher) => format!("{}, {}", launcher.name, self.session.library),
            None => format!("none (one process), {}", self.session.library),
        }
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let session = &self.session;
        let lengths = session.world.allgather_number(mine.len() as u64, session.size)?;
        let lengths: Vec<usize> = lengths.into_iter().map(length_of).collect::<Result<_>>()?;
        let all = session.world.allgather(mine, &lengths)?;
        let mut rest = all.as_slice();
        let mut cut = |len| {
            let (one, others) = rest.split_at(len);
            rest = others;
            one.to_vec()
        };
        Ok(lengths.into_iter().map(&mut cut).collect())
    }

    fn broadcast(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.session.world.broadcast(&mut length)?;
        bytes.resize(length_of(u64::from_le_bytes(length))?, 0);
        bytes.chunks_mut(CHUNK).try_for_each(|chunk| self.session.world.broadcast(chunk))?;
        Ok(bytes)
    }

    fn reduce(&mut self, mut mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>> {
        let (rank, size) = (self.session.rank.index(), self.session.size);
        // A binomial tree: in round k, ranks with bit k set hand theirs to the rank without it and are done.
        let mut bit = 1;
        while bit < size {
            if rank & bit != 0 {
                self.send(&mine, Rank::from(rank - bit))?;
                return Ok(None);
            }
            if rank + bit < size {
                let child = self.receive(Rank::from(rank + bit))?;
                merge(&mut mine, &child)?;
            }
            bit <<= 1;
        }
        Ok(Some(mine))
    }

    fn barrier(&mut self) -> Result<()> {
        self.session.world.barrier()?;
        // Every rank is here and outside timed phases: the moment to free what the kernels dropped.
        self.session.reap()
    }

    fn monitor(&self) -> Option<&Monitor> {
        Some(&self.session.identity.monitor)
    }

    fn abort(&self, reason: &str) -> ! {
        self.session.identity.abort(reason)
    }
}
