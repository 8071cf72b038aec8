//! An open endpoint and its operations. None of them waits, except [`Endpoint::sleep`], for a bounded time.

use std::mem::MaybeUninit;
use std::ptr;

use libfabric_sys::calls::{
    fi_cq_read, fi_cq_readerr, fi_cq_sread, fi_cq_strerror, fi_mr_bind, fi_mr_enable, fi_mr_reg, fi_read, fi_tinject,
    fi_trecv, fi_tsend, fi_writemsg,
};
use libfabric_sys::{
    FI_COMPLETION, FI_DELIVERY_COMPLETE, FI_EAGAIN, FI_EAVAIL, FI_EINTR, FI_ENOKEY, FI_ENOMEM, FI_ETIMEDOUT, FI_READ,
    FI_RECV, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND, FI_WRITE, fi_addr_t, fi_cq_err_entry, fi_cq_msg_entry, fi_info,
    fi_msg_rma, fi_rma_iov, fid_av, fid_cq, fid_domain, fid_ep, fid_fabric, iovec,
};

use tailback_engine::tagged::{Blocking, Done, Failure, Kind, Posted, RegionId, Regions, Remote, TagLibrary, Ticket};
use tailback_engine::{Lane, Segment};
use tailback_transport::Span;

use super::region::{Card, Registered, random_key};
use super::slots::{Slots, call_of};
use super::{Fabric, text};

/// FI_ADDR_UNSPEC, which bindgen cannot read.
const ANYONE: fi_addr_t = fi_addr_t::MAX;

/// Random keys that are tried when one is taken already.
const KEYS_TRIED: usize = 8;

/// Completions read at a time.
const BATCH: usize = 16;

/// See [`super`].
pub struct Endpoint {
    pub(super) fabric: Fabric,
    pub(super) info: *mut fi_info,
    pub(super) fabric_object: *mut fid_fabric,
    pub(super) domain: *mut fid_domain,
    pub(super) av: *mut fid_av,
    pub(super) cq: *mut fid_cq,
    pub(super) ep: *mut fid_ep,
    pub(super) blocking: Blocking,
    /// Every rank's address, in rank order.
    pub(super) addresses: Vec<fi_addr_t>,
    pub(super) slots: Slots,
    pub(super) regions: Regions<Registered>,
    /// Bytes of a key, where keys are not the provider's.
    pub(super) key_bytes: usize,
    pub(super) provider_keys: bool,
    pub(super) virtual_addresses: bool,
    pub(super) bound_regions: bool,
    pub(super) delivery_complete: bool,
    pub(super) rma: bool,
    pub(super) directed: bool,
    /// Messages up to this length are copied when posted.
    pub(super) inject: usize,
    pub(super) largest: usize,
    /// How many operations may be in flight: sends and one-sided ones, receives.
    pub(super) room: [usize; 2],
    pub(super) in_flight: [usize; 2],
    pub(super) queue_size: usize,
}

impl TagLibrary for Endpoint {
    type Card = Card;

    fn region(&mut self, len: usize) -> tailback_transport::Result<(RegionId, Card)> {
        let mut usable = Ok(());
        let segment = Segment::new(len, |start, pages| {
            let mut registered = self.register(start, pages)?;
            usable = self.enable(&mut registered, start);
            // What cannot be used is the segment's too, which ends it before its pages are freed.
            Ok(registered)
        })?;
        usable?;
        let card = segment.registration().card;
        Ok((self.regions.add(segment), card))
    }

    fn give_up(&mut self, region: RegionId) {
        self.regions.give_up(region);
    }

    fn read(&self, region: RegionId, offset: usize, into: &mut [u8]) {
        self.regions.at(region).read(offset, into);
    }

    fn write(&mut self, region: RegionId, offset: usize, from: &[u8]) {
        self.regions.at_mut(region).write(offset, from);
    }

    fn add_words(&mut self, region: RegionId, left: Span, right: usize, into: usize) {
        self.regions.at_mut(region).add_words(left, right, into);
    }

    #[inline(always)]
    fn send(&mut self, ticket: Ticket, span: Span, tag: u64) -> Result<Posted, Failure> {
        let (from, registered) = self.regions.place(ticket.region, span);
        let desc = registered.desc;
        let to = self.addresses[ticket.peer as usize];
        if span.len <= self.inject && !before_parting(ticket.lane) {
            // SAFETY: *Live*, *Inside*; the bytes are copied before the call returns.
            let code = unsafe { fi_tinject(self.ep, from.cast(), span.len, to, tag) };
            return match code {
                0 => Ok(Posted::Over),
                code if is_busy(code) => Ok(Posted::Busy),
                code => Err(self.refused("fi_tinject", ticket, code)),
            };
        }
        // SAFETY: *Live*, *Inside*; *Kept* and *Slots* until the completion.
        self.post(ticket, |ep, context| unsafe { fi_tsend(ep, from.cast(), span.len, desc, to, tag, context) })
    }

    #[inline(always)]
    fn receive(&mut self, ticket: Ticket, span: Span, tag: u64) -> Result<Posted, Failure> {
        let (into, registered) = self.regions.place(ticket.region, span);
        let desc = registered.desc;
        let from = if self.directed { self.addresses[ticket.peer as usize] } else { ANYONE };
        // SAFETY: *Live*, *Inside*; *Kept* and *Slots* until the completion.
        self.post(ticket, |ep, context| unsafe { fi_trecv(ep, into.cast(), span.len, desc, from, tag, 0, context) })
    }

    fn put(&mut self, ticket: Ticket, span: Span, remote: Remote<Card>) -> Result<Posted, Failure> {
        let (from, registered) = self.regions.place(ticket.region, span);
        let mut desc = registered.desc;
        let to = self.addresses[ticket.peer as usize];
        let delivery = if self.delivery_complete { FI_DELIVERY_COMPLETE } else { 0 };
        let local = iovec { iov_base: from.cast(), iov_len: span.len };
        let there = fi_rma_iov { addr: remote.card.base + remote.offset as u64, len: span.len, key: remote.card.key };
        self.post(ticket, |ep, context| {
            let message = fi_msg_rma {
                msg_iov: &raw const local,
                desc: &raw mut desc,
                iov_count: 1,
                addr: to,
                rma_iov: &raw const there,
                rma_iov_count: 1,
                context,
                data: 0,
            };
            // SAFETY: *Live*, *Inside*; the message is read during the call only; *Kept* and *Slots* until the
            // completion. The peer's memory is the peer's to check: its key names it.
            unsafe { fi_writemsg(ep, &raw const message, (FI_COMPLETION | delivery).into()) }
        })
    }

    fn get(&mut self, ticket: Ticket, span: Span, remote: Remote<Card>) -> Result<Posted, Failure> {
        let (into, registered) = self.regions.place(ticket.region, span);
        let desc = registered.desc;
        let from = self.addresses[ticket.peer as usize];
        let (address, key) = (remote.card.base + remote.offset as u64, remote.card.key);
        // SAFETY: *Live*, *Inside*; *Kept* and *Slots* until the completion.
        self.post(ticket, |ep, context| unsafe {
            fi_read(ep, into.cast(), span.len, desc, from, address, key, context)
        })
    }

    #[inline(always)]
    fn poll(&mut self, done: impl FnMut(Done)) -> Result<usize, Failure> {
        let mut entries = [const { MaybeUninit::<fi_cq_msg_entry>::uninit() }; BATCH];
        // SAFETY: *Live*; the queue was opened for entries of this format, and there is room for as many as are asked for.
        let count = unsafe { fi_cq_read(self.cq, entries.as_mut_ptr().cast(), BATCH) };
        // Out of the way of a rank that spins.
        if is_busy(count) {
            return Ok(0);
        }
        self.completed("fi_cq_read", &entries, count, done)
    }

    fn sleep(&mut self, milliseconds: i32, done: impl FnMut(Done)) -> Result<usize, Failure> {
        let mut entries = [const { MaybeUninit::<fi_cq_msg_entry>::uninit() }; BATCH];
        // SAFETY: as in `poll`.
        let count = unsafe { fi_cq_sread(self.cq, entries.as_mut_ptr().cast(), BATCH, milliseconds) };
        // Most providers say "try again" when the time is up, some that it is up.
        let count = if count == -(FI_ETIMEDOUT as isize) { 0 } else { count };
        self.completed("fi_cq_sread", &entries, count, done)
    }

    fn blocking(&self) -> Blocking {
        self.blocking
    }

    fn delivers(&self) -> bool {
        self.delivery_complete
    }

    fn largest(&self) -> usize {
        self.largest
    }

    fn means_lost(code: i64) -> bool {
        const GONE: [i32; 9] = [
            libc::ECONNRESET,
            libc::ECONNREFUSED,
            libc::ECONNABORTED,
            libc::ENOTCONN,
            libc::EPIPE,
            libc::ESHUTDOWN,
            libc::EHOSTUNREACH,
            libc::EHOSTDOWN,
            libc::ETIMEDOUT,
        ];
        GONE.iter().any(|&gone| i64::from(gone) == code)
    }
}

impl Endpoint {
    /// How many operations may be in flight: sends and one-sided ones, receives.
    pub(crate) fn room(&self) -> [usize; 2] {
        self.room
    }

    /// The length of the completion queue that was asked for; 0 where that is left to the provider.
    pub(crate) fn completions(&self) -> usize {
        self.queue_size
    }

    fn register(&self, start: *mut u8, len: usize) -> tailback_transport::Result<Registered> {
        let local = FI_SEND | FI_RECV;
        let access = if self.rma { local | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE } else { local };
        let mut mr = ptr::null_mut();
        for _ in 0..KEYS_TRIED {
            // Where keys are the provider's, this one is ignored.
            let key = random_key(self.key_bytes)?;
            // SAFETY: *Live*; the memory has `len` bytes and outlives its registration.
            let code = unsafe { fi_mr_reg(self.domain, start.cast(), len, access.into(), key, &mut mr) };
            match i64::from(code) {
                code if code == -i64::from(FI_ENOKEY) => {}
                code if code < 0 => return Err(self.fabric.failure("fi_mr_reg", code).into()),
                _ => return Ok(Registered::new(mr, ptr::null_mut(), Card { key, base: 0 })),
            }
        }
        Err(self.fabric.failure("fi_mr_reg", i64::from(FI_ENOKEY)).into())
    }

    /// Makes a registration usable, and notes what is to be known for that.
    fn enable(&self, registered: &mut Registered, start: *mut u8) -> Result<(), Failure> {
        let check = |call, code: i32| if code < 0 { Err(self.fabric.failure(call, code)) } else { Ok(()) };
        let mr = registered.raw();
        // SAFETY: *Live*: registered just now.
        let (desc, own_key) = unsafe {
            if self.bound_regions {
                check("fi_mr_bind", fi_mr_bind(mr, self.ep.cast(), 0))?;
                check("fi_mr_enable", fi_mr_enable(mr))?;
            }
            ((*mr).mem_desc, (*mr).key)
        };
        registered.desc = desc;
        if self.provider_keys {
            registered.card.key = own_key;
        }
        registered.card.base = if self.virtual_addresses { start as u64 } else { 0 };
        Ok(())
    }

    #[inline(always)]
    fn post(
        &mut self,
        ticket: Ticket,
        call: impl FnOnce(*mut fid_ep, *mut std::ffi::c_void) -> isize,
    ) -> Result<Posted, Failure> {
        let side = usize::from(ticket.kind == Kind::Recv);
        if self.in_flight[side] >= self.room[side] {
            return Ok(Posted::Busy);
        }
        let context = self.slots.take(ticket);
        let code = call(self.ep, context);
        if code == 0 {
            self.in_flight[side] += 1;
            self.regions.hold(ticket.region);
            return Ok(Posted::InFlight);
        }
        // SAFETY: taken just now, and refused by the provider.
        unsafe { self.slots.give_back(context) };
        // Some providers say so when they are out of entries, which come back with the operations in flight.
        let no_entry = code == -(FI_ENOMEM as isize) && self.in_flight[side] > 0;
        if is_busy(code) || no_entry { Ok(Posted::Busy) } else { Err(self.refused(call_of(ticket.kind), ticket, code)) }
    }

    fn completed(
        &mut self,
        call: &'static str,
        entries: &[MaybeUninit<fi_cq_msg_entry>; BATCH],
        count: isize,
        mut done: impl FnMut(Done),
    ) -> Result<usize, Failure> {
        let Ok(count) = usize::try_from(count) else { return self.not_read(call, count) };
        for entry in &entries[..count] {
            // SAFETY: the library filled in as many entries as it said.
            let entry = unsafe { entry.assume_init_ref() };
            if entry.op_context.is_null() {
                continue;
            }
            // SAFETY: a context of an operation of ours, which is over.
            let ticket = unsafe { self.slots.give_back(entry.op_context) };
            self.in_flight[usize::from(ticket.kind == Kind::Recv)] -= 1;
            self.regions.release(ticket.region);
            done(Done { ticket, len: entry.len });
        }
        Ok(count)
    }

    /// What a code of the queue's means that is no number of entries.
    #[cold]
    fn not_read(&mut self, call: &'static str, code: isize) -> Result<usize, Failure> {
        match code {
            code if is_busy(code) || code == -(FI_EINTR as isize) => Ok(0),
            code if code == -(FI_EAVAIL as isize) => Err(self.failed_operation()),
            code => Err(self.fabric.failure(call, code as i64)),
        }
    }

    /// Reads the error that the queue announced.
    #[cold]
    fn failed_operation(&mut self) -> Failure {
        // Newer libraries have longer entries: they are told which version this is, and given room all the same.
        #[repr(C)]
        struct Roomy {
            entry: fi_cq_err_entry,
            _room: [u64; 16],
        }
        // SAFETY: all zeros are a valid entry (and ask for no error data); *Live*.
        let (entry, count) = unsafe {
            let mut roomy: Roomy = std::mem::zeroed();
            let count = fi_cq_readerr(self.cq, (&raw mut roomy).cast());
            (roomy.entry, count)
        };
        if count < 1 {
            return self.fabric.failure("fi_cq_readerr", count as i64);
        }
        // SAFETY: the entry was just read from this queue, which was not read since.
        let own_words = unsafe { text(fi_cq_strerror(self.cq, &entry)) };
        let general = self.fabric.explain(entry.err.into());
        let message = match own_words {
            Some(words) if !words.is_empty() && words != general => format!("{general}; the provider says: {words}"),
            _ => general,
        };
        let ticket = (!entry.op_context.is_null()).then(|| {
            // SAFETY: a context of an operation of ours, which is over.
            let ticket = unsafe { self.slots.give_back(entry.op_context) };
            self.in_flight[usize::from(ticket.kind == Kind::Recv)] -= 1;
            self.regions.release(ticket.region);
            ticket
        });
        let call = ticket.map_or("fi_cq_readerr", |ticket| call_of(ticket.kind));
        Failure { call, ticket, code: entry.err.into(), message }
    }

    #[cold]
    fn refused(&self, call: &'static str, ticket: Ticket, code: isize) -> Failure {
        Failure { ticket: Some(ticket), ..self.fabric.failure(call, code as i64) }
    }
}

/// Whether ranks may leave for the bootstrap, where nobody looks after the network, once messages of this lane are complete.
/// An injected one is complete at once, and where a provider needs to be looked after it may not have left yet.
#[inline]
fn before_parting(lane: u8) -> bool {
    lane == Lane::Barrier as u8 || lane == Lane::Agreement as u8
}

#[inline]
fn is_busy(code: isize) -> bool {
    code == -(FI_EAGAIN as isize)
}
