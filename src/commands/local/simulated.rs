//! Commands on a simulated machine: no process but this one, and no time but virtual.

use tailback_sim::machine::Machine;

use crate::backend::{Backend, Settings, Shape, simulate};
use crate::commands::{Request, Study, StudyRequest};
use crate::plan::{Patch, Preset, SIM_BYTES};

/// The machine, where one is to be simulated.
pub(super) fn machine(settings: &Settings) -> Option<&Machine> {
    settings.machine.as_deref().filter(|_| settings.transports.contains(&Backend::Sim))
}

/// The load test and its parts.
pub(super) fn run(request: &Request, machine: &Machine) -> Result<u8, String> {
    // A recorded run has the budget that it had.
    let patches = if request.calibration.is_some() { request.patches.clone() } else { patches(request, machine) };
    let request = Request { patches, ..request.clone() };
    // Mistakes are said here, before anything is built.
    let plan = request.resolve(Preset::Sim)?;
    let shape = Shape::of(machine, request.place.ranks, plan.ranks_per_node)?;
    request.say(&announcement(machine, shape, &format!(", {} plan", plan.preset)));
    simulate(&request.work(&|networks, monitor| request.run(networks, monitor)), shape, request.seed.unwrap_or(1))
}

/// A study, on as many ranks as it needs, or on all of the machine.
pub(super) fn study(request: &StudyRequest, machine: &Machine) -> Result<u8, String> {
    let (ranks, per_node) = request.local_ranks()?;
    let (ranks, per_node) = match request.study {
        Study::Beff(_) => (None, request.ranks_per_node),
        Study::MaxRate(_) | Study::Contention(_) => (Some(ranks), Some(per_node)),
        Study::Hpcc(_) => {
            return Err("hpcc computes, which takes no virtual time: over --transport sim, give \
                        `run --canaries ptrans,gups,fft,panel` or `beff`"
                .into());
        }
    };
    let shape = Shape::of(machine, request.place.ranks.or(ranks), per_node)?;
    request.say(&announcement(machine, shape, ""));
    simulate(&request.work(&|networks, monitor| request.run(networks, monitor)), shape, request.seed)
}

fn announcement(machine: &Machine, shape: Shape, plan: &str) -> String {
    let Shape { ranks, .. } = shape;
    format!(
        "simulating {ranks} ranks on {} nodes of the machine {} ({}){plan}. All times are virtual.",
        shape.nodes(),
        machine.name,
        machine.about
    )
}

/// The request's changes to a plan over those for this machine: its own preset, whose tests are as long as its links are
/// slow.
fn patches(request: &Request, machine: &Machine) -> Vec<Patch> {
    let asked = request.patches.iter().rev().find_map(|patch| patch.preset);
    let budget_s = SIM_BYTES / machine.host_link().rate.bytes_per_second();
    let own = Patch {
        preset: Some(Preset::Sim),
        budget_s: asked.is_none_or(|preset| preset == Preset::Sim).then_some(budget_s),
        ..Patch::default()
    };
    [own].into_iter().chain(request.patches.iter().cloned()).collect()
}
