//! What a library that matches tags has to offer so that [`Tagged`](super::Tagged) makes a backend of it, and what passes
//! between the two.

use tailback_transport::{Error, Rank, Span};

/// A library's endpoint: one rank's way to all others, whose addresses it knows. None of its calls waits but `sleep`.
///
/// Operations name a part of a region of this rank's, and a ticket that says whose they are. An operation that is posted
/// gives its ticket back when it is complete. Memory of a region stays while an operation refers to it: [`super::Regions`].
pub trait TagLibrary {
    /// What a peer has to know to access a region.
    type Card: Card;

    /// `len` zeroed bytes that peers may access, and what they have to know for that.
    fn region(&mut self, len: usize) -> tailback_transport::Result<(RegionId, Self::Card)>;

    /// Nobody will name the region again; its memory goes when no operation refers to it.
    fn give_up(&mut self, region: RegionId);

    /// Copies out of a region.
    fn read(&self, region: RegionId, offset: usize, into: &mut [u8]);

    /// Copies into a region.
    fn write(&mut self, region: RegionId, offset: usize, from: &[u8]);

    /// Adds inside a region: [`tailback_transport::Group::add_words`].
    fn add_words(&mut self, region: RegionId, left: Span, right: usize, into: usize);

    /// Posts a message to the ticket's peer.
    fn send(&mut self, ticket: Ticket, span: Span, tag: u64) -> Result<Posted, Failure>;

    /// Posts a receive of a message from the ticket's peer, or with its tag where receives are not directed.
    fn receive(&mut self, ticket: Ticket, span: Span, tag: u64) -> Result<Posted, Failure>;

    /// Posts a one-sided write.
    fn put(&mut self, ticket: Ticket, span: Span, remote: Remote<Self::Card>) -> Result<Posted, Failure>;

    /// Posts a one-sided read.
    fn get(&mut self, ticket: Ticket, span: Span, remote: Remote<Self::Card>) -> Result<Posted, Failure>;

    /// Makes progress and hands over what completed: how many.
    fn poll(&mut self, done: impl FnMut(Done)) -> Result<usize, Failure>;

    /// As [`TagLibrary::poll`], but sleeps until something completes, for this long at most. Asked only of one that
    /// [`TagLibrary::blocking`] says can.
    fn sleep(&mut self, milliseconds: i32, done: impl FnMut(Done)) -> Result<usize, Failure>;

    /// Whether a rank can sleep in it.
    fn blocking(&self) -> Blocking;

    /// Whether a put's completion means that the target has it.
    fn delivers(&self) -> bool;

    /// The longest message or transfer.
    fn largest(&self) -> usize;

    /// Whether an error code says that the other side is no longer there.
    fn means_lost(code: i64) -> bool;
}

/// What a peer has to know to access a region, as bytes.
pub trait Card: Copy {
    /// How many.
    const LEN: usize;

    /// Writes them.
    fn encode(&self, into: &mut [u8]);

    /// Reads them back.
    fn decode(from: &[u8]) -> Self;
}

/// A group's memory, by number. Numbers are reused once nothing refers to the memory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub u32);

/// What an operation is, for its completion and for its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message out.
    Send,
    /// A message in.
    Recv,
    /// A one-sided write.
    Put,
    /// A one-sided read.
    Get,
}

/// Whose an operation is. Given back when it completes.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    /// What it is.
    pub kind: Kind,
    /// The lane of a message.
    pub lane: u8,
    /// The group's memory.
    pub region: RegionId,
    /// The peer's position in the group.
    pub member: u32,
    /// The peer's rank in the job.
    pub peer: u32,
    /// Bytes.
    pub len: usize,
    /// Which of the puts and gets with the member, from 1; 0 for a message.
    pub access: u64,
}

/// Whether a rank can sleep until something completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// The queue wakes it.
    Queue,
    /// The provider has no such thing.
    None,
}

/// What became of an operation that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It is over already; no completion follows.
    Over,
    /// Its completion follows.
    InFlight,
    /// There is no room now; try again after some progress.
    Busy,
}

/// A completion.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Whose it is.
    pub ticket: Ticket,
    /// Bytes that arrived, for a receive.
    pub len: usize,
}

/// Where in a peer's memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote<C> {
    /// How the member's segment is accessed.
    pub card: C,
    /// From its start.
    pub offset: usize,
}

/// A call of the library that failed: its name, its code, the library's words.
#[derive(Debug)]
pub struct Failure {
    /// Its name.
    pub call: &'static str,
    /// What the failed operation was for, where one is known.
    pub ticket: Option<Ticket>,
    /// The library's own, positive.
    pub code: i64,
    /// In the library's words.
    pub message: String,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let peer = failure.ticket.map(|ticket| Rank(ticket.peer));
        Error::Library { call: failure.call, peer, code: failure.code, message: failure.message }
    }
}
