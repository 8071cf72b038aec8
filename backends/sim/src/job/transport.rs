//! The raw transport of a simulated job.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use tailback_engine::{Engine, Lane, Membership};
use tailback_host::Idle;
use tailback_transport::{Description, Error, Nanos, Rank, Result, Span, Tag};

use super::channel::Key;
use super::groups;
use super::handle::Handle;
use super::world::{Access, Waiting};
use crate::net::NO_TIME;

/// A group on the simulated network, and this rank's place in it.
#[derive(Clone, Copy, Debug)]
pub struct SimSlot {
    group: u32,
    position: u32,
}

/// One rank's end of the simulated network. A clone is the same end again: a rank may have several transports at a time,
/// over the same ports.
#[derive(Clone)]
pub struct SimTransport<'y> {
    handle: Handle<'y>,
    /// How many groups this rank made of which members, by whichever clone: ranks tell groups of the same members apart by it.
    made: Rc<RefCell<HashMap<u64, u64>>>,
}

impl<'y> SimTransport<'y> {
    pub(super) fn new(handle: Handle<'y>) -> Self {
        SimTransport { handle, made: Rc::default() }
    }

    /// From now on, what this rank starts goes in this traffic class.
    ///
    /// # Errors
    /// If the machine has no such class.
    pub fn set_class(&mut self, class: usize) -> Result<()> {
        let mut world = self.handle.world.borrow_mut();
        let classes = world.machine.switch.classes;
        if class >= classes {
            let name = &world.machine.name;
            return Err(Error::Setup(format!("class {class}: the machine {name} has classes 0 to {}", classes - 1)));
        }
        world.class[self.handle.rank.index()] = class as u8;
        Ok(())
    }
}

impl SimTransport<'_> {
    fn check(&self, slot: SimSlot, operation: &'static str, peer: Rank, span: Span, remote: usize) -> Result<()> {
        let mut world = self.handle.world.borrow_mut();
        let (members, segment) = world.groups.shape(slot.group);
        let fits = |offset: usize| offset.checked_add(span.len).is_some_and(|end| end <= segment);
        if peer.index() < members && fits(span.offset) && fits(remote) {
            return world.enter(operation, self.handle.rank);
        }
        let detail = format!("{} bytes at {} and {remote} with member {peer} do not exist", span.len, span.offset);
        Err(Error::Usage { operation, detail })
    }

    fn access(slot: SimSlot, peer: Rank, local: Span, remote: usize) -> Access {
        Access { group: slot.group, origin: slot.position, target: peer.0, local, remote }
    }

    /// Waits until `over`, which `waiting` is about.
    fn wait_for(&self, operation: &'static str, waiting: Waiting, over: impl Fn(&Self) -> bool) -> Result<()> {
        loop {
            self.handle.world.borrow_mut().enter(operation, self.handle.rank)?;
            if over(self) {
                return Ok(());
            }
            self.handle.wait(waiting);
        }
    }

    fn lane_is_complete(&self, slot: SimSlot, lane: Lane) -> bool {
        self.handle.world.borrow().groups.view(slot.group, slot.position).is_complete(lane)
    }

    fn peer_is_flushed(&self, slot: SimSlot, peer: Rank) -> bool {
        self.handle.world.borrow().groups.view(slot.group, slot.position).is_flushed(peer.0)
    }
}

impl Engine for SimTransport<'_> {
    type Slot = SimSlot;

    fn now(&self) -> Nanos {
        Nanos(self.handle.world.borrow().ranks[self.handle.rank.index()].clock / 1000)
    }

    fn describe(&self) -> Description {
        let world = self.handle.world.borrow();
        let machine = &world.machine;
        let details = [
            ("machine", machine.name.clone()),
            ("about", machine.about.clone()),
            ("simulated", "yes: times are virtual".to_owned()),
            ("routing", format!("{:?}", machine.routing)),
            ("flow control", format!("{:?}", machine.switch.flow_control)),
            ("congestion control", format!("{:?}", machine.control)),
            ("link_speed_mbit_per_s", (machine.host_link().rate.bits() / 1_000_000).to_string()),
        ];
        let details: BTreeMap<String, String> = details.map(|(key, value)| (key.to_owned(), value)).into();
        Description { backend: "sim".into(), library: String::new(), details }
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<SimSlot>> {
        let mut world = self.handle.world.borrow_mut();
        world.enter("group", self.handle.rank)?;
        let usage = |detail: String| Error::Usage { operation: "group", detail };
        let me = self.handle.rank;
        // In a group of all, a rank is where its number says.
        let position = match members.get(me.index()) {
            Some(&member) if member == me => Some(me.index()),
            _ => members.iter().position(|&member| member == me),
        };
        let position = position.ok_or_else(|| usage(format!("rank {me} is not among the members")))?;
        let size = world.ranks.len();
        if u32::try_from(segment).is_err() {
            return Err(usage(format!("a segment of {segment} bytes: the simulator has at most 4 GiB")));
        }
        let name = groups::name(members);
        let mut made = self.made.borrow_mut();
        let count = made.entry(name).or_default();
        let id = world.groups.join((name, *count), members, segment, size)?;
        *count += 1;
        let slot = SimSlot { group: id, position: position as u32 };
        Ok(Membership { slot, rank: Rank(slot.position), size: members.len() })
    }

    fn drop_group(&mut self, slot: SimSlot) {
        // While a rank is being unwound the world may be in use; nothing is reused after that anyway.
        if let Ok(mut world) = self.handle.world.try_borrow_mut() {
            world.release(slot.group);
        }
    }

    fn read(&self, slot: SimSlot, offset: usize, into: &mut [u8]) {
        self.handle.world.borrow().groups.view(slot.group, slot.position).segment.read(offset, into);
    }

    fn write(&mut self, slot: SimSlot, offset: usize, from: &[u8]) {
        let world = &mut *self.handle.world.borrow_mut();
        world.groups.member(slot.group, slot.position).segment.write(&mut world.known, offset, from);
    }

    fn post_send(&mut self, slot: SimSlot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check(slot, "send", to, span, span.offset)?;
        let key = Key { group: slot.group, from: slot.position, to: to.0, lane: lane as u32, tag: tag.0 };
        self.handle.world.borrow_mut().post_send(key, span);
        Ok(())
    }

    fn post_recv(&mut self, slot: SimSlot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check(slot, "recv", from, span, span.offset)?;
        let key = Key { group: slot.group, from: from.0, to: slot.position, lane: lane as u32, tag: tag.0 };
        self.handle.world.borrow_mut().post_receive(key, span);
        Ok(())
    }

    fn put(&mut self, slot: SimSlot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.check(slot, "put", to, local, remote)?;
        self.handle.world.borrow_mut().post_put(Self::access(slot, to, local, remote));
        Ok(())
    }

    fn get(&mut self, slot: SimSlot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.check(slot, "get", from, local, remote)?;
        self.handle.world.borrow_mut().post_get(Self::access(slot, from, local, remote));
        Ok(())
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        let me = self.handle.rank.index();
        let mut world = self.handle.world.borrow_mut();
        world.enter("progress", self.handle.rank)?;
        let wait = idle == Idle::Wait && !world.ranks[me].news;
        if idle == Idle::Return {
            world.ranks[me].clock += world.work(self.handle.rank, world.machine.nic.poll.0);
        }
        drop(world);
        match idle {
            Idle::Wait if wait => self.handle.wait(Waiting::News),
            Idle::Wait => {}
            Idle::Return => self.handle.catch_up(),
        }
        let mut world = self.handle.world.borrow_mut();
        world.ranks[me].news = false;
        world.enter("progress", self.handle.rank)
    }

    fn pause(&mut self, left: Nanos) -> Result<()> {
        let me = self.handle.rank.index();
        {
            let clock = &mut self.handle.world.borrow_mut().ranks[me].clock;
            *clock = clock.saturating_add(left.0.saturating_mul(1000)).min(NO_TIME);
        }
        self.handle.catch_up();
        self.handle.world.borrow_mut().enter("pause", self.handle.rank)
    }

    fn is_complete(&mut self, slot: SimSlot, lane: Lane) -> Result<bool> {
        self.handle.world.borrow_mut().enter("wait", self.handle.rank)?;
        Ok(self.lane_is_complete(slot, lane))
    }

    /// Short messages are copied when they are posted; of long ones the lane knows only how many are under way.
    fn is_sent(&mut self, slot: SimSlot, lane: Lane, _: Rank) -> Result<bool> {
        self.handle.world.borrow_mut().enter("send", self.handle.rank)?;
        Ok(self.handle.world.borrow().groups.view(slot.group, slot.position).sends[lane as usize] == 0)
    }

    fn is_flushed(&mut self, slot: SimSlot, peer: Rank) -> Result<bool> {
        self.handle.world.borrow_mut().enter("flush", self.handle.rank)?;
        Ok(self.peer_is_flushed(slot, peer))
    }

    fn wait(&mut self, slot: SimSlot, lane: Lane) -> Result<()> {
        self.wait_for("wait", Waiting::Lane { group: slot.group, lane }, |rank| rank.lane_is_complete(slot, lane))
    }

    fn flush(&mut self, slot: SimSlot, peer: Rank) -> Result<()> {
        self.wait_for("flush", Waiting::Peer { group: slot.group, peer: peer.0 }, |rank| {
            rank.peer_is_flushed(slot, peer)
        })
    }
}

impl fmt::Debug for SimTransport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimTransport").field("rank", &self.handle.rank).finish_non_exhaustive()
    }
}
