//! Table 2 of the GPCNeT paper (Chunduri et al., SC 2019) as data: what seven large systems measured, to stand beside
//! one's own; and table 1 of the HPC Challenge paper (Luszczek et al., 2005), for the balance.

use crate::kernel::Canary;
use crate::stats::Statistic;

const TABLE: &str = include_str!("../../data/gpcnet-table2.csv");
/// The canaries of the table, in the order of its columns.
const KERNELS: [Canary; 3] = [Canary::Lat, Canary::BwSync, Canary::Allreduce];

/// One row: a system at one job size.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct System {
    pub name: String,
    pub nodes: u32,
    /// Ranks per network port (the paper's PPort).
    pub ranks_per_port: u32,
    /// Whether this is the system's largest job, which the paper's figure 11 shows.
    pub largest: bool,
    /// Averages isolated and loaded, then 99th percentiles, three canaries each.
    figures: [f64; 12],
}

impl System {
    /// How plots name it.
    pub fn label(&self) -> String {
        format!("{}, {} nodes, {} ranks per port (published)", self.name, self.nodes, self.ranks_per_port)
    }

    /// A published figure: isolated and loaded.
    pub fn figures(&self, kernel: Canary, statistic: Statistic) -> Option<(f64, f64)> {
        let column = KERNELS.iter().position(|known| *known == kernel)?;
        let start = match statistic {
            Statistic::Avg => 0,
            Statistic::P99 => 6,
            _ => return None,
        };
        Some((self.figures[start + column], self.figures[start + 3 + column]))
    }

    /// The impact factor of the published, rounded figures.
    pub fn impact(&self, kernel: Canary, statistic: Statistic) -> Option<f64> {
        let (isolated, loaded) = self.figures(kernel, statistic)?;
        Some(kernel.info().direction.factor(isolated, loaded))
    }
}

/// Every row of the table.
pub fn table() -> Vec<System> {
    let mut systems: Vec<System> = TABLE.lines().skip(1).filter_map(row).collect();
    for at in 0..systems.len() {
        // Rows of a system stand together and grow.
        systems[at].largest = systems.get(at + 1).is_none_or(|next| next.name != systems[at].name);
    }
    systems
}

fn row(line: &str) -> Option<System> {
    let mut cells = line.split(',');
    let (name, nodes, ranks) = (cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    let figures: Vec<f64> = cells.filter_map(|cell| cell.parse().ok()).collect();
    let figures = figures.try_into().ok()?;
    Some(System { name: name.to_owned(), nodes, ranks_per_port: ranks, largest: false, figures })
}

const BALANCES: &str = include_str!("../../data/hpcc-table1.csv");

/// One row of the HPC Challenge paper's table 1.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Balanced {
    pub switch: String,
    pub processes: u32,
    pub threads: u32,
    pub random_ring_gb_per_s: f64,
    pub hpl_gflops: f64,
    /// As the paper prints it.
    pub byte_per_kflop: f64,
}

impl Balanced {
    /// How plots name it.
    pub fn label(&self) -> String {
        let threads = if self.threads > 1 { format!(" of {} threads", self.threads) } else { String::new() };
        format!("{}, {} processes{threads} (published 2005)", self.switch, self.processes)
    }
}

/// Every row of that table.
pub fn balances() -> Vec<Balanced> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [switch, _, _, processes, threads, ring, _, _, hpl, balance] = cells[..] else { return None };
        Some(Balanced {
            switch: switch.to_owned(),
            processes: processes.parse().ok()?,
            threads: threads.parse().ok()?,
            random_ring_gb_per_s: ring.parse().ok()?,
            hpl_gflops: hpl.parse().ok()?,
            byte_per_kflop: balance.parse().ok()?,
        })
    };
    BALANCES.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_balances_follow_from_their_own_columns() {
        let all = balances();
        assert_eq!(all.len(), BALANCES.lines().count() - 1);
        for system in &all {
            let own = 1e3 * system.random_ring_gb_per_s * f64::from(system.processes) / system.hpl_gflops;
            // Columns are printed with two or three digits.
            assert!((own / system.byte_per_kflop - 1.0).abs() < 0.02, "{}: {own}", system.label());
        }
    }

    #[test]
    fn every_row_is_read() {
        let systems = table();
        assert_eq!(systems.len(), TABLE.lines().count() - 1);
        let largest: Vec<&str> = systems.iter().filter(|s| s.largest).map(|s| s.name.as_str()).collect();
        assert_eq!(largest, ["Crystal", "Osprey", "Edison", "Theta", "Summit", "Sierra", "Malbec"]);
    }

    #[test]
    fn the_papers_claims_hold() {
        let systems = table();
        let of = |name: &str| systems.iter().find(|system| system.name == name && system.largest).unwrap();
        // "In the worst case, latency degradation approaches four orders of magnitude on the Edison system."
        let edison = of("Edison").impact(Canary::Lat, Statistic::P99).unwrap();
        assert!((3000.0..10_000.0).contains(&edison), "{edison}");
        // "The 99th percentile congestion impact remains under 10 for all tests" on Malbec.
        for kernel in KERNELS {
            assert!(of("Malbec").impact(kernel, Statistic::P99).unwrap() < 10.0);
        }
    }
}
