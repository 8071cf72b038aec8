//! Scale and cost of what runs outside the network: histogram records, rings, layout of a million ranks, merging the
//! histograms of 100,000 ranks. `cargo bench --bench scale`.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tailback::layout::{Layout, Nodes, Placement, Role, Split, random_rings};
use tailback::stats::Samples;
use tailback_transport::Rank;

const MIX: [(&str, f64); 4] = [("a2a", 1.0), ("incast", 1.0), ("put-incast", 1.0), ("get-bcast", 1.0)];

fn record(criterion: &mut Criterion) {
    let mut samples = Samples::new();
    let mut value = 1000u64;
    criterion.bench_function("histogram record", |b| {
        b.iter(|| {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            samples.record(black_box(1000 + (value >> 48)));
        });
    });
}

fn rings(criterion: &mut Criterion) {
    criterion.bench_function("30 rings of 1000 members", |b| {
        b.iter(|| random_rings(black_box(7), 0, 1000, Rank(17), 30));
    });
}

/// What one rank of a million does before its first message: layout, its team, its rings.
fn million_ranks(nodes: Nodes) -> usize {
    let layout = Layout::load_test(nodes, Placement::random(42), 0.2, &MIX, Split::Auto).expect("enough nodes");
    let me = layout.canaries()[0];
    assert_eq!(layout.role(me), Role::Canary);
    let team = layout.team(me);
    let place = team.iter().position(|&rank| rank == me).expect("in its team");
    random_rings(42, 0, team.len(), Rank::from(place), 30).len() + team.len()
}

fn layout(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one million ranks");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    for per_node in [1, 8, 64] {
        group.bench_function(format!("{per_node} per node"), |b| {
            b.iter(|| million_ranks(Nodes::virtual_nodes(1_000_000, per_node)));
        });
    }
    group.finish();
}

/// A canary's samples under load: three decades wide.
fn encoded_samples() -> Vec<u8> {
    let mut samples = Samples::new();
    let mut value = 1u64;
    for _ in 0..30 {
        for _ in 0..200 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            samples.record(1000 << ((value >> 40) % 10) | (value >> 54));
        }
        samples.close_pass(Some(1.0));
    }
    samples.encode()
}

fn merge(criterion: &mut Criterion) {
    let encoded = encoded_samples();
    let mut sum = Samples::decode(&encoded).expect("own encoding");
    let started = Instant::now();
    const RANKS: u32 = 100_000;
    for _ in 1..RANKS {
        sum.merge(&Samples::decode(&encoded).expect("own encoding")).expect("same passes");
    }
    println!(
        "merging {RANKS} ranks' samples (15 histograms, {} bytes each): {:.1} s",
        encoded.len(),
        started.elapsed().as_secs_f64()
    );
    criterion.bench_function("decode and merge one rank's samples", |b| {
        b.iter(|| sum.merge(&Samples::decode(black_box(&encoded)).expect("own encoding")).expect("same passes"));
    });
}

criterion_group!(benches, record, rings, layout, merge);
criterion_main!(benches);
