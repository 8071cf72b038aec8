//! Roles: which ranks measure (canaries) and which load the network (congestors), and who works with whom.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tailback_transport::Rank;

use super::Nodes;
use super::duties::{Duty, Loads, deal_loads};
use super::policy::{Placement, Policy, natural};

/// What a rank does. A congestor carries the index of its kind in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It measures.
    Canary,
    /// It loads the network, with the plan's n-th congestor.
    Congestor(usize),
    /// It has no partner on another node and only keeps the others company at barriers.
    Idle,
}

/// How roles are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// By node; by slice when there are too few nodes for both roles.
    #[default]
    Auto,
    /// A node's ranks all have one role.
    Node,
    /// Canaries and congestors share every node: the first slices measure, the others load.
    Slice,
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Split::Auto => "auto",
            Split::Node => "node",
            Split::Slice => "slice",
        })
    }
}

/// Why no layout exists.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LayoutError {
    #[error(
        "at least 2 nodes are needed, and there is {nodes}: messages between ranks of one node are not measured (on one host, --ranks-per-node 1 makes every rank a node of its own)"
    )]
    TooFewNodes { nodes: usize },
    #[error("a job of one rank has nobody to talk to: start at least 2 (-n 2 on one machine)")]
    Alone,
    #[error(
        "{nodes} nodes, one of them with a single rank, cannot hold canaries and congestors: use at least 4 nodes, or 2 ranks per node, or `tailback network` to measure without load"
    )]
    NoRoomForLoad { nodes: usize },
    #[error("--split slice needs at least 2 ranks on every node; the smallest node has {ranks}")]
    NoSlicesToSplit { ranks: usize },
    #[error("--split node needs at least 4 nodes, 2 for canaries and 2 for congestors; there are {nodes}")]
    NoNodesToSplit { nodes: usize },
    #[error("the job has {nodes} nodes: start it on more, or lower the number")]
    TooManyNodes { nodes: usize },
    #[error("the smallest node of the job has {ranks}: start more ranks on each node, or lower the number")]
    TooManyRanks { ranks: usize },
}

/// Every rank's role and team.
#[derive(Clone, Debug)]
pub struct Layout {
    nodes: Nodes,
    /// Nodes in shuffled order.
    order: Vec<u32>,
    /// A node's place in `order`.
    place: Vec<u32>,
    /// What each place in the order is for; those behind have no role.
    duties: Vec<Duty>,
    split: Deal,
    /// How many ranks each team has, so that a rank without partners is known at once.
    team_sizes: HashMap<(Role, usize), u32>,
    /// What the user should know about how the layout came to be.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Deal {
    ByNode,
    /// Slices below this one measure.
    BySlice(usize),
}

impl Layout {
    /// Every rank measures; nodes stand in the order of their groups and names, n2 before n10.
    pub fn canaries_only(nodes: Nodes) -> Result<Self, LayoutError> {
        require_two(&nodes)?;
        let order = natural(&nodes);
        let duties = vec![Duty::Measure; nodes.len()];
        Ok(Self::new(nodes, order, duties, Deal::ByNode, Vec::new()))
    }

    /// Every rank loads the network with a kind of congestor, or as many as `loads` says.
    pub fn congestors_only<'l>(nodes: Nodes, seed: u64, loads: impl Into<Loads<'l>>) -> Result<Self, LayoutError> {
        require_two(&nodes)?;
        let mut notes = Vec::new();
        let duties = deal_loads(nodes.len(), loads.into(), &mut notes);
        let order = Placement::random(seed).order(&nodes, 0);
        Ok(Self::new(nodes, order, duties, Deal::ByNode, notes))
    }

    /// The load test: `canary_fraction` of the nodes (or slices) measure, the others load, or rest where there is no
    /// congestor. Where nothing loads, all nodes may measure.
    pub fn load_test<'l>(
        nodes: Nodes,
        placement: Placement,
        canary_fraction: f64,
        loads: impl Into<Loads<'l>>,
        split: Split,
    ) -> Result<Self, LayoutError> {
        require_two(&nodes)?;
        require_asked(&nodes)?;
        let loads = loads.into();
        let (count, fewest) = (nodes.used(), nodes.fewest_ranks());
        let mut notes = Vec::new();
        let all_measure = canary_fraction >= 1.0 && loads.weights.is_empty();
        let by_slice = match split {
            _ if all_measure => false,
            Split::Node if count < 4 => return Err(LayoutError::NoNodesToSplit { nodes: count }),
            Split::Slice if fewest < 2 => return Err(LayoutError::NoSlicesToSplit { ranks: fewest }),
            Split::Auto if count < 4 && fewest < 2 => {
                return Err(LayoutError::NoRoomForLoad { nodes: count });
            }
            Split::Auto if count < 4 => {
                notes
                    .push(format!("{count} nodes are too few for separate roles: canaries and congestors share nodes"));
                true
            }
            Split::Slice => true,
            Split::Node | Split::Auto => false,
        };
        if by_slice {
            // The smallest node decides, so that every node has both roles.
            let canary_slices = ((canary_fraction * fewest as f64).round() as usize).clamp(1, fewest - 1);
            let duties = deal_loads(count, loads, &mut notes);
            // Every node measures: what a policy can choose is who loads how.
            let drawn = Placement { policy: Policy::Random, ..placement };
            let order = drawn.order(&nodes, 0);
            return Ok(Self::new(nodes, order, duties, Deal::BySlice(canary_slices), notes));
        }
        let wanted = ((1.0 - canary_fraction) * count as f64 + 1e-9).floor() as usize;
        let congestors = if all_measure { 0 } else { wanted.clamp(2, count - 2) };
        if congestors != wanted {
            let do_what = if loads.weights.is_empty() { "stay idle" } else { "load the network" };
            notes.push(format!(
                "{} nodes measure and {congestors} {do_what}: not the plan's shares, since each role needs at least 2 nodes",
                count - congestors
            ));
        }
        let mut duties = deal_loads(congestors, loads, &mut notes);
        duties.resize(count, Duty::Measure);
        let order = placement.order(&nodes, count - congestors);
        Ok(Self::new(nodes, order, duties, Deal::ByNode, notes))
    }

    fn new(nodes: Nodes, mut order: Vec<u32>, duties: Vec<Duty>, split: Deal, notes: Vec<String>) -> Self {
        // Nodes without a role have no duty.
        order.extend(nodes.used() as u32..nodes.len() as u32);
        let mut place = vec![0u32; order.len()];
        for (at, &node) in order.iter().enumerate() {
            place[node as usize] = at as u32;
        }
        let mut layout = Layout { nodes, order, place, duties, split, team_sizes: HashMap::new(), notes };
        for at in 0..layout.order.len() {
            for slice in 0..layout.nodes.ranks(layout.order[at] as usize).len() {
                *layout.team_sizes.entry((layout.dealt(at, slice), slice)).or_default() += 1;
            }
        }
        let alone = |((role, _), size): &(&(Role, usize), &u32)| **size < 2 && *role != Role::Idle;
        let idle = layout.team_sizes.iter().filter(alone).count();
        if idle > 0 {
            layout
                .notes
                .push(format!("ranks that sit idle, because their slice has no second node of their role: {idle}"));
        }
        layout
    }

    /// The nodes it is laid over.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// What a rank does.
    pub fn role(&self, rank: Rank) -> Role {
        let (node, slice) = (self.nodes.node_of(rank), self.nodes.slice_of(rank));
        let role = self.dealt(self.place[node] as usize, slice);
        if self.team_sizes[&(role, slice)] < 2 { Role::Idle } else { role }
    }

    /// The ranks that work with `rank`: its slice among the nodes of its role. Nothing for an idle rank.
    pub fn team(&self, rank: Rank) -> Vec<Rank> {
        match self.role(rank) {
            Role::Idle => Vec::new(),
            role => self.team_members(role, self.nodes.slice_of(rank)).collect(),
        }
    }

    /// Every rank that measures, slice by slice.
    pub fn canaries(&self) -> Vec<Rank> {
        let mut all = Vec::new();
        for slice in 0..self.nodes.slices() {
            let team: Vec<Rank> = self.team_members(Role::Canary, slice).collect();
            if team.len() >= 2 {
                all.extend(team);
            }
        }
        all
    }

    /// The size of the largest team of a role, over all slices.
    pub fn largest_team(&self, role: Role) -> usize {
        let sizes = self.team_sizes.iter().filter(|((of, _), _)| *of == role).map(|(_, &size)| size);
        sizes.max().unwrap_or(0) as usize
    }

    /// The size of every team of a role; nothing where teams differ.
    pub fn team_size(&self, role: Role) -> Option<usize> {
        let mut sizes =
            self.team_sizes.iter().filter(|((of, _), size)| *of == role && **size > 1).map(|(_, &size)| size);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first as usize)
    }

    /// How many nodes have at least one rank of `role`.
    pub fn nodes_with(&self, role: Role) -> usize {
        match (self.split, role) {
            (Deal::BySlice(_), Role::Canary) => self.duties.len(),
            (_, Role::Canary) => self.places_for(|duty| duty == Duty::Measure),
            (_, Role::Congestor(kind)) => self.places_for(|duty| duty == Duty::Load(kind as u16)),
            (_, Role::Idle) => 0,
        }
    }

    /// How many nodes load the network or rest.
    pub fn other_nodes(&self) -> usize {
        self.places_for(|duty| duty != Duty::Measure)
    }

    /// How many nodes load the network, with any kind.
    pub fn congestor_nodes(&self) -> usize {
        self.places_for(|duty| matches!(duty, Duty::Load(_)))
    }

    fn places_for(&self, wanted: impl Fn(Duty) -> bool) -> usize {
        self.duties.iter().filter(|duty| wanted(**duty)).count()
    }

    /// What kind of placement it is: how many nodes measure in each group that is known, most first. Placements that
    /// differ in it answer different questions.
    pub fn kind(&self) -> String {
        let mut counts = vec![0usize; self.nodes.group_count()];
        for node in (0..self.nodes.len()).filter(|&node| self.roles_on(node).contains(&Role::Canary)) {
            counts[self.nodes.group_of(node)] += 1;
        }
        if counts.len() < 2 {
            return "canaries anywhere".into();
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        format!("canaries {} over {} groups", counts.join("+"), counts.len())
    }

    /// What each rank of a node does, as its distinct roles.
    pub fn roles_on(&self, node: usize) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for &rank in self.nodes.ranks(node) {
            let role = self.role(rank);
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        roles
    }

    fn dealt(&self, place: usize, slice: usize) -> Role {
        let Some(&duty) = self.duties.get(place).filter(|_| self.nodes.uses_slice(slice)) else { return Role::Idle };
        match (self.split, duty) {
            (Deal::BySlice(canary_slices), _) if slice < canary_slices => Role::Canary,
            (_, Duty::Load(kind)) => Role::Congestor(kind.into()),
            (_, Duty::Measure) => Role::Canary,
            (_, Duty::Rest) => Role::Idle,
        }
    }

    fn team_members(&self, role: Role, slice: usize) -> impl Iterator<Item = Rank> + '_ {
        self.order
            .iter()
            .enumerate()
            .filter(move |(place, _)| self.dealt(*place, slice) == role)
            .filter_map(move |(_, &node)| self.nodes.ranks(node as usize).get(slice).copied())
    }
}

/// A part of the job cannot be more than all of it.
fn require_asked(nodes: &Nodes) -> Result<(), LayoutError> {
    let asked = nodes.asked();
    if asked.nodes.is_some_and(|wanted| wanted > nodes.len()) {
        return Err(LayoutError::TooManyNodes { nodes: nodes.len() });
    }
    // The smallest node decides: every node is to have as many.
    match nodes.fewest_ranks() {
        ranks if asked.ranks.is_some_and(|wanted| wanted > ranks) => Err(LayoutError::TooManyRanks { ranks }),
        _ => Ok(()),
    }
}

fn require_two(nodes: &Nodes) -> Result<(), LayoutError> {
    match nodes.used() {
        0 | 1 if nodes.fewest_ranks() < 2 => Err(LayoutError::Alone),
        0 | 1 => Err(LayoutError::TooFewNodes { nodes: nodes.used() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FOUR: [(&str, f64); 4] = [("a2a", 1.0), ("incast", 1.0), ("put-incast", 1.0), ("get-bcast", 1.0)];

    fn hosts(counts: &[usize]) -> Nodes {
        let names: Vec<String> =
            counts.iter().enumerate().flat_map(|(node, &n)| std::iter::repeat_n(format!("n{node}"), n)).collect();
        Nodes::from_hosts(&names)
    }

    #[test]
    fn ten_nodes_split_as_gpcnet_does() {
        let layout = Layout::load_test(hosts(&[1; 10]), Placement::random(1), 0.2, &FOUR, Split::Auto).unwrap();
        assert_eq!((layout.nodes_with(Role::Canary), layout.congestor_nodes()), (2, 8));
        assert!((0..4).all(|kind| layout.nodes_with(Role::Congestor(kind)) == 2));
        assert_eq!(layout.notes, Vec::<String>::new());
    }

    #[test]
    fn few_nodes_hold_fewer_kinds_and_say_so() {
        let layout = Layout::load_test(hosts(&[1; 5]), Placement::random(1), 0.2, &FOUR, Split::Auto).unwrap();
        assert_eq!((layout.nodes_with(Role::Canary), layout.congestor_nodes()), (2, 3));
        assert_eq!(layout.notes.len(), 2, "{:?}", layout.notes);
    }

    #[test]
    fn two_nodes_share_roles_by_slice() {
        let layout = Layout::load_test(hosts(&[2, 2]), Placement::random(1), 0.2, &FOUR, Split::Auto).unwrap();
        assert_eq!(layout.canaries().len(), 2);
        assert_eq!(layout.nodes_with(Role::Congestor(0)), 2);
        assert_eq!(
            Layout::load_test(hosts(&[1, 1]), Placement::random(1), 0.2, &FOUR, Split::Auto).unwrap_err(),
            LayoutError::NoRoomForLoad { nodes: 2 }
        );
    }

    #[test]
    fn a_part_of_the_job_has_the_roles_and_the_rest_is_idle() {
        let busy = |layout: &Layout| -> Vec<usize> {
            (0..layout.nodes().rank_count()).filter(|&rank| layout.role(Rank::from(rank)) != Role::Idle).collect()
        };
        let groups: Vec<String> = (0..24).map(|rank| format!("leaf{}", rank / 12)).collect();
        for policy in [Policy::Random, Policy::Balanced, Policy::Linear, Policy::Interleaved] {
            let placement = Placement { policy, ..Placement::random(1) };
            let of = |nodes, per_node| {
                let all = hosts(&[3; 8]).with_groups(&groups).within(nodes, per_node);
                Layout::load_test(all, placement, 0.25, &FOUR, Split::Node).unwrap()
            };
            let layout = of(Some(5), Some(2));
            let expected: Vec<usize> = (0..5).flat_map(|node| [3 * node, 3 * node + 1]).collect();
            assert_eq!((busy(&layout), layout.nodes().len()), (expected, 8));
            assert_eq!((layout.nodes_with(Role::Canary), layout.congestor_nodes()), (2, 3));
            assert_eq!(layout.largest_team(Role::Canary), 2);
            assert!(layout.roles_on(7) == [Role::Idle] && layout.roles_on(0).len() == 2);
            // All of it is what it is without.
            let (all, plain) = (of(Some(8), Some(3)), of(None, None));
            assert!(busy(&all).len() == 24 && all.order == plain.order && all.canaries() == plain.canaries());
        }
        let of = |nodes, per_node| {
            let all = hosts(&[3, 3, 3, 3, 2]).within(nodes, per_node);
            Layout::load_test(all, Placement::random(1), 0.5, &FOUR, Split::Auto)
        };
        assert_eq!(of(Some(6), None).unwrap_err(), LayoutError::TooManyNodes { nodes: 5 });
        assert_eq!(of(None, Some(3)).unwrap_err(), LayoutError::TooManyRanks { ranks: 2 });
        assert_eq!(of(Some(2), Some(1)).unwrap_err(), LayoutError::NoRoomForLoad { nodes: 2 });
        assert_eq!(of(Some(1), None).unwrap_err(), LayoutError::TooFewNodes { nodes: 1 });
        // Of the nodes that take part each has three.
        let shared = of(Some(2), Some(3)).unwrap();
        assert_eq!((shared.canaries().len(), shared.nodes_with(Role::Canary)), (4, 2));
    }

    #[test]
    fn without_congestors_the_same_nodes_measure_and_the_others_rest() {
        let with = Layout::load_test(hosts(&[1; 10]), Placement::random(1), 0.2, &FOUR, Split::Auto).unwrap();
        let without = Layout::load_test(hosts(&[1; 10]), Placement::random(1), 0.2, &[], Split::Auto).unwrap();
        assert_eq!(with.canaries(), without.canaries());
        assert_eq!((without.congestor_nodes(), without.notes.len()), (0, 0));
        let idle = (0..10usize).map(Rank::from).filter(|&rank| without.role(rank) == Role::Idle).count();
        assert_eq!(idle, 8);
        let sliced = Layout::load_test(hosts(&[2, 2]), Placement::random(1), 0.5, &[], Split::Slice).unwrap();
        assert_eq!((sliced.canaries().len(), sliced.congestor_nodes()), (2, 0));
    }

    #[test]
    fn where_nothing_loads_all_nodes_may_measure() {
        for split in [Split::Auto, Split::Node, Split::Slice] {
            let layout = Layout::load_test(hosts(&[1; 3]), Placement::random(1), 1.0, &[], split).unwrap();
            assert_eq!((layout.canaries().len(), layout.other_nodes(), layout.notes.len()), (3, 0, 0));
        }
        let few = Layout::load_test(hosts(&[1; 4]), Placement::random(1), 0.1, &[], Split::Auto).unwrap();
        assert!(few.notes[0].starts_with("2 nodes measure and 2 stay idle"), "{:?}", few.notes);
    }

    #[test]
    fn weights_are_kept_in_proportion() {
        let mix = [("incast", 40.0), ("a2a", 60.0)];
        let layout = Layout::congestors_only(hosts(&[1; 20]), 3, &mix).unwrap();
        assert_eq!((layout.nodes_with(Role::Congestor(0)), layout.nodes_with(Role::Congestor(1))), (8, 12));
    }

    #[test]
    fn a_part_of_the_nodes_loads_and_the_others_rest() {
        let mix = [("incast", 4.0), ("a2a", 2.0)];
        for (fraction, expected) in [(0.75, (4, 2)), (1.0, (5, 3)), (0.0, (2, 0))] {
            let loads = Loads { weights: &mix, fraction, only: None };
            let layout = Layout::load_test(hosts(&[1; 10]), Placement::random(1), 0.2, loads, Split::Auto).unwrap();
            let found = (layout.nodes_with(Role::Congestor(0)), layout.nodes_with(Role::Congestor(1)));
            assert_eq!((found, layout.nodes_with(Role::Canary), layout.other_nodes()), (expected, 2, 8), "{fraction}");
        }
    }

    #[test]
    fn a_kind_by_itself_has_its_nodes_of_the_mix() {
        let nodes = || hosts(&[1; 20]);
        let all = Layout::load_test(nodes(), Placement::random(3), 0.2, &FOUR, Split::Auto).unwrap();
        for kind in 0..4 {
            let loads = Loads { only: Some(kind), ..Loads::from(&FOUR) };
            let alone = Layout::load_test(nodes(), Placement::random(3), 0.2, loads, Split::Auto).unwrap();
            assert_eq!(
                (alone.nodes_with(Role::Congestor(0)), alone.congestor_nodes(), alone.other_nodes()),
                (4, 4, 16)
            );
            for rank in (0..20usize).map(Rank::from) {
                let expected = match all.role(rank) {
                    Role::Congestor(of) if of == kind => Role::Congestor(0),
                    Role::Congestor(_) => Role::Idle,
                    role => role,
                };
                assert_eq!(alone.role(rank), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn teams_partition_the_ranks(
            counts in proptest::collection::vec(1usize..5, 4..30),
            seed: u64,
            fraction in 0.05f64..0.95,
            by_slice: bool,
            part in proptest::option::of((4usize..30, 1usize..5)),
        ) {
            let nodes = hosts(&counts);
            let part = part.map(|(of, ranks)| (of.min(nodes.len()), ranks.min(nodes.fewest_ranks())));
            let nodes = nodes.within(part.map(|of| of.0), part.map(|of| of.1));
            let split = if by_slice && nodes.fewest_ranks() > 1 { Split::Slice } else { Split::Node };
            let layout = Layout::load_test(nodes, Placement { seed, index: 3, policy: Policy::Balanced }, fraction, &FOUR, split).unwrap();
            let canaries = layout.canaries();
            prop_assert!(canaries.len() >= 2);
            for rank in (0..layout.nodes().rank_count()).map(Rank::from) {
                let (role, team) = (layout.role(rank), layout.team(rank));
                prop_assert_eq!(role == Role::Canary, canaries.contains(&rank));
                if role == Role::Idle { prop_assert!(team.is_empty()); continue; }
                let (node, slice) = (layout.nodes().node_of(rank), layout.nodes().slice_of(rank));
                prop_assert!(part.is_none_or(|(nodes, ranks)| node < nodes && slice < ranks));
                prop_assert!(team.len() >= 2 && team.contains(&rank));
                let mut on: Vec<usize> = team.iter().map(|&r| layout.nodes().node_of(r)).collect();
                on.sort_unstable();
                on.dedup();
                prop_assert_eq!(on.len(), team.len(), "a slice never talks on-node");
                for &mate in &team {
                    prop_assert_eq!(layout.role(mate), role);
                    prop_assert_eq!(&layout.team(mate), &team);
                }
            }
        }
    }
}
