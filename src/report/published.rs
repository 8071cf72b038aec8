//! Tables 1 to 3 of the GPCNeT paper (Chunduri et al., SC 2019) as data: seven large systems, what they measured, and what
//! congestion did to an application on three of them, to stand beside one's own; what newer systems show, each with its
//! source; and table 1 of the HPC Challenge paper (Luszczek et al., 2005), for the balance and its figure 2.

use crate::kernel::Canary;
use crate::models::maxrate::Values;
use crate::stats::Statistic;

const SYSTEMS: &str = include_str!("../../data/gpcnet-table1.csv");
const TABLE: &str = include_str!("../../data/gpcnet-table2.csv");
const APPLICATIONS: &str = include_str!("../../data/gpcnet-table3.csv");
const NEWER: &str = include_str!("../../data/gpcnet-newer.csv");
/// The ranks per port of the jobs that the paper's figure 11 compares.
const FIGURE_11: std::ops::RangeInclusive<u32> = 16..=24;
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
    /// Whether the paper's figure 11 shows this job.
    pub in_figure: bool,
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

    /// The 99th percentile under load over the isolated average, which is what the paper's text fits.
    pub fn p99_over_average(&self, kernel: Canary) -> Option<f64> {
        let (isolated, loaded) = (self.figures(kernel, Statistic::Avg)?.0, self.figures(kernel, Statistic::P99)?.1);
        Some(kernel.info().direction.factor(isolated, loaded))
    }

    /// The impact factor of the published, rounded figures; of a 99th percentile over the isolated one, as GPCNeT 1.3
    /// computes it.
    pub fn impact(&self, kernel: Canary, statistic: Statistic) -> Option<f64> {
        let (isolated, loaded) = self.figures(kernel, statistic)?;
        Some(kernel.info().direction.factor(isolated, loaded))
    }
}

/// Every row of the table.
pub fn table() -> Vec<System> {
    TABLE.lines().skip(1).filter_map(row).collect()
}

/// A system as the paper's table 1 describes it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Described {
    pub name: String,
    pub site: String,
    pub architecture: String,
    pub processor: String,
    pub mpi_library: String,
    pub interconnect: String,
    pub topology: String,
    /// Global bandwidth in percent of what all nodes inject.
    pub global_percent: u32,
    pub nodes: u32,
    pub ports_per_node: u32,
}

/// Every row of table 1.
pub fn systems() -> Vec<Described> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, site, architecture, processor, mpi, interconnect, topology, global, nodes, ports] = cells[..] else {
            return None;
        };
        Some(Described {
            name: name.to_owned(),
            site: site.to_owned(),
            architecture: architecture.to_owned(),
            processor: processor.to_owned(),
            mpi_library: mpi.to_owned(),
            interconnect: interconnect.to_owned(),
            topology: topology.to_owned(),
            global_percent: global.parse().ok()?,
            nodes: nodes.parse().ok()?,
            ports_per_node: ports.parse().ok()?,
        })
    };
    SYSTEMS.lines().skip(1).filter_map(row).collect()
}

/// What a newer system shows of a canary, as its source prints it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Newer {
    pub system: String,
    pub nodes: u32,
    pub ranks: u32,
    /// Where the source tells.
    pub ports_per_node: Option<u32>,
    /// The load test or the network test.
    pub test: String,
    pub kernel: Canary,
    /// Average and 99th percentile.
    pub isolated: (f64, f64),
    pub isolated_p999: Option<f64>,
    /// Of a load test.
    pub loaded: Option<(f64, f64)>,
    pub source: String,
}

impl Newer {
    /// Impact factors of average and 99th percentile, as GPCNeT 1.3 computes them.
    pub fn impacts(&self) -> Option<(f64, f64)> {
        let (direction, isolated, loaded) = (self.kernel.info().direction, self.isolated, self.loaded?);
        Some((direction.factor(isolated.0, loaded.0), direction.factor(isolated.1, loaded.1)))
    }
}

/// Every figure of newer systems.
pub fn newer() -> Vec<Newer> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.splitn(12, ',').collect();
        let [system, nodes, ranks, ports, test, canary, avg, p99, p999, avg_loaded, p99_loaded, source] = cells[..]
        else {
            return None;
        };
        let loaded = avg_loaded.parse().ok().zip(p99_loaded.parse().ok());
        Some(Newer {
            system: system.to_owned(),
            nodes: nodes.parse().ok()?,
            ranks: ranks.parse().ok()?,
            ports_per_node: ports.parse().ok(),
            test: test.to_owned(),
            kernel: canary.parse().ok()?,
            isolated: (avg.parse().ok()?, p99.parse().ok()?),
            isolated_p999: p999.parse().ok(),
            loaded,
            source: source.to_owned(),
        })
    };
    NEWER.lines().skip(1).filter_map(row).collect()
}

/// Load tests of newer systems whose ports are known, as rows of the table.
fn newer_load_tests() -> Vec<System> {
    let rows = newer();
    let system = |first: &Newer| {
        let row = |kernel: Canary| {
            let same = |of: &&Newer| (&of.system, of.nodes, of.kernel) == (&first.system, first.nodes, kernel);
            rows.iter().filter(same).find_map(|of| Some((of.isolated, of.loaded?)))
        };
        let [Some(lat), Some(bw), Some(allreduce)] = KERNELS.map(row) else { return None };
        let all = [lat, bw, allreduce];
        let figures = [all.map(|of| of.0.0), all.map(|of| of.1.0), all.map(|of| of.0.1), all.map(|of| of.1.1)];
        let ranks_per_port = first.ranks / (first.nodes * first.ports_per_node?);
        let figures = figures.concat().try_into().ok()?;
        Some(System { name: first.system.clone(), nodes: first.nodes, ranks_per_port, in_figure: false, figures })
    };
    rows.iter().filter(|of| of.kernel == KERNELS[0] && of.loaded.is_some()).filter_map(system).collect()
}

/// The jobs that stand beside one's own as bars: of each system the one whose ranks per port are nearest to `ranks_per_port`, by
/// their ratio, and the largest of those; or, where ports are not known, those of the paper's figure 11.
pub fn beside(ranks_per_port: Option<f64>) -> Vec<System> {
    let Some(own) = ranks_per_port else { return table().into_iter().filter(|system| system.in_figure).collect() };
    let apart = |system: &System| (f64::from(system.ranks_per_port) / own).ln().abs();
    let mut nearest: Vec<System> = Vec::new();
    for system in table().into_iter().chain(newer_load_tests()) {
        match nearest.iter_mut().find(|known| known.name == system.name) {
            None => nearest.push(system),
            Some(known) => {
                let order = apart(&system).total_cmp(&apart(known)).then(known.nodes.cmp(&system.nodes));
                if order.is_lt() {
                    *known = system;
                }
            }
        }
    }
    nearest
}

/// An application on a published system: Lulesh on 32 nodes, beside an incast on the others.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Application {
    pub system: String,
    pub isolated_ms: f64,
    pub loaded_ms: f64,
}

impl Application {
    /// How plots name it.
    pub fn label(&self) -> String {
        format!("Lulesh on {}, 32 nodes (published)", self.system)
    }

    /// Time under load over time alone. The paper's equation 3 is printed the other way round; its table is not.
    pub fn impact(&self) -> f64 {
        self.loaded_ms / self.isolated_ms
    }
}

/// Every row of table 3.
pub fn applications() -> Vec<Application> {
    let row = |line: &str| {
        let mut cells = line.split(',');
        let (system, isolated, loaded) = (cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        Some(Application { system: system.to_owned(), isolated_ms: isolated, loaded_ms: loaded })
    };
    APPLICATIONS.lines().skip(1).filter_map(row).collect()
}

fn row(line: &str) -> Option<System> {
    let mut cells = line.split(',');
    let (name, nodes, ranks) = (cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    let figures: Vec<f64> = cells.filter_map(|cell| cell.parse().ok()).collect();
    let figures = figures.try_into().ok()?;
    let in_figure = FIGURE_11.contains(&ranks);
    Some(System { name: name.to_owned(), nodes, ranks_per_port: ranks, in_figure, figures })
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
    pub ping_pong_gb_per_s: f64,
    pub random_ring_latency_us: f64,
    /// One row of the column is missing.
    pub ping_pong_latency_us: Option<f64>,
    pub hpl_gflops: f64,
    pub hpl_gflops_per_process: f64,
    /// As the paper prints it.
    pub byte_per_kflop: f64,
    /// Whether HPL's rate is that of the row before, which the paper sets in parentheses.
    pub hpl_of_the_row_before: bool,
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
        let [switch, _, _, _, _, processes, threads, rates @ ..] = &cells[..] else { return None };
        let [ring, ping_pong, ring_latency, latency, hpl, of_one, balance, before] = rates else { return None };
        Some(Balanced {
            switch: (*switch).to_owned(),
            processes: processes.parse().ok()?,
            threads: threads.parse().ok()?,
            random_ring_gb_per_s: ring.parse().ok()?,
            ping_pong_gb_per_s: ping_pong.parse().ok()?,
            random_ring_latency_us: ring_latency.parse().ok()?,
            ping_pong_latency_us: latency.parse().ok(),
            hpl_gflops: hpl.parse().ok()?,
            hpl_gflops_per_process: of_one.parse().ok()?,
            byte_per_kflop: balance.parse().ok()?,
            hpl_of_the_row_before: *before == "yes",
        })
    };
    BALANCES.lines().skip(1).filter_map(row).collect()
}

const PARAMETERS: &str = include_str!("../../data/maxrate-table1.csv");
const ERROR_SUMS: &str = include_str!("../../data/maxrate-table2.csv");
const TIMES: &str = include_str!("../../data/contention-figure4.csv");

/// One row of the max-rate paper's tables 1 and 2 (Gropp, Olson and Samfass, 2016).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Fitted {
    pub system: String,
    pub phase: String,
    /// The largest message of the phase; none for the last.
    pub largest_bytes: Option<u64>,
    pub values: Values,
    /// The sum of relative errors of the extended model.
    pub error_sum: f64,
}

/// Every row of those tables.
pub fn fits() -> Vec<Fitted> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [system, phase, largest, latency, node, first, further] = cells[..] else { return None };
        let sums = ERROR_SUMS.lines().find(|line| line.split(',').next() == Some(phase))?;
        let node: f64 = node.parse().ok()?;
        Some(Fitted {
            system: system.to_owned(),
            phase: phase.to_owned(),
            largest_bytes: largest.parse().ok(),
            values: Values {
                latency: latency.parse().ok()?,
                first: first.parse().ok()?,
                further: further.parse().ok()?,
                node: node.is_finite().then_some(node),
            },
            error_sum: sums.split(',').nth(1)?.parse().ok()?,
        })
    };
    PARAMETERS.lines().skip(1).filter_map(row).collect()
}

/// A message of the contention paper's figure 4 (Martinasso and Méhaut, 2011).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Timed {
    pub graph: String,
    pub message: String,
    pub predicted_s: f64,
    pub measured_s: f64,
}

/// Every message of that figure.
pub fn times() -> Vec<Timed> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [graph, message, predicted, measured, _] = cells[..] else { return None };
        let (predicted_s, measured_s) = (predicted.parse().ok()?, measured.parse().ok()?);
        Some(Timed { graph: graph.to_owned(), message: message.to_owned(), predicted_s, measured_s })
    };
    TIMES.lines().skip(1).filter_map(row).collect()
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
            let of_one = system.hpl_gflops / f64::from(system.processes);
            assert!((of_one / system.hpl_gflops_per_process - 1.0).abs() < 0.01, "{}: {of_one}", system.label());
        }
        assert_eq!(all.iter().filter(|of| of.hpl_of_the_row_before).count(), 1);
    }

    #[test]
    fn published_ratios_are_those_of_the_text() {
        let all = balances();
        // "the achievable percentage on the random ring from the ping-pong varies between 4% and 45%".
        let of_bandwidth = |of: &Balanced| of.random_ring_gb_per_s / of.ping_pong_gb_per_s;
        let single: Vec<f64> = all.iter().filter(|of| of.threads == 1).map(of_bandwidth).collect();
        let threaded: Vec<f64> = all.iter().filter(|of| of.switch == "IBM HPS").map(of_bandwidth).collect();
        let (low, high) = extent(&single);
        assert!((0.04..0.05).contains(&low) && high < 0.45, "{low} {high}");
        assert!(threaded.iter().all(|ratio| (0.42..0.45).contains(ratio)), "{threaded:?}");
        // "the ratio ping-pong to random varies between 0.12 and 0.99": 0.99 of rounded figures is 1. The one that has 0.12 is the
        // row without a figure.
        let latencies: Vec<f64> =
            all.iter().filter_map(|of| Some(of.ping_pong_latency_us? / of.random_ring_latency_us)).collect();
        let (low, high) = extent(&latencies);
        assert!(latencies.len() == 14 && low > 0.2 && high <= 1.0, "{low} {high}");
    }

    fn extent(values: &[f64]) -> (f64, f64) {
        values.iter().fold((f64::MAX, 0.0), |(low, high), value| (low.min(*value), high.max(*value)))
    }

    #[test]
    fn every_row_of_the_models_is_read() {
        assert_eq!((fits().len(), times().len()), (PARAMETERS.lines().count() - 1, TIMES.lines().count() - 1));
        let last = &fits()[2];
        assert_eq!((last.values.node, last.largest_bytes, last.error_sum), (Some(5.5e9), None, 7.60));
    }

    #[test]
    fn every_row_is_read() {
        let systems = table();
        assert_eq!(systems.len(), TABLE.lines().count() - 1);
        let shown: Vec<(&str, u32)> =
            systems.iter().filter(|s| s.in_figure).map(|s| (s.name.as_str(), s.ranks_per_port)).collect();
        let expected = [
            ("Crystal", 20),
            ("Osprey", 20),
            ("Edison", 24),
            ("Theta", 16),
            ("Summit", 21),
            ("Sierra", 20),
            ("Malbec", 20),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn systems_of_table_1_are_those_of_table_2() {
        let described = systems();
        assert_eq!(described.len(), SYSTEMS.lines().count() - 1, "every row is read");
        for measured in table() {
            let system = described.iter().find(|of| of.name == measured.name).expect("it is described");
            assert!(measured.nodes <= system.nodes, "{measured:?} {system:?}");
        }
        // "These systems have a taper of approximately 50% for global bandwidth", and Sierra half of Summit's.
        let global = |name: &str| described.iter().find(|of| of.name == name).unwrap().global_percent;
        assert_eq!(["Edison", "Sierra", "Summit"].map(global), [50, 50, 100]);
    }

    #[test]
    fn shipped_machines_have_the_shape_that_table_1_prints() {
        for name in ["crystal", "osprey", "malbec"] {
            let machine = crate::backend::simulator::machine::Machine::load(name).unwrap();
            let printed = systems().into_iter().find(|of| of.name.to_lowercase() == name).unwrap();
            assert_eq!(
                (machine.nodes.count as u32, machine.nodes.nics as u32),
                (printed.nodes, printed.ports_per_node)
            );
        }
    }

    #[test]
    fn newer_systems_have_figures_and_sources() {
        let all = newer();
        assert_eq!(all.len(), NEWER.lines().count() - 1, "every row is read");
        for of in &all {
            assert!(["load", "network"].contains(&of.test.as_str()) && !of.source.is_empty(), "{of:?}");
            assert_eq!(of.loaded.is_some(), of.test == "load", "{of:?}");
            // Whichever is better, an average is better than the worst hundredth.
            let (avg, p99) = of.isolated;
            assert!(of.kernel.info().direction.factor(avg, p99) > 1.0, "{of:?}");
            assert!(of.isolated_p999.is_none_or(|p999| p999 > p99), "{of:?}");
        }
        // Its source prints 1.0X for all six.
        let impacts: Vec<(f64, f64)> = all.iter().filter_map(Newer::impacts).collect();
        assert_eq!(impacts.len(), 3);
        assert!(impacts.iter().all(|(avg, p99)| (avg - 1.0).abs() < 0.05 && (p99 - 1.0).abs() < 0.05), "{impacts:?}");
    }

    #[test]
    fn a_newer_load_test_stands_beside_those_of_the_paper() {
        let beside = beside(Some(4.0));
        let newer = beside.last().unwrap();
        assert_eq!(newer.label(), "HPE Slingshot, 64 nodes, 4 ranks per port (published)");
        assert_eq!(newer.figures(Canary::BwSync, Statistic::P99), Some((2829.5, 2820.6)));
        assert_eq!(newer.figures(Canary::Allreduce, Statistic::Avg), Some((20.2, 20.3)));
    }

    #[test]
    fn jobs_of_as_many_ranks_per_port_stand_beside_ones_own() {
        let names = |own: Option<f64>| -> Vec<String> {
            beside(own).iter().map(|of| format!("{} {} {}", of.name, of.nodes, of.ranks_per_port)).collect()
        };
        let one = ["Crystal 696 1", "Osprey 128 1", "Edison 5575 1", "Theta 4096 1", "Summit 4500 4", "Sierra 4200 3"];
        assert_eq!(names(Some(1.0))[..6], one);
        assert_eq!(names(Some(7.0))[..2], ["Crystal 696 8", "Osprey 128 8"]);
        assert_eq!(names(Some(26.0))[..3], ["Crystal 696 32", "Osprey 128 32", "Edison 5575 24"]);
        assert_eq!(names(None).len(), 7, "figure 11");
    }

    #[test]
    fn applications_have_the_impacts_that_the_paper_prints() {
        let impacts: Vec<String> =
            applications().iter().map(|of| format!("{} {:.1}", of.system, of.impact())).collect();
        assert_eq!(impacts, ["Crystal 1.9", "Osprey 1.2", "Malbec 1.0"]);
    }

    #[test]
    fn the_papers_claims_hold() {
        let systems = table();
        let of = |name: &str| systems.iter().find(|system| system.name == name && system.in_figure).unwrap();
        // "In the worst case, latency degradation approaches four orders of magnitude on the Edison system."
        // Over the average it does (9039), over the 99th percentile less so (3766).
        let (p99, over_average) = (
            of("Edison").impact(Canary::Lat, Statistic::P99).unwrap(),
            of("Edison").p99_over_average(Canary::Lat).unwrap(),
        );
        assert!((3000.0..4000.0).contains(&p99) && (9000.0..10_000.0).contains(&over_average), "{p99} {over_average}");
        // "The 99th percentile congestion impact remains under 10 for all tests" on Malbec.
        for kernel in KERNELS {
            assert!(of("Malbec").impact(kernel, Statistic::P99).unwrap() < 10.0);
            assert!(of("Malbec").p99_over_average(kernel).unwrap() < 10.0);
        }
    }
}
