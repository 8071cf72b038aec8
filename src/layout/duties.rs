//! What nodes are for: how those that do not measure are dealt out among the kinds of congestors.

/// What a place in the order of nodes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    Measure,
    /// With the plan's n-th congestor.
    Load(u16),
    /// Nothing: the plan has no congestors.
    Rest,
}

/// What `count` nodes that do not measure are for.
pub(super) fn deal_loads(count: usize, weights: &[(&str, f64)], notes: &mut Vec<String>) -> Vec<Duty> {
    if weights.is_empty() {
        return vec![Duty::Rest; count];
    }
    deal_kinds(count, weights, notes).into_iter().map(Duty::Load).collect()
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
