//! This rank's end of the fabric on one rail: the device, the completion queue, and the pair for datagrams that greets others.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::time::Instant;

use tailback_bootstrap::Secret;
use tailback_transport::{Error, Rank, Result};

use super::ids;
use super::window::{GROWN_LIMIT, Sizes};
use crate::choose::Choice;
use crate::ffi::{
    self, Access, Completion, Completions, Datagrams, Depths, Domain, Event, Handle, LinkLayer, Memory, Path,
};
use crate::gid;
use crate::header::{Address, HELLO, Hello};
use crate::seal::{self, SEAL};

/// Greetings that can arrive at a time; what is too much is lost and said again.
const RECEIVES: u32 = 256;
/// Greetings that can leave at a time.
const SENDS: u32 = 64;
/// Completions that greetings can cause at a time.
const COMPLETIONS: u32 = RECEIVES + SENDS;
/// Pairs that the completion queue has room for at first; it then grows to twice its length, and so on.
const FIRST_LINKS: u32 = 2;
/// Datagrams arrive behind a global header, or the room for one.
const GLOBAL_HEADER: usize = 40;
/// A greeting with its seal.
const GREETING: usize = HELLO + SEAL;
const SLOT: usize = GLOBAL_HEADER + GREETING;
const OUT: usize = RECEIVES as usize * SLOT;
/// Reads that a rank has under way to one peer, and serves for one peer: more gains nothing.
const READS: u8 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) domain: Rc<Domain>,
    pub(crate) completions: Rc<Completions>,
    pub(crate) choice: Choice,
    pub(crate) sizes: Sizes,
    /// Pairs that were made and not lost.
    pub(crate) links: u32,
    /// Since when its port is down.
    pub(crate) down_since: Option<Instant>,
    pub(crate) rail: usize,
    /// Whether an event was asked for and not taken.
    armed: bool,
    /// How many completions greetings, pairs and windows can cause at a time; how many the queue is made for.
    taken: u32,
    room: u32,
    /// Whether it grows; some drivers cannot.
    grows: bool,
    datagrams: Datagrams,
    memory: Memory,
    key: u32,
    nonce: [u8; 16],
    /// Places of `memory` whose greeting has not left yet, in order.
    leaving: VecDeque<u32>,
    next: u32,
}

impl Endpoint {
    /// Opens a rail's port for pairs with all other ranks of a job of `size`, or with as many as the device allows. The
    /// completion queue has room for the first few: a rank of a large job talks to few of the others, and a queue for all
    /// would be memory that every poll has to fetch.
    pub(crate) fn open(rail: usize, choice: Choice, size: usize, sizes: Sizes) -> Result<Endpoint> {
        let peers = u32::try_from(size.saturating_sub(1)).unwrap_or(u32::MAX);
        let (most, pair) = (choice.limits.completions, sizes.completions());
        let domain = Domain::new(&choice.context)?;
        let mut room = COMPLETIONS + FIRST_LINKS.min(peers) * pair;
        let mut completions = Completions::new(&choice.context, room)?;
        // GroupLookup out now, and not when a phase is under way.
        let grows = completions.grow(room + pair).is_ok();
        if !grows {
            // For all ranks and whatever windows may grow to.
            let windows = u32::try_from(GROWN_LIMIT / sizes.buffer).unwrap_or(u32::MAX);
            room = peers.saturating_mul(pair).saturating_add(windows).saturating_add(COMPLETIONS).min(most);
            completions = Completions::new(&choice.context, room)?;
        }
        let key = random() & 0x7fff_ffff; // the upper half belongs to the kernel
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|e| Error::Setup(format!("the system gave no random numbers: {e}")))?;
        let depths = Depths { sends: SENDS, receives: RECEIVES, inline: 0 };
        let datagrams = Datagrams::new(&domain, &completions, depths, choice.port.number, key)?;
        let memory = ffi::memory(&domain, OUT + SENDS as usize * GREETING, Access::Own)?;
        let endpoint = Endpoint {
            domain,
            completions,
            choice,
            sizes,
            links: 0,
            down_since: None,
            rail,
            armed: false,
            taken: COMPLETIONS,
            room,
            grows,
            datagrams,
            memory,
            key,
            nonce,
            leaving: VecDeque::new(),
            next: 0,
        };
        (0..RECEIVES).try_for_each(|buffer| endpoint.repost(buffer))?;
        Ok(endpoint)
    }

    /// Makes sure that the completion queue has room for `count` more.
    pub(crate) fn make_room(&mut self, count: u32, peer: Rank) -> Result<()> {
        let taken = self.taken.saturating_add(count);
        if taken > self.room {
            let most = self.choice.limits.completions;
            if !self.grows || taken > most {
                let (place, most) = (self.place(), if self.grows { most } else { self.room });
                let message = format!(
                    "the completion queue of {place} has room for {most} completions, and {} are taken: use fewer ranks, \
                     or another device",
                    self.taken
                );
                return Err(Error::Library { call: "ibv_resize_cq", peer: Some(peer), code: 12, message });
            }
            let room = self.room.saturating_mul(2).clamp(taken, most);
            self.completions.grow(room)?;
            self.room = room;
            // Whether a queue that has grown still tells of the next completion is the driver's business: asked again, it does.
            self.armed = false;
        }
        self.taken = taken;
        Ok(())
    }

    /// So many completions can no longer come.
    pub(crate) fn give_room(&mut self, count: u32) {
        self.taken -= count;
    }

    /// The completion queue as it is now, for the result file.
    pub(crate) fn queue_text(&self) -> String {
        let grows = if self.grows { "grows with them" } else { "the driver cannot let it grow" };
        format!("{} for {} connections; {grows}", self.completions.len(), self.links)
    }

    /// Asks for an event with the next completion; whether that was not done yet.
    pub(crate) fn arm(&mut self) -> Result<bool> {
        if self.armed {
            return Ok(false);
        }
        self.completions.arm()?;
        self.armed = true;
        Ok(true)
    }

    /// Takes the event that was asked for, if it is there.
    pub(crate) fn take_event(&mut self) {
        if self.completions.take_event() {
            self.armed = false;
        }
    }

    /// The device says something, maybe about this port.
    pub(crate) fn hear(&mut self, event: Event) {
        let own = self.choice.port.number;
        match event {
            Event::PortDown(port) if port == own => self.down_since = Some(Instant::now()),
            Event::PortUp(port) if port == own => self.down_since = None,
            _ => {}
        }
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
            buffer: self.sizes.buffer as u32,
            credits: self.sizes.most,
            nonce: self.nonce,
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

    /// Sends a greeting from this rank's address to another's, unless too many are leaving already: it will be said again.
    pub(crate) fn greet(
        &mut self,
        hello: &Hello,
        secret: &Secret,
        (from, to): (&Address, &Address),
        handle: &Handle,
    ) -> Result<()> {
        if self.leaving.len() >= SENDS as usize {
            return Ok(());
        }
        let place = self.next % SENDS;
        let at = OUT + place as usize * GREETING;
        self.next = self.next.wrapping_add(1);
        let said = hello.encode();
        self.memory.write(at, &said);
        self.memory.write(at + HELLO, &seal::seal(secret, &said, from, to));
        self.leaving.push_back(place);
        let id = ids::datagram_send(self.rail, place);
        self.datagrams.send(id, ffi::piece(&self.memory, at, GREETING), handle, to.number, to.key)
    }

    /// A greeting has left.
    pub(crate) fn greeted(&mut self) {
        self.leaving.pop_front();
    }

    /// The greeting in a buffer, which is then given back to the device; nothing if it is none.
    pub(crate) fn take_greeting(&mut self, buffer: u32, completion: &Completion) -> Result<Option<Greeting>> {
        let (mut header, mut said, mut seal) = ([0; GLOBAL_HEADER], [0; HELLO], [0; SEAL]);
        let at = buffer as usize * SLOT;
        self.memory.read(at, &mut header);
        self.memory.read(at + GLOBAL_HEADER, &mut said);
        self.memory.read(at + GLOBAL_HEADER + HELLO, &mut seal);
        self.repost(buffer)?;
        let hello = if completion.len() == SLOT { Hello::decode(&said) } else { None };
        let header = completion.has_global_header().then_some(header);
        let (number, lid) = (completion.source(), completion.source_lid());
        Ok(hello.map(|hello| Greeting { hello, said, seal, number, lid, header }))
    }

    fn repost(&self, buffer: u32) -> Result<()> {
        let piece = ffi::piece(&self.memory, buffer as usize * SLOT, SLOT);
        self.datagrams.receive(ids::datagram_receive(self.rail, buffer), piece)
    }

    /// The device and the port, for messages.
    pub(crate) fn place(&self) -> String {
        format!("port {} of {}", self.choice.port.number, self.choice.context.name)
    }
}

/// A greeting that arrived, from whomever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
    said: [u8; HELLO],
    seal: [u8; SEAL],
    /// The pair and the port that sent it, as the device saw.
    number: u32,
    lid: u16,
    header: Option<[u8; GLOBAL_HEADER]>,
}

impl Greeting {
    /// Whether the rank at `from` made it for the rank at `to`, and sent it from there.
    pub(crate) fn is_from(&self, secret: &Secret, from: &Address, to: &Address) -> bool {
        let port = match &self.header {
            Some(header) => gid::sent_from(header, &from.gid),
            // Inside a subnet of InfiniBand; elsewhere every datagram has a global header.
            None => from.ethernet || self.lid == from.lid,
        };
        self.number == from.number && port && seal::holds(secret, &self.said, from, to, &self.seal)
    }
}

/// The number of the first packet to a peer: unlike that of an earlier connection, whose packets may still be around.
pub(crate) fn first_packet() -> u32 {
    random() & 0xff_ffff
}

fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_believed_if_it_is_sealed_and_comes_from_where_the_rank_is() {
        let from = Address {
            gid: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 1],
            lid: 3,
            ethernet: true,
            mtu: 3,
            reads: 16,
            number: 17,
            key: 1,
            buffer: 8192,
            credits: 256,
            nonce: [1; 16],
        };
        let (to, secret) = (Address { number: 18, nonce: [2; 16], ..from }, Secret::from_bytes([5; 32]));
        let hello = Hello { from: 0, to: 1, pair: 20, first: 7, connected: false, heard: false };
        let said = hello.encode();
        let mut header = [0; GLOBAL_HEADER];
        header[20] = 0x45;
        header[32..36].copy_from_slice(&[10, 1, 0, 1]);
        let greeting = Greeting {
            hello,
            said,
            seal: seal::seal(&secret, &said, &from, &to),
            number: 17,
            lid: 0,
            header: Some(header),
        };
        assert!(greeting.is_from(&secret, &from, &to));
        assert!(!greeting.is_from(&Secret::from_bytes([6; 32]), &from, &to), "of another job");
        assert!(!Greeting { number: 19, ..greeting }.is_from(&secret, &from, &to), "another pair of that port");
        header[35] = 2;
        assert!(!Greeting { header: Some(header), ..greeting }.is_from(&secret, &from, &to), "another host");
        let other = Hello { pair: 21, ..hello }.encode();
        assert!(!Greeting { said: other, ..greeting }.is_from(&secret, &from, &to), "another pair to connect to");

        let from = Address { ethernet: false, ..from };
        let seal = seal::seal(&secret, &said, &from, &to);
        let greeting = Greeting { seal, lid: 3, header: None, ..greeting };
        assert!(greeting.is_from(&secret, &from, &to));
        assert!(!Greeting { lid: 4, ..greeting }.is_from(&secret, &from, &to), "another port of the subnet");
    }
}
