//! What a network has to offer so that [`Core`](super::Core) makes a backend of it.

use tailback_host::Idle;
use tailback_transport::{Description, Result, Span};

use super::ledger::Ledger;
use super::types::{FlowControl, GroupLookup, GroupMember, MessageRequest, WireTypes};
use crate::Segment;

/// Connections to the other ranks, which carry messages in order and serve puts and gets.
///
/// Peers are the other ranks of the job, each once per rail and numbered by [`Rails`](super::Rails): a connection is with a
/// peer. What arrives goes through the ledger: [`Ledger::begin`] and what follows it for messages,
/// [`Ledger::find`] for requests, [`Ledger::on_flow_control`] for that. What is posted and not complete is in the ledger too:
/// [`Ledger::begin_send`], [`Ledger::begin_access`] and their ends. A peer that is lost is an error while
/// [`Ledger::needs`] says so, and noted otherwise.
pub trait Wire: WireTypes + Sized {
    /// The longest message, put or get.
    const LONGEST: usize;
    /// The most members that a group can have.
    const MEMBERS: usize;

    /// Adds what is known only when the engine is asked to describe itself.
    fn describe(&self, _description: &mut Description) {}

    /// Memory for a group.
    fn segment(&mut self, len: usize) -> Result<Segment<Self::Registration>>;

    /// Posts a message, or lets it wait for the connection.
    fn send(&mut self, ledger: &mut Ledger<Self>, peer: usize, request: MessageRequest) -> Result<()>;

    /// Bytes that wait to go to `peer`.
    fn waiting(&self, peer: usize) -> usize;

    /// Tells `peer`, which is not lost, to pause or to resume.
    fn send_flow_control(&mut self, ledger: &mut Ledger<Self>, peer: usize, control: FlowControl) -> Result<()>;

    /// Starts a put.
    fn put(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        target: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()>;

    /// Starts a get.
    fn get(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        target: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()>;

    /// Asks the member to tell when the puts made so far are in its segment, where that takes a message and none was sent
    /// since the last put.
    fn ask_flush(&mut self, ledger: &mut Ledger<Self>, peer: usize, target: GroupMember) -> Result<()>;

    /// How many puts and gets were made with the member.
    fn accesses(remote: &Self::RemoteSegment) -> u64;

    /// How many of the first of them are complete: puts are in its segment, gets have arrived.
    fn completed(remote: &Self::RemoteSegment) -> u64;

    /// One round of progress; waits if there was nothing to do and `idle` says so.
    fn progress(&mut self, ledger: &mut Ledger<Self>, idle: Idle) -> Result<()>;

    /// Takes in what has arrived from `peer`, or from all, and never waits.
    fn poll_peer(&mut self, ledger: &mut Ledger<Self>, peer: usize) -> Result<()>;

    /// After a call that had nothing to wait for: serves peers now and then all the same.
    fn poll_sometimes(&mut self, ledger: &mut Ledger<Self>) -> Result<()>;

    /// Serves a request that arrived before its group was made, or refuses it.
    fn serve(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        found: GroupLookup,
        request: Self::Request,
        data: &[u8],
    ) -> Result<()>;

    /// Why `peer` is lost, if it is.
    fn loss(&self, peer: usize) -> Option<&str>;

    /// A receive from `peer` was posted: a message that is being held may be for it.
    fn on_recv_posted(&mut self, ledger: &mut Ledger<Self>, peer: usize) -> Result<()>;

    /// A group goes: gives up what it has open with a member's segment and is not under way, and says how many accesses
    /// of [`Ledger::begin_access`] these were.
    fn forget(remote: &mut Self::RemoteSegment) -> usize;

    /// The rank ends: what it said last has to leave, within a time limit.
    fn close(&mut self, ledger: &mut Ledger<Self>);
}
