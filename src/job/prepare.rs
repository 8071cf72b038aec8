//! Everything that can be known to be wrong before the first message is measured.

use std::sync::Arc;

use tailback_host::near::core_list;
use tailback_transport::{
    Bootstrap, Capabilities, Description, Monitor, Nanos, Rank, Result as TransportResult, Support,
};

use super::host_counters::HostCounters;
use super::pair;
use super::reduce_json::{gather, tell};
use super::request::{Decision, Request};
use crate::backend::{Networks, RankHost, RoleSettings, Variant};
use crate::counters::Device;
use crate::engine::{REAL_GRAIN, VIRTUAL_GRAIN};
use crate::layout::{Layout, LayoutError, Loads, Nodes, Placement};
use crate::plan::{CongestorTest, Plan, SweptValue, point_name};
use crate::result::{Command, RankEnds, WatcherEnd};

/// Everything that is known before the first message is measured.
pub(crate) struct Session<'a> {
    pub request: &'a Request,
    pub monitor: &'a Arc<Monitor>,
    /// Whether this is rank 0.
    pub root: bool,
    pub decision: Decision,
    /// What the user asked for, or what was drawn; a simulated job's is made of its node names.
    pub seed: u64,
    pub nodes: Nodes,
    /// Every rank's host, which virtual nodes have in common.
    pub hosts: Vec<String>,
    /// The loads that take turns.
    pub mixes: Vec<Mix>,
    /// This rank's part in reading counters.
    pub host_counters: HostCounters,
    /// Where every rank's data leaves; on rank 0.
    pub ends: Vec<RankEnds>,
}

pub(crate) enum Prepared<'a> {
    Ready(Box<Session<'a>>),
    /// The user was told why not: end with this code.
    Told(u8),
}

impl<'a> Session<'a> {
    /// Everything that can be known to be wrong before the first run is found out here. Every network is opened for that.
    pub(crate) fn prepare(
        request: &'a Request,
        networks: &mut Networks<'_>,
        monitor: &'a Arc<Monitor>,
    ) -> TransportResult<Prepared<'a>> {
        let bootstrap = networks.bootstrap();
        let root = bootstrap.rank() == Rank(0);
        let mine = root.then(|| request.decide());
        let decision: Result<Decision, String> = tell(bootstrap, mine.as_ref())?;
        let places = networks.places()?;
        let prepared = decision.and_then(|decision| {
            // The nodes of a machine are its own, however many ranks were asked for on each; a study's are those it counts.
            let own = request.settings.machine.is_some() && decision.study.is_none();
            let per_node = decision.plan.ranks_per_node.filter(|_| !own);
            let nodes = grouped(nodes(per_node, &places), &decision, &places)?;
            let hosts = places.iter().map(|place| place.host.clone()).collect();
            let (seed, mixes) = (decision.seed.unwrap_or_else(|| nodes.seed()), Mix::all_of(&decision.plan));
            let session = Session {
                request,
                monitor,
                root,
                seed,
                decision,
                nodes,
                hosts,
                mixes,
                host_counters: HostCounters::default(),
                ends: Vec::new(),
            };
            if session.decision.study.is_none() {
                for mix in &session.mixes {
                    let problem = |error| format!("{}{error}", mix.prefix());
                    session.layout(0, &mix.plan).map_err(problem)?;
                }
                session.check_shares()?;
            }
            Ok(session)
        });
        // Every rank comes to the same answer, so one tells the user and all end alike.
        let refused = |message: &str| {
            if root {
                eprintln!("tailback: error: {message}");
            }
            Ok(Prepared::Told(2))
        };
        let session = match prepared {
            Ok(session) => session,
            Err(message) => return refused(&message),
        };
        if request.pair_with.is_some() {
            let plan = &session.decision.plan;
            let check = || pair::check(request, &session.nodes, plan, |index| session.layout(index, plan));
            let mine = root.then(check);
            if let Err(message) = tell::<Result<(), String>>(networks.bootstrap(), mine.as_ref())? {
                return refused(&message);
            }
        }
        // A study asks each network when its time comes.
        if session.decision.study.is_some() {
            return Ok(Prepared::Ready(Box::new(session)));
        }
        let variants = networks.variants().to_vec();
        let mut descriptions: Vec<Description> = Vec::new();
        for &variant in &variants {
            let ([canary, congestor], of_pair) =
                networks.open(variant, &|_| RoleSettings::default(), &|_, networks| {
                    let canaries = (networks.canaries.capabilities(), networks.canaries.describe());
                    let congestors = (networks.congestors().capabilities(), networks.congestors().describe());
                    Ok(([canaries.0, congestors.0], [canaries.1, congestors.1]))
                })?;
            descriptions.extend(of_pair);
            let checked = session
                .mixes
                .iter()
                .filter(|mix| variant.fits(&mix.plan.part))
                .try_for_each(|mix| check_operations(&session.decision, &mix.plan, &canary, &congestor));
            if let Err(message) = checked {
                return refused(&if variants.len() > 1 { format!("{}: {message}", variant.label()) } else { message });
            }
        }
        // A simulated network counts by itself and has no devices; and a dry run runs nothing.
        if request.settings.machine.is_some() || session.decision.dry_run {
            return Ok(Prepared::Ready(Box::new(session)));
        }
        let ends = all_ends(networks.bootstrap(), &descriptions)?;
        let session = Session { ends, ..session };
        if request.counters.no_counters {
            return Ok(Prepared::Ready(Box::new(session)));
        }
        let mine: Option<Vec<Vec<Device>>> = descriptions.iter().map(Device::of).collect();
        let mine = mine.unwrap_or_default().concat();
        match HostCounters::prepare(networks.bootstrap(), &request.counters, &places, &mine)? {
            Ok(host_counters) => Ok(Prepared::Ready(Box::new(Session { host_counters, ..session }))),
            Err(message) => refused(&message),
        }
    }
}

/// Every rank's ends, on rank 0. Collective over the job.
fn all_ends(bootstrap: &mut dyn Bootstrap, mine: &[Description]) -> TransportResult<Vec<RankEnds>> {
    let watcher = bootstrap.monitor().and_then(Monitor::watch_post).map(WatcherEnd::of);
    let ends = RankEnds { watcher, ..RankEnds::of(bootstrap.rank().0, core_list(), mine) };
    let mut ends = gather(bootstrap, &[ends])?;
    ends.sort_by_key(|of| of.rank);
    Ok(ends)
}

fn nodes(per_node: Option<usize>, places: &[RankHost]) -> Nodes {
    match per_node {
        Some(per_node) => Nodes::virtual_nodes(places.len(), per_node),
        None => Nodes::from_hosts(&places.iter().map(|place| place.host.as_str()).collect::<Vec<_>>()),
    }
}

/// The nodes with the groups that the user named, or else their environment does.
fn grouped(nodes: Nodes, decision: &Decision, places: &[RankHost]) -> Result<Nodes, String> {
    let Some(said) = &decision.groups else {
        let told: Vec<&str> = places.iter().map(|place| place.group.as_str()).collect();
        return Ok(nodes.with_groups(&told));
    };
    let mut of_ranks = vec![String::new(); nodes.rank_count()];
    for node in 0..nodes.len() {
        let name = nodes.name(node);
        // Several nodes of one host are called host/0, host/1.
        let host = name.split_once('/').map_or(name, |(host, _)| host);
        let group = said.of(name, host)?;
        nodes.ranks(node).iter().for_each(|rank| of_ranks[rank.index()].clone_from(&group));
    }
    Ok(nodes.with_groups(&of_ranks))
}

impl Session<'_> {
    /// Who does what on one of the placements, with the congestors of `plan`.
    pub(crate) fn layout(&self, index: u32, plan: &Plan) -> Result<Layout, LayoutError> {
        let nodes = self.nodes.clone().within(plan.part.nodes, plan.part.ranks_per_node);
        let (weights, only) = self.shares(plan);
        let loads = Loads { weights: &weights, fraction: plan.load_fraction, only };
        match self.decision.command {
            Command::Run | Command::App | Command::Tune | Command::Sweep | Command::Burst | Command::Calibrate => {
                Layout::load_test(nodes, self.placement(index), plan.canary_fraction, loads, plan.split)
            }
            // A study never gets here: it has no plan.
            Command::Network
            | Command::Maxrate
            | Command::Contention
            | Command::Beff
            | Command::Hpcc
            | Command::Map
            | Command::Locate => Layout::canaries_only(nodes),
            Command::Congest => Layout::congestors_only(nodes, self.seed, loads),
        }
    }

    /// A congestor that is to run by itself on its own share has one.
    fn check_shares(&self) -> Result<(), String> {
        for mix in self.mixes.iter().filter(|mix| mix.plan.each_own_share && !mix.plan.congestors.is_empty()) {
            let layout = self.layout(0, &mix.plan).map_err(|error| error.to_string())?;
            if self.decision.command != Command::Network && layout.congestor_nodes() == 0 {
                return Err(format!(
                    "{} has no node among all congestors, so none of its own: use more nodes or fewer congestors, or \
                     --congestors each, which gives every one all congestor nodes",
                    mix.plan.congestors[0].kernel
                ));
            }
        }
        Ok(())
    }

    /// The kinds of congestors that nodes are dealt out among, and which of them is the plan's only one where each has its own
    /// share.
    fn shares(&self, plan: &Plan) -> (Vec<(&'static str, f64)>, Option<usize>) {
        let all = &self.decision.plan.congestors;
        match &plan.congestors[..] {
            [single] if plan.each_own_share && all.len() > 1 => {
                let only = all.iter().position(|test| test.kernel == single.kernel);
                (self.decision.plan.weights(), only)
            }
            _ => (plan.weights(), None),
        }
    }

    /// What is run on every placement, in order: over every network, beside every load. A point of a sweep may name its network.
    pub(crate) fn runs(&self, variants: &[Variant]) -> Vec<(Variant, usize)> {
        let mixes = &self.mixes;
        let fits = |variant: Variant| (0..mixes.len()).filter(move |&at| variant.fits(&mixes[at].plan.part));
        variants.iter().flat_map(|&variant| fits(variant).map(move |mix| (variant, mix))).collect()
    }

    pub(crate) fn placement(&self, index: u32) -> Placement {
        Placement { seed: self.seed, index, policy: self.decision.plan.placement }
    }

    /// The shortest time for which load is looked at by itself.
    pub(crate) fn grain(&self) -> Nanos {
        if self.request.settings.machine.is_some() { VIRTUAL_GRAIN } else { REAL_GRAIN }
    }

    /// How many placements are measured, at least.
    pub(crate) fn placements(&self) -> u32 {
        if self.decision.command.is_load_test() { self.decision.plan.placements } else { 1 }
    }
}

/// Refuses kernels that their network cannot run, before anything runs.
fn check_operations(
    decision: &Decision,
    plan: &Plan,
    canary: &Capabilities,
    congestor: &Capabilities,
) -> Result<(), String> {
    let (canaries, congestors) = decision.kernels(plan);
    let of_canaries = canaries.into_iter().map(|info| (info, canary));
    let used = of_canaries.chain(congestors.into_iter().map(|info| (info, congestor)));
    for (info, capabilities) in used {
        for &operation in info.needs {
            if let Support::No(reason) = capabilities.of(operation) {
                return Err(format!("{} needs {operation}, which is not supported here: {reason}", info.key));
            }
        }
    }
    Ok(())
}

/// What all congestors together are called beside single ones.
const TOGETHER: &str = "all";

/// What takes turns on every placement: the plan's congestors together, each of them by itself first, or on several parts of the
/// nodes; or canaries' message sizes; or points of a sweep, with all that is their own.
pub(crate) struct Mix {
    /// What the load is called, where there are several.
    pub name: Option<String>,
    /// The message size, where there are several.
    pub size: Option<usize>,
    /// The values of swept keys.
    pub point: Vec<SweptValue>,
    /// The plan with its congestors, its size and its point only.
    pub plan: Plan,
}

impl Mix {
    /// Those of a plan. The same nodes measure under each.
    pub(crate) fn all_of(plan: &Plan) -> Vec<Mix> {
        let points = plan.points().expect("a plan that exists is valid");
        if !points.is_empty() {
            return points.into_iter().map(|of| Mix { point: of.values, ..Mix::unnamed(of.plan) }).collect();
        }
        if !plan.sizes.is_empty() {
            let of = |&bytes: &usize| Mix { size: Some(bytes), ..Mix::unnamed(plan.of_size(bytes)) };
            return plan.sizes.iter().map(of).collect();
        }
        if plan.load_fractions.len() > 1 {
            let part = |&load_fraction: &f64| {
                let plan = Plan { load_fraction, load_fractions: Vec::new(), ..plan.clone() };
                Mix::named(format!("{}% load", (1e5 * load_fraction).round() / 1e3), plan)
            };
            return plan.load_fractions.iter().map(part).collect();
        }
        if !plan.each_congestor || plan.congestors.len() < 2 {
            return vec![Mix::unnamed(plan.clone())];
        }
        let single =
            |test: CongestorTest| Mix::named(test.kernel.to_string(), Plan { congestors: vec![test], ..plan.clone() });
        let together = Mix::named(TOGETHER.to_owned(), plan.clone());
        plan.congestors.iter().copied().map(single).chain([together]).collect()
    }

    fn named(name: String, plan: Plan) -> Self {
        Mix { name: Some(name), ..Mix::unnamed(plan) }
    }

    fn unnamed(plan: Plan) -> Self {
        Mix { name: None, size: None, point: Vec::new(), plan }
    }

    /// What stands before a problem with it.
    fn prefix(&self) -> String {
        if self.point.is_empty() { String::new() } else { format!("{}: ", point_name(&self.point)) }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Preset;

    use super::*;

    #[test]
    fn parts_of_the_load_have_turns() {
        let plan = Plan { load_fractions: vec![0.125, 0.5, 1.0], ..Preset::Lab.plan() };
        let mixes = Mix::all_of(&plan);
        let names: Vec<&str> = mixes.iter().filter_map(|mix| mix.name.as_deref()).collect();
        assert_eq!(names, ["12.5% load", "50% load", "100% load"]);
        assert_eq!(mixes.iter().map(|mix| mix.plan.load_fraction).collect::<Vec<_>>(), [0.125, 0.5, 1.0]);
        assert!(mixes.iter().all(|mix| mix.plan.load_fractions.is_empty() && mix.plan.congestors.len() == 2));
    }

    #[test]
    fn each_congestor_has_a_turn_and_then_all_have() {
        let plan = Plan { each_congestor: true, ..Preset::Lab.plan() };
        let mixes = Mix::all_of(&plan);
        let names: Vec<&str> = mixes.iter().filter_map(|mix| mix.name.as_deref()).collect();
        assert_eq!(names, ["a2a", "incast", "all"]);
        let counts: Vec<usize> = mixes.iter().map(|mix| mix.plan.congestors.len()).collect();
        assert_eq!(counts, [1, 1, 2]);
        let sized = Mix::all_of(&Plan { sizes: vec![8, 64], ..Preset::Quick.plan() });
        let sizes: Vec<_> = sized.iter().map(|mix| (mix.size, mix.plan.canaries[0].counts.bytes)).collect();
        assert_eq!(sizes, [(Some(8), 8), (Some(64), 64)]);
        let plain = Mix::all_of(&Preset::Lab.plan());
        assert!(plain.len() == 1 && plain[0].name.is_none());
    }
}
