//! Opening the transport: choose a port for every rail, tell the others where, choose how to wait.

use tailback_engine::matching::{Core, Rails};
use tailback_host::WaitMode;
use tailback_transport::{Bootstrap, Error, Rank, Result};

use crate::choose::Choice;
use crate::config::{Buffers, VerbsConfig};
use crate::facts;
use crate::header::{ADDRESS, Address};
use crate::wire::{Endpoint, Sizes, VerbsWire};

/// Queue pairs between the ranks of a job that talk, one per pair of ranks and rail.
pub type VerbsTransport = Core<VerbsWire>;

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
    let description = facts::describe(&endpoints, config, wait, reason);
    let wire = VerbsWire::new(endpoints, &addresses, config.secret.clone(), wait);
    Ok(Core::new(rank, size, rails, wire, description))
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
