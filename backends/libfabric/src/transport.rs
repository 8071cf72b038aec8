//! Opening the transport: load the library, choose an offer, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use tailback_transport::{
    Bootstrap, Capabilities, Clock, Description, Error, Operation, Rank, RawTransport, Result, WaitMode,
};

use crate::choose::{self, Wishes, choose};
use crate::engine::Engine;
use crate::ffi::{Endpoint, OpenConfig};
use crate::group::LibfabricGroup;
use crate::tag::Tags;
use crate::{facts, load};

/// How to open a [`LibfabricTransport`]. Every rank passes its own.
#[derive(Clone, Debug, Default)]
pub struct LibfabricConfig {
    /// The library. None: the one that the system's loader finds.
    pub path: Option<PathBuf>,
    /// What narrows libfabric's offers down.
    pub wishes: Wishes,
    /// How to wait. None: block when the ranks of this machine outnumber its cores, else spin.
    pub wait: Option<WaitMode>,
}

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
    pub fn open(bootstrap: &mut impl Bootstrap, config: &LibfabricConfig) -> Result<LibfabricTransport> {
        let fabric = load(config.path.as_deref())?;
        fabric.make_room(bootstrap.size());
        let choice = choose(&fabric, &config.wishes)?;
        let offer = choice.info.offer.clone();
        let hosts = bootstrap.allgather(format!("{}\n{}", bootstrap.host(), offer.provider).as_bytes())?;
        check_providers(&hosts, &offer.provider, bootstrap.host(), offer.is_named())?;
        let (wait, wait_reason) = WaitMode::choose(config.wait, bootstrap)?;

        let open = OpenConfig {
            block: wait == WaitMode::Block,
            ranks: bootstrap.size(),
            delivery_complete: choice.delivery_complete,
            rma: offer.has_rma(),
            directed: choice.directed,
        };
        let tags = Tags::new(offer.tag_bits, (!choice.directed).then_some(bootstrap.size()))?;
        let mut endpoint = Endpoint::open(fabric, &choice.info, open).map_err(choose::report)?;
        let name = endpoint.name().map_err(choose::report)?;
        let names = bootstrap.allgather(&name)?;
        endpoint.insert(&names).map_err(|(rank, failure)| Error::Library {
            call: failure.call,
            peer: Some(Rank::from(rank)),
            code: failure.code,
            message: failure.message,
        })?;
        let engine = Engine::new(bootstrap.rank(), bootstrap.size(), endpoint, tags, wait);
        let waiting =
            facts::Waiting { mode: wait, reason: wait_reason, blocking: engine.blocking(), room: engine.room() };
        let description = facts::describe(&fabric, &choice, config, &waiting);
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
        let slot = self.engine.borrow_mut().make_group(members, segment)?;
        Ok(LibfabricGroup::new(Rc::clone(&self.engine), slot, self.clock.clone()))
    }
}

/// Everyone has to have chosen the same provider, and one whose endpoints are names reaches one host only.
fn check_providers(hosts: &[Vec<u8>], provider: &str, host: &str, one_host: bool) -> Result<()> {
    for (rank, told) in hosts.iter().enumerate() {
        let told = String::from_utf8_lossy(told);
        let (its_host, its_provider) = told.split_once('\n').unwrap_or((&told, ""));
        if its_provider != provider {
            return Err(Error::Setup(format!(
                "rank {rank} has chosen libfabric's provider {its_provider}, this rank {provider}: name one with --provider"
            )));
        }
        if one_host && its_host != host {
            return Err(Error::Setup(format!(
                "libfabric's provider {provider} reaches this host only ({host}), and rank {rank} is on {its_host}"
            )));
        }
    }
    Ok(())
}
