//! Rank 0's list of who has joined, and what it tells them.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::{Error, Rank, START_UP};

use crate::config::JoinConfig;
use crate::failure::Ranks;
use crate::gate::{Admitted, Gate};
use crate::handshake::framed;
use crate::judge::lost_message;
use crate::message::{Answer, Join};
use crate::polling::poll_until;
use crate::setback::{CHECK_INTERVAL, JoinResult, Setback};
use crate::tree;

/// A rank that has joined; the connection stays open until the tree stands, to notice its loss.
#[derive(Debug)]
struct Entry {
    stream: TcpStream,
    host: String,
    listens: Option<SocketAddr>,
}

#[derive(Debug)]
pub(crate) struct Roster<'a> {
    config: &'a JoinConfig,
    /// By rank; rank 0's own place stays empty.
    entries: Vec<Option<Entry>>,
}

impl<'a> Roster<'a> {
    pub(crate) fn new(config: &'a JoinConfig) -> Self {
        Roster { config, entries: (0..config.size).map(|_| None).collect() }
    }

    /// Waits for every rank.
    pub(crate) fn fill(&mut self, gate: &mut Gate, deadline: Instant) -> JoinResult<()> {
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        let mut missing = self.config.size - 1;
        while missing > 0 {
            if Instant::now() >= deadline {
                return Err(self.too_late());
            }
            for admitted in gate.step(deadline.min(next_check))? {
                self.enter(admitted)?;
                missing -= 1;
            }
            if Instant::now() >= next_check {
                self.check()?;
                next_check = Instant::now() + CHECK_INTERVAL;
            }
        }
        Ok(())
    }

    fn enter(&mut self, admitted: Admitted) -> JoinResult<()> {
        let Admitted { mut stream, address, rank, message } = admitted;
        let checked = Join::decode(&message)
            .map_err(|e| e.to_string())
            .and_then(|join| self.objection(rank, &join, address).map_or(Ok(join), Err));
        match checked {
            Ok(Join { host, listens, .. }) => {
                self.entries[rank.index()] = Some(Entry { stream, host, listens });
                Ok(())
            }
            Err(reason) => {
                let _ = stream.write_all(&framed(&Answer::Refused { reason: reason.clone() }.encode()));
                Err(Setback::Mine(Error::Setup(reason)))
            }
        }
    }

    /// Why a rank that knows the secret still cannot be part of this job: the job was started wrongly.
    fn objection(&self, rank: Rank, join: &Join, address: SocketAddr) -> Option<String> {
        let (host, size) = (&join.host, self.config.size);
        if join.size as usize != size {
            return Some(format!(
                "rank {rank} (host {host}) was told that the job has {} ranks, rank 0 that it has {size}: \
                 check TAILBACK_SIZE is the same for all ranks",
                join.size
            ));
        }
        if rank.index() >= size {
            return Some(format!("rank {rank} (host {host}) is out of range: the job has ranks 0 to {}", size - 1));
        }
        let earlier =
            if rank.0 == 0 { Some(&self.config.host) } else { self.entries[rank.index()].as_ref().map(|e| &e.host) };
        if let Some(earlier) = earlier {
            return Some(format!(
                "two processes say they are rank {rank} (hosts {earlier} and {host}, the second from {address}): \
                 check TAILBACK_RANK is different for all ranks"
            ));
        }
        (join.fan_out as usize != self.config.fan_out).then(|| {
            format!(
                "rank {rank} (host {host}) has a tree with fan-out {}, rank 0 {}",
                join.fan_out, self.config.fan_out
            )
        })
    }

    fn too_late(&self) -> Setback {
        let missing: Vec<Rank> = (1..self.config.size).filter(|r| self.entries[*r].is_none()).map(Rank::from).collect();
        Setback::Mine(Error::Setup(format!(
            "{} did not join within {} s",
            Ranks(&missing),
            self.config.join_timeout.as_secs_f64()
        )))
    }

    /// Notices ranks, and the launcher, that went away while others are waited for, and a user who wants the end.
    pub(crate) fn check(&self) -> JoinResult<()> {
        if self.config.is_abandoned() {
            return Err(Setback::Theirs);
        }
        let here: Vec<(usize, &Entry)> =
            self.entries.iter().enumerate().filter_map(|(r, e)| Some((r, e.as_ref()?))).collect();
        let mut fds: Vec<PollFd<'_>> = here.iter().map(|(_, e)| PollFd::new(&e.stream, PollFlags::IN)).collect();
        poll_until(&mut fds, Instant::now()).map_err(|source| {
            Setback::Mine(Error::Io { operation: "waiting for ranks to join", peer: None, source })
        })?;
        // A rank that has joined says nothing until it is answered, so anything to read is the end of it.
        match fds.iter().position(|fd| !fd.revents().is_empty()) {
            None => Ok(()),
            Some(at) => {
                let (rank, entry) = here[at];
                let text = lost_message(Rank::from(rank), &entry.host, START_UP, "connection closed");
                Err(Setback::Mine(Error::Setup(text)))
            }
        }
    }

    /// Tells every rank its place in the tree.
    pub(crate) fn welcome(&mut self) {
        for rank in 1..self.config.size {
            let parent = tree::parent(Rank::from(rank), self.config.fan_out).expect("only rank 0 has no parent");
            let above = self.entries[parent.index()].as_ref();
            let answer = Answer::Welcome {
                parent: above.and_then(|e| e.listens),
                parent_host: above.map_or(&self.config.host, |e| &e.host).clone(),
            };
            self.tell(rank, &answer);
        }
    }

    /// Tells everybody who has joined that the job ends.
    pub(crate) fn dismiss(&mut self) {
        for rank in 1..self.config.size {
            self.tell(rank, &Answer::Ended);
        }
    }

    fn tell(&mut self, rank: usize, answer: &Answer) {
        if let Some(entry) = &mut self.entries[rank] {
            // A rank that cannot be told is lost, which the next check sees.
            let _ = entry.stream.set_write_timeout(Some(Duration::from_secs(1)));
            let _ = entry.stream.write_all(&framed(&answer.encode()));
        }
    }

    /// Every rank's host, in rank order, and the connections to keep until the tree stands.
    pub(crate) fn into_hosts(self) -> (Vec<String>, Vec<TcpStream>) {
        let mut hosts = vec![self.config.host.clone()];
        let mut streams = Vec::new();
        for entry in self.entries.into_iter().flatten() {
            hosts.push(entry.host);
            streams.push(entry.stream);
        }
        (hosts, streams)
    }
}
