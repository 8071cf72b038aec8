//! Groups: who is in them, their segments, and what each member has under way.

use std::collections::HashMap;

use tailback_engine::Lane;
use tailback_transport::{Error, Rank, Result};

use super::segment::Segment;
use crate::rng::mix;

/// One member's part of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) segment: Segment,
    /// Open sends and receives per lane.
    pub(super) sends: [u32; Lane::COUNT],
    pub(super) receives: [u32; Lane::COUNT],
    /// Open puts and gets, by the member they are about.
    accesses: Vec<(u32, u32)>,
}

impl Member {
    pub(super) fn is_complete(&self, lane: Lane) -> bool {
        self.sends[lane as usize] + self.receives[lane as usize] == 0
    }

    pub(super) fn is_flushed(&self, peer: u32) -> bool {
        self.accesses.iter().all(|&(other, _)| other != peer)
    }

    /// Counts open puts and gets.
    pub(super) fn outstanding(&mut self, peer: u32, change: i32) {
        match self.accesses.iter().position(|&(other, _)| other == peer) {
            Some(at) => {
                let count = self.accesses[at].1.saturating_add_signed(change);
                self.accesses[at].1 = count;
                if count == 0 {
                    self.accesses.swap_remove(at);
                }
            }
            None => self.accesses.push((peer, change.max(0) as u32)),
        }
    }
}

/// A group of the job.
#[derive(Debug)]
struct Group {
    ranks: Box<[Rank]>,
    segment: usize,
    members: Vec<Member>,
    joined: usize,
    /// Members that have it, and things under way in it.
    users: usize,
}

/// Names a group the same on each of its members: the members, and which of their groups it is.
type Name = (u64, u64);

/// All groups of a job.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Option<Group>>,
    free: Vec<u32>,
    /// Groups that some members have still to make.
    open: HashMap<Name, u32>,
}

/// Lanes of a name, so that long lists are hashed many members at a time: all members of a job name it once per group.
const LANES: usize = 16;

/// A name for a list of members. Lists that differ in one place always differ in name.
pub(super) fn name(members: &[Rank]) -> u64 {
    let mut lanes = [0u32; LANES];
    let (whole, rest) = members.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, rank) in lanes.iter_mut().zip(chunk) {
            *lane = (*lane ^ rank.0).wrapping_mul(0x9e37_79b1).rotate_left(13);
        }
    }
    let lanes = lanes.iter().copied().chain(rest.iter().map(|rank| rank.0));
    lanes.fold(members.len() as u64, |name, word| mix(name ^ u64::from(word)).wrapping_add(1))
}

impl Groups {
    /// The group of this name in a job of `size`; the first member to come makes it for all. Gives its number.
    pub(super) fn join(&mut self, name: Name, members: &[Rank], segment: usize, size: usize) -> Result<u32> {
        let refuse = |detail| Err(Error::Usage { operation: "group", detail });
        let id = match self.open.get(&name) {
            Some(&id) => id,
            None => {
                if let Some(stranger) = members.iter().find(|member| member.index() >= size) {
                    return refuse(format!("there is no rank {stranger} in a job of {size}"));
                }
                let member = Member {
                    segment: Segment::new(segment),
                    sends: [0; Lane::COUNT],
                    receives: [0; Lane::COUNT],
                    accesses: Vec::new(),
                };
                let ranks = members.into();
                let group = Group { ranks, segment, members: vec![member; members.len()], joined: 0, users: 0 };
                let id = self.free.pop().unwrap_or_else(|| {
                    self.all.push(None);
                    (self.all.len() - 1) as u32
                });
                self.all[id as usize] = Some(group);
                self.open.insert(name, id);
                id
            }
        };
        let group = self.group(id);
        if *group.ranks != *members {
            return refuse("members do not agree on who is in the group".into());
        }
        if group.segment != segment {
            let others = group.segment;
            return refuse(format!("this member asks for a segment of {segment} bytes, another for {others}"));
        }
        group.joined += 1;
        group.users += 1;
        if group.joined == group.ranks.len() {
            self.open.remove(&name);
        }
        Ok(id)
    }

    fn group(&mut self, id: u32) -> &mut Group {
        self.all[id as usize].as_mut().expect("a group lives as long as it is used")
    }

    pub(super) fn member(&mut self, id: u32, member: u32) -> &mut Member {
        &mut self.group(id).members[member as usize]
    }

    pub(super) fn view(&self, id: u32, member: u32) -> &Member {
        &self.all[id as usize].as_ref().expect("a group lives as long as it is used").members[member as usize]
    }

    /// How many members it has, and how long their segments are.
    pub(super) fn shape(&self, id: u32) -> (usize, usize) {
        let group = self.all[id as usize].as_ref().expect("a group lives as long as it is used");
        (group.ranks.len(), group.segment)
    }

    pub(super) fn rank(&self, id: u32, member: u32) -> Rank {
        self.all[id as usize].as_ref().expect("a group lives as long as it is used").ranks[member as usize]
    }

    /// One more user.
    pub(super) fn hold(&mut self, id: u32) {
        self.group(id).users += 1;
    }

    /// One user less; true when that was the last of a group that everyone has made.
    pub(super) fn release(&mut self, id: u32) -> bool {
        let group = self.group(id);
        group.users -= 1;
        let over = group.users == 0 && group.joined == group.ranks.len();
        if over {
            self.all[id as usize] = None;
            self.free.push(id);
        }
        over
    }
}
