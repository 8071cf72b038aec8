//! Memory that the device may access: a segment with a registration. Invariants as in `ffi.rs`.

use std::ptr;
use std::rc::Rc;

use tailback_engine::matching::MOST_RAILS;
use tailback_engine::{Registration, Segment};
use tailback_transport::{Error, Result};

use super::{Domain, failed_errno, loaded, sys};

/// Who may do what through a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The device, for work of this rank.
    Own,
    /// Peers too, by RDMA write and read.
    Peers,
}

/// Memory of this rank's own, registered with one device.
pub(crate) type Memory = Segment<Region>;

/// Memory of a group's, registered with the device of every rail.
pub(crate) type Shared = Segment<Regions>;

/// What libibverbs knows about memory.
#[derive(Debug)]
pub(crate) struct Region {
    /// Null once it is no longer registered.
    raw: *mut sys::ibv_mr,
    local_key: u32,
    remote_key: u32,
    _domain: Rc<Domain>,
}

// SAFETY: it has ended when libibverbs says so, and else not.
unsafe impl Registration for Region {
    fn end(&mut self) -> bool {
        // SAFETY: *Open*, *Registered*; deregistered once.
        if !self.raw.is_null() && unsafe { (loaded().ibv_dereg_mr)(self.raw) } == 0 {
            self.raw = ptr::null_mut();
        }
        self.raw.is_null()
    }
}

/// What it knows about a group's memory, on each rail.
#[derive(Debug, Default)]
pub struct Regions {
    /// What this rank's requests show: looked up with every message.
    local_keys: [u32; MOST_RAILS],
    each: Vec<Region>,
}

impl Regions {
    /// Adds the next rail's.
    fn add(&mut self, region: Region) {
        self.local_keys[self.each.len()] = region.local_key;
        self.each.push(region);
    }
}

// SAFETY: it has ended when each of them has.
unsafe impl Registration for Regions {
    fn end(&mut self) -> bool {
        let mut ended = true;
        for region in &mut self.each {
            ended &= region.end();
        }
        ended
    }
}

/// A range of registered memory, for a work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) key: u32,
}

/// `len` zeroed bytes that the device may access.
pub(crate) fn memory(domain: &Rc<Domain>, len: usize, access: Access) -> Result<Memory> {
    Segment::new(len, |base, pages| register(domain, base, pages, access))
}

/// `len` zeroed bytes that peers may access too, through the device of each rail.
pub(crate) fn shared<'a>(mut domains: impl Iterator<Item = &'a Rc<Domain>>, len: usize) -> Result<Shared> {
    let mut registered = Ok(());
    let segment = Segment::new(len, |base, pages| {
        let mut regions = Regions::default();
        registered = domains.try_for_each(|domain| {
            regions.add(register(domain, base, pages, Access::Peers)?);
            Ok(())
        });
        // Those before one that failed are the segment's, which ends them before its pages are freed.
        Ok(regions)
    })?;
    registered.map(|()| segment)
}

/// Makes all pages of a segment known to a device.
fn register(domain: &Rc<Domain>, base: *mut u8, pages: usize, access: Access) -> Result<Region> {
    let flags = match access {
        Access::Own => sys::IBV_ACCESS_LOCAL_WRITE,
        Access::Peers => sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ,
    };
    // SAFETY: *Open*; all pages of the segment are registered and nothing else.
    let raw = unsafe { (loaded().ibv_reg_mr)(domain.raw, base.cast(), pages, flags as i32) };
    if raw.is_null() {
        return Err(explain(failed_errno("ibv_reg_mr", None), pages));
    }
    // SAFETY: *Open*: the library made it just now.
    let (local_key, remote_key) = unsafe { ((*raw).lkey, (*raw).rkey) };
    Ok(Region { raw, local_key, remote_key, _domain: Rc::clone(domain) })
}

/// A range of it.
///
/// # Panics
/// If the range is not inside.
#[inline]
pub(crate) fn piece(memory: &Memory, offset: usize, len: usize) -> Piece {
    Piece { address: memory.place(offset, len) as u64, len: len as u32, key: memory.registration().local_key }
}

/// A range of a group's memory, for a request on a rail.
///
/// # Panics
/// If the range is not inside.
#[inline]
pub(crate) fn shared_piece(memory: &Shared, rail: usize, offset: usize, len: usize) -> Piece {
    let address = memory.place(offset, len) as u64;
    Piece { address, len: len as u32, key: memory.registration().local_keys[rail] }
}

/// Where it begins, as peers name it, and what they show to access it over a rail.
pub(crate) fn card(memory: &Shared, rail: usize) -> (u64, u32) {
    (memory.place(0, 0) as u64, memory.registration().each[rail].remote_key)
}

/// Registering locks pages, which ordinary users may do only so much of.
fn explain(error: Error, len: usize) -> Error {
    match error {
        Error::Library { call, peer, code, message } => {
            let hint = if code == 12 { ": raise the limit of locked memory, `ulimit -l`" } else { "" };
            Error::Library { call, peer, code, message: format!("{message} for {len} bytes{hint}") }
        }
        other => other,
    }
}
