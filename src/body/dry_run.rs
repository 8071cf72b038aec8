//! What would be run, in words: `--dry-run`.

use std::fmt::Write as _;

use tailback_transport::{Bytes, Nanos};

use crate::assemble;
use crate::backend::Variant;
use crate::backend::simulator::machine::Machine;
use crate::engine::{REAL_GRAIN, expected_s};
use crate::job::{Decision, Session, TuneSelection};
use crate::output::placement_lines;
use crate::plan::{Application, Counts, Plan, point_name};
use crate::result::Command;
use crate::stats::TestState;
use crate::text::{duration, plural};

/// Joining, connecting and collecting, for a job of laptop size.
const OVERHEAD_S: f64 = 2.0;
/// Connecting anew for a placement.
pub(super) const PLACEMENT_S: f64 = 0.3;
/// Over a simulated network, asking a canary for the time.
const COMPARE_S: f64 = 40e-6;

pub(crate) fn render(session: &Session<'_>, variants: &[Variant], machine: Option<&Machine>) -> String {
    let decision = &session.decision;
    let plan = &decision.plan;
    let layout = &session.layout(0, plan).expect("it was possible a moment ago");
    let mut out = String::new();
    let budget = match decision.command {
        Command::Congest => String::new(),
        _ => format!(", {} per test", duration(1e9 * plan.budget_s)),
    };
    let _ = writeln!(
        out,
        "Plan: {} preset, {} ranks on {} nodes, seed {}{budget}",
        plan.preset,
        layout.nodes().rank_count(),
        layout.nodes().len(),
        session.seed
    );
    if let Some(machine) = machine {
        let _ = writeln!(out, "Simulated on the machine {}: {}; all times are virtual", machine.name, machine.about);
    }
    if decision.command.is_load_test() {
        let blocks = if plan.blocks > 1 { format!(" in {} blocks per state", plan.blocks) } else { String::new() };
        let more = plan.precision.map(|of| format!(", more until +-{:.0}%", 100.0 * of)).unwrap_or_default();
        let count = plan.placements;
        let _ = writeln!(
            out,
            "{count} placements ({}{more}), every canary{blocks} on each; the first is shown",
            plan.placement
        );
    }
    if let Some(burst) = plan.burst.filter(|_| plan.sweep.is_empty()) {
        let [on, off] = [burst.on_s, burst.off_s].map(|seconds| duration(1e9 * seconds));
        let _ = writeln!(out, "Load comes in bursts of {on} with pauses of {off}");
    }
    if let Some(moments) = plan.open_loop() {
        let _ = writeln!(out, "Latency canaries begin iterations {moments}");
    }
    if !plan.sizes.is_empty() {
        let sizes: Vec<String> = plan.sizes.iter().map(|&bytes| Bytes(bytes as u64).to_string()).collect();
        let _ = writeln!(out, "Message sizes take turns: {}", sizes.join(", "));
        let _ = writeln!(out, "{}", sizes_said(session, variants.len() * session.mixes.len()));
    } else if !plan.sweep.is_empty() {
        let names: Vec<String> = session.mixes.iter().map(|mix| point_name(&mix.point)).collect();
        let _ = writeln!(out, "{} points take turns on every placement: {}", names.len(), names.join(", "));
    } else if session.mixes.len() > 1 {
        let names: Vec<&str> = session.mixes.iter().filter_map(|mix| mix.name.as_deref()).collect();
        let on = match plan.each_own_share {
            _ if !plan.each_congestor => "",
            true => ", each by itself on its share of the congestor nodes",
            false => ", each by itself on all congestor nodes",
        };
        let _ = writeln!(out, "Loads take turns on every placement{on}: {}", names.join(", "));
    }
    let names = session.request.tuning.as_ref().map(TuneSelection::names).unwrap_or_default();
    let settings = names.len().max(1);
    if !names.is_empty() {
        let _ = writeln!(out, "Settings take turns on every placement: {}", names.join(", "));
    }
    if variants.len() > 1 {
        out.push_str("\nRuns, in turn on every placement\n");
        for variant in variants {
            let threshold =
                variant.network.eager_threshold().map(|bytes| format!(" above {bytes}")).unwrap_or_default();
            let _ = writeln!(out, "  {}{threshold}", variant.label());
        }
    }
    if decision.command != Command::Congest {
        out.push_str("\nCanaries\n");
        let kernels = plan.canaries.iter().filter(|test| !test.kernel.is_application());
        let runs = variants.len() * session.mixes.len() * settings;
        plan.application.iter().for_each(|of| application(&mut out, of, plan, runs));
        kernels.for_each(|test| counts(&mut out, &test.title(), &test.counts));
    }
    if decision.command != Command::Network {
        out.push_str("\nCongestors\n");
        for test in &plan.congestors {
            let Counts { iterations, warmup, .. } = test.counts;
            let title = test.title();
            let _ =
                writeln!(out, "  {title:<32} at most {iterations} iterations between agreements (+{warmup} warm-up)");
        }
        out.push_str("\nPlacement\n");
        for line in placement_lines(&assemble::placement(layout, plan), decision.command) {
            let _ = writeln!(out, "  {line}");
        }
    }
    for note in &layout.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    let measured_s: f64 =
        session.runs(variants).into_iter().map(|(_, mix)| run(session, &session.mixes[mix].plan)).sum();
    match machine {
        None => {
            // A job that goes on with another size or point has joined and connected.
            let begun = match plan.sweep.is_empty() {
                true => variants.len() * settings * (session.mixes.len() / plan.sizes.len().max(1)),
                false => 1,
            };
            let seconds = begun as f64 * OVERHEAD_S + settings as f64 * measured_s;
            let beside = if plan.application.is_some() { ", and the application's runs" } else { "" };
            let (about, rings) = match plan.blocks == 1 && plan.finishes_a_measurement() {
                true => ("about", "; a test that is slower takes longer, until it has visited every ring once"),
                false if keeps_time(decision.command, plan) => ("about", ""),
                false => ("at most", ""),
            };
            let _ = writeln!(out, "\nExpected duration: {about} {seconds:.0} s{beside}{rings}");
        }
        Some(_) => {
            let ms = 1e3 * settings as f64 * measured_s;
            let _ = writeln!(out, "\nExpected: about {ms:.1} ms of virtual time");
        }
    }
    out
}

/// How many tests a plan of several message sizes has, and how long they take: one canary with one size has the budget.
pub(super) fn sizes_said(session: &Session<'_>, runs: usize) -> String {
    let plan = &session.decision.plan;
    let (sizes, canaries) = (plan.sizes.len(), plan.canaries.len());
    let networks = match runs / sizes {
        1 => String::new(),
        several => format!(" x {several} networks"),
    };
    let kind = if session.request.settings.machine.is_some() { " of virtual time" } else { "" };
    let all = duration(1e9 * plan.budget_s * (runs * canaries) as f64);
    let each = duration(1e9 * plan.budget_s);
    let (size, canary) = (plural(sizes, "size"), if canaries == 1 { "canary" } else { "canaries" });
    format!("{size} x {canaries} {canary}{networks}, {each} each: about {all}{kind} in all")
}

/// How often a program is run, and what is read off it.
fn application(out: &mut String, of: &Application, plan: &Plan, runs: usize) {
    let times = runs as u32 * plan.placements * (2 * plan.blocks + of.warm_up);
    let figure = of.figure.as_ref().map_or_else(|| "its wall time".to_owned(), |of| format!("the figure '{of}'"));
    let _ = writeln!(
        out,
        "  {:<32} {times} runs ({} a placement are not measured), each at most {} s, by {figure}: {}",
        of.title(),
        of.warm_up,
        of.limit_s,
        of.command.join(" ")
    );
}

fn counts(out: &mut String, title: &str, counts: &Counts) {
    let Counts { iterations, warmup, rings, measurements, window, .. } = counts;
    let rings = plural(*rings as usize, "ring");
    let windowed = if *window > 1 { format!(", window {window}") } else { String::new() };
    let _ = writeln!(
        out,
        "  {title:<32} {iterations} iterations (+{warmup} warm-up) x {rings} x up to {measurements}{windowed}"
    );
}

/// Seconds of one run, with what is not measured, where the seed is not known yet.
pub(crate) fn seconds(command: Command, plan: &Plan, duration_s: f64) -> f64 {
    let seeds: Vec<u64> = (0..u64::from(plan.placements)).collect();
    OVERHEAD_S + f64::from(plan.placements) * PLACEMENT_S + measured(command, plan, &seeds, REAL_GRAIN, duration_s)
}

/// The same of a sweep, in words: a job joins once for all of its points.
pub(super) fn whole_sweep<'p>(session: &Session<'_>, points: impl Iterator<Item = &'p Plan>) -> String {
    let seconds: f64 = points.map(|plan| run(session, plan)).sum();
    match session.request.settings.machine {
        Some(_) => format!("about {} of virtual time", duration(1e9 * seconds)),
        None if keeps_time(session.decision.command, &session.decision.plan) => {
            format!("about {:.0} s", OVERHEAD_S + seconds)
        }
        None => format!("at most {:.0} s", OVERHEAD_S + seconds),
    }
}

/// Whether every run is as long as was said: a sweep is many, whose errors would add up.
pub(super) fn keeps_time(command: Command, plan: &Plan) -> bool {
    command == Command::Sweep && plan.blocks > 1
}

/// Seconds of one run on all placements.
fn run(session: &Session<'_>, plan: &Plan) -> f64 {
    let Decision { command, duration_s, .. } = session.decision;
    let is_virtual = session.request.settings.machine.is_some();
    let seeds: Vec<u64> = (0..session.placements()).map(|index| session.placement(index).own_seed()).collect();
    let paced = plan.canaries.iter().any(|test| plan.pace_of(test).is_some()) || plan.burst.is_some();
    let connect = match session.layout(0, plan) {
        _ if !is_virtual => PLACEMENT_S,
        Ok(layout) if paced => COMPARE_S * layout.canaries().len() as f64,
        _ => 0.0,
    };
    seeds.len() as f64 * connect + measured(command, plan, &seeds, session.grain(), duration_s)
}

/// Seconds of one run, once its ranks are connected, on the placements with these seeds.
fn measured(command: Command, plan: &Plan, seeds: &[u64], grain: Nanos, duration_s: f64) -> f64 {
    let canaries = plan.canaries.iter().filter(|test| !test.kernel.is_application()).count() as f64;
    let alone = if plan.congestors_alone { plan.congestors.len() as f64 } else { 0.0 };
    match command {
        Command::Run | Command::App | Command::Tune | Command::Sweep | Command::Burst if plan.blocks > 1 => {
            seeds.iter().map(|&seed| expected_s(plan, seed, grain)).sum()
        }
        Command::Run | Command::App | Command::Tune | Command::Sweep | Command::Burst => {
            plan.budget_s * (2.0 * canaries) + f64::from(plan.placements) * alone * plan.block_s()
        }
        // The half that is under load.
        Command::Network => plan.budget_s * canaries,
        Command::Calibrate => plan.budget_s * plan.share_of(TestState::Loaded) * canaries,
        Command::Congest => duration_s,
        Command::Maxrate | Command::Contention | Command::Beff | Command::Hpcc | Command::Map | Command::Locate => 0.0,
    }
}
