//! Impacts on a log axis: of every test by its headline, over how severe that is, which is the answer in one plot; bars by
//! statistic, one plot per canary; and the heat map of victims and aggressors.

use super::{Area, LINE, LogAxis, Plot, WIDTH, bar, block, cell, dot, line, lines, text};
use crate::analysis::Severity;
use crate::analysis::compare::{Aggressors, Side};
use crate::kernel::Canary;
use crate::report::published::{self, System};
use crate::stats::{Factor, Statistic};
use crate::text::{Rows, Table, factor, with_interval};

const LEFT: f64 = 8.0;
/// Letters of a name that fit a plot's width.
const LETTERS: usize = 60;
/// The bars of a group, and what is below them.
const BARS: f64 = 45.0;

/// The answer of a test.
struct Row {
    name: String,
    impact: Factor,
    /// How severe it is; nothing where it may not be reported, or its interval bounds nothing.
    severity: Option<Severity>,
    value: String,
}

/// The headline's impact on every test of every run, with its interval, over bands of severity: what the verdict is read from.
pub fn overview(sides: &[Side<'_>]) -> Option<Plot> {
    const MOST_ROWS: usize = 12;
    const TOP: f64 = 18.0;
    let several = sides.len() > 1;
    let answers = sides.iter().flat_map(|side| side.run.answers().map(move |answer| (side, answer)));
    let all: Vec<Row> = answers
        .filter_map(|(side, answer)| {
            let (test, impact) = (answer.test.title.clone(), answer.impact.filter(|of| of.factor.is_finite())?);
            let name = if several { format!("{}: {test}", side.label) } else { test };
            let is_reportable = answer.judgement.is_reportable();
            let severity = (is_reportable && impact.is_bounded()).then(|| Severity::of(impact));
            let value = if is_reportable { with_interval(impact) } else { "not reportable".into() };
            Some(Row { name, impact, severity, value })
        })
        .collect();
    let mut rows: Vec<&Row> = all.iter().collect();
    rows.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.impact.factor.total_cmp(&a.impact.factor)));
    rows.truncate(MOST_ROWS);
    let axis = {
        let (low, high) = reach(rows.iter().map(|row| &row.impact));
        Area { left: LEFT, right: WIDTH - LEFT, top: 0.0, bottom: 0.0 }.across(low, high)
    };
    let (mut marks, mut y) = (String::new(), TOP);
    for row in &rows {
        marks += &draw_row(row, &mut y, &axis);
    }
    if rows.is_empty() {
        return None;
    }
    let area = Area { left: LEFT, right: WIDTH - LEFT, top: TOP, bottom: y };
    let mut body = bands(&area, &axis) + &area.uprights(&axis);
    body += &line((axis.at(1.0), area.top), (axis.at(1.0), area.bottom), "axis");
    body += &marks;
    let more = all.len() - rows.len();
    let rest = if more > 0 { format!("; {more} more in the table") } else { String::new() };
    body += &area.title(30.0, &format!("times worse under load (1 = no impact), 95% interval{rest}"));
    let told: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.value)).collect();
    let severity = |row: &&Row| row.severity.map_or("CANNOT SAY", Severity::word);
    let data = Table::of(&all).column("test", |row| row.name.clone());
    let data = factors(data, |row| row.impact).column("verdict", severity).done();
    let title = "Congestion impact of every test".to_owned();
    Some(Plot::new(&["overview"], title, told.join("; "), area.bottom + 38.0, body, data))
}

/// The least and the most that an axis of these factors has to show.
fn reach<'a>(factors: impl Iterator<Item = &'a Factor>) -> (f64, f64) {
    let ends = factors.flat_map(|of| {
        [of.factor, of.interval.map_or(of.factor, |i| i.low), of.interval.map_or(of.factor, |i| i.high)]
    });
    ends.filter(|end| end.is_finite()).fold((1.0f64, 2.0f64), |(low, high), end| (low.min(end), high.max(end)))
}

/// A name, a value, and below them the interval with its factor.
fn draw_row(row: &Row, y: &mut f64, axis: &LogAxis) -> String {
    const MARK: f64 = 20.0;
    let name = lines(&row.name, 40);
    let mut out = block(LEFT, *y + 14.0, "start", "name", &name);
    out += &text(WIDTH - LEFT, *y + 14.0, "end", "value", &row.value);
    let middle = *y + 12.0 + LINE * name.len().max(1) as f64;
    let class = row.severity.map_or("unsaid", severity_class);
    out += &interval(row.impact, middle, axis);
    out +=
        &dot((axis.at(row.impact.factor), middle), 5, class, &format!("{}: {}", row.name, with_interval(row.impact)));
    *y += LINE * name.len().max(1) as f64 + MARK;
    out
}

fn severity_class(of: Severity) -> &'static str {
    match of {
        Severity::None => "none",
        Severity::Mild => "mild",
        Severity::Strong => "strong",
        Severity::Severe => "severe",
    }
}

/// Where impacts count as mild, strong and severe, named above.
fn bands(area: &Area, axis: &LogAxis) -> String {
    const ALL: [Severity; 4] = [Severity::None, Severity::Mild, Severity::Strong, Severity::Severe];
    let ends = ALL.iter().skip(1).map(|of| of.from_factor()).chain([f64::INFINITY]);
    let mut out = String::new();
    for (severity, end) in ALL.into_iter().zip(ends) {
        let (from, to) = (axis.at(severity.from_factor()), axis.at(end));
        let (width, class) = (to - from, severity_class(severity));
        out += &format!(
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" class=\"band {class}\"/>",
            area.top,
            area.bottom - area.top
        );
        // "severe" has a width too.
        if width > 40.0 {
            out += &text((from + to) / 2.0, area.top - 5.0, "middle", "tick", class);
        }
    }
    out
}

/// A line from bound to bound.
fn interval(of: Factor, middle: f64, axis: &LogAxis) -> String {
    let Some(interval) = of.interval else { return String::new() };
    let (low, high) = (axis.at(interval.low), axis.at(interval.high));
    let end = |x: f64| line((x, middle - 3.0), (x, middle + 3.0), "whisker");
    line((low, middle), (high, middle), "whisker") + &end(low) + &end(high)
}

/// The columns of a factor in a plot's data.
fn factors<R>(table: Rows<R>, of: impl Fn(&R) -> Factor + Copy) -> Rows<R> {
    table
        .column("impact", move |row| of(row).factor)
        .column("low", move |row| Some(of(row).interval?.low))
        .column("high", move |row| Some(of(row).interval?.high))
}

/// What bars are of.
const SHOWN: [Statistic; 3] = [Statistic::HEADLINE, Statistic::Avg, Statistic::P99];

struct Group {
    name: String,
    class: &'static str,
    factors: [Option<Factor>; 3],
}

/// The impact on one canary, over all sides and published systems that have it.
pub fn impact(kernel: Canary, sides: &[Side<'_>], systems: &[System]) -> Option<Plot> {
    let own = sides.iter().map(|side| Group {
        name: side.label.clone(),
        class: "own",
        factors: SHOWN.map(|statistic| side.run.impact(kernel, statistic)),
    });
    let published = systems.iter().map(|system| Group {
        name: system.label(),
        class: "published",
        factors: SHOWN.map(|of| system.impact(kernel, of).map(|factor| Factor { factor, interval: None })),
    });
    let mut groups: Vec<Group> = own.filter(has_any).collect();
    if groups.is_empty() {
        return None;
    }
    groups.extend(published.filter(has_any));
    if kernel.is_application() && !systems.is_empty() {
        groups.extend(published::applications().iter().map(|of| Group {
            name: of.label(),
            class: "published",
            factors: SHOWN.map(|statistic| {
                (statistic == kernel.headline()).then(|| Factor { factor: of.impact(), interval: None })
            }),
        }));
    }
    let (low, high) = reach(groups.iter().flat_map(|group| group.factors.iter().flatten()));
    let heights = groups.iter().map(Group::height);
    // Room for the value behind the longest bar.
    let area = Area { left: LEFT, right: WIDTH - 104.0, top: 4.0, bottom: 8.0 + heights.sum::<f64>() };
    let axis = area.across(low, high);
    let mut body = area.uprights(&axis);
    body += &line((axis.at(1.0), area.top), (axis.at(1.0), area.bottom), "axis");
    let mut top = 8.0;
    for group in &groups {
        body += &draw(group, top, &axis);
        top += group.height();
    }
    body += &area.title(30.0, "times worse under load (1 = no impact)");
    let told: Vec<String> = groups.iter().map(told).collect();
    let rows = groups.iter().flat_map(|group| {
        let known = SHOWN.into_iter().zip(group.factors).filter_map(|(statistic, of)| Some((statistic, of?)));
        known.map(move |(statistic, of)| (group.name.clone(), statistic.key(), of))
    });
    let data = Table::of(rows).column("run", |(name, ..)| name.clone()).column("statistic", |(_, key, _)| *key);
    let data = factors(data, |(.., of)| *of).done();
    let title = kernel.to_string();
    Some(Plot::new(&["impact", kernel.info().key], title, told.join("; "), area.bottom + 38.0, body, data))
}

impl Group {
    fn names(&self) -> Vec<String> {
        lines(&self.name, LETTERS)
    }

    fn height(&self) -> f64 {
        LINE * self.names().len() as f64 + BARS + 1.0
    }
}

fn has_any(group: &Group) -> bool {
    group.factors.iter().any(Option::is_some)
}

fn told(group: &Group) -> String {
    let value = |of: Option<Factor>| of.map_or_else(|| "unknown".into(), |of| factor(of.factor));
    let [headline, average, p99] = group.factors.map(value);
    format!("{}: {} {headline}, avg {average}, p99 {p99}", group.name, Statistic::HEADLINE.title())
}

fn draw(group: &Group, top: f64, axis: &LogAxis) -> String {
    let names = group.names();
    let mut out = block(LEFT, top + 10.0, "start", "name", &names);
    let top = top + 1.0 + LINE * names.len() as f64;
    for (at, (statistic, of)) in SHOWN.into_iter().zip(group.factors).enumerate() {
        let Some(of) = of else { continue };
        let (y, height) = (top + 13.0 * at as f64, 11.0);
        let (from, to) = (axis.at(1.0), axis.at(of.factor));
        let title = format!("{}, {}: {}", group.name, statistic.title(), with_interval(of));
        let class = format!("{} {}", group.class, statistic.key());
        out += &bar(from.min(to), y, (to - from).abs(), height, &class, &title);
        out += &interval(of, y + height / 2.0, axis);
        let end = of.interval.map_or(from.max(to), |interval| from.max(to).max(axis.at(interval.high)));
        out += &text(end + 5.0, y + 9.0, "start", "value", &format!("{} {}", factor(of.factor), statistic.title()));
    }
    out
}

/// Victims and aggressors: a cell is as dark as the impact is large, on a logarithmic scale, and says it.
pub fn heat(of: &Aggressors) -> Plot {
    /// Room for the victims' names.
    const LEFT: f64 = 150.0;
    /// An impact of so much is as dark as it gets.
    const DARKEST: f64 = 100.0;
    let width = (WIDTH - LEFT - 4.0) / of.loads.len().max(1) as f64;
    let heads: Vec<Vec<String>> = of.loads.iter().map(|load| lines(load, ((width - 4.0) / 6.5) as usize)).collect();
    let top = 10.0 + LINE * heads.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let mut body = String::new();
    for (at, head) in heads.iter().enumerate() {
        let first = top - 8.0 - LINE * (head.len().max(1) - 1) as f64;
        body += &block(LEFT + (at as f64 + 0.5) * width, first, "middle", "tick", head);
    }
    let (mut y, mut told, mut rows) = (top, Vec::new(), Vec::new());
    for victim in &of.victims {
        let name = lines(&victim.title, 22);
        let height = (LINE * name.len() as f64).max(LINE) + 13.0;
        let middle = y + height / 2.0 + 3.0;
        body += &block(LEFT - 6.0, middle - LINE / 2.0 * (name.len().max(1) - 1) as f64, "end", "tick", &name);
        for (at, (load, impact)) in of.loads.iter().zip(&victim.impacts).enumerate() {
            let Some(impact) = impact else { continue };
            let share = (impact.factor.max(1.0).ln() / DARKEST.ln()).clamp(0.0, 1.0);
            let title = format!("{} beside {load}: {}", victim.title, with_interval(*impact));
            let x = LEFT + at as f64 * width;
            let look = "rx=\"2\" class=\"cell busy\"";
            body += &cell((x, y), (width - 2.0, height - 2.0), look, 0.08 + 0.6 * share, &title);
            body += &text(x + width / 2.0 - 1.0, middle, "middle", "value", &factor(impact.factor));
            told.push(title);
            rows.push((&victim.title, load, *impact));
        }
        y += height;
    }
    let data = Table::of(rows).column("victim", |(victim, ..)| *victim).column("load", |(_, load, _)| *load);
    let data = factors(data, |(.., of)| *of).done();
    Plot::new(&["victims", "aggressors"], "Victims and aggressors".into(), told.join("; "), y + 8.0, body, data)
}
