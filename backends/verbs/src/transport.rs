//! Opening the transport: choose a port, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tailback_transport::{Bootstrap, Capabilities, Clock, Description, Error, Rank, RawTransport, Result, WaitMode};

use crate::choose::{Choice, gid_text, rate_text};
use crate::endpoint::Endpoint;
use crate::engine::{COMPLETIONS_PER_LINK, Engine, completions_wanted};
use crate::ffi::LinkLayer;
use crate::group::VerbsGroup;
use crate::wire::Address;

/// How to open a [`VerbsTransport`]. Every rank passes its own.
#[derive(Clone, Debug, Default)]
pub struct VerbsConfig {
    /// The device, such as mlx5_0. None: the first with an active port.
    pub device: Option<String>,
    /// The port, from 1. None: the first that is active.
    pub port: Option<u8>,
    /// The entry of the port's table of addresses. None: on RoCE, version 2 with an IPv4 address if there is one.
    pub gid_index: Option<u8>,
    /// The service level, or RoCE priority, of everything that is sent.
    pub service_level: u8,
    /// The traffic class: on RoCE v2 the DSCP and ECN bits of everything that is sent.
    pub traffic_class: u8,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
}

/// Queue pairs between the ranks of a job that talk.
#[derive(Debug)]
pub struct VerbsTransport {
    engine: Rc<RefCell<Engine>>,
    clock: Clock,
    description: Description,
}

impl VerbsTransport {
    /// Opens the transport. Collective over the job.
    ///
    /// # Errors
    /// If libibverbs, a device or an active port is missing: what to install or to look at.
    pub fn open(bootstrap: &mut impl Bootstrap, config: &VerbsConfig) -> Result<VerbsTransport> {
        let choice = Choice::make(config)?;
        let endpoint = Endpoint::open(choice, completions_wanted(bootstrap.size()), COMPLETIONS_PER_LINK)?;
        let told = bootstrap.allgather(&endpoint.address().encode())?;
        let addresses = told.iter().enumerate().map(|(rank, bytes)| parse(rank, bytes)).collect::<Result<Vec<_>>>()?;
        let ethernet = endpoint.address().ethernet;
        if let Some(rank) = addresses.iter().position(|address| address.ethernet != ethernet) {
            let layer = |ethernet| if ethernet { "RoCE" } else { "InfiniBand" };
            return Err(Error::Setup(format!(
                "rank {rank} uses {}, this rank {}: choose devices of one kind with --device",
                layer(!ethernet),
                layer(ethernet)
            )));
        }
        let (wait, reason) = WaitMode::choose(config.wait, bootstrap)?;
        let description = describe(&endpoint.choice, wait, reason);
        let engine = Engine::new(bootstrap.rank(), endpoint, &addresses, wait);
        Ok(VerbsTransport { engine: Rc::new(RefCell::new(engine)), clock: Clock::start(), description })
    }
}

impl RawTransport for VerbsTransport {
    type Group = VerbsGroup;

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<VerbsGroup> {
        let slot = self.engine.borrow_mut().make_group(members, segment)?;
        Ok(VerbsGroup::new(Rc::clone(&self.engine), slot, self.clock.clone()))
    }
}

/// A rank's address and host, as told at start-up.
fn parse(rank: usize, bytes: &[u8]) -> Result<Address> {
    Address::decode(bytes).ok_or_else(|| Error::Protocol {
        operation: "exchange of addresses",
        peer: Some(Rank::from(rank)),
        detail: format!("{} bytes are no address", bytes.len()),
    })
}

fn describe(choice: &Choice, wait: WaitMode, wait_reason: String) -> Description {
    let port = &choice.port;
    let layer = match port.link_layer {
        LinkLayer::InfiniBand => "InfiniBand",
        LinkLayer::Ethernet => "Ethernet",
    };
    let mut details = BTreeMap::from(
        [
            ("device", choice.context.name.clone()),
            ("device_reason", choice.reason.to_owned()),
            ("port", port.number.to_string()),
            ("firmware", choice.limits.firmware.clone()),
            ("link_layer", layer.to_owned()),
            ("active_mtu_bytes", port.mtu_bytes().to_string()),
            ("gid", gid_text(&choice.gid)),
            ("gid_index", choice.gid_index.to_string()),
            ("service_level", choice.service_level.to_string()),
            ("traffic_class", choice.traffic_class.to_string()),
            ("wait", wait.to_string()),
            ("wait_reason", wait_reason),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    if let Some(rate) = rate_text(port) {
        details.insert("link_rate".into(), rate);
    }
    if !choice.gid_type.is_empty() {
        details.insert("gid_type".into(), choice.gid_type.clone());
    }
    Description { backend: "verbs".into(), library: library_version(), details }
}

/// The kernel decides as much as the library, which does not tell its version.
fn library_version() -> String {
    let uname = rustix::system::uname();
    format!("libibverbs, {} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}
