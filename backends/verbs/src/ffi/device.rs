//! Devices, their ports and what happens to them.

use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{io, ptr};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tailback_transport::{Error, Result};

use super::{check, failed_errno, library, loaded, sys, text};

/// The names of the devices, in the library's order.
pub(crate) fn device_names() -> Result<Vec<String>> {
    let library = library().map_err(|missing| Error::Setup(missing.to_string()))?;
    let mut names = Vec::new();
    // SAFETY: the list ends with a null pointer and is freed once, after the names were copied.
    unsafe {
        let list = (library.ibv_get_device_list)(ptr::null_mut());
        if list.is_null() {
            // The kernel has no RDMA at all.
            return match io::Error::last_os_error().raw_os_error() {
                Some(number) if number == rustix::io::Errno::NOSYS.raw_os_error() => Ok(names),
                _ => Err(failed_errno("ibv_get_device_list", None)),
            };
        }
        let mut at = list;
        while !(*at).is_null() {
            names.push(text((library.ibv_get_device_name)(*at)));
            at = at.add(1);
        }
        (library.ibv_free_device_list)(list);
    }
    Ok(names)
}

/// What a port's link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLayer {
    /// Addressed by LID.
    InfiniBand,
    /// RoCE: addressed by GID.
    Ethernet,
}

/// A port as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) number: u8,
    /// `ibv_port_state`.
    pub(crate) state: u32,
    /// `ibv_mtu`.
    pub(crate) mtu: u32,
    /// The longest message in bytes.
    pub(crate) max_message: u32,
    pub(crate) lid: u16,
    pub(crate) link_layer: LinkLayer,
    /// The link's rate in units of 0.1 Gbit/s, where the device's codes are known.
    pub(crate) rate: Option<u32>,
    pub(crate) gids: u32,
}

impl Port {
    pub(crate) fn is_active(&self) -> bool {
        self.state == sys::IBV_PORT_ACTIVE
    }

    /// The state in the words of `ibv_devinfo`.
    pub(crate) fn state_text(&self) -> &'static str {
        match self.state {
            sys::IBV_PORT_DOWN => "down",
            sys::IBV_PORT_INIT => "initializing",
            sys::IBV_PORT_ARMED => "armed",
            sys::IBV_PORT_ACTIVE => "active",
            sys::IBV_PORT_ACTIVE_DEFER => "active, deferred",
            _ => "unknown",
        }
    }

    pub(crate) fn mtu_bytes(&self) -> u32 {
        128 << self.mtu
    }

    /// From now on with packets of at most so many bytes, a power of two from 256 on.
    pub(crate) fn limit_mtu(&mut self, bytes: u32) {
        self.mtu = self.mtu.min((bytes / 128).ilog2());
    }
}

/// What a device can do.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) firmware: String,
    pub(crate) ports: u8,
    pub(crate) completions: u32,
    /// Requests that a queue of a pair takes.
    pub(crate) requests: u32,
    /// Reads that it may have under way to one peer, and serve for one peer.
    pub(crate) reads_out: u8,
    pub(crate) reads_in: u8,
}

/// What the device reports by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    PortDown(u8),
    PortUp(u8),
    /// The device or a queue is unusable, with the library's number for it.
    Fatal(u32),
    Other,
}

/// An open device.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) raw: *mut sys::ibv_context,
    pub(crate) name: String,
}

impl Context {
    /// Where the kernel tells of the device that it is a function of.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new("/sys/class/infiniband").join(&self.name).join("device")
    }

    pub(crate) fn open(name: &str) -> Result<Rc<Context>> {
        let library = library().map_err(|missing| Error::Setup(missing.to_string()))?;
        // SAFETY: the list ends with a null pointer; a device is opened before the list that holds it is freed.
        let raw = unsafe {
            let list = (library.ibv_get_device_list)(ptr::null_mut());
            if list.is_null() {
                return Err(failed_errno("ibv_get_device_list", None));
            }
            let mut at = list;
            while !(*at).is_null() && text((library.ibv_get_device_name)(*at)) != name {
                at = at.add(1);
            }
            let found = !(*at).is_null();
            let raw = if found { (library.ibv_open_device)(*at) } else { ptr::null_mut() };
            let error = failed_errno("ibv_open_device", None);
            (library.ibv_free_device_list)(list);
            match (found, raw.is_null()) {
                (false, _) => return Err(Error::Setup(format!("there is no RDMA device {name}"))),
                (true, true) => return Err(error),
                (true, false) => raw,
            }
        };
        let context = Context { raw, name: name.to_owned() };
        // Events are looked for, never waited for.
        let fd = context.event_fd();
        let flags = fcntl_getfl(fd).and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK));
        flags.map_err(|source| Error::Io { operation: "open device", peer: None, source: source.into() })?;
        Ok(Rc::new(context))
    }

    pub(crate) fn limits(&self) -> Result<Limits> {
        let mut attributes = sys::ibv_device_attr::default();
        // SAFETY: *Open*; the callee fills the struct.
        check("ibv_query_device", None, unsafe { (loaded().ibv_query_device)(self.raw, &raw mut attributes) })?;
        let firmware: Vec<u8> = attributes.fw_ver.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        let narrow = |count: i32| u8::try_from(count.clamp(0, 255)).unwrap_or_default();
        Ok(Limits {
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            ports: attributes.phys_port_cnt,
            completions: u32::try_from(attributes.max_cqe).unwrap_or_default(),
            requests: u32::try_from(attributes.max_qp_wr).unwrap_or_default(),
            reads_out: narrow(attributes.max_qp_init_rd_atom),
            reads_in: narrow(attributes.max_qp_rd_atom),
        })
    }

    pub(crate) fn port(&self, number: u8) -> Result<Port> {
        let mut attributes = sys::ibv_port_attr::default();
        // SAFETY: *Open*.
        check("ibv_query_port", None, unsafe { sys::query_port(loaded(), self.raw, number, &mut attributes) })?;
        let ethernet = u32::from(attributes.link_layer) == sys::IBV_LINK_LAYER_ETHERNET;
        Ok(Port {
            number,
            state: attributes.state,
            mtu: attributes.active_mtu,
            max_message: attributes.max_msg_sz,
            lid: attributes.lid,
            link_layer: if ethernet { LinkLayer::Ethernet } else { LinkLayer::InfiniBand },
            rate: rate(attributes.active_width, attributes.active_speed),
            gids: u32::try_from(attributes.gid_tbl_len).unwrap_or_default(),
        })
    }

    pub(crate) fn gid(&self, port: u8, index: u32) -> Result<[u8; 16]> {
        let mut gid = sys::ibv_gid::default();
        // SAFETY: *Open*; the callee fills the union, all of whose fields are bytes.
        unsafe {
            let index = i32::try_from(index).unwrap_or(i32::MAX);
            let done = (loaded().ibv_query_gid)(self.raw, port, index, &raw mut gid);
            if done == 0 { Ok(gid.raw) } else { Err(failed_errno("ibv_query_gid", None)) }
        }
    }

    /// Readable when there is an event.
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: *Open*: the descriptor is the device's until it is closed.
        unsafe { BorrowedFd::borrow_raw((*self.raw).async_fd as RawFd) }
    }

    /// The next event, if there is one.
    pub(crate) fn next_event(&self) -> Option<Event> {
        let mut event = sys::ibv_async_event::default();
        // SAFETY: *Open*; the descriptor does not block; an event that was taken is acknowledged at once.
        unsafe {
            if (loaded().ibv_get_async_event)(self.raw, &raw mut event) != 0 {
                return None;
            }
            let port = u8::try_from(event.element.port_num).unwrap_or_default();
            let kind = event.event_type;
            // At once: a pair cannot be destroyed while an event about it is not acknowledged.
            (loaded().ibv_ack_async_event)(&raw mut event);
            Some(match kind {
                sys::IBV_EVENT_PORT_ERR => Event::PortDown(port),
                sys::IBV_EVENT_PORT_ACTIVE => Event::PortUp(port),
                sys::IBV_EVENT_CQ_ERR | sys::IBV_EVENT_QP_FATAL | sys::IBV_EVENT_DEVICE_FATAL => Event::Fatal(kind),
                _ => Event::Other,
            })
        }
    }

    /// The library's words for an event's number.
    pub(crate) fn event_text(number: u32) -> String {
        // SAFETY: returns a constant string for every number.
        unsafe { text((loaded().ibv_event_type_str)(number)) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: *Open*; what was made from it held it and is gone.
        unsafe { (loaded().ibv_close_device)(self.raw) };
    }
}

/// A protection domain: what memory and pairs of one process have in common.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(super) raw: *mut sys::ibv_pd,
    _context: Rc<Context>,
}

impl Domain {
    pub(crate) fn new(context: &Rc<Context>) -> Result<Rc<Domain>> {
        // SAFETY: *Open*.
        let raw = unsafe { (loaded().ibv_alloc_pd)(context.raw) };
        if raw.is_null() {
            return Err(failed_errno("ibv_alloc_pd", None));
        }
        Ok(Rc::new(Domain { raw, _context: Rc::clone(context) }))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: *Open*.
        unsafe { (loaded().ibv_dealloc_pd)(self.raw) };
    }
}

/// The rate of a link from its codes, in units of 0.1 Gbit/s.
fn rate(width: u8, speed: u8) -> Option<u32> {
    let lanes = match width {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => return None,
    };
    let per_lane = match speed {
        1 => 25,
        2 => 50,
        4 | 8 => 100,
        16 => 140,
        32 => 250,
        64 => 500,
        128 => 1000,
        _ => return None,
    };
    Some(lanes * per_lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_width_and_speed() {
        assert_eq!(rate(1, 1), Some(25));
        assert_eq!(rate(2, 32), Some(1000));
        assert_eq!(rate(2, 128), Some(4000));
        assert_eq!(rate(3, 1), None);
    }
}
