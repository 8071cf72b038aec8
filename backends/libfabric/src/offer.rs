//! What a provider offers on a domain, and whether that is enough.

use std::fmt;
use std::net::IpAddr;

use libfabric_sys::{
    FI_ADDR_STR, FI_CONTEXT, FI_CONTEXT2, FI_DIRECTED_RECV, FI_EP_DGRAM, FI_EP_MSG, FI_EP_RDM, FI_READ, FI_REMOTE_READ,
    FI_REMOTE_WRITE, FI_RMA, FI_TAGGED, FI_WRITE,
};

use tailback_engine::tagged;

/// How an endpoint talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointType {
    /// Reliable, to anyone: what this backend uses.
    Rdm,
    /// Reliable, connected.
    Msg,
    /// Unreliable.
    Dgram,
    /// Something newer.
    Other,
}

impl EndpointType {
    pub(crate) fn from_raw(raw: u32) -> Self {
        match raw {
            FI_EP_RDM => EndpointType::Rdm,
            FI_EP_MSG => EndpointType::Msg,
            FI_EP_DGRAM => EndpointType::Dgram,
            _ => EndpointType::Other,
        }
    }
}

impl fmt::Display for EndpointType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndpointType::Rdm => "reliable datagrams",
            EndpointType::Msg => "connected endpoints",
            EndpointType::Dgram => "unreliable datagrams",
            EndpointType::Other => "endpoints of an unknown type",
        })
    }
}

/// One of libfabric's answers, as plain values.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The provider, with its layers: `tcp;ofi_rxm`.
    pub provider: String,
    /// Packed as libfabric packs versions.
    pub provider_version: u32,
    /// The fabric's name; for sockets the network.
    pub fabric: String,
    /// The domain's name: a device or interface.
    pub domain: String,
    /// How its endpoints talk.
    pub endpoint: EndpointType,
    /// The wire protocol, in libfabric's words.
    pub protocol: String,
    /// The local address of providers that use the Internet's.
    pub address: Option<IpAddr>,
    /// libfabric's number for the kind of address.
    pub address_format: u32,
    /// Capability bits.
    pub caps: u64,
    /// Memory registration modes, in libfabric's words.
    pub mr_mode: String,
    /// Modes of memory registration that this backend does not serve.
    pub unserved_mr_mode: u32,
    /// Modes the application has to serve.
    pub mode: u64,
    /// Whether messages between two endpoints stay in order.
    pub ordered: bool,
    /// How many bits a tag has.
    pub tag_bits: u32,
    /// The longest message or transfer.
    pub largest_message: usize,
    /// Messages up to this length are copied when they are posted.
    pub inject: usize,
    /// libfabric's number for the traffic class.
    pub traffic_class: u32,
    /// Bits a second, where the provider knows.
    pub link_speed: Option<u64>,
    /// The device's name, where the provider knows.
    pub device: Option<String>,
}

impl Offer {
    /// Whether it has one-sided reads and writes.
    #[must_use]
    pub fn has_rma(&self) -> bool {
        let all = u64::from(FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
        self.caps & all == all
    }

    /// Whether it is better not to say how long its completion queue should be. To cxi (Slingshot) a length replaces a
    /// default of 131,072, whatever the length; messages that find such a queue full are dropped and sent again by a slow
    /// side channel, which an incast would measure instead of the network (fi_cxi(7)).
    pub(crate) fn sizes_its_queue(&self) -> bool {
        self.provider.split(';').any(|layer| layer == "cxi")
    }

    /// Whether a receive can name its sender.
    pub(crate) fn is_directed(&self) -> bool {
        self.caps & FI_DIRECTED_RECV != 0
    }

    /// Whether its addresses are names of this process's choice, as shared memory's are.
    pub(crate) fn is_named(&self) -> bool {
        self.address_format == FI_ADDR_STR
    }

    /// Why this backend cannot use it.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self.endpoint != EndpointType::Rdm {
            let layered = match self.endpoint {
                EndpointType::Msg => format!("; {};ofi_rxm adds reliable datagrams", self.provider),
                EndpointType::Dgram => format!("; {};ofi_rxd adds reliable datagrams", self.provider),
                _ => String::new(),
            };
            return Some(format!("has {} only{layered}", self.endpoint));
        }
        let missing: Vec<&str> = [
            (self.caps & u64::from(FI_TAGGED) == 0, "tagged messages"),
            (!self.ordered, "messages in order (FI_ORDER_SAS)"),
            (self.tag_bits < tagged::LEAST_BITS, "tags of 40 bits or more"),
        ]
        .into_iter()
        .filter_map(|(lacks, what)| lacks.then_some(what))
        .collect();
        if !missing.is_empty() {
            return Some(format!("lacks {}", missing.join(", ")));
        }
        let unserved = self.mode & !(FI_CONTEXT | FI_CONTEXT2);
        if unserved != 0 || self.unserved_mr_mode != 0 {
            return Some(format!("wants modes {unserved:#x}, memory modes {:#x}", self.unserved_mr_mode));
        }
        None
    }
}
