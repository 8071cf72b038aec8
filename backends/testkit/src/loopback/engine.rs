//! The operations of [`Loopback`]: a send is a copy into the receiver's mailbox; a put or a get is a note that the flush acts on.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use tailback_engine::{Engine, Lane, Membership, position};
use tailback_host::Idle;
use tailback_transport::{Capabilities, Description, Error, Nanos, Operation, Rank, Result, Span, Tag};

use super::fault::Transfer;
use super::matching::Matching;
use super::shared::{Message, Segments, Shared, lock};

/// One rank's end of the memory network.
pub struct Loopback {
    shared: Arc<Shared>,
    rank: Rank,
    /// How many groups this rank made of which members: with the members, that names a group the same on each of them.
    made: HashMap<Vec<Rank>, u64>,
    groups: Vec<Option<Group>>,
}

/// A group of threads.
struct Group {
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

impl Group {
    fn new(shared: Arc<Shared>, segments: Arc<Segments>, members: &[Rank], position: usize) -> Self {
        let pending = members.iter().map(|_| Vec::new()).collect();
        Group { shared, segments, members: members.to_vec(), position, lanes: Default::default(), pending }
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

impl Loopback {
    pub(super) fn new(shared: Arc<Shared>, rank: Rank) -> Self {
        Loopback { shared, rank, made: HashMap::new(), groups: Vec::new() }
    }

    fn at(&self, slot: usize) -> &Group {
        self.groups[slot].as_ref().expect("a group that was not dropped")
    }

    fn at_mut(&mut self, slot: usize) -> &mut Group {
        self.groups[slot].as_mut().expect("a group that was not dropped")
    }
}

impl Engine for Loopback {
    type Slot = usize;

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities.clone()
    }

    fn describe(&self) -> Description {
        Description { backend: "loopback".into(), ..Description::default() }
    }

    fn now(&self) -> Nanos {
        self.shared.clock.now()
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<usize>> {
        self.shared.enter("group", self.rank)?;
        let position = position(self.rank, self.shared.size(), members)?;
        let count = self.made.entry(members.to_vec()).or_default();
        *count += 1;
        let segments = self.shared.join(members, *count, segment)?;
        self.groups.push(Some(Group::new(Arc::clone(&self.shared), segments, members, position)));
        Ok(Membership { slot: self.groups.len() - 1, rank: Rank::from(position), size: members.len() })
    }

    fn drop_group(&mut self, slot: usize) {
        let id = self.at(slot).segments.id;
        self.shared.mailbox(self.rank).change(|mailbox| mailbox.retain(|(group, _), _| *group != id));
        self.groups[slot] = None;
    }

    fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        let group = self.at(slot);
        into.copy_from_slice(&lock(&group.segments.bytes[group.position])[offset..offset + into.len()]);
    }

    fn write(&mut self, slot: usize, offset: usize, from: &[u8]) {
        let group = self.at(slot);
        group.copy_in(group.position, offset, from);
    }

    fn post_send(&mut self, slot: usize, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        let group = self.at(slot);
        group.enter("send")?;
        group.check("send", to, span, span.offset)?;
        let mut payload = group.copy_out(group.position, span);
        let peer = group.members[to.index()];
        let label = Some((lane, tag));
        let transfer = Transfer { operation: Operation::TwoSided, from: self.rank, to: peer, label };
        self.shared.corrupt(transfer, &mut payload);
        let message = Message { from: Rank::from(group.position), tag, payload };
        let key = (group.segments.id, lane);
        self.shared.mailbox(peer).change(|mailbox| mailbox.entry(key).or_default().push(message));
        Ok(())
    }

    fn post_recv(&mut self, slot: usize, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        let group = self.at_mut(slot);
        group.enter("recv")?;
        group.check("recv", from, span, span.offset)?;
        match group.lanes[lane as usize].post(from, tag, span) {
            Some(early) => group.deliver(from, span, &early),
            None => Ok(()),
        }
    }

    fn wait(&mut self, slot: usize, lane: Lane) -> Result<()> {
        let group = self.at_mut(slot);
        group.enter("wait")?;
        let key = (group.segments.id, lane);
        // Ends: every turn takes at least one message, and a wait without messages has a limit.
        while group.lanes[lane as usize].waiting() > 0 {
            let missing = || match group.lanes[lane as usize].example() {
                Some((from, tag)) => {
                    format!("no message from rank {} ({lane:?}, tag {})", group.members[from.index()], tag.0)
                }
                None => "no receive is posted".into(),
            };
            let mailbox = group.shared.mailbox(group.me());
            let messages = group.shared.wait("wait", mailbox, |mailbox| mailbox.remove(&key), |_| missing())?;
            group.accept(lane, messages)?;
        }
        Ok(())
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.shared.enter("progress", self.rank)?;
        match idle {
            Idle::Wait => self.shared.mailbox(self.rank).nap(),
            Idle::Return => thread::yield_now(),
        }
        Ok(())
    }

    fn is_complete(&mut self, slot: usize, lane: Lane) -> Result<bool> {
        let group = self.at_mut(slot);
        let key = (group.segments.id, lane);
        if let Some(messages) = group.shared.mailbox(group.me()).peek(|mailbox| mailbox.remove(&key)) {
            group.accept(lane, messages)?;
        }
        Ok(group.lanes[lane as usize].waiting() == 0)
    }

    /// A message is copied when it is posted.
    fn is_sent(&mut self, _: usize, _: Lane, _: Rank) -> Result<bool> {
        Ok(true)
    }

    fn put(&mut self, slot: usize, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.at_mut(slot).access("put", to, Access { operation: Operation::Put, local, remote })
    }

    fn get(&mut self, slot: usize, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.at_mut(slot).access("get", from, Access { operation: Operation::Get, local, remote })
    }

    fn is_flushed(&mut self, slot: usize, peer: Rank) -> Result<bool> {
        let group = self.at_mut(slot);
        group.enter("flush")?;
        if group.shared.skips_flush() {
            return Ok(true);
        }
        let (me, other) = (group.position, peer.index());
        for Access { operation, local, remote } in std::mem::take(&mut group.pending[other]) {
            let there = Span::new(remote, local.len);
            let ((from, source), (to, target)) =
                if operation == Operation::Put { ((me, local), (other, there)) } else { ((other, there), (me, local)) };
            let mut payload = group.copy_out(from, source);
            let transfer = Transfer { operation, from: group.members[from], to: group.members[to], label: None };
            group.shared.corrupt(transfer, &mut payload);
            group.copy_in(to, target.offset, &payload);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::loopback::{Fault, Job, run};
    use tailback_transport::Bootstrap;

    const PAIR: [Rank; 2] = [Rank(0), Rank(1)];
    const SPAN: Span = Span { offset: 0, len: 4 };

    #[test]
    fn messages_are_held_until_the_receiver_makes_the_group() {
        let got = run(2, |mut bootstrap, mut transport| -> Result<[u8; 4]> {
            if bootstrap.rank() == Rank(0) {
                let group = transport.make_group(&PAIR, 4)?.slot;
                transport.write(group, 0, &[1, 2, 3, 4]);
                transport.post_send(group, Lane::Data, Rank(1), Tag(7), SPAN)?;
                transport.wait(group, Lane::Data)?;
            }
            bootstrap.barrier()?;
            let mut got = [0; 4];
            if bootstrap.rank() == Rank(1) {
                let group = transport.make_group(&PAIR, 4)?.slot;
                transport.post_recv(group, Lane::Data, Rank(0), Tag(7), SPAN)?;
                transport.wait(group, Lane::Data)?;
                transport.read(group, 0, &mut got);
            }
            Ok(got)
        });
        assert_eq!(got.unwrap()[1], [1, 2, 3, 4]);
    }

    #[test]
    fn a_put_takes_effect_in_its_flush() {
        let outcome = run(1, |_, mut transport| {
            let group = transport.make_group(&[Rank(0)], 8)?.slot;
            let mut seen = [0; 4];
            transport.write(group, 0, &[9; 4]);
            transport.put(group, Rank(0), SPAN, 4)?;
            transport.read(group, 4, &mut seen);
            assert_eq!(seen, [0; 4]);
            transport.flush(group, Rank(0))?;
            transport.read(group, 4, &mut seen);
            assert_eq!(seen, [9; 4]);
            Ok::<_, Error>(())
        });
        outcome.unwrap();
    }

    #[test]
    fn lanes_are_complete_independently() {
        let outcome = run(1, |_, mut transport| {
            let group = transport.make_group(&[Rank(0)], 8)?.slot;
            transport.post_recv(group, Lane::Agreement, Rank(0), Tag(1), SPAN)?;
            transport.post_send(group, Lane::Data, Rank(0), Tag(1), SPAN)?;
            transport.post_recv(group, Lane::Data, Rank(0), Tag(1), SPAN)?;
            transport.wait(group, Lane::Data)?;
            assert!(!transport.test(group, Lane::Agreement)?);
            transport.post_send(group, Lane::Agreement, Rank(0), Tag(1), SPAN)?;
            assert!(transport.test(group, Lane::Agreement)?);
            Ok::<_, Error>(())
        });
        outcome.unwrap();
    }

    #[test]
    fn a_message_of_the_wrong_length_is_an_error_that_names_its_sender() {
        let outcome = run(2, |bootstrap, mut transport| {
            let group = transport.make_group(&[Rank(1), Rank(0)], 8)?.slot;
            match bootstrap.rank() {
                Rank(0) => transport.post_recv(group, Lane::Data, Rank(0), Tag(0), Span::new(0, 8))?,
                _ => transport.post_send(group, Lane::Data, Rank(1), Tag(0), SPAN)?,
            }
            transport.wait(group, Lane::Data)
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
            let group = transport.make_group(&[Rank(1)], 8)?.slot;
            transport.post_send(group, Lane::Data, Rank(0), Tag(3), SPAN)?;
            transport.get(group, Rank(0), SPAN, 4)?;
            transport.flush(group, Rank(0))?;
            let mut seen = [0; 4];
            transport.read(group, 0, &mut seen);
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
