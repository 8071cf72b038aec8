//! A result whose placements another job repeats, so that a comparison pairs them.
//!
//! The seed is taken from the file. It gives the same placements only where the nodes, their groups and the plan's roles are
//! the same, which is checked before anything is measured: in the end by the roles themselves, placement by placement.

use super::request::Request;
use crate::assemble;
use crate::layout::{Layout, LayoutError, Nodes};
use crate::plan::Plan;
use crate::result::{self, NodeRole, ResultFile};

impl Request {
    /// The result whose placements are to be repeated, where one is.
    pub(crate) fn paired(&self) -> Result<Option<ResultFile>, String> {
        let Some(path) = &self.pair_with else { return Ok(None) };
        let file = result::read(path).map_err(|error| format!("--pair-with: {error}"))?;
        if file.imported.is_some() || file.runs.iter().all(|run| run.placements.is_empty()) {
            return Err(format!("--pair-with {}: it has no placements to repeat", path.display()));
        }
        Ok(Some(file))
    }
}

/// Whether the job measures the placements of the result it is to be paired with; `layout` makes the job's own.
pub(super) fn check(
    request: &Request,
    nodes: &Nodes,
    plan: &Plan,
    layout: impl Fn(u32) -> Result<Layout, LayoutError>,
) -> Result<(), String> {
    let (Some(file), Some(path)) = (request.paired()?, &request.pair_with) else { return Ok(()) };
    let refused =
        |what: &str| Err(format!("--pair-with {}: its placements cannot be repeated here: {what}", path.display()));
    let ranks: Vec<usize> = file.system.nodes.iter().map(|node| node.ranks.len()).collect();
    let ours: Vec<usize> = (0..nodes.len()).map(|node| nodes.ranks(node).len()).collect();
    let mut facts = vec![("nodes", ranks.len().to_string(), ours.len().to_string())];
    facts.push(("ranks per node", counts(&ranks), counts(&ours)));
    facts.extend(
        of_plan(&file.plan).into_iter().zip(of_plan(plan)).map(|((what, theirs), (_, ours))| (what, theirs, ours)),
    );
    if let Some((what, theirs, ours)) = facts.into_iter().find(|(_, theirs, ours)| theirs != ours) {
        return refused(&format!("{what}: {theirs} there, {ours} here"));
    }
    // The last run has all congestors, where each was also run by itself.
    for (index, recorded) in file.runs.last().iter().flat_map(|run| &run.placements).enumerate() {
        let layout = layout(index as u32).map_err(|error| error.to_string())?;
        let roles: Vec<Vec<NodeRole>> = assemble::placement(&layout, plan).into_iter().map(|node| node.roles).collect();
        if recorded.roles != roles {
            return refused(&format!(
                "placement {} has other roles (other groups of nodes, or a version that dealt them otherwise)",
                index + 1
            ));
        }
    }
    if file.system.nodes.iter().enumerate().any(|(at, node)| node.name != nodes.name(at)) {
        request.say(&format!("the nodes have other names than those of {}", path.display()));
    }
    Ok(())
}

/// What of a plan decides who does what.
fn of_plan(plan: &Plan) -> Vec<(&'static str, String)> {
    let congestors: Vec<String> =
        plan.congestors.iter().map(|test| format!("{}={}", test.kernel, test.weight)).collect();
    vec![
        ("placement policy", plan.placement.to_string()),
        ("placements", plan.placements.to_string()),
        ("canary fraction", plan.canary_fraction.to_string()),
        ("load fraction", format!("{} {:?}", plan.load_fraction, plan.load_fractions).replace(" []", "")),
        ("split", format!("{:?}", plan.split).to_lowercase()),
        ("congestors", congestors.join(",")),
    ]
}

/// As people read it; a job mostly has as many ranks on every node.
fn counts(ranks: &[usize]) -> String {
    match (ranks.iter().min(), ranks.iter().max()) {
        (Some(min), Some(max)) if min == max => min.to_string(),
        _ => ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}
