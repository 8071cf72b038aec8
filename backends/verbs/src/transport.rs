//! Opening the transport: choose a port for every rail, tell the others where, choose how to wait.

use std::cell::RefCell;
use std::rc::Rc;

use tailback_transport::matching::{Core, Rails};
use tailback_transport::{
    Bootstrap, Capabilities, Clock, Description, EngineGroup, Error, Rank, RawTransport, Result, WaitMode,
};

use crate::choose::Choice;
use crate::config::{Buffers, VerbsConfig};
use crate::facts;
use crate::header::{ADDRESS, Address};
use crate::wire::{Endpoint, Sizes, VerbsWire};

/// A group of ranks that talk over [`VerbsTransport`]. Dropping it frees its segment.
pub type VerbsGroup = EngineGroup<Core<VerbsWire>>;

/// Queue pairs between the ranks of a job that talk, one per pair of ranks and rail.
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
    pub fn open(bootstrap: &mut dyn Bootstrap, config: &VerbsConfig) -> Result<VerbsTransport> {
        let rails = Rails::checked(config.rails)?;
        let (rank, size, buffers) = (bootstrap.rank(), bootstrap.size(), checked(config.buffers)?);
        let open = |(rail, choice): (usize, Choice)| {
            let sizes = Sizes::new(&buffers, choice.limits.requests);
            Endpoint::open(rail, choice, size, sizes)
        };
        let choices = Choice::make(bootstrap, config)?;
        let endpoints = choices.into_iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
        let mine: Vec<u8> = endpoints.iter().flat_map(|of| of.address().encode()).collect();
        let told = bootstrap.allgather(&mine)?;
        let parse = |(rank, bytes): (usize, &Vec<u8>)| parse(rank, bytes, rails);
        let addresses = told.iter().enumerate().map(parse).collect::<Result<Vec<_>>>()?;
        let (wait, reason) = WaitMode::choose(config.wait, bootstrap)?;
        let mut description = facts::describe(&endpoints, config, wait, reason);
        rails.tell(&mut description);
        let engine = Core::new(rank, size, rails, VerbsWire::new(endpoints, &addresses, config.secret.clone(), wait));
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
        for (rail, text) in engine.wire().queue_texts().enumerate() {
            description.details.insert(Description::rail_key(rail, "completion_queue_entries"), text);
        }
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

/// A rank's address on each rail, as told at start-up.
fn parse(rank: usize, bytes: &[u8], rails: Rails) -> Result<Vec<Address>> {
    let addresses: Option<Vec<Address>> = bytes.chunks(ADDRESS).map(Address::decode).collect();
    addresses.filter(|addresses| addresses.len() == rails.count()).ok_or_else(|| Error::Protocol {
        operation: "exchange of addresses",
        peer: Some(Rank::from(rank)),
        detail: format!("{} bytes are no address per rail", bytes.len()),
    })
}
