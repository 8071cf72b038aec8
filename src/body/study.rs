//! A study over every network in turn, until one is interrupted: `tailback maxrate`, `contention`, `beff`, `hpcc`
//! and `map`.
//!
//! Results are the same file family as those of load tests, with a section of their own.

use std::cell::RefCell;
use std::sync::Arc;

use tailback_transport::{Bootstrap, Error, Nanos, Operation, Result, Support};

use crate::assemble;
use crate::backend::{Networks, RoleSettings, Variant, give_up};
use crate::engine::{OpenNetwork, OpenPair, PhaseObserver};
use crate::job::{
    EnclosingLab, MapPlan, Observers, ResultAssembler, RunConfig, Session, Study, interrupt_flag, memory, show, tell,
};
use crate::models::{Control, StudyJob};
use crate::output;
use crate::result::{GroupsKnownBy, TransportFacts};
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
    let map = match planned(session, study, variants.len(), networks) {
        Ok(map) => map,
        Err(message) => {
            if root {
                eprintln!("tailback: error: {message}");
            }
            return 2;
        }
    };
    if let (true, Some(plan)) = (root, &map) {
        request.say(output::planned_map(plan.outline(&session.nodes)).trim_end());
    }
    let assembler = RefCell::new(assembler);
    let body = |bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>| {
        let network = &mut *networks.canaries;
        let transport = TransportFacts::of(network.describe(), None);
        let keep = &mut |found| assembler.borrow().keep_study(&transport, found);
        let measured =
            asked(session, bootstrap, network, |job, network| study.measure(job, network, map.as_ref(), keep));
        match measured {
            Err(Error::Setup(message)) => Ok(Err(message)),
            measured => measured.map(|studied| Ok((studied, network.describe()))),
        }
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
        let mut assembler = assembler.borrow_mut();
        let transport = TransportFacts::of(description, variant.network.eager_threshold());
        if let Some(note) = &note {
            let over = if variants.len() > 1 { format!("{}: ", transport.label()) } else { String::new() };
            assembler.notes.push(format!("{over}{note}"));
        }
        if let Some(found) = studied.models {
            assembler.add_study(transport, found);
        }
        if note.is_some() {
            assembler.interrupted = true;
            break;
        }
    }
    observers.ends();
    let mut assembler = assembler.into_inner();
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
    if !assembler.has_studied() {
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
    if let Study::Map(_) = study {
        return match planned(session, study, networks.variants().len(), networks) {
            Ok(plan) => {
                if let (true, Some(plan)) = (session.root, plan) {
                    let _ = output::print(&output::planned_map(plan.outline(&session.nodes)));
                }
                0
            }
            Err(message) => {
                if session.root {
                    eprintln!("tailback: error: {message}");
                }
                2
            }
        };
    }
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

/// The plan of a map, the same on every rank; none for other studies. Collective over the job.
fn planned(
    session: &Session<'_>,
    study: &Study,
    variants: usize,
    networks: &mut Networks<'_>,
) -> std::result::Result<Option<MapPlan>, String> {
    let (Study::Map(study), request) = (study, session.request) else { return Ok(None) };
    if variants > 1 {
        return Err("a map is of one network: give one --transport and one --protocol".into());
    }
    let said = match (&session.decision.groups, session.nodes.group_count()) {
        (Some(said), _) => Some(said.known_by()),
        (None, 2..) => Some(GroupsKnownBy::Environment),
        (None, _) => None,
    };
    let resume = request.study.as_ref().and_then(|of| of.resume.as_deref()).filter(|_| session.root);
    let plan = MapPlan::new(study, (&session.nodes, said), session.seed, request.settings.machine.is_some(), resume);
    // Rank 0 alone reads the file; its mistakes are all ranks'.
    let told = session.root.then(|| plan.as_ref().map(drop).map_err(Clone::clone));
    match tell::<std::result::Result<(), String>>(networks.bootstrap(), told.as_ref()) {
        Ok(told) => told.and(plan.map(Some)),
        Err(error) => give_up(networks.bootstrap(), &error),
    }
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
