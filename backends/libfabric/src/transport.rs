//! Opening the transport: load the library, choose an offer, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::rc::Rc;

use tailback_engine::{EngineGroup, RawTransport, ends};
use tailback_host::near::Seat;
use tailback_host::{Clock, WaitMode};
use tailback_transport::{Bootstrap, Capabilities, Description, Error, Operation, Rank, Result};

use crate::choose::choose;
use crate::config::LibfabricConfig;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::facts;
use crate::ffi::{Endpoint, OpenConfig};
use crate::load::load;
use crate::tag::Tags;

/// A group of ranks that talk over [`LibfabricTransport`]. Dropping it ends its segment.
pub type LibfabricGroup = EngineGroup<Engine>;

/// One reliable datagram endpoint per rank.
#[derive(Debug)]
pub struct LibfabricTransport {
    engine: Rc<RefCell<Engine>>,
    clock: Clock,
    capabilities: Capabilities,
    description: Description,
}

impl LibfabricTransport {
    /// Opens the transport. Collective over the job.
    pub fn open(bootstrap: &mut dyn Bootstrap, config: &LibfabricConfig) -> Result<LibfabricTransport> {
        let fabric = load(config.path.as_deref())?;
        let seat = Seat::find(bootstrap)?;
        let choice = choose(&fabric, &config.wishes, &seat)?;
        let offer = choice.info.offer.clone();
        let end = Domain::of(&offer, bootstrap.host());
        let asked = config.wishes.provider.is_some();
        let ends = ends::choose(bootstrap, &[end], &[], asked, "name one provider that reaches all with --provider")?;
        let (wait, wait_reason) = WaitMode::choose(config.wait, bootstrap)?;

        let open = OpenConfig {
            block: wait == WaitMode::Block,
            ranks: bootstrap.size(),
            delivery_complete: choice.delivery_complete,
            rma: offer.has_rma(),
            directed: choice.directed,
            own_queue: offer.sizes_its_queue(),
        };
        let tags = Tags::new(offer.tag_bits, (!choice.directed).then_some(bootstrap.size()))?;
        let mut endpoint = Endpoint::open(fabric, &choice.info, open).map_err(Error::from)?;
        let name = endpoint.name().map_err(Error::from)?;
        let names = bootstrap.allgather(&name)?;
        endpoint.insert(&names).map_err(|(rank, failure)| Error::Library {
            call: failure.call,
            peer: Some(Rank::from(rank)),
            code: failure.code,
            message: failure.message,
        })?;
        let engine = Engine::new(bootstrap.rank(), bootstrap.size(), endpoint, tags, wait);
        let waiting = facts::Waiting {
            mode: wait,
            reason: wait_reason,
            blocking: engine.blocking(),
            room: engine.room(),
            completions: engine.completions(),
        };
        let mut description = facts::describe(&fabric, &choice, config, &waiting, ends.record);
        description.details.extend(ends.unlike.map(|unlike| ("unlike_devices".to_owned(), unlike)));
        let none = format!("libfabric's provider {} has no one-sided operations", offer.provider);
        let capabilities = if offer.has_rma() {
            Capabilities::all()
        } else {
            Capabilities::all().without(Operation::Put, none.clone()).without(Operation::Get, none)
        };
        let engine = Rc::new(RefCell::new(engine));
        Ok(LibfabricTransport { engine, clock: Clock::start(), capabilities, description })
    }
}

impl RawTransport for LibfabricTransport {
    type Group = LibfabricGroup;

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<LibfabricGroup> {
        LibfabricGroup::make(&self.engine, &self.clock, members, segment)
    }
}
