//! Opening the transport: load the library, choose an offer, tell the others where, choose how to wait.

use tailback_bootstrap::local_ports;
use tailback_engine::tagged::{TagLibrary, Tagged, Tags};
use tailback_host::WaitMode;
use tailback_host::near::Seat;
use tailback_transport::{Bootstrap, Capabilities, Error, Operation, Rank, Result};

use crate::choose::choose;
use crate::config::LibfabricConfig;
use crate::domain::Domain;
use crate::facts;
use crate::ffi::{Endpoint, OpenConfig};
use crate::load::load;

/// One reliable datagram endpoint per rank.
pub type LibfabricTransport = Tagged<Endpoint>;

/// Opens the transport. Collective over the job.
///
/// # Errors
/// If the library or a provider that serves is missing: what to install or to name.
pub fn open(bootstrap: &mut dyn Bootstrap, config: &LibfabricConfig) -> Result<LibfabricTransport> {
    let fabric = load(config.path.as_deref())?;
    let seat = Seat::find(bootstrap)?;
    let choice = choose(&fabric, &config.selection, &seat)?;
    let offer = choice.info.offer.clone();
    let end = Domain::of(&offer, bootstrap.host());
    let asked = config.selection.provider.is_some();
    let ends =
        local_ports::choose(bootstrap, &[end], &[], asked, "name one provider that reaches all with --provider")?;
    let (wait, wait_reason) = WaitMode::choose(config.wait, bootstrap)?;

    let open = OpenConfig {
        block: wait == WaitMode::Block,
        ranks: bootstrap.size(),
        delivery_complete: choice.delivery_complete,
        rma: offer.has_rma(),
        directed: choice.directed,
        own_queue: offer.sizes_its_queue(),
    };
    let tags = Tags::new("libfabric provider", offer.tag_bits, (!choice.directed).then_some(bootstrap.size()))?;
    let mut endpoint = Endpoint::open(fabric, &choice.info, open).map_err(Error::from)?;
    let name = endpoint.name().map_err(Error::from)?;
    let names = bootstrap.allgather(&name)?;
    endpoint.insert(&names).map_err(|(rank, failure)| Error::Library {
        call: failure.call,
        peer: Some(Rank::from(rank)),
        code: failure.code,
        message: failure.message,
    })?;
    let waiting = facts::Waiting {
        mode: wait,
        reason: wait_reason,
        blocking: endpoint.blocking(),
        room: endpoint.room(),
        completions: endpoint.completions(),
    };
    let mut description = facts::describe(&fabric, &choice, config, &waiting, ends.record);
    description.details.extend(ends.unlike.map(|unlike| ("unlike_devices".to_owned(), unlike)));
    let none = format!("libfabric's provider {} has no one-sided operations", offer.provider);
    let capabilities = if offer.has_rma() {
        Capabilities::all()
    } else {
        Capabilities::all().without(Operation::Put, none.clone()).without(Operation::Get, none)
    };
    Ok(Tagged::new(bootstrap.rank(), bootstrap.size(), endpoint, tags, wait, capabilities, description))
}
