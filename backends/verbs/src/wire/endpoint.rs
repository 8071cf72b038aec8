//! This rank's end of the fabric: the device, the completion queue, and the pair for datagrams that greets others.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;

use tailback_transport::{Rank, Result};

use super::{ids, link};
use crate::choose::Choice;
use crate::ffi::{self, Access, Completions, Datagrams, Depths, Domain, Handle, LinkLayer, Memory, Path};
use crate::header::{Address, HELLO, Hello};

/// Greetings that can arrive at a time; what is too much is lost and said again.
const RECEIVES: u32 = 256;
/// Greetings that can leave at a time.
const SENDS: u32 = 64;
/// Completions that greetings can cause at a time.
const COMPLETIONS: u32 = RECEIVES + SENDS;
/// Datagrams arrive behind a global header, or the room for one.
const GLOBAL_HEADER: usize = 40;
const SLOT: usize = GLOBAL_HEADER + HELLO;
const OUT: usize = RECEIVES as usize * SLOT;
/// Reads that a rank has under way to one peer, and serves for one peer: more gains nothing.
const READS: u8 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) domain: Rc<Domain>,
    pub(crate) completions: Rc<Completions>,
    pub(crate) choice: Choice,
    /// How many pairs the completion queue has room for.
    pub(crate) links: u32,
    datagrams: Datagrams,
    memory: Memory,
    key: u32,
    /// Places of `memory` whose greeting has not left yet, in order.
    leaving: VecDeque<u32>,
    next: u32,
}

impl Endpoint {
    /// Opens the chosen port for pairs with all other ranks of a job of `size`, or with as many as the device allows.
    pub(crate) fn open(choice: Choice, size: usize) -> Result<Endpoint> {
        let peers = u32::try_from(size.saturating_sub(1)).unwrap_or(u32::MAX);
        let wanted = peers.saturating_mul(link::COMPLETIONS);
        let domain = Domain::new(&choice.context)?;
        let len = wanted.saturating_add(COMPLETIONS).min(choice.limits.completions.max(1));
        let completions = Completions::new(&choice.context, len)?;
        let key = random() & 0x7fff_ffff; // the upper half belongs to the kernel
        let depths = Depths { sends: SENDS, receives: RECEIVES, inline: 0 };
        let datagrams = Datagrams::new(&domain, &completions, depths, choice.port.number, key)?;
        let memory = ffi::memory(&domain, OUT + SENDS as usize * HELLO, Access::Own)?;
        let links = len.saturating_sub(COMPLETIONS) / link::COMPLETIONS;
        let endpoint =
            Endpoint { domain, completions, choice, links, datagrams, memory, key, leaving: VecDeque::new(), next: 0 };
        (0..RECEIVES).try_for_each(|buffer| endpoint.repost(buffer))?;
        Ok(endpoint)
    }

    /// What others must know.
    pub(crate) fn address(&self) -> Address {
        let port = &self.choice.port;
        Address {
            gid: self.choice.gid,
            lid: port.lid,
            ethernet: port.link_layer == LinkLayer::Ethernet,
            mtu: port.mtu as u8,
            reads: self.choice.limits.reads_in.min(READS),
            number: self.datagrams.number(),
            key: self.key,
        }
    }

    /// Reads this rank may have under way to a peer that serves `served`.
    pub(crate) fn reads_out(&self, served: u8) -> u8 {
        self.choice.limits.reads_out.min(READS).min(served)
    }

    /// How to get to a rank with that address.
    pub(crate) fn path(&self, to: &Address) -> Path {
        // Inside a subnet LIDs are enough; RoCE and other subnets take the global address.
        let global = to.ethernet || to.gid[..8] != self.choice.gid[..8];
        Path {
            port: self.choice.port.number,
            gid_index: self.choice.gid_index,
            service_level: self.choice.service_level,
            traffic_class: self.choice.traffic_class,
            lid: to.lid,
            gid: global.then_some(to.gid),
        }
    }

    /// Sends a greeting, unless too many are leaving already: it will be said again.
    pub(crate) fn greet(&mut self, hello: &Hello, to: &Address, handle: &Handle) -> Result<()> {
        if self.leaving.len() >= SENDS as usize {
            return Ok(());
        }
        let place = self.next % SENDS;
        let at = OUT + place as usize * HELLO;
        self.next = self.next.wrapping_add(1);
        self.memory.write(at, &hello.encode());
        self.leaving.push_back(place);
        let id = ids::datagram_send(place);
        self.datagrams.send(id, ffi::piece(&self.memory, at, HELLO), handle, to.number, to.key)
    }

    /// A greeting has left.
    pub(crate) fn greeted(&mut self) {
        self.leaving.pop_front();
    }

    /// The greeting in a buffer, which is then given back to the device.
    pub(crate) fn take_hello(&mut self, buffer: u32, len: usize) -> Result<Option<Hello>> {
        let mut bytes = [0; HELLO];
        self.memory.read(buffer as usize * SLOT + GLOBAL_HEADER, &mut bytes);
        self.repost(buffer)?;
        Ok(if len == SLOT { Hello::decode(&bytes) } else { None })
    }

    fn repost(&self, buffer: u32) -> Result<()> {
        let piece = ffi::piece(&self.memory, buffer as usize * SLOT, SLOT);
        self.datagrams.receive(ids::datagram_receive(buffer), piece)
    }

    /// The device and the port, for messages.
    pub(crate) fn place(&self) -> String {
        format!("port {} of {}", self.choice.port.number, self.choice.context.name)
    }
}

/// The number of the first packet to `peer`: unlike that of an earlier connection, whose packets may still be around.
pub(crate) fn first_packet(_peer: Rank) -> u32 {
    random() & 0xff_ffff
}

fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
