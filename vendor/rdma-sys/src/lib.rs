//! libibverbs: types from the headers this was built with, functions from the library found at run time.
//!
//! Nothing is linked: a program with this crate starts on machines without libibverbs, and [`Library::load`] says what is
//! missing. Every function is asked for by symbol version, since the library also keeps older functions of the same
//! names with other structs.
//!
//! The calls of the data path (`ibv_post_send`, `ibv_post_recv`, `ibv_poll_cq`, `ibv_req_notify_cq`) are no symbols of the
//! library but inline functions of its header: calls through the table that the opened device carries. They are functions
//! of this crate, with the same contract. `ibv_query_port` is an inline function, too; [`query_port`] is what it falls back
//! to: the exported function, which fills the older and shorter struct, on a zeroed newer one.
//!
//! Out of scope: anything beyond what Tailback calls.

mod bindings {
    #![allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, unused_qualifications)]
    #![allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;

pub use bindings::*;

/// The library's file: its name with the version of its interface, which the package without headers has.
const FILE: &CStr = c"libibverbs.so.1";

/// Why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

macro_rules! library {
    ($($(#[$doc:meta])* $name:ident @ $version:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the loaded library. Each has the contract of the function of its name.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub struct Library {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Library {
            fn resolve(handle: *mut c_void) -> Result<Library, Missing> {
                Ok(Library {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let address = symbol(handle, name, concat!($version, "\0"))?;
                        // SAFETY: the library's function of this name and version has this signature.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address) }
                    },)*
                })
            }
        }
    };
}

library! {
    ibv_get_device_list @ "IBVERBS_1.1": fn(*mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list @ "IBVERBS_1.1": fn(*mut *mut ibv_device);
    ibv_get_device_name @ "IBVERBS_1.1": fn(*mut ibv_device) -> *const c_char;
    ibv_open_device @ "IBVERBS_1.1": fn(*mut ibv_device) -> *mut ibv_context;
    ibv_close_device @ "IBVERBS_1.1": fn(*mut ibv_context) -> c_int;
    ibv_query_device @ "IBVERBS_1.1": fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    /// Fills the older struct: see [`query_port`].
    ibv_query_port @ "IBVERBS_1.1": fn(*mut ibv_context, u8, *mut _compat_ibv_port_attr) -> c_int;
    ibv_query_gid @ "IBVERBS_1.1": fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
    ibv_get_async_event @ "IBVERBS_1.1": fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
    ibv_ack_async_event @ "IBVERBS_1.1": fn(*mut ibv_async_event);
    ibv_event_type_str @ "IBVERBS_1.1": fn(ibv_event_type) -> *const c_char;
    ibv_alloc_pd @ "IBVERBS_1.1": fn(*mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd @ "IBVERBS_1.1": fn(*mut ibv_pd) -> c_int;
    ibv_reg_mr @ "IBVERBS_1.1": fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    ibv_dereg_mr @ "IBVERBS_1.1": fn(*mut ibv_mr) -> c_int;
    ibv_create_comp_channel @ "IBVERBS_1.0": fn(*mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel @ "IBVERBS_1.0": fn(*mut ibv_comp_channel) -> c_int;
    ibv_create_cq @ "IBVERBS_1.1": fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    ibv_resize_cq @ "IBVERBS_1.1": fn(*mut ibv_cq, c_int) -> c_int;
    ibv_destroy_cq @ "IBVERBS_1.1": fn(*mut ibv_cq) -> c_int;
    ibv_get_cq_event @ "IBVERBS_1.1": fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ibv_ack_cq_events @ "IBVERBS_1.1": fn(*mut ibv_cq, c_uint);
    ibv_create_qp @ "IBVERBS_1.1": fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp @ "IBVERBS_1.1": fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    ibv_destroy_qp @ "IBVERBS_1.1": fn(*mut ibv_qp) -> c_int;
    ibv_create_ah @ "IBVERBS_1.1": fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah @ "IBVERBS_1.1": fn(*mut ibv_ah) -> c_int;
    ibv_wc_status_str @ "IBVERBS_1.1": fn(ibv_wc_status) -> *const c_char;
}

impl Library {
    /// Loads the library. It stays loaded, for providers have threads and handlers of their own.
    ///
    /// # Errors
    /// What is missing, and the package that has it.
    pub fn load() -> Result<Library, Missing> {
        // SAFETY: a constant name; the library's constructors are libibverbs' own.
        let handle = unsafe { libc::dlopen(FILE.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(Missing(format!("{} (package libibverbs1, or rdma-core)", loader_error())));
        }
        Library::resolve(handle)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

fn symbol(handle: *mut c_void, name: &'static str, version: &'static str) -> Result<*mut c_void, Missing> {
    // SAFETY: both names are constants that end with a zero byte; the handle is open.
    let address = unsafe { libc::dlvsym(handle, name.as_ptr().cast(), version.as_ptr().cast()) };
    if address.is_null() {
        return Err(Missing(format!(
            "{} has no usable function {}: {}",
            FILE.to_string_lossy(),
            &name[..name.len() - 1],
            loader_error()
        )));
    }
    Ok(address)
}

fn loader_error() -> String {
    // SAFETY: the string is valid until this thread's next call of the loader, which comes after the copy.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".into();
    }
    // SAFETY: as above, and it ends with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What `ibv_query_port` of the header does without a newer function of the provider's.
///
/// # Safety
/// `context` is open.
pub unsafe fn query_port(
    library: &Library,
    context: *mut ibv_context,
    port: u8,
    attributes: &mut ibv_port_attr,
) -> c_int {
    // SAFETY: the struct is plain integers; the older one is its beginning, so the callee stays inside.
    unsafe {
        *attributes = std::mem::zeroed();
        (library.ibv_query_port)(context, port, (&raw mut *attributes).cast())
    }
}

/// `ibv_post_send` of the header.
///
/// # Safety
/// As for the function: `pair` lives, the list and its memory are valid.
#[inline]
pub unsafe fn ibv_post_send(pair: *mut ibv_qp, list: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the caller's; an open device's table has this entry.
    unsafe { (*(*pair).context).ops.post_send.unwrap_unchecked()(pair, list, bad) }
}

/// `ibv_post_recv` of the header.
///
/// # Safety
/// As for the function: `pair` lives, the list and its memory are valid.
#[inline]
pub unsafe fn ibv_post_recv(pair: *mut ibv_qp, list: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the caller's; an open device's table has this entry.
    unsafe { (*(*pair).context).ops.post_recv.unwrap_unchecked()(pair, list, bad) }
}

/// `ibv_poll_cq` of the header.
///
/// # Safety
/// As for the function: `queue` lives and `found` has room for `count` entries.
#[inline]
pub unsafe fn ibv_poll_cq(queue: *mut ibv_cq, count: c_int, found: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's; an open device's table has this entry.
    unsafe { (*(*queue).context).ops.poll_cq.unwrap_unchecked()(queue, count, found) }
}

/// `ibv_req_notify_cq` of the header.
///
/// # Safety
/// As for the function: `queue` lives.
#[inline]
pub unsafe fn ibv_req_notify_cq(queue: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller's; an open device's table has this entry.
    unsafe { (*(*queue).context).ops.req_notify_cq.unwrap_unchecked()(queue, solicited_only) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The older struct has to be the beginning of the newer one.
    #[test]
    fn the_short_port_struct_ends_where_the_new_fields_begin() {
        assert!(std::mem::offset_of!(ibv_port_attr, flags) < std::mem::offset_of!(ibv_port_attr, port_cap_flags2));
    }

    #[test]
    fn the_loaded_library_names_its_codes() {
        let library = Library::load().expect("this test runs where libibverbs is installed");
        // SAFETY: it returns a constant string for every number.
        let text = unsafe { CStr::from_ptr((library.ibv_wc_status_str)(IBV_WC_RETRY_EXC_ERR)) };
        assert_eq!(text.to_str(), Ok("transport retry counter exceeded"));
    }
}
