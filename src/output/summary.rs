//! The first screen of a load test: whether there is congestion, how much, from where, and what to do next, in at most a dozen
//! lines of 80 characters. All else is in the tables (`-v`, `show`) and in the report.

use crate::analysis::compare::{self, Attribution, Comparison, Side, Verdict};
use crate::analysis::{Conclusion, Severity, Why, WorstPort};
use crate::kernel::Canary;
use crate::result::{
    Answer, Cause, Command, ControlRecord, Node, NodeRole, ResultFile, Run, SlowNode, Slower, distinct,
};
use crate::stats::{Added, Direction, Statistic};
use crate::text::{Cell, Rows, Table, duration, factor, plural, rate, share_within, with_interval, wrap};

/// A screen has at most so many lines, unless there are more runs than it has.
pub(super) const MOST_LINES: usize = 12;

/// Text for a terminal of so many columns.
pub(super) fn render(file: &ResultFile, conclusion: &Conclusion<'_>, columns: usize) -> String {
    let wrapped = |line: String| wrap(&line, columns);
    let mut out: String =
        [Some(verdict(file, conclusion)), simulated(file)].into_iter().flatten().map(wrapped).collect();
    out += &match &file.runs[..] {
        [run] => unindented(&answers(run)),
        _ => as_wide(columns, |with_width| runs_beside(file, with_width)),
    };
    let whole = extent(file);
    let seedless = whole.rsplit_once(SEED).filter(|_| whole.chars().count() > columns).map(|(rest, _)| rest.to_owned());
    let last = differences(file).into_iter().chain(file.carried()).chain([seedless.unwrap_or(whole), terms(file)]);
    let last: String = last.map(wrapped).collect();
    // What there is no room for is in the tables.
    let mut room = MOST_LINES.saturating_sub(out.lines().count() + last.lines().count());
    for text in not_reported(file, conclusion).into_iter().chain(seen(file, conclusion)).map(wrapped) {
        let Some(rest) = room.checked_sub(text.lines().count()) else { continue };
        room = rest;
        out += &text;
    }
    out + &last
}

/// A table with all that it has, where that fits; else without the widths of intervals.
pub(super) fn as_wide(columns: usize, table: impl Fn(bool) -> Table) -> String {
    let whole = unindented(&table(true));
    let fits = whole.lines().all(|line| line.chars().count() <= columns);
    if fits { whole } else { unindented(&table(false)) }
}

/// Said of every simulated network.
pub(super) fn simulated(file: &ResultFile) -> Option<String> {
    let machine = file.machine.as_ref()?;
    Some(format!("SIMULATED on the machine {}: no such network was measured.", machine.name))
}

/// A table without the indent that it has under a title: every column counts.
pub(super) fn unindented(table: &Table) -> String {
    let text = table.text();
    text.lines().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect()
}

/// The words that stand out, each with its colour.
const COLOURS: [(&str, &str); 6] = [
    (Severity::Severe.word(), "1;31"),
    (Severity::Strong.word(), "31"),
    (Severity::Mild.word(), "33"),
    (Severity::None.word(), "32"),
    (CANNOT_SAY, "35"),
    (WEAK_LOAD, "33"),
];
const CANNOT_SAY: &str = "CANNOT SAY";
const WEAK_LOAD: &str = "WEAK LOAD";

/// The same text with these words in their colours, where a line begins with one.
pub(super) fn coloured(text: &str) -> String {
    let line = |line: &str| {
        let of = COLOURS.iter().find(|(word, _)| line.starts_with(word));
        of.map_or_else(|| line.to_owned(), |(word, code)| format!("\x1b[{code}m{word}\x1b[0m{}", &line[word.len()..]))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// What a verdict says of a job that did not come to its end.
pub(super) fn cut_short(file: &ResultFile) -> String {
    file.cut_short().map(|of| format!(" ({}: only what was complete counts)", of.word())).unwrap_or_default()
}

/// The first line.
pub(crate) fn verdict(file: &ResultFile, conclusion: &Conclusion<'_>) -> String {
    let cut_short = cut_short(file);
    match conclusion {
        Conclusion::CannotSay { cause, why } => format!("{CANNOT_SAY}: {cause}{cut_short}: {why}"),
        Conclusion::Shown { severity, run, worst, impact, reportable: (reportable, all) } => {
            let name = worst.test.title.clone();
            let over = if file.runs.len() > 1 { format!(" {}", file.run_phrase(run)) } else { String::new() };
            let impact = with_interval(*impact);
            // The added time holds from job to job; the factor moves with whatever the idle figure does.
            let said = match (severity, added(worst)) {
                (Severity::None, _) => format!("the worst, {name}{over}, is {impact} under load"),
                (_, Some(added)) => format!("load adds {added} to {name}{over}, {impact}"),
                (_, None) => format!("{name}{over} is {impact} worse under load"),
            };
            let of_how_many = match all - reportable {
                0 => String::new(),
                _ => format!(" (by {reportable} of {all} tests, the others cannot be reported)"),
            };
            format!("{}{of_how_many}{cut_short}: {said}", severity.word())
        }
    }
}

/// A row for each test.
fn answers(run: &Run) -> Table {
    let table = Table::of(run.answers()).column("", |answer| &answer.test.title);
    columns(table, |answer| answer).done()
}

/// What a row says of a test.
pub(crate) fn columns<'a, R>(table: Rows<R>, answer: impl Fn(&R) -> &Answer<'a> + Copy) -> Rows<R> {
    let of_figure = |answer: &Answer<'_>, value: f64| match answer.test.direction {
        _ if answer.test.kernel.is_application() && !answer.test.is_time() => {
            format!("{} {}", crate::text::figure(value), answer.test.unit)
        }
        _ if answer.test.kernel.is_application() => duration(1e9 * value),
        Direction::Latency => duration(1e3 * value),
        Direction::Bandwidth => rate(value),
    };
    let cell = move |of: &Answer<'_>, value: f64| Cell::number(value, |value| of_figure(of, value));
    table
        .column("idle", move |row| cell(answer(row), answer(row).idle))
        .column("loaded", move |row| cell(answer(row), answer(row).loaded))
        .column("added", move |row| {
            let value = answer(row).added?.value;
            added(answer(row)).map(|shown| Cell::Number { shown, value })
        })
        .column("impact [95%]", move |row| match answer(row).impact.filter(|_| answer(row).judgement.is_reportable()) {
            Some(of) => Cell::from(of),
            None => impact(answer(row)).into(),
        })
}

fn impact(answer: &Answer<'_>) -> Option<String> {
    if answer.judgement.is_reportable() { answer.impact.map(with_interval) } else { Some("not reportable".into()) }
}

/// A row for each run, where there are several: the time that load adds to each test, with the width of its interval where there
/// is room, and the impact.
fn runs_beside(file: &ResultFile, with_width: bool) -> Table {
    let of = |run: &Run, kernel: Canary| {
        let answer = run.answer(kernel)?;
        if !answer.judgement.is_reportable() {
            return Some("not reportable".to_owned());
        }
        let impact = answer.impact.map(|of| factor(of.factor));
        let told: Vec<String> = [added_with(&answer, with_width), impact].into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join(", "))
    };
    Table::of(&file.runs)
        .column("added, impact", |run| file.run_name(run))
        .columns(tests_of(file.runs.first()), |table, (kernel, title)| table.column(title, move |run| of(run, kernel)))
        .done()
}

/// The tests of a run, with their titles.
fn tests_of(run: Option<&Run>) -> Vec<(Canary, String)> {
    run.map_or_else(Vec::new, |run| run.answers().map(|of| (of.test.kernel, of.test.title.clone())).collect())
}

/// A row for each of these runs under its name, with the impact on each canary and what `more` says of it.
fn impacts(rows: &[(String, &Run)], with_width: bool, more: impl Fn(Canary, usize) -> Option<&'static str>) -> Table {
    let kernels = tests_of(rows.first().map(|(_, run)| *run));
    let impact = |answer: Answer<'_>| match answer.impact.filter(|_| !with_width && answer.judgement.is_reportable()) {
        Some(of) => Some(factor(of.factor)),
        None => impact(&answer),
    };
    Table::of(rows.iter().enumerate())
        .column(if with_width { "impact [95%]" } else { "impact" }, |(_, (name, _))| name.clone())
        .columns(kernels, |table, (kernel, title)| {
            table.column(title, |(at, (_, run))| {
                let impact = run.answer(kernel).and_then(impact)?;
                Some(more(kernel, *at).map_or_else(|| impact.clone(), |more| format!("{impact} {more}")))
            })
        })
        .done()
}

/// The time that load adds, with half of its interval's width; where even its sign is open, how much it can be.
fn added(answer: &Answer<'_>) -> Option<String> {
    added_with(answer, true)
}

/// The same, with or without the width.
fn added_with(answer: &Answer<'_>, width: bool) -> Option<String> {
    let Added { value, interval } = answer.added.filter(|_| answer.judgement.is_reportable())?;
    let time = |value: f64| added_time(answer.test.kernel, value);
    Some(match interval {
        Some(of) if of.low <= 0.0 && of.high > 0.0 => format!("up to {}", time(of.high)),
        Some(of) if width && value != 0.0 => {
            format!("{} +-{:.0}%", time(value), 50.0 * (of.high - of.low) / value.abs())
        }
        _ => time(value),
    })
}

/// An added time in the unit that suits it; of a rate, that of a MiB.
pub(super) fn added_time(kernel: Canary, value: f64) -> String {
    match kernel.info().direction {
        _ if kernel.is_application() => duration(1e9 * value),
        Direction::Latency => duration(1e3 * value),
        Direction::Bandwidth => format!("{}/MiB", duration(1e3 * value)),
    }
}

/// What may not be reported, where something else may.
fn not_reported(file: &ResultFile, conclusion: &Conclusion<'_>) -> Option<String> {
    let Conclusion::Shown { .. } = conclusion else { return None };
    let all = file.runs.iter().flat_map(Run::answers);
    let why = all.filter_map(|of| Some(format!("{}: {}", of.test.title.clone(), of.judgement.why_not()?)));
    let why: Vec<String> = why.collect();
    let more = if why.len() > 1 { format!(" (and {} more: -v)", why.len() - 1) } else { String::new() };
    why.first().map(|first| format!("Not reportable: {first}{more}"))
}

/// What is to be known beside the answers: the load, where the network was full, the cause, and what was run.
pub(crate) fn facts(file: &ResultFile, conclusion: &Conclusion<'_>) -> Vec<String> {
    seen(file, conclusion).chain(file.carried()).chain([extent(file)]).collect()
}

/// The load, where the network was full, and the cause, as far as they are known.
fn seen(file: &ResultFile, conclusion: &Conclusion<'_>) -> impl Iterator<Item = String> {
    let why = file.why().unwrap_or_default();
    // Points of a sweep have a load each, which its table has.
    let load = load(&why, conclusion).filter(|_| file.sweep.is_none());
    [load, hot_spot(&why), control(file), slow_nodes(file)].into_iter().flatten()
}

/// Nodes that are slower than their peers without load too: what load is blamed for may be theirs.
fn slow_nodes(file: &ResultFile) -> Option<String> {
    let mut slow: Vec<&SlowNode> = file.runs.iter().flat_map(|run| &run.slow_nodes).collect();
    let first = *slow.first()?;
    let part = |of: Slower| share_within(of.part, of.interval);
    slow.retain(|of| of.name != first.name);
    let others = distinct(slow.iter().map(|of| of.name.as_str()));
    let also = match &others[..] {
        [] => String::new(),
        few if few.len() <= 3 => format!("; so are {}", few.join(", ")),
        many => format!("; so are {} others", many.len()),
    };
    let (name, idle, loaded) = (&first.name, part(first.idle), part(first.loaded));
    Some(format!("Slow node: {name} takes {idle} longer than peers, loaded {loaded}{also}"))
}

/// What loaded the network; that it is too little to mean anything, if it is.
fn load(why: &Why, conclusion: &Conclusion<'_>) -> Option<String> {
    /// Of a link; less than this is a weak load, unless it was felt all the same.
    const WEAK: f64 = 0.1;
    let of = why.load?;
    let share = of.link_mib_per_s.map(|link| of.node_mib_per_s / link);
    let said = share.map(|share| format!(", {:.0}% of the link", 100.0 * share)).unwrap_or_default();
    let felt = matches!(conclusion, Conclusion::Shown { severity, .. } if *severity > Severity::Mild);
    let filled = felt || why.hot_spot.as_ref().is_some_and(|of| of.worse > 0);
    let (word, advice) = match why.to_try.first().filter(|_| !filled && share.is_some_and(|share| share < WEAK)) {
        // The first of several ways; the tables have all.
        Some(advice) => {
            (WEAK_LOAD, format!(". {}", advice.split(", ").next().unwrap_or_default().trim_end_matches('.')))
        }
        None => ("Load", String::new()),
    };
    let nodes = if of.nodes == 1 { "1 node delivers".into() } else { format!("{} nodes deliver", of.nodes) };
    Some(format!("{word}: {nodes} {} each{said}{advice}", rate(of.node_mib_per_s)))
}

/// Where load filled the network.
fn hot_spot(why: &Why) -> Option<String> {
    let of = why.hot_spot.as_ref()?;
    let Some(worst) = &of.worst else {
        return Some(format!("No hot spot: {} of {} ports ran full, but as much while idle", of.full, of.ports));
    };
    let WorstPort { from, to, held_back } = worst;
    let crossed = if of.crossed { "" } else { "; no canary's messages cross them" };
    Some(format!("Hot spot: {from} to {to}, {held_back}; {} of {} ports worse{crossed}", of.worse, of.ports))
}

/// What the bypass control says: whether it is the network at all.
fn control(file: &ResultFile) -> Option<String> {
    let ControlRecord { verdicts, kind, .. } = file.lab.as_ref()?.control.as_ref()?;
    let of = |cause: Cause| {
        let names: Vec<&str> = verdicts.iter().filter(|of| of.cause == cause).map(|of| of.kernel.info().key).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let told = [
        (Cause::Network, "network queues"),
        (Cause::Cpu, "processors, not the network"),
        (Cause::Undecided, "undecided"),
    ];
    let told: Vec<String> = told.iter().filter_map(|(cause, what)| Some(format!("{what} ({})", of(*cause)?))).collect();
    (!told.is_empty()).then(|| format!("Cause ({} control): {}", kind.word(), told.join("; ")))
}

/// What runs side by side say: whose doing the added time is, and which protocol suffers.
fn differences(file: &ResultFile) -> Vec<String> {
    if file.runs.len() < 2 {
        return Vec::new();
    }
    let comparison = compare::compare(&compare::sides::of_file(file), &[Statistic::HEADLINE, Statistic::Avg]);
    let blamed = comparison.attribution.iter().map(Attribution::line);
    let protocols =
        comparison.protocols.iter().map(|of| format!("{} over {}: {}", of.kernel, of.backend, of.sentence()));
    blamed.chain(protocols).collect()
}

/// A row for each simulated alternative: its impacts, and where load adds more or less time than to the first.
pub(super) fn alternatives(sides: &[Side<'_>], comparison: &Comparison, columns: usize) -> String {
    let Some(first) = sides.first() else { return String::new() };
    let name = |side: &Side<'_>| side.label.trim_end_matches(" (simulated)").to_owned();
    let differs = |kernel: Canary, at: usize| {
        let row = comparison.rows.iter().find(|row| row.primary && row.kernel == kernel)?;
        row.cells[at].verdict.filter(|of| matches!(of, Verdict::Worse | Verdict::Better)).map(Verdict::word)
    };
    let label = |(at, side)| if at == 0 { format!("{} as it is", name(side)) } else { name(side) };
    let rows: Vec<_> = sides.iter().enumerate().map(|of| (label(of), of.1.run)).collect();
    let table = as_wide(columns, |with_width| impacts(&rows, with_width, differs));
    let rest =
        format!("worse, better: load adds more or less time than to {}, significant at 5%. Tables: -v", name(first));
    format!("SIMULATED: no such network was measured.\n{table}{}", wrap(&rest, columns))
}

/// What stands before the seed, which the tables have, too.
const SEED: &str = ", seed ";

/// What was run.
pub(super) fn extent(file: &ResultFile) -> String {
    if let Some(program) = &file.imported {
        let (nodes, ranks) = (file.system.nodes.len(), file.system.ranks);
        return format!("Imported from {program}: {ranks} ranks on {nodes} nodes");
    }
    let with = |wanted: fn(&NodeRole) -> bool| {
        let has = |node: &&Node| node.roles.iter().any(wanted);
        file.system.nodes.iter().filter(has).count()
    };
    let canaries = with(|role| matches!(role, NodeRole::Canary));
    let congestors = with(|role| matches!(role, NodeRole::Congestor(_)));
    let (nodes, ranks) = (file.system.nodes.len(), file.system.ranks);
    let ranks = if ranks == nodes { String::new() } else { format!(", {}", plural(ranks, "rank")) };
    let over = match &file.runs[..] {
        // Eager is what messages are unless something else is asked for.
        [run] => run.label().trim_end_matches(", eager").to_owned(),
        [run, ..] if file.tuning.is_some() => run.transport.label().trim_end_matches(", eager").to_owned(),
        runs if runs.iter().all(|run| run.beside.is_some()) => format!("{} loads in turn", runs.len()),
        runs if runs.iter().all(|run| !run.point.is_empty()) => format!("{} points", runs.len()),
        runs => format!("{} networks or protocols", runs.len()),
    };
    let (placements, took) = (plural(file.placements(), "placement"), duration(1e9 * file.duration_s));
    let nodes = plural(nodes, "node");
    format!(
        "{nodes} ({canaries} measure, {congestors} load){ranks} over {over}; {placements}, {took}{SEED}{}",
        file.seed
    )
}

/// What the figures are.
fn terms(file: &ResultFile) -> String {
    let what = match file.command {
        _ if file.imported.is_some() => "Averages as they were printed, rounded",
        Command::App => "Means over repetitions",
        _ => "Time-weighted p90; bandwidths: mean",
    };
    let intervals = match file.imported {
        Some(_) => ", no intervals",
        None if file.placements() < 3 => ", no intervals below 3 placements",
        None => "",
    };
    format!("{what}{intervals}. Tables: -v. Terms: tailback help terms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    fn shown(file: &ResultFile) -> String {
        render(file, &file.conclusion().unwrap(), 80)
    }

    #[test]
    fn the_first_line_is_the_verdict_and_all_fits_a_screen() {
        for (impact, word) in [(1.0, "NO CONGESTION: "), (3.0, "STRONG CONGESTION: "), (50.0, "SEVERE CONGESTION: ")] {
            let text = shown(&synthetic::file("tcp", None, impact));
            assert!(text.starts_with(word), "{text}");
            assert!(text.lines().count() <= 11 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("idle") && text.contains("tailback help terms"), "{text}");
        }
    }

    #[test]
    fn a_screen_has_twelve_lines_whatever_there_is_to_say() {
        let mut file = synthetic::file("tcp", None, 3.0);
        file.seed = 4_294_967_295;
        file.system.hosts = Some(1);
        let tests = file.runs[0].tests.iter_mut().filter(|test| test.kernel != Canary::Lat);
        tests.flat_map(|test| &mut test.load).for_each(|load| load.delivered_bytes = 0);
        let slow = |name: &str| {
            let of = Slower { part: 1.5, interval: crate::stats::Interval { low: 1.2, high: 1.8 }, p_value: 0.01 };
            SlowNode { name: name.repeat(20), kernel: Canary::Lat, idle: of, loaded: of }
        };
        file.runs[0].slow_nodes = ["n1", "n2"].map(slow).into();
        let text = shown(&file);
        assert!(text.contains("\nNot reportable: ") && text.contains("\nOn one host, no network: tcp by "), "{text}");
        assert!(text.lines().count() <= MOST_LINES && text.contains(SEED), "{text}");
        assert!(!render(&file, &file.conclusion().unwrap(), 70).contains(SEED));
    }

    #[test]
    fn rows_of_runs_have_what_tells_them_apart_and_fit() {
        let mut file = synthetic::file("tcp", Some("put"), 3.0);
        let incast = Run { beside: Some("incast".into()), ..file.runs[0].clone() };
        file.runs[0].beside = Some("a2a".into());
        file.runs.push(incast);
        let conclusion = file.conclusion().unwrap();
        let [narrow, wide] = [80, 200].map(|columns| render(&file, &conclusion, columns));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        for text in [&narrow, &wide] {
            let rows: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
            assert!(rows.contains(&"a2a") && rows.contains(&"incast") && !text.contains("put"), "{text}");
            assert!(text.starts_with("STRONG CONGESTION: load adds ") && text.contains(" with "), "{text}");
        }
        let rows = |text: &str| text.lines().filter(|line| line.starts_with("a2a")).collect::<String>();
        assert!(rows(&wide).contains("+-") && !rows(&narrow).contains("+-"), "{wide}{narrow}");
    }

    #[test]
    fn alternatives_that_are_worse_fit_too() {
        let files = [2.0, 30.0, 40.0].map(|impact| synthetic::file("tcp", None, impact));
        let names = ["small as it is", "topology.spines=4", "topology.spines=2"];
        let rows: Vec<_> = names.iter().zip(&files).map(|(name, file)| ((*name).to_owned(), &file.runs[0])).collect();
        let worse = |_, at| (at > 0).then_some("worse *");
        let [narrow, wide] = [80, 200].map(|columns| as_wide(columns, |with_width| impacts(&rows, with_width, worse)));
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(widest(&narrow) <= Some(80) && widest(&wide) > Some(80), "{narrow}{wide}");
        assert!(narrow.contains("40.0x worse *") && !narrow.contains('['), "{narrow}");
        assert!(wide.contains("43.3] worse *") && wide.contains("impact [95%]"), "{wide}");
    }

    #[test]
    fn only_verdicts_have_colours() {
        let text = "STRONG CONGESTION: lat\n  SEVERE CONGESTION\nWEAK LOAD: 1\n";
        assert_eq!(
            coloured(text),
            "\u{1b}[31mSTRONG CONGESTION\u{1b}[0m: lat\n  SEVERE CONGESTION\n\u{1b}[33mWEAK LOAD\u{1b}[0m: 1\n"
        );
    }

    #[test]
    fn what_may_not_be_reported_is_said_with_the_reason() {
        let mut file = synthetic::file("tcp", None, 3.0);
        for test in file.runs.iter_mut().flat_map(|run| &mut run.tests) {
            test.load.iter_mut().for_each(|load| load.delivered_bytes = 0);
        }
        let text = shown(&file);
        assert!(text.starts_with("CANNOT SAY: load too weak: lat 8 B: "), "{text}");
        assert!(text.contains("not reportable") && !text.contains("+-"), "{text}");
        file.interrupted = true;
        assert!(shown(&file).starts_with("CANNOT SAY: load too weak (interrupted"), "{}", shown(&file));
    }
}
