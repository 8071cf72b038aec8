//! Commands on a simulated machine: no process but this one, and no time but virtual.

use crate::backend::simulator::machine::Machine;
use crate::backend::{Backend, JobSize, Settings, simulate};
use crate::job::{Request, Seed, Study, StudySelection};
use crate::plan::{Patch, Preset, SIM_BYTES};

/// The machine, where one is to be simulated.
pub(crate) fn machine(settings: &Settings) -> Option<&Machine> {
    settings.machine.as_deref().filter(|_| settings.transports.contains(&Backend::Sim))
}

/// A request on the machine: on as many ranks as was asked for or a study needs, or on all of it.
pub(crate) fn run(request: &Request, machine: &Machine) -> Result<u8, String> {
    // A recorded run has the budget that it had, and a study none.
    let has_own = request.calibration.is_none() && request.study.is_none();
    let patches = if has_own { patches(request, machine) } else { request.patches.clone() };
    // Time goes on between here and what rank 0 decides.
    let seed = request.seed.map(|seed| Seed::Number(seed.number()));
    let request = Request { patches, seed, ..request.clone() };
    // Mistakes are said here, before anything is built.
    let plan = request.resolve(Preset::Sim)?;
    let (ranks, per_node) = match &request.study {
        Some(StudySelection { study: Study::Hpcc(_), .. }) => {
            return Err("hpcc computes, which takes no virtual time: over --transport sim, give \
                        `run --canaries ptrans,gups,fft,panel` or `beff`"
                .into());
        }
        Some(StudySelection { study: Study::MaxRate(settings), .. }) if settings.compute_ns.is_some() => {
            return Err("--compute computes, which takes no virtual time: leave it out over --transport sim".into());
        }
        Some(StudySelection { study: study @ (Study::MaxRate(_) | Study::Contention(_)), ranks_per_node, .. }) => {
            let (ranks, per_node) = study.local_ranks(*ranks_per_node);
            (Some(ranks), Some(per_node))
        }
        // More ranks of a node would only wait.
        Some(StudySelection { study: Study::Map(_), ranks_per_node, .. }) => (None, Some(ranks_per_node.unwrap_or(1))),
        _ => (None, plan.ranks_per_node),
    };
    let size = JobSize::of(machine, request.local.ranks.or(ranks), per_node)?;
    let of_plan = if request.study.is_some() { String::new() } else { format!(", {} plan", plan.preset) };
    request.say(&format!(
        "simulating {} ranks on {} nodes of the machine {} ({}){of_plan}. All times are virtual.",
        size.ranks,
        size.nodes(),
        machine.name,
        machine.about
    ));
    let seed = request.seed.map(Seed::number).or(request.paired()?.map(|file| file.seed)).unwrap_or(1);
    request.as_work(|work| simulate(work, size, seed))
}

/// The request's changes to a plan over those for this machine: its own preset, whose tests are as long as its links are
/// slow.
fn patches(request: &Request, machine: &Machine) -> Vec<Patch> {
    let asked = request.patches.iter().rev().find_map(|patch| patch.preset);
    let budget_s = machine.host_link().rate.seconds(SIM_BYTES);
    let own = Patch {
        preset: Some(Preset::Sim),
        budget_s: asked.is_none_or(|preset| preset == Preset::Sim).then_some(budget_s),
        ..Patch::default()
    };
    [own].into_iter().chain(request.patches.iter().cloned()).collect()
}
