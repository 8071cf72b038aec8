//! Runs the tests, one after the other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tailback_hpcc::{
    Dgemm, ERROR_LIMIT, Fft, GlobalFft, Hpl, Outcome, Problem, Ptrans, RESIDUAL_LIMIT, Sizes, Stream, Table, Updates,
};
use tailback_transport::{Group, Rank, Result, Transport};

use super::forms;
use super::forms::{Found, Watched, single, star};
use super::sizes::{links_on_node, sizes};
use crate::layout::order;
use crate::models::beff;
use crate::models::hpcc::{Check, DataSize, Hpcc, RunKind, Settings, Test};
use crate::models::measure::{Control, Repeated, StudyJob};

/// How often short tests are run; the quickest counts.
const PTRANS_PASSES: usize = 5;
const FFT_PASSES: usize = 3;
const SEED: u64 = 8;
/// A segment for sums of a few numbers.
const SMALL: usize = 64;

/// Runs everything that was asked for. Collective; every rank gets the same, with the tests that were complete.
pub fn measure<T: Transport>(
    StudyJob { bootstrap, nodes, seed, control }: StudyJob<'_>,
    transport: &mut T,
    settings: &Settings,
) -> Result<Repeated<Hpcc>> {
    let ranks = bootstrap.size();
    let (sizes, data) = sizes(bootstrap, settings)?;
    let job = StudyJob { bootstrap, nodes, seed, control };
    let mut bench = Bench::new(&job, transport, settings, (sizes, data))?;
    bench.keep("CommWorldProcs", ranks as f64);
    let mut complete = 0;
    for test in settings.asked(ranks) {
        control.monitor.enter(test.word());
        let job = StudyJob { bootstrap: &mut *job.bootstrap, nodes, seed, control };
        if bench.is_interrupted()? || !bench.run(job, test, settings)? {
            break;
        }
        complete += 1;
    }
    Ok(Repeated { found: bench.found, complete })
}

pub(super) struct Bench<'a, T: Transport> {
    pub(super) transport: &'a mut T,
    pub(super) members: Vec<Rank>,
    /// For barriers, sums and agreements around the tests.
    pub(super) meeting: T::Group,
    pub(super) sizes: Sizes,
    pub(super) threads: usize,
    pub(super) found: Hpcc,
    /// Whether this rank is the one of tests on one.
    pub(super) chosen: bool,
    pub(super) control: Control<'a>,
}

impl<'a, T: Transport> Bench<'a, T> {
    pub(super) fn new(
        job: &StudyJob<'a>,
        transport: &'a mut T,
        settings: &Settings,
        (sizes, data): (Sizes, DataSize),
    ) -> Result<Self> {
        let ranks = job.bootstrap.size();
        let members: Vec<Rank> = (0..ranks).map(Rank::from).collect();
        let meeting = transport.group(&members, SMALL)?;
        let found = Hpcc {
            settings: Some(settings.clone()),
            libraries: Some(tailback_hpcc::LIBRARIES.to_owned()),
            run: Some(if tailback_hpcc::OPTIMISED { RunKind::Optimised } else { RunKind::Base }),
            data: Some(data),
            links_on_node: Some(links_on_node(job.nodes)),
            ..Hpcc::default()
        };
        let chosen = order(job.seed, 0, ranks)[0] == job.bootstrap.rank().index();
        let threads = settings.threads.max(1);
        Ok(Bench { transport, members, meeting, sizes, threads, found, chosen, control: job.control })
    }

    /// Whether anyone was; asked by all.
    pub(super) fn is_interrupted(&mut self) -> Result<bool> {
        let mine = u64::from(self.control.interrupt.load(Ordering::Relaxed));
        self.meeting.start_agreement([mine, 0, 0, 0])?;
        Ok(self.meeting.wait_agreement()?[0] != 0)
    }

    fn keep(&mut self, name: &str, value: f64) {
        self.found.figures.insert(name.to_owned(), value);
    }

    fn check(&mut self, test: &str, quantity: &str, value: f64, limit: f64) {
        self.found.checks.push(Check::new(test, quantity, value, limit));
    }

    /// Runs a test; false when it was interrupted.
    fn run(&mut self, job: StudyJob<'_>, test: Test, settings: &Settings) -> Result<bool> {
        match test {
            Test::Ptrans => self.ptrans()?,
            Test::Hpl => self.hpl()?,
            Test::Dgemm => self.dgemm()?,
            Test::Stream => self.stream()?,
            Test::RandomAccess => {
                self.updates(Duration::from_secs_f64(settings.update_time_s))?;
                self.own_updates()?;
            }
            Test::Fft => self.fft()?,
            Test::Beff => return self.beff(job),
        }
        Ok(true)
    }

    pub(super) fn ptrans(&mut self) -> Result<()> {
        let Sizes { ptrans_order, block, grid, .. } = self.sizes;
        let mut group = self.transport.group(&self.members, Ptrans::segment(ptrans_order, block, grid))?;
        let mut ptrans = Ptrans::new(ptrans_order, block, grid, group.rank());
        let mut seconds = f64::INFINITY;
        for pass in 0..PTRANS_PASSES {
            if pass > 0 {
                ptrans.reset();
            }
            seconds = seconds.min(ptrans.run(&mut group, self.control.monitor)?);
        }
        let residual = ptrans.residual(&mut group)?;
        self.keep("PTRANS_GBs", ptrans.gigabytes_per_second(seconds));
        self.keep("PTRANS_time", seconds);
        self.keep("PTRANS_n", ptrans_order as f64);
        self.keep("PTRANS_nb", block as f64);
        self.keep("PTRANS_nprow", grid.rows as f64);
        self.keep("PTRANS_npcol", grid.columns as f64);
        self.check("PTRANS", RESIDUAL, residual, RESIDUAL_LIMIT);
        Ok(())
    }

    pub(super) fn hpl(&mut self) -> Result<()> {
        let Sizes { hpl_order: order, block, grid, .. } = self.sizes;
        let problem = Problem { order, block, grid, seed: SEED };
        let mut group = self.transport.group(&self.members, Hpl::segment(problem))?;
        let mut hpl = Hpl::new(problem, group.rank()).on_threads(self.threads);
        let seconds = hpl.run(&mut group, self.control.monitor)?;
        let residuals = hpl.residuals(&mut group)?;
        self.keep("HPL_Tflops", 1e-3 * problem.gigaflops(seconds));
        self.keep("HPL_time", seconds);
        self.keep("HPL_N", order as f64);
        self.keep("HPL_NB", block as f64);
        self.keep("HPL_nprow", grid.rows as f64);
        self.keep("HPL_npcol", grid.columns as f64);
        for (quantity, residual) in [
            (RESIDUAL, residuals.hpl),
            ("residual / (eps |A|_1 N)", residuals.by_order),
            ("residual / (eps |A|_1 |x|_1)", residuals.by_sums),
            ("residual / (eps |A| |x| N)", residuals.by_maxima),
        ] {
            self.check("HPL", quantity, residual, RESIDUAL_LIMIT);
        }
        Ok(())
    }

    pub(super) fn dgemm(&mut self) -> Result<()> {
        let (order, threads) = (self.sizes.dgemm_order, self.threads);
        let work = || {
            let mut dgemm = Dgemm::new(order, threads);
            let rates = [dgemm.run()];
            Found { rates, check: dgemm.residual() }
        };
        let longest = forms::dgemm_time(&self.sizes);
        self.local("DGEMM", ["DGEMM_Gflops"], (RESIDUAL, RESIDUAL_LIMIT), longest, work)?;
        self.keep("DGEMM_N", order as f64);
        Ok(())
    }

    pub(super) fn stream(&mut self) -> Result<()> {
        let (words, threads) = (self.sizes.stream_words, self.threads);
        let work = || {
            let mut stream = Stream::new(words, threads);
            let rates = stream.run();
            Found { rates: [rates.copy, rates.scale, rates.add, rates.triad], check: stream.error() }
        };
        let names = ["STREAM_Copy", "STREAM_Scale", "STREAM_Add", "STREAM_Triad"];
        let longest = forms::stream_time(&self.sizes);
        self.local("STREAM", names, ("average error", Stream::LIMIT), longest, work)?;
        self.keep("STREAM_VectorSize", words as f64);
        Ok(())
    }

    /// RandomAccess of all ranks: what was done, and the seconds that its check took.
    pub(super) fn updates(&mut self, within: Duration) -> Result<(Outcome, f64)> {
        let total = self.sizes.global_table_words;
        let ranks = self.members.len();
        let mut group = self.transport.group(&self.members, Updates::segment(ranks))?;
        let mut updates = Updates::new(total, ranks, group.rank());
        let outcome = updates.run(&mut group, within, self.control.monitor)?;
        let begin = group.now();
        let errors = updates.errors(&mut group, self.control.monitor)?;
        let checked = group.now().since(begin).as_secs_f64();
        self.keep("MPIRandomAccess_N", total as f64);
        self.keep("MPIRandomAccess_GUPs", outcome.gups());
        self.keep("MPIRandomAccess_time", outcome.seconds);
        self.keep("MPIRandomAccess_ExeUpdates", outcome.updates);
        self.keep("MPIRandomAccess_ErrorsFraction", errors);
        self.check("MPIRandomAccess", "part of words in error", errors, ERROR_LIMIT);
        Ok((outcome, checked))
    }

    /// RandomAccess of ranks by themselves.
    pub(super) fn own_updates(&mut self) -> Result<()> {
        let (table_words, threads) = (self.sizes.table_words, self.threads);
        let work = || {
            let mut table = Table::new(table_words, threads);
            let rates = [table.run()];
            Found { rates, check: table.errors() }
        };
        let (check, longest) = (("part of words in error", ERROR_LIMIT), forms::random_access_time(&self.sizes));
        self.local("RandomAccess", ["RandomAccess_GUPs"], check, longest, work)?;
        self.keep("RandomAccess_N", table_words as f64);
        Ok(())
    }

    pub(super) fn fft(&mut self) -> Result<()> {
        let Sizes { fft_points, global_fft_shape: shape, .. } = self.sizes;
        let ranks = self.members.len();
        let mut group = self.transport.group(&self.members, GlobalFft::segment(shape, ranks))?;
        let mut fft = GlobalFft::new(shape, ranks, group.rank());
        let mut seconds = f64::INFINITY;
        for pass in 0..FFT_PASSES {
            if pass > 0 {
                fft.reset();
            }
            seconds = seconds.min(fft.run(&mut group, self.control.monitor)?);
        }
        let residual = fft.residual(&mut group, self.control.monitor)?;
        self.keep("MPIFFT_N", (shape.0 * shape.1) as f64);
        self.keep("MPIFFT_Gflops", fft.gigaflops(seconds));
        self.check("MPIFFT", RESIDUAL, residual, RESIDUAL_LIMIT);
        drop((group, fft));
        let work = || {
            let mut fft = Fft::new(fft_points);
            let (mut best, mut check) = (0.0f64, 0.0);
            for _ in 0..FFT_PASSES {
                best = best.max(fft.run());
                check = fft.residual();
                fft.reset();
            }
            Found { rates: [best], check }
        };
        let longest = forms::fft_time(&self.sizes, FFT_PASSES);
        self.local("FFT", ["FFT_Gflops"], (RESIDUAL, RESIDUAL_LIMIT), longest, work)?;
        self.keep("FFT_N", fft_points as f64);
        Ok(())
    }

    /// A test of ranks by themselves: all at once, then one alone.
    fn local<const N: usize>(
        &mut self,
        test: &str,
        names: [&str; N],
        (quantity, limit): (&str, f64),
        longest: Duration,
        work: impl Fn() -> Found<N>,
    ) -> Result<()> {
        let watched = Watched { monitor: self.control.monitor, longest };
        let all = star(&mut self.meeting, watched, &work)?;
        let one = single(&mut self.meeting, watched, self.chosen, &work)?;
        for (form, found) in [("Star", all), ("Single", one)] {
            for (name, rate) in names.iter().zip(found.rates) {
                self.keep(&format!("{form}{name}"), rate);
            }
            self.check(&format!("{form}{test}"), quantity, found.check, limit);
        }
        Ok(())
    }

    fn beff(&mut self, job: StudyJob<'_>) -> Result<bool> {
        let settings = beff::Settings::brief();
        let seen = beff::measure(job, self.transport, &settings)?;
        let Some(found) = seen.found.filter(|_| seen.complete == settings.repetitions()) else { return Ok(false) };
        for figure in found.figures() {
            self.keep(figure.theirs, figure.value);
        }
        self.found.beff = Some(found);
        Ok(true)
    }
}

const RESIDUAL: &str = "scaled residual";

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::*;
    use crate::layout::Nodes;
    use crate::models::hpcc::NAMES;
    use crate::models::measure::testing::study;

    fn settings(tests: Vec<Test>) -> Settings {
        Settings {
            tests,
            memory: None,
            order: Some(96),
            block: 16,
            grid: None,
            update_time_s: 60.0,
            threads: 2,
            hpl_gflops: None,
        }
    }

    fn run(ranks: usize, settings: &Settings, cut: bool) -> Result<Vec<Repeated<Hpcc>>> {
        let (nodes, cut) = (Nodes::virtual_nodes(ranks, 2), cut.then_some(Rank(0)));
        study(Job::new(ranks), &nodes, cut, |job, transport| measure(job, transport, settings))
    }

    #[test]
    fn every_test_has_its_figures_and_passes_on_any_number_of_ranks() {
        for ranks in [1, 2, 3, 4, 6, 8] {
            let all = Test::ALL.into_iter().filter(|test| *test != Test::Beff).collect();
            for found in run(ranks, &settings(all), false).unwrap() {
                assert_eq!(found.complete, 6);
                let found = found.found;
                assert_eq!((found.checks.len(), found.failed().count()), (15, 0), "{ranks}: {:?}", found.checks);
                let network = |name: &str| name.contains("Ring") || name.contains("PingPong");
                for name in NAMES.iter().filter(|name| !network(name.theirs)) {
                    assert!(found.figure(name.theirs).is_some_and(|value| value > 0.0), "{} on {ranks}", name.theirs);
                }
            }
        }
    }

    #[test]
    fn an_interrupt_of_one_rank_ends_all_and_keeps_what_was_complete() {
        for found in run(3, &settings(Vec::new()), true).unwrap() {
            assert_eq!((found.complete, found.found.checks.len()), (0, 0));
        }
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        let wrong = Settings { grid: Some([2, 2]), ..settings(Vec::new()) };
        assert!(run(3, &wrong, false).unwrap_err().to_string().contains("--grid 2x2 has 4 ranks, and the job 3"));
        let wrong = Settings { order: Some(10_000_000), ..settings(Vec::new()) };
        assert!(run(2, &wrong, false).unwrap_err().to_string().contains("give a smaller --memory or --order"));
    }

    #[test]
    fn hpl_run_elsewhere_is_not_run_again() {
        let elsewhere = Settings { hpl_gflops: Some(5.0), ..settings(Vec::new()) };
        assert!(!elsewhere.asked(2).contains(&Test::Hpl) && elsewhere.asked(2).contains(&Test::Beff));
        assert!(!settings(Vec::new()).asked(1).contains(&Test::Beff));
        assert_eq!(settings(vec![Test::Beff]).asked(1), [Test::Beff]);
    }
}
