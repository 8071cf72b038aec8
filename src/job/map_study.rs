//! A map of pairs of nodes: what is measured, what is known from an earlier job, and what becomes of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tailback_transport::Result as TransportResult;

use super::reduce_json::tell;
use crate::analysis::locate::{MOST_ROUNDS, ProbePlan};
use crate::analysis::map::infer;
use crate::engine::OpenNetwork;
use crate::layout::Nodes;
use crate::models::StudyJob;
use crate::models::map::{Design, Progress, Settings, Task};
use crate::output::MapOutline;
use crate::result::{self, GroupsKnownBy, MapPair, MapPlace, MapProbe, MapProbes, MapResult};

/// What is asked of a map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapStudy {
    /// What is measured.
    pub settings: Settings,
    /// What of it is known.
    pub known: Option<KnownMap>,
    /// Whether suspects are to be named.
    pub locates: bool,
    /// Whether they are measured again, each alone.
    pub probes: bool,
}

/// A map that is to go on: without its figures, which only rank 0 needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KnownMap {
    nodes: Vec<String>,
    groups: Option<Vec<u32>>,
    complete_rounds: usize,
    seed: u64,
}

impl KnownMap {
    /// The seed that drew its design.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }
}

impl MapStudy {
    /// The study that goes on with the map of a result file: with its settings, whatever was asked for.
    pub(crate) fn resumed(path: &Path) -> Result<Self, String> {
        let (map, seed) = read(path)?;
        let groups = map.groups.filter(|_| map.groups_known_by != Some(GroupsKnownBy::Inferred));
        let known = KnownMap { nodes: map.nodes, groups, complete_rounds: map.complete_rounds as usize, seed };
        let settings = map.settings.ok_or_else(|| format!("{} says not how it was measured", path.display()))?;
        if map.complete_rounds >= map.rounds {
            return Err(format!("the map in {} is complete: there is nothing to resume", path.display()));
        }
        Ok(MapStudy { settings, known: Some(known), locates: false, probes: false })
    }
}

/// The map of a result file, and its seed.
fn read(path: &Path) -> Result<(MapResult, u64), String> {
    let file = result::read(path).map_err(|error| error.to_string())?;
    let mut maps: Vec<MapResult> = file.studies().into_iter().filter_map(|(_, models)| models.map.clone()).collect();
    match (maps.pop(), maps.len()) {
        (Some(map), 0) => Ok((map, file.seed)),
        (Some(_), more) => Err(format!("{} has maps of {} networks: expected one", path.display(), more + 1)),
        (None, _) => Err(format!("{} is no result of tailback map", path.display())),
    }
}

/// Whether a map's pairs are of the first rounds of a design.
fn has_only(map: &MapResult, design: &Design, rounds: usize) -> bool {
    let of_round =
        |round| (0..map.nodes.len()).filter_map(move |node| Some((node as u32, design.partner(round, node)?)));
    let pairs: BTreeSet<(u32, u32)> = (0..rounds).flat_map(of_round).collect();
    map.pairs.iter().all(|pair| pairs.contains(&(pair.from, pair.to)))
}

/// A map that is about to be measured; the same on every rank but for what is known.
pub(crate) struct MapPlan {
    pub(crate) settings: Settings,
    pub(crate) design: Design,
    /// Rounds that are known.
    pub(crate) first: usize,
    pub(crate) is_simulated: bool,
    probes: bool,
    /// Rounds of probes, once they are planned.
    probe_rounds: Cell<usize>,
    /// What there is so far; without pairs but on rank 0.
    found: RefCell<MapResult>,
}

impl MapPlan {
    /// The design for the nodes of a job. `said` is how their groups are known, if they are; `resume` the file whose figures rank 0
    /// goes on with.
    pub(crate) fn new(
        study: &MapStudy,
        (nodes, said): (&Nodes, Option<GroupsKnownBy>),
        seed: u64,
        is_simulated: bool,
        resume: Option<&Path>,
    ) -> Result<Self, String> {
        let names: Vec<String> = (0..nodes.len()).map(|node| nodes.name(node).to_owned()).collect();
        let own: Vec<u32> = (0..nodes.len()).map(|node| nodes.group_of(node) as u32).collect();
        if let Some(known) = &study.known
            && known.nodes != names
        {
            let differs = (0..names.len().max(known.nodes.len())).find(|at| known.nodes.get(*at) != names.get(*at));
            let of = |names: &[String]| differs.and_then(|at| names.get(at).cloned()).unwrap_or_else(|| "none".into());
            return Err(format!(
                "--resume: the map is of {} nodes and this job has {}; the first that differs is {} there and {} here",
                known.nodes.len(),
                names.len(),
                of(&known.nodes),
                of(&names)
            ));
        }
        let groups = match &study.known {
            Some(known) => known.groups.clone(),
            None => said.map(|_| own),
        };
        let design = Design::new(&groups.clone().unwrap_or_else(|| vec![0; names.len()]), &study.settings, seed);
        let first = study.known.as_ref().map_or(0, |known| known.complete_rounds);
        let found = match resume {
            Some(path) => {
                let found = read(path)?.0;
                if !has_only(&found, &design, first) {
                    return Err(format!(
                        "--resume: the rounds in {} are not those that this version of tailback draws with its seed: begin a new map",
                        path.display()
                    ));
                }
                found
            }
            None => MapResult {
                groups_known_by: said.filter(|_| groups.is_some()),
                group_names: if groups.is_some() { nodes.group_names().to_vec() } else { Vec::new() },
                groups,
                nodes: names,
                settings: Some(study.settings.clone()),
                bytes: study.settings.message_bytes(is_simulated) as u64,
                all_pairs: design.is_all_pairs(),
                rounds: design.rounds() as u32,
                ..MapResult::default()
            },
        };
        let (settings, found) = (study.settings.clone(), RefCell::new(found));
        Ok(MapPlan { settings, design, first, is_simulated, probes: study.probes, probe_rounds: Cell::new(0), found })
    }

    /// What is going to be measured.
    pub(crate) fn outline(&self, nodes: &Nodes) -> MapOutline {
        MapOutline {
            nodes: nodes.len(),
            groups: self.found.borrow().groups.as_ref().map(|_| nodes.group_count()),
            rounds: self.design.rounds(),
            known: self.first,
            pairs: self.design.pairs(),
            all_pairs: self.design.is_all_pairs(),
            longest: self.settings.longest(self.design.rounds().saturating_sub(self.first)),
            step: self.settings.step_time(),
            is_simulated: self.is_simulated,
            probes: self.probes.then_some(MOST_ROUNDS),
        }
    }

    /// All rounds, those of probes among them as far as they are planned.
    pub(crate) fn rounds(&self) -> usize {
        self.design.rounds() + self.probe_rounds.get()
    }

    /// Measures what is left. Collective; rank 0 has what was found so far after each part, and the whole in the end.
    pub(crate) fn measure(
        &self,
        job: StudyJob<'_>,
        network: &mut dyn OpenNetwork,
        keep: &mut dyn FnMut(&MapResult),
    ) -> TransportResult<(MapResult, usize)> {
        let root = job.bootstrap.rank().0 == 0;
        let sent_again = counted_by_itself(job.nodes);
        let (settings, design, first, is_simulated) = (&self.settings, &self.design, self.first, self.is_simulated);
        let sent_again = move || sent_again.filter(|_| !is_simulated).and_then(|count| count());
        let task = Task { settings, design, first, is_simulated, sent_again: &sent_again };
        let StudyJob { bootstrap, nodes, seed, control } = job;
        let job = StudyJob { bootstrap, nodes, seed, control };
        let mut complete = network.map(job, task, &mut |progress| {
            let mut found = self.found.borrow_mut();
            let Progress { pairs, hosts, complete } = progress;
            found.pairs.extend(pairs.into_iter().map(|(_, pair)| pair));
            // A node tells of itself in every job.
            found.hosts.retain(|old| hosts.iter().all(|new| new.node != old.node));
            found.hosts.extend(hosts);
            found.complete_rounds = complete as u32;
            keep(&found);
        })?;
        if root {
            let mut found = self.found.borrow_mut();
            found.pairs.sort_unstable_by_key(|pair| (pair.from, pair.to));
            found.hosts.sort_unstable_by_key(|host| host.node);
            infer(&mut found);
        }
        if self.probes && complete == design.rounds() {
            complete += self.probe(StudyJob { bootstrap, nodes, seed, control }, network, task, keep)?;
        }
        let mut found = if root { self.found.borrow().clone() } else { MapResult::default() };
        if let Some(probes) = &mut found.probes {
            probes.hosts.sort_unstable_by_key(|host| host.node);
            // The same pair may be there of several rounds.
            let key = |pair: &MapPair| (pair.from, pair.to, pair.one_way_bytes_per_s.map(|of| of.median.to_bits()));
            probes.probes.iter_mut().for_each(|probe| probe.pairs.sort_unstable_by_key(key));
        }
        Ok((found, complete))
    }

    /// Measures again, alone, what the map may suspect. Rank 0 decides; every rank gets the number of complete rounds.
    fn probe(
        &self,
        job: StudyJob<'_>,
        network: &mut dyn OpenNetwork,
        task: Task<'_>,
        keep: &mut dyn FnMut(&MapResult),
    ) -> TransportResult<usize> {
        let StudyJob { bootstrap, nodes, seed, control } = job;
        let root = bootstrap.rank().0 == 0;
        let plan = root.then(|| ProbePlan::of(&self.found.borrow(), seed));
        control.monitor.wait();
        let plan: ProbePlan = tell(bootstrap, plan.as_ref())?;
        control.monitor.tick();
        self.probe_rounds.set(plan.rounds.len());
        let rounds: Vec<Vec<(u32, u32)>> = plan.rounds.iter().map(|(_, pairs)| pairs.clone()).collect();
        if root {
            let probe = |(place, is_control): &(MapPlace, bool)| MapProbe {
                place: *place,
                is_control: *is_control,
                pairs: Vec::new(),
            };
            let probes = plan.probes.iter().map(probe).collect();
            self.found.borrow_mut().probes =
                Some(MapProbes { rounds: rounds.len() as u32, probes, ..MapProbes::default() });
        }
        if rounds.is_empty() {
            return Ok(0);
        }
        let design = Design::of_rounds(nodes.len(), &rounds);
        let task = Task { design: &design, first: 0, ..task };
        network.map(StudyJob { bootstrap, nodes, seed, control }, task, &mut |Progress { pairs, hosts, complete }| {
            let mut found = self.found.borrow_mut();
            let Some(probes) = &mut found.probes else { return };
            for (round, pair) in pairs {
                probes.probes[plan.rounds[round].0].pairs.push(pair);
            }
            probes.hosts.extend(hosts);
            probes.complete_rounds = complete as u32;
            keep(&found);
        })
    }
}

/// Reads what TCP of this host has sent again, where no two nodes are on one host.
fn counted_by_itself(nodes: &Nodes) -> Option<fn() -> Option<u64>> {
    let host = |node: usize| nodes.name(node).split('/').next().unwrap_or_default();
    let mut hosts: Vec<&str> = (0..nodes.len()).map(host).collect();
    hosts.sort_unstable();
    let is_shared =
        hosts.windows(2).any(|two| two[0] == two[1]) || hosts.iter().any(|host| host.starts_with("virtual"));
    (!is_shared).then_some(retransmitted as fn() -> Option<u64>)
}

/// The kernel's count of segments that were sent again, in this network namespace.
fn retransmitted() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (heads, values) = (lines.next()?, lines.next()?);
    let at = heads.split_whitespace().position(|head| head == "RetransSegs")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_are_counted_where_a_host_is_one_node() {
        assert!(retransmitted().is_some());
        assert!(counted_by_itself(&Nodes::from_hosts(&["a", "b"])).is_some());
        assert!(counted_by_itself(&Nodes::from_hosts(&["a/0", "a/1"])).is_none());
        assert!(counted_by_itself(&Nodes::virtual_nodes(2, 1)).is_none());
    }
}
