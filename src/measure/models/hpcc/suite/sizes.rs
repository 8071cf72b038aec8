//! Sizes by the memory there is, and what the nodes mean for rings.

use std::path::PathBuf;

use tailback_hpcc::Sizes;
use tailback_transport::arranged::Grid;
use tailback_transport::{Bootstrap, Error, Result};

use crate::layout::Nodes;
use crate::models::hpcc::{DataSize, Settings};
use crate::models::measure::share;

/// Bytes of HPL's matrix for a rank where the user does not say.
const QUICK: f64 = 32.0 * 1048576.0;
/// What tests need beside HPL's matrix, as a multiple of it: vectors, and what is sent and received of them.
const BESIDE: f64 = 1.5;

/// The bytes of all caches of the highest level of this host; 0 where it does not say.
fn cache_bytes() -> f64 {
    let sys = std::env::var_os("TAILBACK_SYS").map_or_else(|| "/sys".into(), PathBuf::from);
    let mut caches: std::collections::BTreeMap<(u32, String), f64> = Default::default();
    let folders = std::fs::read_dir(sys.join("devices/system/cpu")).into_iter().flatten().flatten();
    for folder in folders.flat_map(|cpu| std::fs::read_dir(cpu.path().join("cache")).into_iter().flatten().flatten()) {
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().trim().to_owned();
        let kib = read("size").trim_end_matches('K').parse::<f64>();
        if let (Ok(level), Ok(kib)) = (read("level").parse(), kib) {
            // The same cache is told by every core that has it.
            caches.insert((level, read("shared_cpu_list")), 1024.0 * kib);
        }
    }
    let highest = caches.keys().map(|(level, _)| *level).max();
    caches.iter().filter(|((level, _), _)| Some(*level) == highest).map(|(_, bytes)| bytes).sum()
}

/// An equal part for a rank, the least of all, of what its host has: memory, what is free of it, and caches. 0 is not known.
fn parts(bootstrap: &mut dyn Bootstrap) -> Result<[f64; 3]> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|of| 1024.0 * of)
    };
    let mine = [bytes("MemTotal").unwrap_or(0.0), bytes("MemAvailable").unwrap_or(0.0), cache_bytes()];
    let (host, all) = (bootstrap.host().to_owned(), share(bootstrap, &mine)?);
    let hosts: Vec<String> = share(bootstrap, &host)?;
    let part = |at: usize| {
        let own = |(rank, memory): (usize, &[f64; 3])| {
            let beside = hosts.iter().filter(|other| **other == hosts[rank]).count();
            memory[at] / beside as f64
        };
        all.iter().enumerate().map(own).fold(f64::INFINITY, f64::min)
    };
    Ok([0, 1, 2].map(part))
}

/// The sizes of all problems, and what of the machine they fill.
pub(super) fn sizes(bootstrap: &mut dyn Bootstrap, settings: &Settings) -> Result<(Sizes, DataSize)> {
    let ranks = bootstrap.size();
    let grid = settings.grid.map_or(Grid::of(ranks), |[rows, columns]| Grid { rows, columns });
    if grid.ranks() != ranks {
        return Err(Error::Setup(format!("--grid {grid} has {} ranks, and the job {ranks}", grid.ranks())));
    }
    let [whole, free, caches] = parts(bootstrap)?;
    let own = settings.memory.map_or(QUICK, |part| part * whole);
    let order = settings.order.unwrap_or_else(|| Sizes::order_for(own * ranks as f64, settings.block));
    let needed = (1.0 + BESIDE) * 8.0 * (order as f64).powi(2) / ranks as f64;
    // Where nothing is known of the memory, nothing is refused.
    if free > 0.0 && needed > free {
        return Err(Error::Setup(format!(
            "an order of {order} needs {:.1} GiB a rank, and {:.1} GiB are free: give a smaller --memory or --order",
            needed / f64::from(1 << 30),
            free / f64::from(1 << 30)
        )));
    }
    let sizes = Sizes::of(order, settings.block, grid);
    let known = |whole: f64, part: f64| (whole > 0.0).then_some(part / whole);
    let data = DataSize {
        matrix_of_memory: known(whole, 8.0 * (order as f64).powi(2) / ranks as f64),
        vector_of_caches: known(caches, 8.0 * sizes.stream_words as f64),
    };
    Ok((sizes, data))
}

/// The part of the links of a random ring whose ends are on one node, on average over all rings.
pub(super) fn links_on_node(nodes: &Nodes) -> f64 {
    let ranks = nodes.rank_count() as f64;
    let own = (0..nodes.len()).map(|node| nodes.ranks(node).len() as f64).map(|own| own * (own - 1.0)).sum::<f64>();
    if ranks < 2.0 { 0.0 } else { own / (ranks * (ranks - 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_on_nodes_are_those_of_random_rings() {
        // 32 ranks on 4 nodes: the paper rounds this to a quarter.
        assert!((links_on_node(&Nodes::virtual_nodes(32, 8)) - 7.0 / 31.0).abs() < 1e-12);
        assert_eq!(links_on_node(&Nodes::virtual_nodes(4, 1)), 0.0);
        assert_eq!(links_on_node(&Nodes::virtual_nodes(1, 1)), 0.0);
    }
}
