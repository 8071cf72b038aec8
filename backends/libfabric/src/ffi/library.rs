//! The library and what it offers: `fi_getinfo`, its hints, and its answers as plain values.

use std::ffi::{CString, c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

use libfabric_sys::{
    FI_CONTEXT, FI_CONTEXT2, FI_DELIVERY_COMPLETE, FI_DIRECTED_RECV, FI_ENODATA, FI_EP_RDM, FI_EP_UNSPEC,
    FI_MR_ALLOCATED, FI_MR_BASIC, FI_MR_ENDPOINT, FI_MR_LOCAL, FI_MR_PROV_KEY, FI_MR_SCALABLE, FI_MR_VIRT_ADDR,
    FI_ORDER_SAS, FI_PROV_ATTR_ONLY, FI_READ, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA, FI_SOCKADDR, FI_SOCKADDR_IN,
    FI_SOCKADDR_IN6, FI_SOURCE, FI_TAGGED, FI_THREAD_DOMAIN, FI_TYPE_MR_MODE, FI_TYPE_PROTOCOL, FI_TYPE_VERSION,
    FI_WRITE, Library, LoadError, fi_info,
};

use tailback_engine::tagged::Failure;

use super::{signals, text};
use crate::offer::{EndpointType, Offer};

/// The memory registration modes this backend serves.
pub(super) const MR_MODES: u32 = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

/// Shared memory has a fixed number of entries for messages that wait for their receive, and stands still when they are
/// used up by messages whose receives found no room: the default is too few for 8 ranks with 256 messages each.
/// More than needed is not free either, since every message goes through the next entry in memory.
const SHM_ENTRIES: &str = "FI_SHM_RX_SIZE";
const SHM_DEFAULT: usize = 1024;
const SHM_ENTRIES_PER_RANK: usize = 256;
/// Plain sockets of libfabric 2 read no further from a connection once so many messages of it wait for their receive: by
/// default 64. Receives posted in another order than the messages were sent would then wait for ever.
const TCP_UNMATCHED: (&str, &str) = ("FI_TCP_MAX_SAVED", "65536");

/// Makes room for a job of `ranks` in providers that want to be told by the environment, unless the user has told them.
/// To be called when a rank's process starts: providers listen once, and the environment may be changed only while no
/// other thread can read it. Does nothing, and says so, in a process that has other threads already.
pub fn make_room(ranks: usize) -> bool {
    if std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) != 1 {
        return false;
    }
    for (name, value) in wanted(ranks) {
        if std::env::var_os(name).is_none() {
            // SAFETY: this is the only thread of the process, as just seen, and only a thread can start another.
            unsafe { std::env::set_var(name, value) };
        }
    }
    true
}

/// The variables that a job of `ranks` wants set. What is a provider's default anyway is left to it.
fn wanted(ranks: usize) -> impl Iterator<Item = (&'static str, String)> {
    let entries = (SHM_ENTRIES_PER_RANK * ranks.min(1 << 16)).next_power_of_two().min(8192);
    let shm = (entries > SHM_DEFAULT).then(|| (SHM_ENTRIES, entries.to_string()));
    shm.into_iter().chain([(TCP_UNMATCHED.0, TCP_UNMATCHED.1.to_owned())])
}

/// The loaded library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fabric {
    pub(super) library: Library,
}

/// What to ask `fi_getinfo` for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query<'a> {
    pub provider: Option<&'a str>,
    pub domain: Option<&'a str>,
    /// The local address to use.
    pub source: Option<IpAddr>,
    /// The local name to use, for providers whose addresses are names.
    pub name: Option<&'a str>,
    /// Only what this backend can use. Otherwise all there is.
    pub usable: bool,
    /// Puts that complete when the target has them.
    pub delivery_complete: bool,
    /// One-sided reads and writes.
    pub rma: bool,
    /// Receives from one sender.
    pub directed: bool,
    /// The traffic class, as in the headers.
    pub traffic_class: u32,
}

impl Fabric {
    /// Loads the library from `path`, or from where the system keeps it.
    pub(crate) fn load(path: Option<&Path>) -> Result<Fabric, LoadError> {
        // SAFETY: the system's libfabric, or what the user says is one.
        let library = signals::preserved(|| unsafe { Library::load(path) })?;
        Ok(Fabric { library })
    }

    /// The library's version in its own words.
    pub(crate) fn version(&self) -> String {
        // SAFETY: for this type the data is not looked at, but must not be null; the answer is the library's own text.
        unsafe { text((self.library.fi_tostr)(c"".as_ptr().cast(), FI_TYPE_VERSION as c_int)) }
            .unwrap_or_else(|| "of unknown version".into())
    }

    /// The library's words for an error code, positive or negative.
    pub(super) fn explain(&self, code: i64) -> String {
        let code = c_int::try_from(code.abs()).unwrap_or(c_int::MAX);
        // SAFETY: any number is fine; the answer is static text.
        unsafe { text((self.library.fi_strerror)(code)) }.unwrap_or_else(|| "unknown error".into())
    }

    pub(super) fn failure(&self, call: &'static str, code: impl Into<i64>) -> Failure {
        let code = code.into().abs();
        Failure { call, ticket: None, code, message: self.explain(code) }
    }

    /// The names and versions of all providers the library has, with or without a device.
    pub(crate) fn providers(&self) -> Result<Vec<(String, u32)>, Failure> {
        let mut list = ptr::null_mut();
        // SAFETY: no hints and no names are fine; the out-pointer is a local.
        let code = signals::preserved(|| unsafe {
            let version = self.library.interface();
            (self.library.fi_getinfo)(version, ptr::null(), ptr::null(), FI_PROV_ATTR_ONLY, ptr::null(), &mut list)
        });
        let list = self.list(code, list)?;
        Ok(list.iter().map(|info| (info.offer.provider.clone(), info.offer.provider_version)).collect())
    }

    /// What the library has for `query`, in its order of preference. None is no error.
    pub(crate) fn query(&self, query: &Query<'_>) -> Result<Vec<Info>, Failure> {
        let hints = Hints::new(self, query)?;
        let (node, service) = (query.source.map(|address| address.to_string()), query.name);
        let node = node.map(|node| CString::new(node).expect("no address has a zero"));
        let service = service.map(|name| CString::new(name).expect("no name of ours has a zero"));
        let flags = if node.is_some() || service.is_some() { FI_SOURCE } else { 0 };
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut list = ptr::null_mut();
        // SAFETY: names and hints live through the call; the out-pointer is a local.
        let code = signals::preserved(|| unsafe {
            let (version, hints) = (self.library.interface(), hints.info);
            (self.library.fi_getinfo)(version, pointer(&node), pointer(&service), flags, hints, &mut list)
        });
        self.list(code, list)
    }

    fn list(&self, code: c_int, list: *mut fi_info) -> Result<Vec<Info>, Failure> {
        match i64::from(code) {
            0 => {}
            code if code == -i64::from(FI_ENODATA) => return Ok(Vec::new()),
            code => return Err(self.failure("fi_getinfo", code)),
        }
        let list = Rc::new(List { library: self.library, first: list });
        let mut infos = Vec::new();
        let mut raw = list.first;
        while !raw.is_null() {
            // SAFETY: entries live as long as the list.
            let offer = unsafe { self.offer(raw) };
            infos.push(Info { raw, offer, _list: Rc::clone(&list) });
            // SAFETY: as above.
            raw = unsafe { (*raw).next };
        }
        Ok(infos)
    }

    /// # Safety
    /// `info` is a live entry of a list that the library gave.
    unsafe fn offer(&self, info: *const fi_info) -> Offer {
        // SAFETY: the library fills in every attribute of an entry; texts are C strings or null, as is the device.
        unsafe {
            let info = &*info;
            let fabric = info.fabric_attr.as_ref();
            let domain = info.domain_attr.as_ref();
            let endpoint = info.ep_attr.as_ref();
            let (tx, rx) = (info.tx_attr.as_ref(), info.rx_attr.as_ref());
            let link = info.nic.as_ref().and_then(|nic| nic.link_attr.as_ref());
            let device = info.nic.as_ref().and_then(|nic| nic.device_attr.as_ref());
            Offer {
                provider: fabric.and_then(|f| text(f.prov_name)).unwrap_or_default(),
                provider_version: fabric.map_or(0, |f| f.prov_version),
                fabric: fabric.and_then(|f| text(f.name)).unwrap_or_default(),
                domain: domain.and_then(|d| text(d.name)).unwrap_or_default(),
                endpoint: EndpointType::from_raw(endpoint.map_or(FI_EP_UNSPEC, |e| e.type_)),
                protocol: endpoint.map(|e| self.show(&e.protocol, FI_TYPE_PROTOCOL)).unwrap_or_default(),
                address: address(info.src_addr, info.src_addrlen, info.addr_format),
                address_format: info.addr_format,
                caps: info.caps,
                mr_mode: domain.map(|d| self.show(&d.mr_mode, FI_TYPE_MR_MODE)).unwrap_or_default(),
                unserved_mr_mode: domain.map_or(0, |d| d.mr_mode.cast_unsigned() & !(MR_MODES | 3)),
                mode: info.mode,
                ordered: tx.is_some_and(|tx| tx.msg_order & u64::from(FI_ORDER_SAS) != 0)
                    && rx.is_some_and(|rx| rx.msg_order & u64::from(FI_ORDER_SAS) != 0),
                tag_bits: endpoint.map_or(0, |e| 64 - e.mem_tag_format.leading_zeros()),
                largest_message: endpoint.map_or(0, |e| e.max_msg_size),
                inject: tx.map_or(0, |tx| tx.inject_size),
                traffic_class: tx.map_or(0, |tx| tx.tclass),
                link_speed: link.map(|link| link.speed as u64).filter(|&speed| speed > 0),
                device: device.and_then(|device| text(device.name)),
            }
        }
    }

    /// The library's words for a value of one of its types.
    fn show<T>(&self, value: &T, datatype: u32) -> String {
        // SAFETY: the value is of the type that the number stands for; the answer is the library's own text.
        let shown = unsafe { text((self.library.fi_tostr)(ptr::from_ref(value).cast(), datatype as c_int)) };
        shown.unwrap_or_default().trim().to_owned()
    }
}

/// A list of answers, freed as a whole.
struct List {
    library: Library,
    first: *mut fi_info,
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the library gave the list, and its entries are gone: each holds a reference to it.
        unsafe { (self.library.fi_freeinfo)(self.first) };
    }
}

/// One answer.
pub(crate) struct Info {
    pub(super) raw: *mut fi_info,
    pub offer: Offer,
    _list: Rc<List>,
}

struct Hints {
    library: Library,
    info: *mut fi_info,
}

impl Hints {
    fn new(fabric: &Fabric, query: &Query<'_>) -> Result<Hints, Failure> {
        let library = fabric.library;
        // SAFETY: duplicating nothing is how libfabric makes empty hints, in the layout of the symbol version.
        let info = unsafe { (library.fi_dupinfo)(ptr::null()) };
        if info.is_null() {
            return Err(fabric.failure("fi_allocinfo", i64::from(libfabric_sys::FI_ENOMEM)));
        }
        let hints = Hints { library, info };
        // SAFETY: just made, with all its attributes, and ours alone. Texts are the C library's to free, as libfabric's
        // manual says of hints.
        unsafe {
            let tx = &mut *(*info).tx_attr;
            let domain = &mut *(*info).domain_attr;
            (*(*info).fabric_attr).prov_name = duplicate(query.provider);
            domain.name = duplicate(query.domain);
            if !query.usable {
                (*info).mode = !0;
                domain.mr_mode = (!(FI_MR_BASIC | FI_MR_SCALABLE)).cast_signed();
                return Ok(hints);
            }
            let rma = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
            let directed = if query.directed { FI_DIRECTED_RECV } else { 0 };
            (*info).caps = u64::from(FI_TAGGED | if query.rma { rma } else { 0 }) | directed;
            (*info).mode = FI_CONTEXT | FI_CONTEXT2;
            (*(*info).ep_attr).type_ = FI_EP_RDM;
            tx.msg_order = u64::from(FI_ORDER_SAS);
            (*(*info).rx_attr).msg_order = u64::from(FI_ORDER_SAS);
            if query.delivery_complete {
                tx.op_flags = u64::from(FI_DELIVERY_COMPLETE);
            }
            tx.tclass = query.traffic_class;
            domain.threading = FI_THREAD_DOMAIN;
            domain.mr_mode = MR_MODES.cast_signed();
        }
        Ok(hints)
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { (self.library.fi_freeinfo)(self.info) };
    }
}

/// A copy that the C library can free.
fn duplicate(text: Option<&str>) -> *mut std::ffi::c_char {
    let Some(text) = text.and_then(|text| CString::new(text).ok()) else { return ptr::null_mut() };
    // SAFETY: a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// The address of providers that use the Internet's.
///
/// # Safety
/// `raw` is null, or has `len` bytes in the given format.
unsafe fn address(raw: *const c_void, len: usize, format: u32) -> Option<IpAddr> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: long enough for what is read, as checked; libfabric keeps sockaddrs aligned.
    unsafe {
        let family = match format {
            FI_SOCKADDR | FI_SOCKADDR_IN | FI_SOCKADDR_IN6 if len >= size_of::<libc::sa_family_t>() => {
                c_int::from(*raw.cast::<libc::sa_family_t>())
            }
            _ => return None,
        };
        match family {
            libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
                let address = &*raw.cast::<libc::sockaddr_in>();
                Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr))))
            }
            libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
                let address = &*raw.cast::<libc::sockaddr_in6>();
                Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_the_job_and_is_bounded() {
        let told = |ranks| wanted(ranks).collect::<Vec<_>>();
        let unmatched = ("FI_TCP_MAX_SAVED", "65536".to_owned());
        assert_eq!(told(8), [("FI_SHM_RX_SIZE", "2048".to_owned()), unmatched.clone()]);
        assert_eq!(told(usize::MAX), [("FI_SHM_RX_SIZE", "8192".to_owned()), unmatched.clone()]);
        assert_eq!(told(4), [unmatched]);
    }

    #[test]
    fn the_environment_is_left_alone_where_others_may_read_it() {
        let before = std::env::var_os(SHM_ENTRIES);
        std::thread::spawn(|| assert!(!make_room(32), "this process has threads")).join().expect("no panic");
        assert_eq!(std::env::var_os(SHM_ENTRIES), before);
    }
}
