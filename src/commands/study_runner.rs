//! A study over every network in turn, until one is interrupted: `tailback maxrate`, `contention`, `beff` and `hpcc`.
//!
//! Results are the same file family as those of load tests, with a section of their own.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Description, Error, Monitor, Nanos, Operation, Result, Support};

use super::enclosing_lab::EnclosingLab;
use super::observers::observers;
use super::prepare::Session;
use super::result_assembler::{ResultAssembler, RunConfig};
use super::show::show;
use super::study_kinds::{Studied, Study};
use super::watcher_overhead::memory;
use super::{Request, interrupt};
use crate::assemble;
use crate::backend::{Networks, RoleSettings, Variant, give_up};
use crate::engine::{OpenNetwork, OpenPair};
use crate::models::{Control, StudyJob};
use crate::result::TransportFacts;
use crate::stats::Rule;

/// Measures, shows what was found, and gives the exit code.
pub(super) fn run_study(
    (session, request): (&Session, &Request),
    study: &Study,
    networks: &mut Networks<'_>,
    monitor: &Arc<Monitor>,
    root: bool,
) -> u8 {
    let lab = Arc::new(EnclosingLab::find(root, false));
    let (on_phase, on_end) = observers(request, root, &lab, &session.host_counters);
    let mut assembler = ResultAssembler::new((session, request), monitor, lab, root);
    let variants = networks.variants().to_vec();
    assembler.configs = variants.iter().map(|&variant| RunConfig { variant, mix: 0 }).collect();
    assembler.begin(networks.bootstrap(), || assemble::plain_placement(&session.nodes));
    on_phase(&request.command.word().into(), Nanos(0));
    let body = |bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>| match measure(
        (session, request),
        study,
        bootstrap,
        networks.canaries,
        monitor,
    ) {
        Err(Error::Setup(message)) => Ok(Err(message)),
        measured => measured.map(Ok),
    };
    let mut left = variants.len();
    for &variant in &variants {
        let (studied, description) =
            match networks.open(Variant::of(variant.network), &|_| RoleSettings::default(), &body) {
                Ok(Ok(part)) => part,
                // Every rank finds the same mistake in the set-up: one tells the user and all end alike.
                Ok(Err(message)) => {
                    if root {
                        eprintln!("tailback: error: {message}");
                    }
                    return 2;
                }
                Err(error) => give_up(networks.bootstrap(), &error),
            };
        left -= 1;
        let note = studied.note();
        let transport = TransportFacts::of(description, variant.network.eager_threshold());
        if let Some(note) = &note {
            let over = if variants.len() > 1 { format!("{}: ", transport.label()) } else { String::new() };
            assembler.notes.push(format!("{over}{note}"));
        }
        if let Some(found) = studied.models {
            assembler.studied.push((transport, found));
        }
        if note.is_some() {
            assembler.interrupted = true;
            break;
        }
    }
    on_end();
    if request.settings.machine.is_none() {
        let memory = memory(networks.bootstrap());
        assembler.memory = memory.unwrap_or_else(|error| give_up(networks.bootstrap(), &error));
    }
    if !root {
        return 0;
    }
    if left > 0 {
        assembler.notes.push(format!("{left} of {} networks were not measured", variants.len()));
    }
    if assembler.studied.is_empty() {
        // The user knows why; what there is to know is that no file was written.
        eprintln!("tailback: {}: there is nothing to show", assembler.notes.join("; "));
        return 2;
    }
    assembler.file().map_or(2, |file| {
        file.notes.iter().for_each(|note| request.say(note));
        show(request, &file)
    })
}

/// The study over one network, as one rank. Collective over the job.
fn measure(
    (session, request): (&Session, &Request),
    study: &Study,
    bootstrap: &mut dyn Bootstrap,
    network: &mut dyn OpenNetwork,
    monitor: &Monitor,
) -> Result<(Studied, Description)> {
    if let Support::No(reason) = network.capabilities().of(Operation::TwoSided) {
        return Err(Error::Setup(format!("studies need messages, which are not supported here: {reason}")));
    }
    let interrupt = interrupt::flag();
    let rule = if request.settings.machine.is_some() { Rule::on_virtual_time() } else { Rule::default() };
    let control = Control { monitor, interrupt: &interrupt, rule };
    let job = StudyJob { bootstrap, nodes: &session.nodes, seed: session.seed, control };
    let studied = study.measure(job, network)?;
    // Nobody leaves while another may still need an answer.
    bootstrap.barrier()?;
    Ok((studied, network.describe()))
}
