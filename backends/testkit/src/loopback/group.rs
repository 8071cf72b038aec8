//! [`LoopbackGroup`]: a send is a copy into the receiver's mailbox; a put or a get is a note that the flush acts on.

use std::fmt;
use std::sync::Arc;
use std::thread;

use tailback_engine::{Lane, RawGroup};
use tailback_host::Idle;
use tailback_transport::{Error, Nanos, Operation, Rank, Result, Span, Tag};

use super::fault::Transfer;
use super::matching::Matching;
use super::shared::{Message, Segments, Shared, lock};

/// A group of threads.
pub struct LoopbackGroup {
    shared: Arc<Shared>,
    segments: Arc<Segments>,
    members: Vec<Rank>,
    position: usize,
    lanes: [Matching; Lane::COUNT],
    /// Puts and gets not yet flushed, by peer.
    pending: Vec<Vec<Access>>,
}

struct Access {
    operation: Operation,
    local: Span,
    remote: usize,
}

impl LoopbackGroup {
    pub(super) fn new(shared: Arc<Shared>, segments: Arc<Segments>, members: &[Rank], position: usize) -> Self {
        let pending = members.iter().map(|_| Vec::new()).collect();
        LoopbackGroup { shared, segments, members: members.to_vec(), position, lanes: Default::default(), pending }
    }

    fn enter(&self, operation: &'static str) -> Result<()> {
        self.shared.enter(operation, self.me())
    }

    /// This rank in the job.
    fn me(&self) -> Rank {
        self.members[self.position]
    }

    fn copy_out(&self, member: usize, span: Span) -> Vec<u8> {
        lock(&self.segments.bytes[member])[span.offset..span.end()].to_vec()
    }

    fn copy_in(&self, member: usize, offset: usize, bytes: &[u8]) {
        lock(&self.segments.bytes[member])[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn check(&self, operation: &'static str, peer: Rank, span: Span, remote: usize) -> Result<()> {
        let size = lock(&self.segments.bytes[self.position]).len();
        let fits = |offset: usize| offset.checked_add(span.len).is_some_and(|end| end <= size);
        if peer.index() < self.members.len() && fits(span.offset) && fits(remote) {
            return Ok(());
        }
        let detail = format!("{} bytes at {} and {remote} with member {peer} do not exist", span.len, span.offset);
        Err(Error::Usage { operation, detail })
    }

    fn deliver(&self, from: Rank, span: Span, payload: &[u8]) -> Result<()> {
        if payload.len() != span.len {
            return Err(Error::Protocol {
                operation: "recv",
                peer: Some(self.members[from.index()]),
                detail: format!("a message of {} bytes met a receive of {}", payload.len(), span.len),
            });
        }
        self.copy_in(self.position, span.offset, payload);
        Ok(())
    }

    /// Pairs what arrived with what is posted.
    fn accept(&mut self, lane: Lane, messages: Vec<Message>) -> Result<()> {
        for message in messages {
            let from = message.from;
            if let Some((span, payload)) = self.lanes[lane as usize].arrive(message) {
                self.deliver(from, span, &payload)?;
            }
        }
        Ok(())
    }

    fn access(&mut self, name: &'static str, peer: Rank, access: Access) -> Result<()> {
        self.enter(name)?;
        self.check(name, peer, access.local, access.remote)?;
        self.pending[peer.index()].push(access);
        Ok(())
    }
}

impl RawGroup for LoopbackGroup {
    fn rank(&self) -> Rank {
        Rank::from(self.position)
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn now(&self) -> Nanos {
        self.shared.clock.now()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&lock(&self.segments.bytes[self.position])[offset..offset + into.len()]);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.copy_in(self.position, offset, from);
    }

    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.enter("send")?;
        self.check("send", to, span, span.offset)?;
        let mut payload = self.copy_out(self.position, span);
        let peer = self.members[to.index()];
        let label = Some((lane, tag));
        let transfer = Transfer { operation: Operation::TwoSided, from: self.me(), to: peer, label };
        self.shared.corrupt(transfer, &mut payload);
        let message = Message { from: self.rank(), tag, payload };
        let key = (self.segments.id, lane);
        self.shared.mailbox(peer).change(|mailbox| mailbox.entry(key).or_default().push(message));
        Ok(())
    }

    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.enter("recv")?;
        self.check("recv", from, span, span.offset)?;
        match self.lanes[lane as usize].post(from, tag, span) {
            Some(early) => self.deliver(from, span, &early),
            None => Ok(()),
        }
    }

    fn wait(&mut self, lane: Lane) -> Result<()> {
        self.enter("wait")?;
        let key = (self.segments.id, lane);
        // Ends: every turn takes at least one message, and a wait without messages has a limit.
        while self.lanes[lane as usize].waiting() > 0 {
            let lanes = &self.lanes;
            let missing = || match lanes[lane as usize].example() {
                Some((from, tag)) => {
                    format!("no message from rank {} ({lane:?}, tag {})", self.members[from.index()], tag.0)
                }
                None => "no receive is posted".into(),
            };
            let mailbox = self.shared.mailbox(self.me());
            let messages = self.shared.wait("wait", mailbox, |mailbox| mailbox.remove(&key), |_| missing())?;
            self.accept(lane, messages)?;
        }
        Ok(())
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.enter("progress")?;
        match idle {
            Idle::Wait => self.shared.mailbox(self.me()).nap(),
            Idle::Return => thread::yield_now(),
        }
        Ok(())
    }

    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        let key = (self.segments.id, lane);
        if let Some(messages) = self.shared.mailbox(self.me()).peek(|mailbox| mailbox.remove(&key)) {
            self.accept(lane, messages)?;
        }
        Ok(self.lanes[lane as usize].waiting() == 0)
    }

    /// A message is copied when it is posted.
    fn is_sent(&mut self, _: Lane, _: Rank) -> Result<bool> {
        Ok(true)
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.access("put", to, Access { operation: Operation::Put, local, remote })
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.access("get", from, Access { operation: Operation::Get, local, remote })
    }

    fn is_flushed(&mut self, peer: Rank) -> Result<bool> {
        self.enter("flush")?;
        let (me, other) = (self.position, peer.index());
        for Access { operation, local, remote } in std::mem::take(&mut self.pending[other]) {
            let far = Span::new(remote, local.len);
            let ((from, source), (to, target)) =
                if operation == Operation::Put { ((me, local), (other, far)) } else { ((other, far), (me, local)) };
            let mut payload = self.copy_out(from, source);
            let transfer = Transfer { operation, from: self.members[from], to: self.members[to], label: None };
            self.shared.corrupt(transfer, &mut payload);
            self.copy_in(to, target.offset, &payload);
        }
        Ok(true)
    }
}

impl Drop for LoopbackGroup {
    fn drop(&mut self) {
        let id = self.segments.id;
        self.shared.mailbox(self.me()).change(|mailbox| mailbox.retain(|(group, _), _| *group != id));
    }
}

impl fmt::Debug for LoopbackGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (members, position) = (&self.members, &self.position);
        f.debug_struct("LoopbackGroup").field("members", members).field("position", position).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::{loopback::Fault, loopback::Job, loopback::run};
    use tailback_engine::RawTransport;
    use tailback_transport::Bootstrap;

    const PAIR: [Rank; 2] = [Rank(0), Rank(1)];
    const SPAN: Span = Span { offset: 0, len: 4 };

    #[test]
    fn messages_are_held_until_the_receiver_makes_the_group() {
        let got = run(2, |mut bootstrap, mut transport| -> Result<[u8; 4]> {
            if bootstrap.rank() == Rank(0) {
                let mut group = transport.group(&PAIR, 4)?;
                group.write(0, &[1, 2, 3, 4]);
                group.post_send(Lane::Data, Rank(1), Tag(7), SPAN)?;
                group.wait(Lane::Data)?;
            }
            bootstrap.barrier()?;
            let mut got = [0; 4];
            if bootstrap.rank() == Rank(1) {
                let mut group = transport.group(&PAIR, 4)?;
                group.post_recv(Lane::Data, Rank(0), Tag(7), SPAN)?;
                group.wait(Lane::Data)?;
                group.read(0, &mut got);
            }
            Ok(got)
        });
        assert_eq!(got.unwrap()[1], [1, 2, 3, 4]);
    }

    #[test]
    fn a_put_takes_effect_in_its_flush() {
        let outcome = run(1, |_, mut transport| {
            let mut group = transport.group(&[Rank(0)], 8)?;
            let mut seen = [0; 4];
            group.write(0, &[9; 4]);
            group.put(Rank(0), SPAN, 4)?;
            group.read(4, &mut seen);
            assert_eq!(seen, [0; 4]);
            group.flush(Rank(0))?;
            group.read(4, &mut seen);
            assert_eq!(seen, [9; 4]);
            Ok::<_, Error>(())
        });
        outcome.unwrap();
    }

    #[test]
    fn lanes_are_complete_independently() {
        let outcome = run(1, |_, mut transport| {
            let mut group = transport.group(&[Rank(0)], 8)?;
            group.post_recv(Lane::Agreement, Rank(0), Tag(1), SPAN)?;
            group.post_send(Lane::Data, Rank(0), Tag(1), SPAN)?;
            group.post_recv(Lane::Data, Rank(0), Tag(1), SPAN)?;
            group.wait(Lane::Data)?;
            assert!(!group.test(Lane::Agreement)?);
            group.post_send(Lane::Agreement, Rank(0), Tag(1), SPAN)?;
            assert!(group.test(Lane::Agreement)?);
            Ok::<_, Error>(())
        });
        outcome.unwrap();
    }

    #[test]
    fn a_message_of_the_wrong_length_is_an_error_that_names_its_sender() {
        let outcome = run(2, |bootstrap, mut transport| {
            let mut group = transport.group(&[Rank(1), Rank(0)], 8)?;
            match bootstrap.rank() {
                Rank(0) => group.post_recv(Lane::Data, Rank(0), Tag(0), Span::new(0, 8))?,
                _ => group.post_send(Lane::Data, Rank(1), Tag(0), SPAN)?,
            }
            group.wait(Lane::Data)
        });
        let message = outcome.unwrap_err().to_string();
        assert_eq!(message, "recv with rank 1: a message of 4 bytes met a receive of 8");
    }

    #[derive(Default)]
    struct Witness(Mutex<Vec<Transfer>>);

    impl Fault for Arc<Witness> {
        fn delay(&self, _: Rank, operation: &'static str) -> Duration {
            Duration::from_millis(u64::from(operation == "send"))
        }

        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            lock(&self.0).push(transfer);
            payload[0] ^= 0xff;
        }
    }

    #[test]
    fn faults_see_ranks_of_the_job_and_change_bytes() {
        let witness = Arc::new(Witness::default());
        let job = Job::new(2).fault(Arc::clone(&witness));
        let outcome = job.run(|bootstrap, mut transport| {
            if bootstrap.rank() == Rank(0) {
                return Ok(());
            }
            let mut group = transport.group(&[Rank(1)], 8)?;
            group.post_send(Lane::Data, Rank(0), Tag(3), SPAN)?;
            group.get(Rank(0), SPAN, 4)?;
            group.flush(Rank(0))?;
            let mut seen = [0; 4];
            group.read(0, &mut seen);
            assert_eq!(seen, [0xff, 0, 0, 0]);
            Ok::<_, Error>(())
        });
        outcome.unwrap();
        let (from, to) = (Rank(1), Rank(1));
        let sent = Transfer { operation: Operation::TwoSided, from, to, label: Some((Lane::Data, Tag(3))) };
        let got = Transfer { operation: Operation::Get, label: None, ..sent };
        assert_eq!(*lock(&witness.0), [sent, got]);
    }
}
