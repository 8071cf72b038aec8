//! What nodes are for: how those that do not measure are dealt out among the kinds of congestors.

/// What a place in the order of nodes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    Measure,
    /// With the plan's n-th congestor.
    Load(u16),
    /// Nothing: the plan has no congestors, or not for all nodes.
    Rest,
}

/// Which load is wanted of the nodes that do not measure.
#[derive(Clone, Copy, Debug)]
pub struct Loads<'a> {
    /// Kinds of congestors by name, with their weights.
    pub weights: &'a [(&'a str, f64)],
    /// The part of these nodes that load; the others rest.
    pub fraction: f64,
    /// Only the n-th of the kinds loads, on the nodes that it has among all, and is the plan's only one.
    pub only: Option<usize>,
}

impl<'a> From<&'a [(&'a str, f64)]> for Loads<'a> {
    fn from(weights: &'a [(&'a str, f64)]) -> Self {
        Loads { weights, fraction: 1.0, only: None }
    }
}

impl<'a, const KINDS: usize> From<&'a [(&'a str, f64); KINDS]> for Loads<'a> {
    fn from(weights: &'a [(&'a str, f64); KINDS]) -> Self {
        weights[..].into()
    }
}

/// What `count` nodes that do not measure are for. At least two load, where any do.
pub(super) fn deal_loads(count: usize, loads: Loads<'_>, notes: &mut Vec<String>) -> Vec<Duty> {
    if loads.weights.is_empty() {
        return vec![Duty::Rest; count];
    }
    let loading = ((loads.fraction * count as f64).round() as usize).clamp(2.min(count), count);
    let mut duties: Vec<Duty> = deal_kinds(loading, loads.weights, notes).into_iter().map(Duty::Load).collect();
    duties.resize(count, Duty::Rest);
    if let Some(only) = loads.only {
        let alone = |duty: &mut Duty| *duty = if *duty == Duty::Load(only as u16) { Duty::Load(0) } else { Duty::Rest };
        duties.iter_mut().for_each(alone);
    }
    duties
}

/// Kinds for `count` nodes in proportion to their weights, at least 2 nodes each; the lightest kinds are left out when
/// nodes are too few, which is noted.
fn deal_kinds(count: usize, weights: &[(&str, f64)], notes: &mut Vec<String>) -> Vec<u16> {
    let mut kept: Vec<usize> = (0..weights.len()).collect();
    // Stable: among equals the plan's first stay.
    kept.sort_by(|&a, &b| weights[b].1.total_cmp(&weights[a].1));
    let dropped = kept.split_off((count / 2).min(kept.len()));
    kept.sort_unstable();
    if !dropped.is_empty() {
        let mut names: Vec<&str> = dropped.iter().map(|&kind| weights[kind].0).collect();
        names.sort_unstable();
        notes.push(format!(
            "a kind of congestor takes 2 nodes or more, and {count} nodes congest: left out {}",
            names.join(", ")
        ));
    }
    let total: f64 = kept.iter().map(|&kind| weights[kind].1).sum();
    let mut dealt = vec![2usize; kept.len()];
    for _ in 2 * kept.len()..count {
        let short = |at: usize| weights[kept[at]].1 / total * count as f64 - dealt[at] as f64;
        let mut neediest = 0;
        for at in 1..kept.len() {
            if short(at) > short(neediest) + 1e-9 {
                neediest = at;
            }
        }
        dealt[neediest] += 1;
    }
    kept.iter().zip(dealt).flat_map(|(&kind, nodes)| std::iter::repeat_n(kind as u16, nodes)).collect()
}
