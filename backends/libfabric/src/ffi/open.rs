//! From an offer to an endpoint that can talk, and back.

use std::ffi::c_void;
use std::ptr;

use libfabric_sys::calls::{
    fi_av_insert, fi_av_open, fi_close, fi_cq_open, fi_domain, fi_enable, fi_endpoint, fi_ep_bind, fi_getname,
};
use libfabric_sys::{
    FI_ADDR_MLX, FI_ADDR_STR, FI_AV_UNSPEC, FI_CQ_FORMAT_MSG, FI_FORMAT_UNSPEC, FI_MR_ENDPOINT, FI_MR_PROV_KEY,
    FI_MR_VIRT_ADDR, FI_RECV, FI_TRANSMIT, FI_WAIT_FD, FI_WAIT_NONE, fi_addr_t, fi_av_attr, fi_cq_attr, fi_info, fid,
};

use tailback_engine::tagged::{Blocking, Failure, Regions};

use super::endpoint::Endpoint;
use super::slots::Slots;
use super::{Fabric, Info, signals};

/// The longest name of an endpoint that is asked for; longer ones are asked for again.
const NAME: usize = 256;

/// What the library leaves where an address was refused: FI_ADDR_NOTAVAIL, which bindgen cannot read.
const NOT_INSERTED: fi_addr_t = fi_addr_t::MAX;

/// Whether names can be handed over in one piece, because it is clear where each begins: they are strings with their end, or
/// of one length and of a format that has one.
fn are_alike(format: u32, names: &[Vec<u8>]) -> bool {
    match format {
        FI_ADDR_STR => {
            names.iter().all(|name| name.iter().position(|&byte| byte == 0).is_some_and(|end| end + 1 == name.len()))
        }
        FI_FORMAT_UNSPEC | FI_ADDR_MLX => false,
        _ => names.iter().all(|name| name.len() == names[0].len()),
    }
}

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenConfig {
    /// Try for a queue that can be slept on.
    pub block: bool,
    /// Ranks of the job.
    pub ranks: usize,
    /// Puts complete when the target has them.
    pub delivery_complete: bool,
    /// It has one-sided reads and writes.
    pub rma: bool,
    /// Receives can name their sender.
    pub directed: bool,
    /// The length of the completion queue is left to the provider.
    pub own_queue: bool,
}

impl Endpoint {
    /// Opens an endpoint on what `info` offers.
    pub(crate) fn open(fabric: Fabric, info: &Info, config: OpenConfig) -> Result<Endpoint, Failure> {
        signals::preserved(|| Endpoint::build(fabric, info, config))
    }

    fn build(fabric: Fabric, info: &Info, config: OpenConfig) -> Result<Endpoint, Failure> {
        let library = fabric.library;
        // SAFETY: the answer is live, and so is its list.
        let own = unsafe { (library.fi_dupinfo)(info.raw) };
        if own.is_null() {
            return Err(fabric.failure("fi_dupinfo", i64::from(libfabric_sys::FI_ENOMEM)));
        }
        let mut endpoint = Endpoint::empty(fabric, own, config);
        let check = |call: &'static str, code: i32| if code < 0 { Err(fabric.failure(call, code)) } else { Ok(()) };
        // SAFETY: each object is made from ones that are live, and kept in `endpoint`, which closes what was opened even
        // if a later step fails. Attributes are locals that libfabric only reads.
        unsafe {
            // Each put asks for delivery by itself; messages do without.
            (*(*own).tx_attr).op_flags = 0;
            check("fi_fabric", (library.fi_fabric)((*own).fabric_attr, &mut endpoint.fabric_object, ptr::null_mut()))?;
            check("fi_domain", fi_domain(endpoint.fabric_object, own, &mut endpoint.domain))?;
            let mut av = fi_av_attr { type_: FI_AV_UNSPEC, count: config.ranks, ..std::mem::zeroed() };
            check("fi_av_open", fi_av_open(endpoint.domain, &mut av, &mut endpoint.av))?;
            endpoint.open_queue(config.block)?;
            check("fi_endpoint", fi_endpoint(endpoint.domain, own, &mut endpoint.ep))?;
            check("fi_ep_bind", fi_ep_bind(endpoint.ep, endpoint.av.cast(), 0))?;
            let both = u64::from(FI_TRANSMIT | FI_RECV);
            check("fi_ep_bind", fi_ep_bind(endpoint.ep, endpoint.cq.cast(), both))?;
            check("fi_enable", fi_enable(endpoint.ep))?;
        }
        Ok(endpoint)
    }

    fn empty(fabric: Fabric, info: *mut fi_info, config: OpenConfig) -> Endpoint {
        // SAFETY: a copy of an answer, which has all its attributes.
        let (tx, rx, domain, ep) =
            unsafe { (&*(*info).tx_attr, &*(*info).rx_attr, &*(*info).domain_attr, &*(*info).ep_attr) };
        let mr_mode = domain.mr_mode.cast_unsigned();
        Endpoint {
            fabric,
            info,
            fabric_object: ptr::null_mut(),
            domain: ptr::null_mut(),
            av: ptr::null_mut(),
            cq: ptr::null_mut(),
            ep: ptr::null_mut(),
            blocking: Blocking::None,
            addresses: Vec::new(),
            slots: Slots::default(),
            regions: Regions::default(),
            key_bytes: domain.mr_key_size,
            provider_keys: mr_mode & FI_MR_PROV_KEY != 0,
            virtual_addresses: mr_mode & FI_MR_VIRT_ADDR != 0,
            bound_regions: mr_mode & FI_MR_ENDPOINT != 0,
            delivery_complete: config.delivery_complete,
            rma: config.rma,
            directed: config.directed,
            inject: tx.inject_size,
            largest: ep.max_msg_size,
            // What is sure to be accepted. Some providers turn away more by other codes than they should.
            room: [tx.size.max(1), rx.size.max(1)],
            in_flight: [0; 2],
            queue_size: if config.own_queue { 0 } else { tx.size.saturating_add(rx.size).clamp(256, 1 << 16) },
        }
    }

    /// # Safety
    /// The domain is open, the queue is not.
    unsafe fn open_queue(&mut self, block: bool) -> Result<(), Failure> {
        let kinds: &[(u32, Blocking)] = if block {
            &[(FI_WAIT_FD, Blocking::Queue), (FI_WAIT_NONE, Blocking::None)]
        } else {
            &[(FI_WAIT_NONE, Blocking::None)]
        };
        let mut code = 0;
        for &(wait_obj, blocking) in kinds {
            // SAFETY: all zeros are a valid attribute; the domain is live, the out-pointer is this object's.
            code = unsafe {
                let mut attr =
                    fi_cq_attr { size: self.queue_size, format: FI_CQ_FORMAT_MSG, wait_obj, ..std::mem::zeroed() };
                fi_cq_open(self.domain, &mut attr, &mut self.cq)
            };
            if code == 0 {
                self.blocking = blocking;
                return Ok(());
            }
            self.cq = ptr::null_mut();
        }
        Err(self.fabric.failure("fi_cq_open", code))
    }

    /// This endpoint's address, for others.
    pub(crate) fn name(&self) -> Result<Vec<u8>, Failure> {
        let mut name = vec![0u8; NAME];
        let mut len = name.len();
        for _ in 0..2 {
            // SAFETY: *Live*; the buffer has as many bytes as `len` says.
            let code = unsafe { fi_getname(self.ep, name.as_mut_ptr().cast(), &mut len) };
            match i64::from(code) {
                0 => {
                    name.truncate(len);
                    return Ok(name);
                }
                code if code == -i64::from(libfabric_sys::FI_ETOOSMALL) => name.resize(len, 0),
                code => return Err(self.fabric.failure("fi_getname", code)),
            }
        }
        Err(self.fabric.failure("fi_getname", i64::from(libfabric_sys::FI_ETOOSMALL)))
    }

    /// Makes the endpoints with these addresses known, in rank order. Gives the rank whose address is refused.
    pub(crate) fn insert(&mut self, names: &[Vec<u8>]) -> Result<(), (usize, Failure)> {
        // SAFETY: the endpoint's own description.
        let format = unsafe { (*self.info).addr_format };
        let at_once = if are_alike(format, names) { names.len() } else { 1 };
        for (turn, names) in names.chunks(at_once.max(1)).enumerate() {
            let mut addresses = vec![NOT_INSERTED; names.len()];
            let bytes: Vec<u8> = names.iter().flatten().copied().chain([0; NAME]).collect();
            // SAFETY: *Live*; as many addresses are read, whose bytes came from endpoints of the same provider and are
            // followed by zeros in case this provider expects more; as many are written.
            let inserted = unsafe {
                fi_av_insert(self.av, bytes.as_ptr().cast::<c_void>(), names.len(), addresses.as_mut_ptr(), 0)
            };
            if usize::try_from(inserted) != Ok(names.len()) {
                let code = if inserted < 0 { inserted } else { -(libfabric_sys::FI_EINVAL as i32) };
                let refused = addresses.iter().position(|&address| address == NOT_INSERTED).unwrap_or_default();
                return Err((turn * at_once + refused, self.fabric.failure("fi_av_insert", code)));
            }
            self.addresses.extend(addresses);
        }
        Ok(())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        signals::preserved(|| {
            // Registrations may be bound to the endpoint, so they go first; their memory goes last.
            self.regions.deregister_all();
            let objects: [*mut fid; 5] =
                [self.ep.cast(), self.cq.cast(), self.av.cast(), self.domain.cast(), self.fabric_object.cast()];
            let mut closed = true;
            for object in objects {
                // SAFETY: opened by `build`, closed once, users before what they use.
                closed &= object.is_null() || unsafe { fi_close(object) } == 0;
            }
            if !closed {
                self.regions.leak();
                std::mem::forget(std::mem::take(&mut self.slots));
            }
            // SAFETY: duplicated by `build`, freed once.
            unsafe { (self.fabric.library.fi_freeinfo)(self.info) };
        });
    }
}

#[cfg(test)]
mod tests {
    use libfabric_sys::FI_SOCKADDR_IN;

    use super::*;

    #[test]
    fn names_go_together_where_it_is_clear_where_each_begins() {
        let names = |of: &[&str]| of.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(are_alike(FI_SOCKADDR_IN, &names(&["sixteen bytes !!", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"])));
        assert!(!are_alike(FI_SOCKADDR_IN, &names(&["four", "three"])));
        assert!(are_alike(FI_ADDR_STR, &names(&["fi_shm://1\0", "fi_shm://12\0"])));
        assert!(!are_alike(FI_ADDR_STR, &names(&["fi_shm://1", "fi_shm://2"])), "without their end");
        assert!(!are_alike(FI_ADDR_STR, &names(&["fi\0shm\0", ""])));
        assert!(!are_alike(FI_ADDR_MLX, &names(&["a", "b"])));
        assert!(are_alike(FI_SOCKADDR_IN, &[]));
    }
}
