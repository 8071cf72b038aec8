//! Opening the transport: load the library, choose an offer, tell the others where, choose how to wait.

use tailback_engine::ends;
use tailback_host::WaitMode;
use tailback_host::near::Seat;
use tailback_transport::{Bootstrap, Capabilities, Error, Operation, Rank, Result};

use crate::choose::choose;
use crate::config::LibfabricConfig;
use crate::domain::Domain;
use crate::engine::Engine;
use crate::facts;
use crate::ffi::{Endpoint, OpenConfig};
use crate::load::load;
use crate::tag::Tags;

/// Opens the transport. Collective over the job.
///
/// # Errors
/// If the library or a provider that serves is missing: what to install or to name.
pub fn open(bootstrap: &mut dyn Bootstrap, config: &LibfabricConfig) -> Result<Engine> {
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
    let mut engine = Engine::new(bootstrap.rank(), bootstrap.size(), endpoint, tags, wait);
    let waiting = facts::Waiting {
        mode: wait,
        reason: wait_reason,
        blocking: engine.blocking(),
        room: engine.room(),
        completions: engine.queue_entries(),
    };
    let mut description = facts::describe(&fabric, &choice, config, &waiting, ends.record);
    description.details.extend(ends.unlike.map(|unlike| ("unlike_devices".to_owned(), unlike)));
    let none = format!("libfabric's provider {} has no one-sided operations", offer.provider);
    let capabilities = if offer.has_rma() {
        Capabilities::all()
    } else {
        Capabilities::all().without(Operation::Put, none.clone()).without(Operation::Get, none)
    };
    engine.describe_as(capabilities, description);
    Ok(engine)
}
