//! The HPC Challenge paper's figure 2: latencies, bandwidths over HPL's rate, and ratios of bandwidths, in three bands over all
//! systems, which stand in the order of their random-ring bandwidth.

use super::hpcc::System;
use super::{Area, LINE, LogAxis, Plot, WIDTH, bar, block, extent, lines, text};
use crate::models::hpcc::Hpcc;
use crate::report::published::Balanced;
use crate::text::{Table, figure};

const LEFT: f64 = 8.0;
const GAP: f64 = 16.0;
const BAR: f64 = 7.0;
const MOST_BARS: usize = 3;
/// Names of bars, above each band.
const HEAD: f64 = 70.0;

/// A quantity of a system, with its name and colour in the figure.
struct Quantity {
    name: &'static str,
    colour: usize,
    of: fn(&Network) -> Option<f64>,
}

const BANDS: [(&str, &[Quantity]); 3] = [
    (
        "latency, us",
        &[
            Quantity { name: "ping-pong, worst", colour: 0, of: |of| of.ping_pong_latency },
            Quantity { name: "random rings", colour: 2, of: |of| of.random_latency },
        ],
    ),
    (
        "bandwidth, GB/s",
        &[
            Quantity { name: "ping-pong, worst", colour: 0, of: |of| of.ping_pong },
            Quantity { name: "natural ring", colour: 1, of: |of| of.natural },
            Quantity { name: "random rings", colour: 2, of: |of| of.random },
        ],
    ),
    (
        "bandwidth ratios",
        &[
            Quantity { name: "natural/ping-pong", colour: 0, of: |of| Some(of.natural? / of.ping_pong?) },
            Quantity { name: "random/ping-pong", colour: 1, of: |of| Some(of.random? / of.ping_pong?) },
            Quantity { name: "random/natural", colour: 2, of: |of| Some(of.random? / of.natural?) },
        ],
    ),
];

/// What the figure shows of a system.
struct Network {
    label: String,
    ping_pong_latency: Option<f64>,
    random_latency: Option<f64>,
    ping_pong: Option<f64>,
    natural: Option<f64>,
    random: Option<f64>,
    hpl_gflops: Option<f64>,
}

impl Network {
    fn own((label, found, _): &System<'_>) -> Self {
        let of = |name: &str| Hpcc::figure(found, name).filter(|value| *value > 0.0);
        Network {
            label: label.clone(),
            ping_pong_latency: of("MaxPingPongLatency_usec"),
            random_latency: of("RandomlyOrderedRingLatency_usec"),
            ping_pong: of("MinPingPongBandwidth_GBytes"),
            natural: of("NaturallyOrderedRingBandwidth_GBytes"),
            random: of("RandomlyOrderedRingBandwidth_GBytes"),
            hpl_gflops: found.hpl_gflops().filter(|rate| *rate > 0.0),
        }
    }

    fn published(of: &Balanced) -> Self {
        Network {
            label: of.label(),
            ping_pong_latency: of.ping_pong_latency_us,
            random_latency: Some(of.random_ring_latency_us),
            ping_pong: Some(of.ping_pong_gb_per_s),
            natural: None,
            random: Some(of.random_ring_gb_per_s),
            hpl_gflops: Some(of.hpl_gflops),
        }
    }
}

/// The figure, of systems whose random rings were measured; only of two or more does it say more than bars do.
pub fn bands(systems: &[System<'_>], published: &[Balanced]) -> Option<Plot> {
    let own = systems.iter().map(Network::own);
    let mut all: Vec<Network> = own.chain(published.iter().map(Network::published)).collect();
    all.retain(|of| of.random.is_some());
    if systems.is_empty() || all.len() < 2 {
        return None;
    }
    all.sort_by(|a, b| a.random.unwrap_or(0.0).total_cmp(&b.random.unwrap_or(0.0)));
    let names: Vec<Vec<String>> = all.iter().map(|of| lines(&of.label, 60)).collect();
    let height = |name: &Vec<String>| 8.0 + LINE * name.len() as f64 + BAR * MOST_BARS as f64;
    let bottom = HEAD + names.iter().map(height).sum::<f64>();
    let width = (WIDTH - 2.0 * LEFT - 2.0 * GAP) / BANDS.len() as f64;
    let rates = |of: &dyn Fn(&Network) -> Option<f64>| extent(all.iter().filter_map(of));
    let mut body = String::new();
    for (at, (title, quantities)) in BANDS.iter().enumerate() {
        let left = LEFT + at as f64 * (width + GAP);
        let area = Area { left, right: left + width, top: HEAD, bottom };
        let (low, high) = extent(quantities.iter().flat_map(|quantity| all.iter().filter_map(quantity.of)));
        if high <= 0.0 {
            continue;
        }
        let axis = area.across(low / 2.0, high);
        let hpl = rates(&|of| of.hpl_gflops);
        let rate = (at == 1 && hpl.1 > 0.0).then(|| LogAxis::new(hpl.0 / 2.0, hpl.1, area.left, area.right));
        body += &area.uprights(&axis);
        body += &text(left, 12.0, "start", "name", title);
        for (number, quantity) in quantities.iter().enumerate() {
            body +=
                &text(left, 26.0 + LINE * number as f64, "start", &format!("text{}", quantity.colour), quantity.name);
        }
        if rate.is_some() {
            body += &text(left, 26.0 + LINE * MOST_BARS as f64, "start", "tick", "grey: HPL's rate");
        }
        let mut top = HEAD;
        for (of, name) in all.iter().zip(&names) {
            let first = top + 4.0 + LINE * name.len() as f64;
            if let Some((rate, gflops)) = rate.as_ref().zip(of.hpl_gflops) {
                let title = format!("{}: HPL {} Gflop/s", of.label, figure(gflops));
                body += &bar(left, first - 1.0, rate.at(gflops) - left, BAR * MOST_BARS as f64 + 1.0, "idle", &title);
            }
            for (number, quantity) in quantities.iter().enumerate() {
                let Some(value) = (quantity.of)(of).filter(|value| value.is_finite()) else { continue };
                let title = format!("{}: {} {}", of.label, quantity.name, figure(value));
                let y = first + BAR * number as f64;
                body += &bar(left, y, axis.at(value) - left, BAR - 1.0, &format!("role{}", quantity.colour), &title);
            }
            if at + 1 == BANDS.len() {
                body += &block(LEFT, top + 12.0, "start", "name", name);
            }
            top += height(name);
        }
    }
    let told = all.iter().map(|of| format!("{} {} GB/s", of.label, figure(of.random.unwrap_or(0.0))));
    let summary = format!("random rings: {}", told.collect::<Vec<_>>().join("; "));
    let data = Table::of(&all).column("system", |of| of.label.clone());
    let quantities = BANDS.iter().flat_map(|(band, of)| of.iter().map(move |quantity| (*band, quantity)));
    let data = data.columns(quantities, |table, (band, quantity)| {
        table.column(format!("{band}: {}", quantity.name), |of| (quantity.of)(of))
    });
    let data = data.column("HPL Gflop/s", |of| of.hpl_gflops).done();
    let title = "HPC Challenge: latency, bandwidth and their ratios, by random-ring bandwidth".to_owned();
    Some(Plot::new(&["hpcc", "network"], title, summary, bottom + 24.0, body, data))
}
