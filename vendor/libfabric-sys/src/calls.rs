//! libfabric's inline functions: each is one call through a table of the object it is given.
//!
//! # Safety
//! As the manual pages say: objects are live and of the class the function is for, buffers stay valid and registered
//! until the operation's completion was read, contexts likewise.

#![allow(missing_docs, reason = "each is what its manual page says")]
#![allow(clippy::missing_safety_doc, reason = "the module has it")]
#![allow(clippy::too_many_arguments, reason = "libfabric's own signatures")]

use std::ffi::{c_int, c_void};

use crate::*;

/// Calls entry `$call` of table `$table` of `$object`; a provider that left it empty does not have it.
macro_rules! through {
    ($object:expr, $($table:ident).+, $call:ident($($argument:expr),*)) => {
        // SAFETY: the caller promises a live object, whose tables live as long as it does.
        unsafe {
            match (*(*$object).$($table).+).$call {
                Some(call) => call($($argument),*),
                None => -(FI_ENOSYS as c_int) as _,
            }
        }
    };
}

pub unsafe fn fi_close(fid: *mut fid) -> c_int {
    through!(fid, ops, close(fid))
}

pub unsafe fn fi_domain(fabric: *mut fid_fabric, info: *mut fi_info, domain: *mut *mut fid_domain) -> c_int {
    through!(fabric, ops, domain(fabric, info, domain, std::ptr::null_mut()))
}

pub unsafe fn fi_av_open(domain: *mut fid_domain, attr: *mut fi_av_attr, av: *mut *mut fid_av) -> c_int {
    through!(domain, ops, av_open(domain, attr, av, std::ptr::null_mut()))
}

pub unsafe fn fi_av_insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: usize,
    inserted: *mut fi_addr_t,
    flags: u64,
) -> c_int {
    through!(av, ops, insert(av, addresses, count, inserted, flags, std::ptr::null_mut()))
}

pub unsafe fn fi_cq_open(domain: *mut fid_domain, attr: *mut fi_cq_attr, cq: *mut *mut fid_cq) -> c_int {
    through!(domain, ops, cq_open(domain, attr, cq, std::ptr::null_mut()))
}

#[inline]
pub unsafe fn fi_cq_read(cq: *mut fid_cq, entries: *mut c_void, count: usize) -> isize {
    through!(cq, ops, read(cq, entries, count))
}

pub unsafe fn fi_cq_sread(cq: *mut fid_cq, entries: *mut c_void, count: usize, timeout_ms: c_int) -> isize {
    through!(cq, ops, sread(cq, entries, count, std::ptr::null(), timeout_ms))
}

pub unsafe fn fi_cq_readerr(cq: *mut fid_cq, entry: *mut fi_cq_err_entry) -> isize {
    through!(cq, ops, readerr(cq, entry, 0))
}

/// Gives null where the provider has no words of its own.
pub unsafe fn fi_cq_strerror(cq: *mut fid_cq, entry: &fi_cq_err_entry) -> *const std::ffi::c_char {
    // SAFETY: a live queue, as the caller promises; the entry's data is valid until the queue is read again.
    unsafe {
        match (*(*cq).ops).strerror {
            Some(call) => call(cq, entry.prov_errno, entry.err_data, std::ptr::null_mut(), 0),
            None => std::ptr::null(),
        }
    }
}

pub unsafe fn fi_endpoint(domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep) -> c_int {
    through!(domain, ops, endpoint(domain, info, ep, std::ptr::null_mut()))
}

pub unsafe fn fi_ep_bind(ep: *mut fid_ep, with: *mut fid, flags: u64) -> c_int {
    through!(ep, fid.ops, bind(ep.cast(), with, flags))
}

pub unsafe fn fi_enable(ep: *mut fid_ep) -> c_int {
    through!(ep, fid.ops, control(ep.cast(), FI_ENABLE as c_int, std::ptr::null_mut()))
}

pub unsafe fn fi_getname(ep: *mut fid_ep, address: *mut c_void, length: *mut usize) -> c_int {
    through!(ep, cm, getname(ep.cast(), address, length))
}

pub unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    buffer: *const c_void,
    len: usize,
    access: u64,
    requested_key: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    through!(domain, mr, reg(domain.cast(), buffer, len, access, 0, requested_key, 0, mr, std::ptr::null_mut()))
}

pub unsafe fn fi_mr_bind(mr: *mut fid_mr, with: *mut fid, flags: u64) -> c_int {
    through!(mr, fid.ops, bind(mr.cast(), with, flags))
}

pub unsafe fn fi_mr_enable(mr: *mut fid_mr) -> c_int {
    through!(mr, fid.ops, control(mr.cast(), FI_ENABLE as c_int, std::ptr::null_mut()))
}

#[inline]
pub unsafe fn fi_tsend(
    ep: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    desc: *mut c_void,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    through!(ep, tagged, send(ep, buffer, len, desc, to, tag, context))
}

#[inline]
pub unsafe fn fi_tinject(ep: *mut fid_ep, buffer: *const c_void, len: usize, to: fi_addr_t, tag: u64) -> isize {
    through!(ep, tagged, inject(ep, buffer, len, to, tag))
}

#[inline]
pub unsafe fn fi_trecv(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    len: usize,
    desc: *mut c_void,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    through!(ep, tagged, recv(ep, buffer, len, desc, from, tag, ignore, context))
}

#[inline]
pub unsafe fn fi_send(
    ep: *mut fid_ep,
    buffer: *const c_void,
    len: usize,
    desc: *mut c_void,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    through!(ep, msg, send(ep, buffer, len, desc, to, context))
}

#[inline]
pub unsafe fn fi_recv(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    len: usize,
    desc: *mut c_void,
    from: fi_addr_t,
    context: *mut c_void,
) -> isize {
    through!(ep, msg, recv(ep, buffer, len, desc, from, context))
}

#[inline]
pub unsafe fn fi_read(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    len: usize,
    desc: *mut c_void,
    from: fi_addr_t,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    through!(ep, rma, read(ep, buffer, len, desc, from, address, key, context))
}

#[inline]
pub unsafe fn fi_writemsg(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    through!(ep, rma, writemsg(ep, message, flags))
}
