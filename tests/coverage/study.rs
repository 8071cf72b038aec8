//! A run of several placements over a process of known truth, and how often its intervals hold that truth.

use std::thread;

use tailback::stats::{AllPairs, Batch, Ratio, Samples, Spread, Statistic, Weight, paired, pooled, unpaired};

use super::process::{Draw, Process};

pub const FIGURES: [Statistic; 6] =
    [Statistic::Avg, Statistic::P50, Statistic::P99, Statistic::TimeP50, Statistic::TimeP75, Statistic::TimeP90];
const PLACEMENTS: usize = 8;
const BLOCKS: usize = 2;
/// As long as the blocks of a default run.
const BLOCK_NS: f64 = 400e6;

/// What the placements of a run do to ln(latency under load).
pub fn effects(sd: f64, draw: &mut Draw) -> Vec<f64> {
    (0..PLACEMENTS).map(|_| sd * draw.normal()).collect()
}

/// One state of one placement: two blocks, recorded and joined by the code under test.
fn state(process: Process, effect: f64, draw: &mut Draw, blocks: &mut [Samples; BLOCKS]) -> Batch {
    for block in blocks.iter_mut() {
        block.clear();
        process.block(effect, BLOCK_NS, draw, block);
    }
    pooled(&*blocks)
}

/// The factors of every figure on every placement.
pub fn factors(process: Process, effects: &[f64], draw: &mut Draw) -> Vec<Vec<f64>> {
    let mut blocks = [Samples::new(), Samples::new()];
    let mut all = vec![Vec::new(); FIGURES.len()];
    for &effect in effects {
        let isolated = state(Process::Isolated, 0.0, draw, &mut blocks);
        let loaded = state(process, effect, draw, &mut blocks);
        for (figure, factors) in FIGURES.iter().zip(&mut all) {
            factors.push(figure.factor(&isolated, &loaded, Weight::Length).expect("both have samples"));
        }
    }
    all
}

/// The geometric mean, over the population of placements, of the factors of figures measured for very long. The
/// population is cut into equally likely parts, of which the middles are taken.
pub fn truth(process: Process, sd: f64, seconds: f64) -> Vec<f64> {
    const PARTS: usize = 15;
    let parts = if sd > 0.0 { PARTS } else { 1 };
    let mut draw = Draw::new(1);
    let mut samples = Samples::new();
    Process::Isolated.block(0.0, 0.02 * seconds * 1e9, &mut draw, &mut samples);
    let isolated = samples.total();
    let mut sums = vec![0.0; FIGURES.len()];
    for part in 0..parts {
        samples.clear();
        let effect = sd * normal_quantile((part as f64 + 0.5) / parts as f64);
        process.block(effect, seconds * 1e9 / parts as f64, &mut draw, &mut samples);
        let loaded = samples.total();
        for (figure, sum) in FIGURES.iter().zip(&mut sums) {
            *sum += figure.factor(&isolated, &loaded, Weight::Length).expect("samples").ln();
        }
    }
    sums.iter().map(|sum| (sum / parts as f64).exp()).collect()
}

/// By halving; Student's t of many degrees of freedom is the normal distribution.
fn normal_quantile(part: f64) -> f64 {
    let size = tailback::stats::two_sided_t(1.0 - (2.0 * part - 1.0).abs(), 1e5);
    if part < 0.5 { -size } else { size }
}

/// What was found of one figure over many runs.
#[derive(Clone, Copy, Debug)]
pub struct Coverage {
    pub figure: Statistic,
    /// Part of the runs whose interval holds the truth.
    pub held: f64,
    /// Median of the runs' factors over the truth.
    pub bias: f64,
    /// Median of the interval's half-width, as a factor.
    pub half_width: f64,
}

/// Repeats a run and holds its intervals against the truth.
pub fn coverage(process: Process, sd: f64, runs: u64, truth_seconds: f64) -> Vec<Coverage> {
    let truth = truth(process, sd, truth_seconds);
    let spreads: Vec<Vec<Spread>> = repeat(runs, |seed| {
        let mut draw = Draw::new(1000 + seed);
        let effects = effects(sd, &mut draw);
        let all = factors(process, &effects, &mut draw);
        all.iter().map(|factors| Spread::of(factors).expect("factors are positive")).collect()
    });
    let summarise = |(at, (&figure, truth)): (usize, (&Statistic, f64))| {
        let own = || spreads.iter().map(|of| of[at]);
        let interval = |of: Spread| of.interval.expect("eight placements have an interval");
        let held = own().filter(|&of| !interval(of).excludes(truth)).count();
        let bias = median(own().map(|of| of.factor / truth).collect());
        let half_width = median(own().map(|of| (interval(of).high / interval(of).low).sqrt()).collect());
        Coverage { figure, held: held as f64 / runs as f64, bias, half_width }
    };
    FIGURES.iter().zip(truth).enumerate().map(summarise).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How often runs that differ in nothing are said to differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct FalseClaims {
    /// Pairs of runs on the same placements.
    pub paired: f64,
    /// Pairs of runs on placements of their own.
    pub unpaired: f64,
    /// Three alternatives on the same placements, one of which is named the least or the greatest.
    pub named: f64,
}

/// Three runs on the same placements and one on others, of one process, compared.
pub fn same_against_same(process: Process, sd: f64, figure: Statistic, runs: u64) -> FalseClaims {
    let at = FIGURES.iter().position(|of| *of == figure).expect("one of the figures");
    let claims = repeat(runs, |seed| {
        let mut draw = Draw::new(500_000 + seed);
        let (here, elsewhere) = (effects(sd, &mut draw), effects(sd, &mut draw));
        let mut run = |effects: &[f64]| factors(process, effects, &mut draw).swap_remove(at);
        let [a, b, c, d] = [run(&here), run(&here), run(&here), run(&elsewhere)];
        let claimed = |found: Option<Ratio>| found.and_then(|found| found.p_value).is_some_and(|p| p < 0.05);
        let logs = [&a, &b, &c].map(|factors| factors.iter().map(|factor| factor.ln()).collect::<Vec<f64>>());
        let all = AllPairs::of(&logs).expect("eight placements of three");
        [claimed(paired(&a, &b)), claimed(unpaired(&a, &d)), all.least.or(all.greatest).is_some()]
    });
    let part = |at: usize| claims.iter().filter(|of| of[at]).count() as f64 / runs as f64;
    FalseClaims { paired: part(0), unpaired: part(1), named: part(2) }
}

/// `one` for every seed, on all cores.
pub fn repeat<T: Send>(runs: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(runs);
    let share = |mine: u64| (mine..runs).step_by(threads as usize).map(&one).collect::<Vec<T>>();
    thread::scope(|scope| {
        let share = &share;
        let workers: Vec<_> = (0..threads).map(|mine| scope.spawn(move || share(mine))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker's own panic is printed")).collect()
    })
}
