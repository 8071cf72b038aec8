//! Every side beside the first: rows of figures, what they say about network, library and protocol, and all of it as tables.

use std::fmt::Write as _;

use serde::Serialize;

use super::aggressors::{AGGRESSORS_TITLE, Aggressors};
use super::attribution::{Attribution, attribute};
use super::compatible::{Difference, differences};
use super::conditions::{CONDITIONS_TITLE, ConditionRow, conditions, conditions_table};
use super::counters::{CounterComparison, counters};
use super::figures::{FIGURES_TEST, FigureRow};
use super::jobs::{ComponentRow, JobSet, Measured, by_placement, components};
use super::protocols::ProtocolFinding;
use super::sides::Side;
use super::variation::{VARIATION_TITLE, VariationRow, variation, variation_table};
use super::verdict::{Cell, Change, Row, State, Verdict};
use super::{figures, protocols};
use crate::analysis::added;
use crate::kernel::Canary;
use crate::result::ResultFile;
use crate::stats::{self, Statistic, holm, holm_levels};
use crate::text::{Rows, Table, figure, percent, section, within};

/// Said wherever verdicts are shown.
pub const TEST: &str = "Welch's test on the means of jobs (runs of one job and simulated ones: Student's t on placements); \
                        of added times as they are, else of logarithms; corrected by Holm";

/// What is shown unless everything is asked for: the headline, and what GPCNeT shows.
pub const SHOWN: [Statistic; 3] = [Statistic::HEADLINE, Statistic::Avg, Statistic::P99];

/// Several sides, compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The sides' names, the first being what the others are compared with.
    pub sides: Vec<String>,
    /// Whether canaries and congestors of a side went over different networks.
    #[serde(skip)]
    pub mixed: Vec<bool>,
    /// What carried the messages of sides on one host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
    /// How many jobs each has.
    pub jobs: Vec<usize>,
    /// Whether the sides are runs of one job, which asks what tells them apart.
    #[serde(skip)]
    pub is_one_job: bool,
    /// What was simulated rather than measured, a line for each such side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<String>,
    /// What makes the sides less than comparable.
    pub differences: Vec<Difference>,
    /// The test behind the verdicts.
    pub test: &'static str,
    /// The figures of canaries.
    pub rows: Vec<Row>,
    /// Why added times of a side may not be reported, by canary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_reportable: Vec<String>,
    /// Jobs that may not be reported, of sides that have others, by canary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The margin within which added times count as the same, as a part of the first side's loaded time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// What the variance of each canary's added time is made of, over all sides and the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentRow>,
    /// Those of studies and congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRow>,
    /// What each load does to each victim, where there are several loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggressors: Option<Aggressors>,
    /// Quiet, wild and loaded jobs, where some had no congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRow>,
    /// How much jobs of one system differ, where there are enough of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variation: Vec<VariationRow>,
    /// What the nodes' devices and the network's ports counted on every side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterComparison>,
    /// What MPI's impact is made of, when MPI and raw runs of like jobs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What each raw backend's impact is made of, when it ran with several protocols in like jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolFinding>,
}

/// Compares every side with the first, each one job.
pub fn compare(sides: &[Side<'_>], statistics: &[Statistic]) -> Comparison {
    let sets: Vec<JobSet<'_>> = sides.iter().cloned().map(JobSet::from).collect();
    compare_jobs(&sets, statistics, &[], None)
}

/// Compares every side with the first, for the kernels that the first and at least one other measured. `history` are sets
/// of repeated jobs that tell how much jobs differ; `margin` is the part of the first side's loaded time within which
/// added times count as the same.
///
/// One figure of each canary decides and is named beforehand: the time added to the headline. All of these together mark
/// something in one of twenty comparisons of equals; all others together likewise.
pub fn compare_jobs(
    sets: &[JobSet<'_>],
    statistics: &[Statistic],
    history: &[JobSet<'_>],
    margin: Option<f64>,
) -> Comparison {
    let (first, rest) = sets.split_first().expect("the command line asks for two sides");
    let shared = |kernel: &Canary| rest.iter().any(|side| side.kernels().contains(kernel));
    let kernels: Vec<Canary> = first.kernels().into_iter().filter(shared).collect();
    let (mut rows, mut not_reportable, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for &kernel in &kernels {
        let sound: Vec<JobSet<'_>> = history.iter().map(|set| set.reportable(kernel)).collect();
        let history: Vec<JobSet<'_>> = sound.into_iter().filter(|set| !set.jobs.is_empty()).collect();
        let all = sets;
        let sets = &sets.iter().map(|set| set.sound(kernel)).collect::<Vec<_>>()[..];
        for (set, sound) in all.iter().zip(sets).filter(|(set, sound)| set.jobs.len() > sound.jobs.len()) {
            let (count, more) = (set.jobs.len(), set.jobs.len() - sound.jobs.len());
            left_out.push(format!("{kernel}: {more} of {count} jobs of {} are not reportable and left out", set.label));
        }
        for state in State::ALL {
            // Added times are compared by the headline, which is what decides.
            let headline = [kernel.headline()];
            let statistics = if state == State::Added { &headline[..] } else { statistics };
            for &statistic in statistics {
                let against: Vec<_> = sets.iter().map(|set| set.why_not(state, kernel, statistic)).collect();
                let Some(row) = row(sets, &against, kernel, state, statistic, &history) else { continue };
                if row.primary {
                    let title = &row.title;
                    not_reportable.extend(against.iter().flatten().map(|why| format!("{title}: {why}")));
                }
                rows.push(row);
            }
        }
    }
    correct(&mut rows, true);
    correct(&mut rows, false);
    if let Some(margin) = margin {
        judge_within(&mut rows, margin);
    }
    // What a job counted and felt beside is shown for sides of one job: several have no one such figure.
    let sides: Vec<Side<'_>> = match sets.iter().all(|set| set.jobs.len() == 1) {
        true => sets.iter().map(|set| set.jobs[0].clone()).collect(),
        false => Vec::new(),
    };
    let differences = differences_of(first, rest);
    let alike = are_alike(&sides, &differences);
    let all: Vec<&JobSet<'_>> = sets.iter().chain(history).collect();
    let title = |kernel: Canary| rows.iter().find(|row: &&Row| row.kernel == kernel).map_or("", |row| &row.title);
    let components = kernels.iter().filter_map(|&kernel| components(&all, kernel, title(kernel))).collect();
    let figures: Vec<_> = sides.iter().map(|side| figures::study_figures(side.file, side.run)).collect();
    let mut figures = figures::rows(&figures);
    if !rest.iter().all(|side| by_placement(first, side)) {
        figures.iter_mut().flat_map(|row| &mut row.cells).for_each(unmark);
    }
    Comparison {
        sides: sets.iter().map(|set| set.label.clone()).collect(),
        mixed: sets.iter().map(|set| set.jobs.iter().any(|job| job.run.congestors_over.is_some())).collect(),
        carried: carried(sets),
        jobs: sets.iter().map(|set| set.jobs.len()).collect(),
        is_one_job: !sides.is_empty() && sides.iter().all(|side| std::ptr::eq(side.file, sides[0].file)),
        simulated: sets.iter().filter_map(|set| simulated(&set.label, set.jobs[0].file)).collect(),
        differences,
        test: TEST,
        not_reportable,
        left_out,
        margin,
        components,
        figures,
        aggressors: Aggressors::of(&sides),
        conditions: conditions(&sides),
        variation: variation(sets),
        counters: counters(&sides),
        attribution: alike.then(|| attribute(&sides)).flatten(),
        protocols: if alike { protocols::findings(&sides) } else { Vec::new() },
        rows,
    }
}

/// One figure on every side, with what is `against` it there; nothing where no side has it.
fn row(
    sets: &[JobSet<'_>],
    against: &[Option<String>],
    kernel: Canary,
    state: State,
    statistic: Statistic,
    history: &[JobSet<'_>],
) -> Option<Row> {
    let base = Measured::of(&sets[0], kernel);
    let cell = |(at, set): (usize, &JobSet<'_>)| {
        let side = Measured::of(set, kernel);
        let value = side.value(state, statistic);
        let cell = match at {
            0 => Cell::base(value),
            _ => {
                let (mut difference, mut untested) = side.beside(&base, state, statistic, history);
                if against[0].is_some() || against[at].is_some() {
                    difference = difference.map(|of| stats::Difference::untested(of.value));
                    untested = Verdict::NotReportable;
                }
                match state {
                    State::Added => {
                        Cell::added(value, difference, untested, base.loaded(statistic).unwrap_or(f64::NAN))
                    }
                    _ => Cell::times_worse(value, difference, untested),
                }
            }
        };
        let interval = side.jobs(state, statistic).filter(|_| state == State::Added).and_then(|jobs| jobs.interval());
        Cell { interval, is_reportable: against[at].is_none(), ..cell }
    };
    let cells: Vec<Cell> = sets.iter().enumerate().map(cell).collect();
    let test = sets[0].jobs[0].run.tests.iter().find(|test| test.kernel == kernel)?;
    let unit = match state {
        State::Impact => "x".into(),
        State::Added => added::unit(test),
        _ => test.unit.clone(),
    };
    let primary = state == State::Added;
    let row = Row { kernel, title: test.title.clone(), state, statistic, primary, unit, cells };
    row.cells.iter().any(|cell| cell.value.is_some()).then_some(row)
}

/// What differs between the first job and all others. Several jobs have other placements, as they should.
fn differences_of(first: &JobSet<'_>, rest: &[JobSet<'_>]) -> Vec<Difference> {
    let several = rest.iter().chain([first]).any(|set| set.jobs.len() > 1);
    let of = |set: &JobSet<'_>, jobs: &[Side<'_>]| -> Vec<Difference> {
        let found = jobs.iter().flat_map(|job| differences(&first.jobs[0], job));
        let found = found.filter(|of| !(several && of.aspect == super::Aspect::from("placement")));
        // What all of its jobs have in common is told once, of the side.
        let mut told: Vec<Difference> = Vec::new();
        for mut of in found {
            if set.jobs.len() > 1 {
                of.side.clone_from(&set.label);
            }
            if !told.iter().any(|known| (&known.aspect, &known.what) == (&of.aspect, &of.what)) {
                told.push(of);
            }
        }
        told
    };
    let mut all = of(first, &first.jobs[1..]);
    all.extend(rest.iter().flat_map(|set| of(set, &set.jobs)));
    all
}

/// Whether a remainder may be blamed on anything: where plans, ranks or loads differ it would be anybody's.
fn are_alike(sides: &[Side<'_>], differences: &[Difference]) -> bool {
    let machine = |side: &Side<'_>| side.file.machine.as_ref().map(|machine| machine.file.clone());
    let same = |side: &Side<'_>| machine(side) == machine(&sides[0]) && side.run.beside == sides[0].run.beside;
    !sides.is_empty() && sides.iter().all(same) && differences.iter().all(|of| !of.fatal)
}

/// One job a side does not show how much jobs differ.
fn unmark(cell: &mut Cell) {
    cell.p_value = None;
    cell.verdict = cell.verdict.map(|of| if of == Verdict::Unknown { of } else { Verdict::OneJob });
}

/// What carried the messages, where sides of several networks were on one host.
fn carried(sets: &[JobSet<'_>]) -> Option<String> {
    let backend = |set: &JobSet<'_>| set.jobs[0].run.transport.backend.clone();
    let several = sets.iter().any(|set| backend(set) != backend(&sets[0]));
    sets.iter().filter(|_| several).find_map(|set| set.jobs[0].file.carried())
}

/// What is said of a side whose network is a model.
fn simulated(label: &str, file: &ResultFile) -> Option<String> {
    let machine = file.machine.as_ref()?;
    Some(format!("{label}: {} ({})", machine.title(), machine.about))
}

/// Adjusts the p-values of a family and judges by them.
fn correct(rows: &mut [Row], primary: bool) {
    let rows = rows.iter_mut().filter(|row| row.primary == primary);
    let mut family: Vec<&mut Cell> =
        rows.flat_map(|row| &mut row.cells).filter(|cell| cell.p_value.is_some()).collect();
    let p_values: Vec<f64> = family.iter().filter_map(|cell| cell.p_value).collect();
    for (cell, (adjusted, level)) in family.iter_mut().zip(holm(&p_values).into_iter().zip(holm_levels(&p_values))) {
        cell.judge(adjusted, level);
    }
}

/// Whether added times are the same within a margin: two one-sided tests, corrected as the others are. Each is at the
/// level of its family, so the interval that decides misses twice as often.
fn judge_within(rows: &mut [Row], margin: f64) {
    let cells = rows.iter_mut().filter(|row| row.primary).flat_map(|row| &mut row.cells);
    let p_value = |cell: &Cell| cell.difference?.p_beyond(margin * cell.change?.loaded);
    let mut family: Vec<(f64, &mut Cell)> = cells.filter_map(|cell| Some((p_value(cell)?, cell))).collect();
    let levels = holm_levels(&family.iter().map(|(p_value, _)| *p_value).collect::<Vec<f64>>());
    for ((p_value, cell), level) in family.iter_mut().zip(levels) {
        if *p_value < level {
            cell.verdict = Some(Verdict::Same);
            cell.show(2.0 * level);
        } else if cell.verdict == Some(Verdict::NotSignificant) {
            cell.verdict = Some(Verdict::CannotTell);
        }
    }
}

/// Compares the congestors of one file with each other; nothing when it has fewer than two.
pub fn compare_congestors(file: &ResultFile) -> Option<Comparison> {
    let kinds = figures::kinds(file);
    let figures: Vec<_> = kinds.iter().map(|&kernel| figures::of_congestor(file, kernel)).collect();
    (kinds.len() > 1).then(|| Comparison {
        sides: kinds.iter().map(|kernel| kernel.info().key.to_owned()).collect(),
        mixed: vec![false; kinds.len()],
        carried: None,
        jobs: vec![1; kinds.len()],
        is_one_job: true,
        simulated: simulated("all of them", file).into_iter().collect(),
        differences: Vec::new(),
        test: FIGURES_TEST,
        rows: Vec::new(),
        not_reportable: Vec::new(),
        left_out: Vec::new(),
        margin: None,
        components: Vec::new(),
        figures: figures::rows(&figures),
        aggressors: None,
        conditions: Vec::new(),
        variation: Vec::new(),
        counters: Vec::new(),
        attribution: None,
        protocols: Vec::new(),
    })
}

/// The tables: one per state, a row per test and statistic.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let first = comparison.sides.first().expect("a comparison has sides");
    let _ = writeln!(out, "Compared with {first} (ratios: times worse than it; less than 1 is better)\n");
    for side in &comparison.simulated {
        let _ = writeln!(out, "SIMULATED: {side}");
    }
    if !comparison.simulated.is_empty() {
        out.push('\n');
    }
    for difference in &comparison.differences {
        let word = if difference.fatal { "NOT COMPARABLE" } else { "note" };
        let _ = writeln!(out, "{word}: {}: {}", difference.side, difference.what);
    }
    if !comparison.differences.is_empty() {
        out.push('\n');
    }
    comparison.tables().iter().for_each(|(title, table)| out += &section(title, table));
    if let Some(aggressors) = &comparison.aggressors {
        out += &section(AGGRESSORS_TITLE, &aggressors.table());
    }
    out += &section(CONDITIONS_TITLE, &conditions_table(&comparison.conditions));
    out += &section(VARIATION_TITLE, &variation_table(&comparison.variation));
    out += &super::counters::render(&comparison.sides, &comparison.counters);
    if let Some(attribution) = &comparison.attribution {
        out += &attribution.render();
    }
    out += &protocols::render(&comparison.protocols);
    out += &comparison.footnotes();
    if !comparison.figures.is_empty() {
        let _ = writeln!(out, "* significant at 5%: {FIGURES_TEST}; without intervals there is no test.");
    }
    out
}

impl Comparison {
    /// Every figure on all sides, under titles: of canaries state by state, then of studies and congestors.
    pub fn tables(&self) -> Vec<(&str, Table)> {
        let of_state = |state: State| {
            let rows = Table::of(self.rows.iter().filter(|row| row.state == state)).column("test", |row| &row.title);
            let table = match state {
                State::Added => self.added(rows),
                _ => self.beside(rows.column("figure", |row| row.statistic.key()), |row| &row.cells),
            };
            (title(state), table.column("unit", |row| &row.unit).done())
        };
        let of_group = |group: &'_ [FigureRow]| {
            let rows = Table::of(group).column("figure", |row| &row.name);
            self.beside(rows, |row| &row.cells).column("unit", |row| &row.unit).done()
        };
        let groups = self.figures.chunk_by(|a, b| a.group == b.group);
        let groups = groups.map(|group| (group[0].group.as_str(), of_group(group)));
        State::ALL.map(of_state).into_iter().chain(groups).collect()
    }

    /// Added times with their intervals, and how each differs from the first.
    fn added<'r>(&self, rows: Rows<&'r Row>) -> Rows<&'r Row> {
        rows.columns(self.sides.iter().enumerate(), |table, (at, side)| {
            let of = |row: &&'r Row| row.cells[at];
            let change = |row: &&'r Row, form: fn(Change) -> Option<String>| of(row).change.and_then(form);
            table
                .column(side, |row| of(row).value.map(|value| within(value, of(row).interval, figure)))
                .column_if(at > 0, "difference %", |row| change(row, |of| Some(in_percent(of))))
                .column_if(at > 0, "answer", |row| of(row).verdict.map(Verdict::word))
                .column_if(at > 0, "detectable %", |row| {
                    change(row, |of| {
                        let percent = 100.0 * of.detectable?;
                        Some(if percent < 0.05 { "<0.1".to_owned() } else { format!("{percent:.1}") })
                    })
                })
        })
    }

    /// With a margin: 0 when all added times are the same within it, 1 when one differs, 3 when it cannot be told.
    pub fn exit_code(&self) -> u8 {
        let primary = self.rows.iter().filter(|row| row.primary).flat_map(|row| row.cells.iter().skip(1));
        let codes = primary.map(|cell| match cell.verdict {
            Some(Verdict::Same) => 0,
            Some(Verdict::Worse | Verdict::Better) => 1,
            _ => 3,
        });
        let worst = codes.filter(|code| *code > 0).min().unwrap_or(0);
        if self.margin.is_some() { worst } else { 0 }
    }

    /// What the variance of added times is made of.
    pub fn components_table(&self) -> Table {
        let shown = |part: Option<f64>| part.map(|part| format!("{:.1}", 100.0 * part));
        Table::of(&self.components)
            .column("test", |row| &row.title)
            .column("job", |row| shown(row.components.job))
            .column("placement", |row| shown(row.components.placement))
            .column("block", |row| shown(row.components.block))
            .column("message", |row| shown(row.message))
            .done()
    }

    /// What marks and words mean.
    fn footnotes(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let has = |verdict| self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.verdict == Some(verdict));
        let mut out = format!("* significant at 5%: {}.\n", self.test);
        out += "Added time decides: loaded minus idle of the headline. Its difference is in % of the first side's loaded time;\n\
                detectable is the least difference that such a comparison finds in four of five cases. When nothing differs,\n\
                one comparison in twenty marks an added time, and one in twenty any of the other figures.\n";
        if let Some(margin) = self.margin {
            let _ = writeln!(
                out,
                "same: within {}% of the first side's loaded time, by two one-sided tests.",
                100.0 * margin
            );
        }
        for why in &self.left_out {
            let _ = writeln!(out, "{why}.");
        }
        for why in &self.not_reportable {
            let _ = writeln!(out, "not reportable: {why}.");
        }
        if has(Verdict::OneJob) {
            out += "one job: these two jobs, and no test. How much equal jobs differ is not known: give several files a side\n\
                    (--with), or a folder of earlier results (--history).\n";
        }
        if has(Verdict::Unknown) {
            out += "no test: fewer than three placements on a side.\n";
        }
        out
    }

    /// The cells of every side, each beside the first's.
    fn beside<'r, R>(&self, rows: Rows<&'r R>, cells: impl Fn(&'r R) -> &'r [Cell]) -> Rows<&'r R> {
        rows.columns(self.sides.iter().enumerate(), |table, (at, side)| {
            let of = |row: &&'r R| cells(row)[at];
            let table = table.column(side, |row| of(row).value);
            table
                .column_if(at > 0, "ratio", |row| of(row).ratio)
                .column_if(at > 0, "verdict", |row| of(row).verdict.map(Verdict::word))
        })
    }
}

/// The heading of a state's table.
fn title(state: State) -> &'static str {
    match state {
        State::Isolated => "Idle (geometric means over placements)",
        State::Loaded => "Under load (geometric means over placements)",
        State::Added => "Added time (loaded minus idle, by the headline; this decides)",
        State::Impact => "Congestion impact (times worse under load)",
    }
}

/// The heading of the table of variances.
pub const COMPONENTS_TITLE: &str = "Standard deviations of added time, % of loaded time";

/// A difference with the interval that its verdict is based on, in percent of the first side's loaded time.
fn in_percent(of: Change) -> String {
    within(of.part, of.interval, percent)
}
