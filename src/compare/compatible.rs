//! Whether two results may be compared: what differs between them, and how much that matters.

use serde::Serialize;

use super::{By, Side};
use crate::engine::Phase;
use crate::lab::LabSpec;
use crate::models::beff::Beff;
use crate::models::maxrate;
use crate::plan::CongestorTest;
use crate::result::{Command, ContentionResult, MachineRecord, ResultFile};

/// Something that is not the same on two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which side, compared with the first.
    pub side: String,
    /// Whether it changes what is measured, so that a ratio says little.
    pub fatal: bool,
    /// What differs.
    pub what: String,
}

impl Difference {
    /// Whether it is what the user wants to compare by, and so no obstacle.
    pub fn is_asked_for(&self, by: By) -> bool {
        let about = |what: &str| self.what.starts_with(&format!("{what}:"));
        match by {
            By::Congestor => about(CONGESTORS),
            By::Ranks => about(RANKS) || about(NODES),
            By::Transport | By::Protocol => false,
        }
    }
}

const CONGESTORS: &str = "congestors";
const RANKS: &str = "ranks";
const NODES: &str = "nodes";

/// Load that differs by more than this makes impacts hard to compare.
const LOAD_RATIO: f64 = 2.0;

/// What differs between `first` and `other`. The transport may: that is what one compares.
pub fn differences<'a>(first: &Side<'a>, other: &Side<'a>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut tell = |fatal: bool, what: String| {
        found.push(Difference { side: other.label.clone(), fatal, what });
    };
    let (a, b) = (first.file, other.file);
    let (mine, theirs) = (&a.plan, &b.plan);
    let mut unlike = |fatal: bool, what: &str, left: String, right: String| {
        if left != right {
            tell(fatal, format!("{what}: {left} on the first side, {right} on this one"));
        }
    };
    // A search is of runs.
    let word = |command: Command| if command == Command::Calibrate { Command::Run.word() } else { command.word() };
    unlike(true, "command", word(a.command).into(), word(b.command).into());
    let network = |file: &ResultFile| file.machine.as_ref().map_or_else(|| "measured".into(), MachineRecord::title);
    unlike(false, "network", network(a), network(b));
    unlike(true, RANKS, a.system.ranks.to_string(), b.system.ranks.to_string());
    // Results of programs that do not name their nodes have none.
    if !a.system.nodes.is_empty() && !b.system.nodes.is_empty() {
        unlike(true, NODES, a.system.nodes.len().to_string(), b.system.nodes.len().to_string());
    }
    unlike(true, "canary fraction", mine.canary_fraction.to_string(), theirs.canary_fraction.to_string());
    unlike(true, "split", format!("{:?}", mine.split), format!("{:?}", theirs.split));
    // A job in the wild is held against quiet ones, in which congestors were silent too; loads of one job are there to be
    // held against each other.
    let both_load = !mine.congestors.is_empty() && !theirs.congestors.is_empty();
    let one_job = first.run.beside.is_some() && other.run.beside.is_some();
    unlike(both_load && !one_job, CONGESTORS, mix(first), mix(other));
    let pace = |plan: &crate::plan::Plan| {
        plan.pace_s.map_or_else(|| "one after the other".to_owned(), |pace| format!("every {} ms", 1e3 * pace))
    };
    unlike(true, "iterations of latency canaries", pace(mine), pace(theirs));
    let application = |plan: &crate::plan::Plan| {
        plan.application.as_ref().map_or_else(|| "none".to_owned(), |of| of.command.join(" "))
    };
    unlike(true, "application", application(mine), application(theirs));
    unlike(false, "budget of a test in s", mine.budget_s.to_string(), theirs.budget_s.to_string());
    unlike(false, "build", a.build.profile.clone(), b.build.profile.clone());
    unlike(false, "CPU of rank 0's host", format!("{:?}", a.system.host.cpu), format!("{:?}", b.system.host.cpu));
    for test in &mine.canaries {
        let Some(twin) = theirs.canaries.iter().find(|twin| twin.kernel == test.kernel) else { continue };
        let (ours, its) = (test.counts, twin.counts);
        unlike(true, &format!("{} bytes", test.kernel), ours.bytes.to_string(), its.bytes.to_string());
        unlike(true, &format!("{} window", test.kernel), ours.window.to_string(), its.window.to_string());
        let counts = |c: crate::plan::Counts| format!("{} iterations, {} rings", c.iterations, c.rings);
        unlike(false, &format!("{} passes", test.kernel), counts(ours), counts(its));
    }
    if let (Some(mine), Some(theirs)) = (&a.lab, &b.lab) {
        let mine = LabSpec { name: theirs.spec.name.clone(), ..mine.spec.clone() };
        unlike(false, "emulated cluster", shape(&mine), shape(&theirs.spec));
    }
    if placement(first) != placement(other) && a.system.nodes.len() == b.system.nodes.len() {
        tell(false, format!("placement: other nodes or roles (seeds {} and {})", a.seed, b.seed));
    }
    if b.interrupted || a.interrupted {
        tell(false, "interrupted: one side's plan was not completed".into());
    }
    load(first, other, &mut tell);
    study(first, other, &mut tell);
    found
}

/// The congestors of a side with their shares.
fn mix(side: &Side<'_>) -> String {
    let beside = side.run.beside.as_deref();
    let single = |test: &&CongestorTest| beside == Some(test.kernel.info().key);
    let all: Vec<&CongestorTest> = side.file.plan.congestors.iter().collect();
    let tests = all.iter().copied().find(single).map_or(all, |test| vec![test]);
    let total: f64 = tests.iter().map(|test| test.weight).sum();
    let share = |test: &&CongestorTest| {
        format!("{} {:.0}% of {} B", test.kernel, 100.0 * test.weight / total, test.counts.bytes)
    };
    let shares: Vec<String> = tests.iter().map(share).collect();
    if shares.is_empty() { "none".to_owned() } else { shares.join(" + ") }
}

/// Studies: sizes and directions change what is measured, counts how well.
fn study<'a>(first: &Side<'a>, other: &Side<'a>, tell: &mut impl FnMut(bool, String)) {
    let of = |side: &Side<'a>| side.file.study_over(side.run);
    let (Some(a), Some(b)) = (of(first), of(other)) else { return };
    let mut unlike = |fatal: bool, what: &str, left: String, right: String| {
        if left != right {
            tell(fatal, format!("{what}: {left} on the first side, {right} on this one"));
        }
    };
    if let (Some(a), Some(b)) = (&a.maxrate, &b.maxrate) {
        let (a, b) = (&a.settings, &b.settings);
        unlike(true, "one-way messages", a.is_one_way().to_string(), b.is_one_way().to_string());
        unlike(false, "pairs of nodes", a.node_pairs.to_string(), b.node_pairs.to_string());
        unlike(false, "signed parameters", a.signed.to_string(), b.signed.to_string());
        unlike(true, "largest message", a.largest.to_string(), b.largest.to_string());
        unlike(false, "thresholds", format!("{:?}", a.thresholds), format!("{:?}", b.thresholds));
        unlike(false, "weighting", format!("{:?}", a.weighting), format!("{:?}", b.weighting));
        let counts = |of: &maxrate::Settings| format!("{} repetitions, {} iterations", of.repetitions, of.iterations);
        unlike(false, "counts", counts(a), counts(b));
    }
    if let (Some(a), Some(b)) = (&a.contention, &b.contention) {
        unlike(true, "message size", a.bytes.to_string(), b.bytes.to_string());
        let names = |of: &ContentionResult| of.graphs.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
        unlike(false, "graphs", names(a), names(b));
    }
    if let (Some(a), Some(b)) = (&a.beff, &b.beff) {
        let sizes = |of: &Beff| format!("{} and {} B", of.settings.latency_bytes, of.settings.bandwidth_bytes);
        unlike(true, "message sizes", sizes(a), sizes(b));
        let counts = |of: &Beff| {
            let repetitions = of.complete_repetitions.unwrap_or(1);
            format!("{} pairs, {} rings, {repetitions} repetitions", of.pairs, of.settings.rings)
        };
        unlike(false, "counts", counts(a), counts(b));
    }
    if let (Some(a), Some(b)) = (&a.hpcc, &b.hpcc) {
        // Figures of other sizes are other figures: STREAM within a cache, HPL with more of its time in messages.
        for size in ["HPL_N", "PTRANS_n", "DGEMM_N", "STREAM_VectorSize", "MPIRandomAccess_N", "MPIFFT_N"] {
            if let Some((a, b)) = a.figure(size).zip(b.figure(size)) {
                unlike(false, size, a.to_string(), b.to_string());
            }
        }
    }
}

/// An emulated cluster in a line.
fn shape(spec: &LabSpec) -> String {
    let LabSpec { hosts, leaves, link_rate, queue_bytes, bands, congestion_control, rto_min_ms, shaped, .. } = spec;
    let (spine, links) = (spec.spine_rate(), if *shaped { "" } else { ", unshaped" });
    let bands = if bands.is_empty() { String::new() } else { format!(", bands for the classes {bands:?}") };
    let marks = spec.mark_above().map(|above| format!(" that mark above {above} B")).unwrap_or_default();
    format!(
        "{hosts} hosts on {leaves} leaves, {link_rate} links, {spine} spine, {queue_bytes} B queues{marks}, \
         {congestion_control}, {rto_min_ms} ms to resend{bands}{links}"
    )
}

fn placement<'a>(side: &Side<'a>) -> Vec<(&'a str, String)> {
    let nodes = side.file.system.nodes.iter();
    nodes.map(|node| (node.name.as_str(), format!("{:?}{:?}", node.ranks, node.roles))).collect()
}

/// An impact is the answer to a load: when one side's network carried far less of it, that is said.
fn load(first: &Side<'_>, other: &Side<'_>, tell: &mut impl FnMut(bool, String)) {
    for test in first.run.tests.iter().filter(|test| test.phase == Phase::Loaded) {
        let Some(twin) = other.run.test(test.kernel, Phase::Loaded) else { continue };
        let delivered = |test: &crate::result::Test| test.load.iter().map(|load| load.delivered_mib_per_s).sum::<f64>();
        let (mine, theirs) = (delivered(test), delivered(twin));
        if mine > 0.0 && theirs > 0.0 && (mine / theirs).max(theirs / mine) > LOAD_RATIO {
            tell(
                false,
                format!("load during {}: {mine:.0} MiB/s on the first side, {theirs:.0} on this one", test.kernel),
            );
        }
    }
}
