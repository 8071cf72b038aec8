//! A study over every network in turn, until one is interrupted: `tailback maxrate`, `contention`, `beff` and `hpcc`.
//!
//! Results are the same file family as those of load tests, with a section of their own.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Description, Error, Nanos, Operation, Result, Support};

use crate::assemble;
use crate::backend::{Networks, RoleSettings, Variant, give_up};
use crate::engine::{OpenNetwork, OpenPair, PhaseObserver};
use crate::job::{
    EnclosingLab, Observers, ResultAssembler, RunConfig, Session, Studied, Study, interrupt_flag, memory, show,
};
use crate::models::{Control, StudyJob};
use crate::output;
use crate::result::TransportFacts;
use crate::stats::Rule;

/// Measures, shows what was found, and gives the exit code.
pub(crate) fn run_study(session: &Session<'_>, study: &Study, networks: &mut Networks<'_>) -> u8 {
    let (request, root) = (session.request, session.root);
    let lab = Arc::new(EnclosingLab::find(root, false));
    let observers = Observers::of(session, &lab);
    let mut assembler = ResultAssembler::new(session, lab);
    let variants = networks.variants().to_vec();
    assembler.configs = variants.iter().map(|&variant| RunConfig { variant, mix: 0, setting: 0 }).collect();
    assembler.begin(networks.bootstrap(), || assemble::plain_placement(&session.nodes));
    observers.begins(&request.command.word().into(), Nanos(0));
    let body = |bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>| match measure(
        session,
        study,
        bootstrap,
        networks.canaries,
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
    observers.ends();
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

/// Tells how long the study would take over every network, and gives the exit code.
pub(crate) fn expect_study(session: &Session<'_>, study: &Study, networks: &mut Networks<'_>) -> u8 {
    let body = |bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>| {
        let network = &mut *networks.canaries;
        match asked(session, bootstrap, network, |job, network| study.expected(job, network)) {
            Err(Error::Setup(message)) => Ok(Err(message)),
            expected => expected.map(Ok),
        }
    };
    let variants = networks.variants().to_vec();
    let (mut text, mut code) = (String::new(), 0);
    for &variant in &variants {
        match networks.open(Variant::of(variant.network), &|_| RoleSettings::default(), &body) {
            Ok(Ok(Some(expected))) => {
                if variants.len() > 1 {
                    text += &format!("Over {}\n\n", variant.label());
                }
                text += &output::expected(&expected, session.nodes.rank_count(), session.nodes.len());
            }
            Ok(Ok(None)) => code = 2,
            Ok(Err(message)) => {
                if session.root {
                    eprintln!("tailback: error: {message}");
                }
                return 2;
            }
            Err(error) => give_up(networks.bootstrap(), &error),
        }
    }
    if session.root && !text.is_empty() {
        let _ = output::print(&text);
    }
    code
}

/// The study over one network, as one rank. Collective over the job.
fn measure(
    session: &Session<'_>,
    study: &Study,
    bootstrap: &mut dyn Bootstrap,
    network: &mut dyn OpenNetwork,
) -> Result<(Studied, Description)> {
    let studied = asked(session, bootstrap, network, |job, network| study.measure(job, network))?;
    Ok((studied, network.describe()))
}

/// Asks something of a network that has messages. Collective over the job.
fn asked<V>(
    session: &Session<'_>,
    bootstrap: &mut dyn Bootstrap,
    network: &mut dyn OpenNetwork,
    ask: impl FnOnce(StudyJob<'_>, &mut dyn OpenNetwork) -> Result<V>,
) -> Result<V> {
    if let Support::No(reason) = network.capabilities().of(Operation::TwoSided) {
        return Err(Error::Setup(format!("studies need messages, which are not supported here: {reason}")));
    }
    let interrupt = interrupt_flag();
    let rule = if session.request.settings.machine.is_some() { Rule::on_virtual_time() } else { Rule::default() };
    let control = Control { monitor: session.monitor, interrupt: &interrupt, rule };
    let job = StudyJob { bootstrap, nodes: &session.nodes, seed: session.seed, control };
    let answer = ask(job, network)?;
    // Nobody leaves while another may still need an answer.
    bootstrap.barrier()?;
    Ok(answer)
}
