//! Whether two results may be compared: what differs between them, and how much that matters.

use std::fmt;

use serde::Serialize;

use super::{By, Side};
use crate::engine::LoadState;
use crate::lab::LabSpec;
use crate::models::beff::Beff;
use crate::models::maxrate;
use crate::plan::{CongestorTest, Counts, Plan};
use crate::result::{Command, ContentionResult, MachineRecord, ResultFile};
use crate::text::duration;

/// What two results may differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// The mix of congestors.
    Congestors,
    /// The number of ranks.
    Ranks,
    /// The number of nodes.
    Nodes,
    /// Anything else, by name: no command is asked for a comparison by it.
    Other(String),
}

impl From<&str> for Aspect {
    fn from(name: &str) -> Self {
        Aspect::Other(name.to_owned())
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Aspect::Congestors => "congestors",
            Aspect::Ranks => "ranks",
            Aspect::Nodes => "nodes",
            Aspect::Other(name) => name,
        })
    }
}

/// Something that is not the same on two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which side, compared with the first.
    pub side: String,
    /// Whether it changes what is measured, so that a ratio says little.
    pub fatal: bool,
    /// What differs.
    #[serde(skip)]
    pub aspect: Aspect,
    /// The same in words, with both sides' values.
    pub what: String,
}

impl Difference {
    /// Whether it is what the user wants to compare by, and so no obstacle.
    pub fn is_asked_for(&self, by: By) -> bool {
        match by {
            By::Congestor => self.aspect == Aspect::Congestors,
            By::Ranks => matches!(self.aspect, Aspect::Ranks | Aspect::Nodes),
            By::Transport | By::Protocol => false,
        }
    }
}

/// Load that differs by more than this makes impacts hard to compare.
const LOAD_RATIO: f64 = 2.0;

/// What was found so far of one side.
struct Found<'a> {
    side: &'a str,
    all: Vec<Difference>,
}

impl Found<'_> {
    fn tell(&mut self, fatal: bool, aspect: impl Into<Aspect>, detail: impl fmt::Display) {
        let aspect = aspect.into();
        let (side, what) = (self.side.to_owned(), format!("{aspect}: {detail}"));
        self.all.push(Difference { side, fatal, aspect, what });
    }

    #[allow(clippy::needless_pass_by_value, reason = "most values are made for it")]
    fn unlike<T: fmt::Display + PartialEq>(&mut self, fatal: bool, aspect: impl Into<Aspect>, left: T, right: T) {
        if left != right {
            self.tell(fatal, aspect, format!("{left} on the first side, {right} on this one"));
        }
    }
}

/// What differs between `first` and `other`. The transport may: that is what one compares.
pub fn differences<'a>(first: &Side<'a>, other: &Side<'a>) -> Vec<Difference> {
    let mut found = Found { side: &other.label, all: Vec::new() };
    let (a, b) = (first.file, other.file);
    let (mine, theirs) = (&a.plan, &b.plan);
    // A search is of runs, and so are settings that take turns.
    let word = |command: Command| match command {
        Command::Calibrate | Command::Tune | Command::Sweep => Command::Run.word(),
        other => other.word(),
    };
    found.unlike(true, "command", word(a.command), word(b.command));
    let network = |file: &ResultFile| file.machine.as_ref().map_or_else(|| "measured".into(), MachineRecord::title);
    found.unlike(false, "network", network(a), network(b));
    // Results of programs that do not name their nodes have none.
    let have_nodes = !a.system.nodes.is_empty() && !b.system.nodes.is_empty();
    if have_nodes && (a.is_wild() || b.is_wild()) {
        // Who measures is compared, and not who rests or loads beside: a wild job may have canaries alone.
        let measuring = |[nodes, ranks]: [usize; 2]| (format!("{nodes} measure"), format!("{ranks} measure"));
        let ((nodes, ranks), (its_nodes, its_ranks)) = (measuring(a.measuring()), measuring(b.measuring()));
        found.unlike(true, Aspect::Nodes, nodes, its_nodes);
        found.unlike(true, Aspect::Ranks, ranks, its_ranks);
    } else {
        found.unlike(true, Aspect::Ranks, a.system.ranks, b.system.ranks);
        if have_nodes {
            found.unlike(true, Aspect::Nodes, a.system.nodes.len(), b.system.nodes.len());
        }
        found.unlike(true, "canary fraction", mine.canary_fraction, theirs.canary_fraction);
    }
    found.unlike(true, "split", format!("{:?}", mine.split), format!("{:?}", theirs.split));
    // A job in the wild is held against quiet ones, in which congestors were silent too; loads of one job are there to be
    // held against each other.
    let both_load = !mine.congestors.is_empty() && !theirs.congestors.is_empty();
    let one_job = first.run.beside.is_some() && other.run.beside.is_some();
    found.unlike(both_load && !one_job, Aspect::Congestors, mix(first), mix(other));
    let pace = |plan: &Plan| plan.open_loop().unwrap_or_else(|| "one after the other".to_owned());
    found.unlike(true, "iterations of latency canaries", pace(mine), pace(theirs));
    let application =
        |plan: &Plan| plan.application.as_ref().map_or_else(|| "none".to_owned(), |of| of.command.join(" "));
    found.unlike(true, "application", application(mine), application(theirs));
    let budget = |plan: &Plan| duration(1e9 * plan.budget_s);
    found.unlike(false, "budget of a test", budget(mine), budget(theirs));
    found.unlike(false, "build", &a.build.profile, &b.build.profile);
    found.unlike(false, "CPU of rank 0's host", format!("{:?}", a.system.host.cpu), format!("{:?}", b.system.host.cpu));
    for test in &mine.canaries {
        let Some(twin) = theirs.canaries.iter().find(|twin| twin.kernel == test.kernel) else { continue };
        let (ours, its) = (test.counts, twin.counts);
        let of = |what: &str| Aspect::Other(format!("{} {what}", test.kernel));
        found.unlike(true, of("bytes"), ours.bytes, its.bytes);
        found.unlike(true, of("window"), ours.window, its.window);
        let counts = |c: Counts| format!("{} iterations, {} rings", c.iterations, c.rings);
        found.unlike(false, of("passes"), counts(ours), counts(its));
    }
    if let (Some(mine), Some(theirs)) = (&a.lab, &b.lab) {
        let [mine, theirs] = unlike_parts(&mine.spec, &theirs.spec);
        found.unlike(false, "emulated cluster", mine, theirs);
    }
    if placement(first) != placement(other) && a.system.nodes.len() == b.system.nodes.len() {
        found.tell(false, "placement", format!("other nodes or roles (seeds {} and {})", a.seed, b.seed));
    }
    if b.interrupted || a.interrupted {
        found.tell(false, "interrupted", "one side's plan was not completed");
    }
    load(first, other, &mut found);
    study(first, other, &mut found);
    found.all
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
fn study<'a>(first: &Side<'a>, other: &Side<'a>, found: &mut Found<'_>) {
    let of = |side: &Side<'a>| side.file.study_over(side.run);
    let (Some(a), Some(b)) = (of(first), of(other)) else { return };
    if let (Some(a), Some(b)) = (&a.maxrate, &b.maxrate) {
        let (a, b) = (&a.settings, &b.settings);
        found.unlike(true, "one-way messages", a.is_one_way(), b.is_one_way());
        found.unlike(false, "pairs of nodes", a.node_pairs, b.node_pairs);
        found.unlike(false, "signed parameters", a.signed, b.signed);
        found.unlike(true, "largest message", a.largest, b.largest);
        found.unlike(false, "thresholds", format!("{:?}", a.thresholds), format!("{:?}", b.thresholds));
        found.unlike(false, "weighting", format!("{:?}", a.weighting), format!("{:?}", b.weighting));
        let counts = |of: &maxrate::Settings| format!("{} repetitions, {} iterations", of.repetitions, of.iterations);
        found.unlike(false, "counts", counts(a), counts(b));
    }
    if let (Some(a), Some(b)) = (&a.contention, &b.contention) {
        found.unlike(true, "message size", a.bytes, b.bytes);
        let names = |of: &ContentionResult| of.graphs.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
        found.unlike(false, "graphs", names(a), names(b));
    }
    if let (Some(a), Some(b)) = (&a.beff, &b.beff) {
        let sizes = |of: &Beff| format!("{} and {} B", of.settings.latency_bytes, of.settings.bandwidth_bytes);
        found.unlike(true, "message sizes", sizes(a), sizes(b));
        let counts = |of: &Beff| {
            let repetitions = of.complete_repetitions.unwrap_or(1);
            format!("{} pairs, {} rings, {repetitions} repetitions", of.pairs, of.settings.rings)
        };
        found.unlike(false, "counts", counts(a), counts(b));
    }
    if let (Some(a), Some(b)) = (&a.hpcc, &b.hpcc) {
        // Figures of other sizes are other figures: STREAM within a cache, HPL with more of its time in messages.
        for size in ["HPL_N", "PTRANS_n", "DGEMM_N", "STREAM_VectorSize", "MPIRandomAccess_N", "MPIFFT_N"] {
            if let Some((a, b)) = a.figure(size).zip(b.figure(size)) {
                found.unlike(false, size, a, b);
            }
        }
    }
}

/// An emulated cluster, part by part.
fn shape(spec: &LabSpec) -> Vec<String> {
    let classes: Vec<String> = spec.bands.iter().map(ToString::to_string).collect();
    let marks = spec.mark_above().map(|above| format!(" that mark above {above} B")).unwrap_or_default();
    vec![
        format!("{} hosts", spec.hosts),
        format!("{} leaves", spec.leaves),
        format!("{} links", spec.link_rate),
        format!("{} spine", spec.spine_rate()),
        format!("{} B queues{marks}", spec.queue_bytes),
        spec.congestion_control.clone(),
        format!("{} ms to resend", spec.rto_min_ms),
        if classes.is_empty() { "no bands".into() } else { format!("bands for the classes {}", classes.join(", ")) },
        if spec.degraded.is_empty() { "no degraded links".into() } else { format!("degraded {}", spec.degradations()) },
        if spec.shaped { "shaped".into() } else { "unshaped".into() },
    ]
}

/// Those parts of two clusters that differ.
fn unlike_parts(mine: &LabSpec, theirs: &LabSpec) -> [String; 2] {
    let (mine, theirs): (Vec<String>, Vec<String>) =
        shape(mine).into_iter().zip(shape(theirs)).filter(|(mine, theirs)| mine != theirs).unzip();
    [mine.join(", "), theirs.join(", ")]
}

fn placement<'a>(side: &Side<'a>) -> Vec<(&'a str, String)> {
    let nodes = side.file.system.nodes.iter();
    nodes.map(|node| (node.name.as_str(), format!("{:?}{:?}", node.ranks, node.roles))).collect()
}

/// An impact is the answer to a load: when one side's network carried far less of it, that is said.
fn load(first: &Side<'_>, other: &Side<'_>, found: &mut Found<'_>) {
    for test in first.run.tests.iter().filter(|test| test.phase == LoadState::Loaded) {
        let Some(twin) = other.run.test(test.kernel, LoadState::Loaded) else { continue };
        let delivered = |test: &crate::result::Test| test.load.iter().map(|load| load.delivered_mib_per_s).sum::<f64>();
        let (mine, theirs) = (delivered(test), delivered(twin));
        if mine > 0.0 && theirs > 0.0 && (mine / theirs).max(theirs / mine) > LOAD_RATIO {
            let aspect = Aspect::Other(format!("load during {}", test.kernel));
            found.tell(false, aspect, format!("{mine:.0} MiB/s on the first side, {theirs:.0} on this one"));
        }
    }
}
