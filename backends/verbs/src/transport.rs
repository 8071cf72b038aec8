//! Opening the transport: choose a port, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tailback_transport::matching::{Core, Rails};
use tailback_transport::{
    Bootstrap, Capabilities, Clock, Description, EngineGroup, Error, Rank, RawTransport, Result, WaitMode,
};

use crate::choose::{Choice, gid_text, rate_text};
use crate::config::{Buffers, VerbsConfig};
use crate::ffi::LinkLayer;
use crate::header::Address;
use crate::wire::{Endpoint, Sizes, VerbsWire};

/// A group of ranks that talk over [`VerbsTransport`]. Dropping it frees its segment.
pub type VerbsGroup = EngineGroup<Core<VerbsWire>>;

/// Queue pairs between the ranks of a job that talk.
#[derive(Debug)]
pub struct VerbsTransport {
    engine: Rc<RefCell<Core<VerbsWire>>>,
    clock: Clock,
    description: Description,
}

impl VerbsTransport {
    /// Opens the transport. Collective over the job.
    ///
    /// # Errors
    /// If libibverbs, a device or an active port is missing: what to install or to look at.
    pub fn open(bootstrap: &mut impl Bootstrap, config: &VerbsConfig) -> Result<VerbsTransport> {
        let choice = Choice::make(bootstrap, config)?;
        let sizes = Sizes::new(&checked(config.buffers)?, choice.limits.requests);
        let endpoint = Endpoint::open(choice, bootstrap.size(), sizes)?;
        let told = bootstrap.allgather(&endpoint.address().encode())?;
        let addresses = told.iter().enumerate().map(|(rank, bytes)| parse(rank, bytes)).collect::<Result<Vec<_>>>()?;
        let (wait, reason) = WaitMode::choose(config.wait, bootstrap)?;
        let mut description = describe(&endpoint.choice, wait, reason);
        let patience = endpoint.choice.patience;
        let tried = [
            ("rc_timeout_ms", format!("{:.3}", config.tries.timeout_ms())),
            ("rc_retries", patience.retries.to_string()),
            ("rnr_retries", patience.not_ready_retries.to_string()),
            ("credits", sizes.most.to_string()),
            ("buffer_bytes", sizes.buffer.to_string()),
        ];
        description.details.extend(tried.map(|(key, value)| (key.to_owned(), value)));
        let engine =
            Core::new(bootstrap.rank(), bootstrap.size(), Rails::default(), VerbsWire::new(endpoint, &addresses, wait));
        Ok(VerbsTransport { engine: Rc::new(RefCell::new(engine)), clock: Clock::start(), description })
    }
}

impl RawTransport for VerbsTransport {
    type Group = VerbsGroup;

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn describe(&self) -> Description {
        let mut description = self.description.clone();
        let engine = self.engine.borrow();
        description.details.insert("completion_queue_entries".into(), engine.wire().queue_text());
        description.details.insert("eager_windows".into(), engine.wire().windows_text());
        description
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<VerbsGroup> {
        VerbsGroup::make(&self.engine, &self.clock, members, segment)
    }
}

/// Buffers that can be.
fn checked(buffers: Buffers) -> Result<Buffers> {
    let Buffers { bytes, credits } = buffers;
    if Buffers::BYTES.contains(&bytes) && Buffers::CREDITS.contains(&credits) {
        return Ok(buffers);
    }
    let (sizes, counts) = (Buffers::BYTES, Buffers::CREDITS);
    Err(Error::Setup(format!(
        "{credits} buffers of {bytes} bytes: there are {} to {} of {} to {} bytes",
        counts.start(),
        counts.end(),
        sizes.start(),
        sizes.end()
    )))
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
            ("device_reason", choice.reason.clone()),
            ("devices", choice.record.clone()),
            ("port", port.number.to_string()),
            ("firmware", choice.limits.firmware.clone()),
            ("link_layer", layer.to_owned()),
            ("path_mtu_bytes", port.mtu_bytes().to_string()),
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
    if let Some(unlike) = &choice.unlike {
        details.insert("unlike_devices".into(), unlike.clone());
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
