//! How long a run would take, told before it. As in the paper's section 6, a time is work over a rate; but rates are not guessed:
//! each test is run on less data first.

use std::time::Duration;

use tailback_hpcc::{Outcome, Problem, Sizes, largest, product_gflops};
use tailback_transport::{Group, Result, Transport};

use super::forms;
use super::forms::{Found, Watched, star};
use super::measure::Bench;
use super::sizes::sizes;
use crate::models::beff;
use crate::models::hpcc::{Expected, Phase, Settings, Test};
use crate::models::measure::StudyJob;

/// Bytes of HPL's matrix for a rank in the runs that tell.
const BRIEF: f64 = 8.0 * 1048576.0;
/// Orders, words of vectors and words of tables beyond which a larger one tells no more: none fits a cache of one core.
const BRIEF_ORDER: usize = 1024;
const BRIEF_WORDS: usize = 1 << 22;
/// How long RandomAccess of all ranks is tried.
const BRIEF_UPDATES: Duration = Duration::from_secs(1);
/// One of so many pairs, and of so many rings, of the network's part is measured.
const BRIEF_PART: usize = 10;

/// Tries every test that was asked for. Collective; every rank gets the same.
pub fn estimate<T: Transport>(job: StudyJob<'_>, transport: &mut T, settings: &Settings) -> Result<Expected> {
    let StudyJob { bootstrap, nodes, seed, control } = job;
    let ranks = bootstrap.size();
    let (whole, data) = sizes(bootstrap, settings)?;
    let job = StudyJob { bootstrap, nodes, seed, control };
    let mut bench = Bench::new(&job, transport, settings, (brief(&whole, ranks), data))?;
    let begin = bench.meeting.now();
    let mut phases = Vec::new();
    for test in settings.asked(ranks) {
        control.monitor.enter(test.word());
        if bench.is_interrupted()? {
            break;
        }
        let job = StudyJob { bootstrap: &mut *job.bootstrap, nodes, seed, control };
        let Some(seconds) = bench.expected(job, test, &whole, settings)? else { break };
        phases.push(Phase { test, size: size(test, &whole, settings), seconds });
    }
    let tried_s = bench.meeting.now().since(begin).as_secs_f64();
    Ok(Expected { phases, tried_s, too_small: data.too_small() })
}

/// Less data, in the shape of the whole.
fn brief(whole: &Sizes, ranks: usize) -> Sizes {
    let block = whole.block;
    let order = (whole.hpl_order / 2).min(Sizes::order_for(BRIEF * ranks as f64, block)).max(1);
    Sizes {
        dgemm_order: whole.dgemm_order.min(BRIEF_ORDER),
        stream_words: whole.stream_words.min(BRIEF_WORDS),
        table_words: whole.table_words.min(BRIEF_WORDS),
        // It is ended by time.
        global_table_words: whole.global_table_words,
        ..Sizes::of(order, block, whole.grid)
    }
}

fn size(test: Test, whole: &Sizes, settings: &Settings) -> String {
    match test {
        Test::Ptrans => format!("order {}", whole.ptrans_order),
        Test::Hpl => format!("order {}, blocks of {}, {} ranks", whole.hpl_order, whole.block, whole.grid),
        Test::Dgemm => format!("order {}", whole.dgemm_order),
        Test::Stream => format!("{} words", whole.stream_words),
        Test::RandomAccess => {
            format!(
                "{} words, at most {} s; {} words",
                whole.global_table_words, settings.update_time_s, whole.table_words
            )
        }
        Test::Fft => format!("{} points; {} points", points(whole), whole.fft_points),
        Test::Beff => "as `tailback beff`, ten rings".to_owned(),
    }
}

fn points(sizes: &Sizes) -> usize {
    sizes.global_fft_shape.0 * sizes.global_fft_shape.1
}

impl<T: Transport> Bench<'_, T> {
    /// The seconds of a test on all data; nothing when it was interrupted.
    fn expected(&mut self, job: StudyJob<'_>, test: Test, whole: &Sizes, settings: &Settings) -> Result<Option<f64>> {
        let tried = self.sizes;
        let ratio = |whole: usize, tried: usize| whole as f64 / tried as f64;
        let seconds = match test {
            Test::Ptrans => self.timed(Self::ptrans)? * ratio(whole.ptrans_order, tried.ptrans_order).powi(2),
            Test::Hpl => {
                let (rate, seconds) = (self.product_rate()?, self.timed(Self::hpl)?);
                hpl_scaled((tried.hpl_order, seconds), whole.hpl_order, rate * self.members.len() as f64)
            }
            Test::Dgemm => {
                let seconds = self.timed(Self::dgemm)?;
                let rates = ["StarDGEMM_Gflops", "SingleDGEMM_Gflops"].map(|name| self.found.figure(name));
                let operations = 2e-9 * (tried.dgemm_order as f64).powi(3);
                let products: f64 = rates.into_iter().flatten().map(|rate| operations / rate).sum();
                let more = ratio(whole.dgemm_order, tried.dgemm_order);
                products * more.powi(3) + (seconds - products).max(0.0) * more.powi(2)
            }
            Test::Stream => self.timed(Self::stream)? * ratio(whole.stream_words, tried.stream_words),
            Test::RandomAccess => {
                let limit = Duration::from_secs_f64(settings.update_time_s);
                let mut found = None;
                let seconds = self.timed(|bench| {
                    found = Some(bench.updates(limit.min(BRIEF_UPDATES))?);
                    Ok(())
                })?;
                let (outcome, checked) = found.expect("it was run");
                let own = self.timed(Self::own_updates)? * ratio(whole.table_words, tried.table_words);
                let all = updates_scaled(&outcome, checked, whole.global_table_words, limit.as_secs_f64());
                own + all + (seconds - outcome.seconds - checked).max(0.0)
            }
            Test::Fft => {
                let work = |of: &Sizes| {
                    let operations = |points: usize| points as f64 * (points.max(2) as f64).log2();
                    operations(points(of)) / of.grid.ranks() as f64 + 2.0 * operations(of.fft_points)
                };
                self.timed(Self::fft)? * work(whole) / work(&tried)
            }
            Test::Beff => return self.network(job),
        };
        Ok(Some(seconds))
    }

    /// What the slowest rank takes.
    fn timed(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<f64> {
        self.meeting.barrier()?;
        let begin = self.meeting.now();
        work(self)?;
        let seconds = self.meeting.now().since(begin).as_secs_f64();
        largest(&mut self.meeting, seconds)
    }

    /// The rate of a rank's products of HPL's shape while all ranks make them.
    fn product_rate(&mut self) -> Result<f64> {
        let (block, threads, longest) = (self.sizes.block, self.threads, forms::dgemm_time(&self.sizes));
        let watched = Watched { monitor: self.control.monitor, longest };
        let work = || Found { rates: [product_gflops(BRIEF_ORDER, block, threads)], check: 0.0 };
        Ok(star(&mut self.meeting, watched, work)?.rates[0])
    }

    /// The network's part: a few of its steps, all of which are measured until they are steady.
    fn network(&mut self, job: StudyJob<'_>) -> Result<Option<f64>> {
        let whole = beff::Settings::brief();
        let ranks = self.members.len();
        let pairs = whole.pairs.min(ranks * (ranks - 1) / 2);
        let tried = beff::Settings {
            pairs: pairs.div_ceil(BRIEF_PART),
            rings: whole.rings.div_ceil(BRIEF_PART),
            repetitions: 1,
            ..whole.clone()
        };
        // Two sizes of each, and rings in two ways.
        let steps = |of: &beff::Settings| of.repetitions * (2 * of.pairs + 4) + 4 * of.rings;
        let more = steps(&beff::Settings { pairs, ..whole }) as f64 / steps(&tried) as f64;
        let mut complete = 0;
        let seconds = self.timed(|bench| {
            complete = beff::measure(job, bench.transport, &tried)?.complete;
            Ok(())
        })?;
        Ok((complete > 0).then_some(seconds * more))
    }
}

/// HPL's time for `order` from that for a smaller one: the products, by their own rate of all ranks in Gflop/s, grow with its third
/// power, and everything else with its second.
fn hpl_scaled((tried, seconds): (usize, f64), order: usize, gflops: f64) -> f64 {
    let rest = (seconds - hpl_seconds(tried as f64, gflops)).max(0.0);
    hpl_seconds(order as f64, gflops) + rest * (order as f64 / tried as f64).powi(2)
}

/// RandomAccess' time for a table of so many words and its check, from a brief run of as large a table.
fn updates_scaled(outcome: &Outcome, checked: f64, words: usize, limit: f64) -> f64 {
    let seconds = updates_seconds(words as f64, outcome.gups()).min(limit);
    seconds + checked * seconds / outcome.seconds
}

/// The paper's formula (1) with its constant: 2/3 N^3 over the rate, and HPL's terms of lower order.
fn hpl_seconds(order: f64, gflops: f64) -> f64 {
    Problem::operations(order) / (1e9 * gflops)
}

/// The paper's formula (2): four updates of every word over the rate.
fn updates_seconds(words: f64, gups: f64) -> f64 {
    4.0 * words / (1e9 * gups)
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::*;
    use crate::layout::Nodes;
    use crate::models::measure::testing::study;

    const SYSTEMS: &str = include_str!("../../../../../data/hpcc-table2.csv");
    const MINUTES: &str = include_str!("../../../../../data/hpcc-table3.csv");

    fn rows(table: &str) -> Vec<Vec<&str>> {
        table.lines().skip(1).map(|line| line.split(',').collect()).collect()
    }

    /// The paper's estimates: HPL at 70% of the peak with a matrix in all memory, RandomAccess with a table in half of it at the
    /// rate that was measured, however many processors there are.
    #[test]
    fn the_papers_tables_2_and_3_follow_from_the_formulas() {
        let (systems, minutes) = (rows(SYSTEMS), rows(MINUTES));
        assert_eq!((systems.len(), minutes.len()), (5, 5));
        for (system, minutes) in systems.iter().zip(minutes) {
            assert_eq!(system[1], minutes[0]);
            let number = |text: &str| text.parse::<f64>().unwrap();
            let [gups, flops, ghz, gib] = [3, 4, 5, 6].map(|column| number(system[column]));
            for (at, processors) in [(1, 64.0), (3, 256.0)] {
                let bytes = processors * gib * 1024f64.powi(3);
                let hpl = hpl_seconds((bytes / 8.0).sqrt(), 0.7 * processors * flops * ghz) / 60.0;
                let updates = updates_seconds(bytes / 2.0 / 8.0, gups) / 60.0;
                assert!((hpl / number(minutes[at]) - 1.0).abs() < 0.002, "{system:?} {processors}: {hpl}");
                // The table's are cut, not rounded.
                assert_eq!((10.0 * updates).floor() / 10.0, number(minutes[at + 1]), "{system:?} {processors}");
            }
        }
    }

    #[test]
    fn times_grow_with_their_work() {
        // 1 Gflop/s: products of order 1000 take 2/3 s, and the rest of 1 s is of second order.
        let rest = 1.0 - hpl_seconds(1000.0, 1.0);
        let expected = hpl_seconds(3000.0, 1.0) + 9.0 * rest;
        assert!((hpl_scaled((1000, 1.0), 3000, 1.0) - expected).abs() < 1e-12);
        let outcome = Outcome { updates: 1e6, seconds: 0.5, cut: true };
        // 4 million updates at 2 a microsecond, or until time is up; the check is half as long as the run.
        assert!((updates_scaled(&outcome, 0.25, 1_000_000, 10.0) - 3.0).abs() < 1e-12);
        assert!((updates_scaled(&outcome, 0.25, 1_000_000, 1.0) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn every_test_has_an_estimate_on_any_number_of_ranks() {
        for ranks in [1, 2, 3] {
            let settings = Settings {
                tests: Vec::new(),
                memory: None,
                order: Some(96),
                block: 16,
                grid: None,
                update_time_s: 60.0,
                threads: 1,
                hpl_gflops: None,
            };
            let nodes = Nodes::virtual_nodes(ranks, 1);
            for found in
                study(Job::new(ranks), &nodes, None, |job, transport| estimate(job, transport, &settings)).unwrap()
            {
                let asked: Vec<Test> = found.phases.iter().map(|phase| phase.test).collect();
                assert_eq!(asked, settings.asked(ranks));
                assert!(found.phases.iter().all(|phase| phase.seconds.is_finite() && phase.seconds > 0.0), "{found:?}");
            }
        }
    }
}
