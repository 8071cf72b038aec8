//! The page: its sections in the order a reader needs them.

use std::fmt::Write as _;

use super::plot::{Plot, STYLE};
use super::{Report, studies, tables};
use crate::analysis::compare::{AGGRESSORS_TITLE, Aggressors, FIGURES_TEST, Side, TEST};
use crate::result::MachineRecord;
use crate::stats::{Factor, Statistic};
use crate::text::{escape, factor, with_interval};

const GUIDE: &str = include_str!("guide.html");
const PAGE_STYLE: &str = include_str!("page.css");
const KEY: &str = "<p class=\"key\"><span><i style=\"background:var(--calm)\"></i>isolated</span>\
<span><i style=\"background:var(--busy)\"></i>loaded</span></p>";

/// How violins are read.
const VIOLINS: &str = "A violin is as thick as devices are many, each of which is a dot; the whole line is the mean, the dashed \
one the 95th percentile, and the one that lies goes from the least to the most.";

/// Said where results that are no machine's stand beside those of large ones.
const NOT_COMPARABLE: &str = "<p class=\"warn\"><strong>Not comparable:</strong> some of these results are of an emulated or \
simulated network. Published systems had thousands of nodes and other links, and stand here to show what impacts look like, not \
to be ranked against.</p>\n";

/// Impacts below this are called small. It colours one sentence; every number is shown all the same.
const SMALL: f64 = 2.0;

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        render(self)
    }
}

fn render(report: &Report<'_>) -> String {
    let sections = [
        ("key", "Key results", key_results(report)),
        ("run", "What was run", what_was_run(report)),
        (
            "studies",
            "Studies",
            plots(&report.studies(), "What the studies measured, and what their models make of it.", ""),
        ),
        ("impact", "Congestion impact", impact(report)),
        ("aggressors", "Victims and aggressors", aggressors(report)),
        (
            "repetitions",
            "Repetitions",
            plots(&report.repetitions(), "Every repetition of an application, alone and under load.", KEY),
        ),
        (
            "distributions",
            "Distributions",
            plots(&report.distributions(), "How samples spread, isolated over loaded.", KEY),
        ),
        ("percentiles", "Percentile curves", plots(&report.percentiles(), "How bad it gets, and how often.", KEY)),
        ("load", "Load delivered", plots(&report.loads(), "What the congestors moved while each canary measured.", "")),
        (
            "ports",
            "Ports",
            plots(
                &report.ports(),
                &format!("What every port of the emulated or simulated network did in each phase. {VIOLINS}"),
                KEY,
            ),
        ),
        (
            "counters",
            "Counters",
            plots(
                &report.counters(),
                &format!(
                    "What the devices of the nodes counted in each phase: the counters that tell of congestion and rose most under \
                     load. {VIOLINS}"
                ),
                KEY,
            ),
        ),
        (
            "queues",
            "Queues",
            plots(
                &report.queues(),
                "Bytes that waited in the queues of the simulated network, and the congestion tree of the worst moment: ports \
                 whose own link was busy, and under each those that had no room because of it.",
                KEY,
            ),
        ),
        ("nodes", "Node map", plots(&report.node_maps(), "Who measured and who loaded, in the order of ranks.", "")),
        ("comparison", "Comparison", comparison(report)),
        ("numbers", "All numbers", numbers(report)),
        ("guide", "How to read this", (String::new(), GUIDE.to_owned())),
    ];
    let shown: Vec<_> = sections.iter().filter(|(_, _, (_, content))| !content.is_empty()).collect();
    let links: String = shown.iter().map(|(id, title, _)| format!("<li><a href=\"#{id}\">{title}</a></li>")).collect();
    let body: String = shown.iter().map(|(id, title, (lead, content))| section(id, title, lead, content)).collect();
    let title = title(report);
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n<style>{STYLE}{PAGE_STYLE}</style></head>\n\
         <body><a class=\"skip\" href=\"#content\">Skip to the results</a>\n<header><h1>{title}</h1>\
         <p class=\"sub\">{}</p>\n{}<nav aria-label=\"Sections\"><ul>{links}</ul></nav></header>\n<main id=\"content\">\n{body}</main>\n\
         <footer>Made by Tailback {version}. This page is complete in itself: it loads nothing.</footer>\n</body></html>\n",
        subtitle(report),
        simulated(report)
    )
}

/// What the reader has to know before any figure: that some are a model's. Once, however many files they are from.
fn simulated(report: &Report<'_>) -> String {
    let mut machines: Vec<(&MachineRecord, Vec<String>)> = Vec::new();
    for (name, file) in report.named() {
        let Some(machine) = &file.machine else { continue };
        match machines.iter_mut().find(|(of, _)| (&of.name, &of.about) == (&machine.name, &machine.about)) {
            Some((_, names)) => names.push(name),
            None => machines.push((machine, vec![name])),
        }
    }
    if machines.is_empty() {
        return String::new();
    }
    let of = |(machine, names): &(&MachineRecord, Vec<String>)| {
        let verb = if names.len() > 1 { "are" } else { "is" };
        let [names, name, about] = [&names.join(", "), &machine.name, &machine.about].map(|text| escape(text));
        format!("{names} {verb} what a model of the machine {name} does ({about})")
    };
    let said: Vec<String> = machines.iter().map(of).collect();
    format!(
        "<p class=\"warn\"><strong>Simulated:</strong> {}; on virtual time. No such network was measured.</p>\n",
        said.join("; ")
    )
}

fn title(report: &Report<'_>) -> String {
    match &report.sides[..] {
        [only] => format!("Congestion report: {}", escape(&only.label)),
        sides => {
            let studies = sides.iter().filter(|side| side.file.study_over(side.run).is_some()).count();
            let count = |count: usize, one: &str, many: &str| match count {
                0 => None,
                1 => Some(format!("1 {one}")),
                _ => Some(format!("{count} {many}")),
            };
            let kinds = [count(sides.len() - studies, "run", "runs"), count(studies, "study", "studies")];
            format!("Congestion report: {}", kinds.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
    }
}

fn subtitle(report: &Report<'_>) -> String {
    let mut all: Vec<String> = report
        .files
        .iter()
        .map(|(_, file)| {
            format!(
                "{} ranks on {} nodes, {}",
                file.system.ranks,
                file.system.nodes.len(),
                file.imported.as_ref().map_or_else(|| file.started.clone(), |from| format!("imported from {from}"))
            )
        })
        .collect();
    all.dedup();
    const SHOWN: usize = 3;
    let more = all.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    escape(&(all.into_iter().take(SHOWN).collect::<Vec<_>>().join("; ") + &rest))
}

/// The lead of a section and its content.
type Content = (String, String);

fn plots(plots: &[Plot], lead: &str, key: &str) -> Content {
    if plots.is_empty() { Content::default() } else { (lead.to_owned(), format!("{key}{}", gallery(plots))) }
}

fn key_results(report: &Report<'_>) -> Content {
    let kernels = report.kernels();
    let impacts = report.sides.iter().flat_map(|side| {
        let reportable = kernels.iter().filter(|&&kernel| side.run.judgement(kernel).is_reportable());
        reportable.filter_map(move |&kernel| {
            let headline = side.run.impact(kernel, kernel.headline());
            Some((side, kernel, headline.or_else(|| side.run.impact(kernel, Statistic::P99))?))
        })
    });
    // What is certain comes first: a wide interval makes the largest factors.
    let worst = impacts.max_by(|a, b| is_certain(a.2).cmp(&is_certain(b.2)).then(a.2.factor.total_cmp(&b.2.factor)));
    let answer = worst.map_or_else(String::new, |(side, kernel, of)| {
        let small = of.factor < SMALL;
        let class = if small { "answer good" } else { "answer" };
        let place = if report.sides.len() > 1 { format!(" in {}", escape(&side.label)) } else { String::new() };
        format!("<p class=\"{class}\">{}</p>\n", sentence(kernel.info().title, &place, of))
    });
    let found: String = report
        .named()
        .filter_map(|(name, file)| Some((name, studies::finding(file)?)))
        .map(|(name, found)| format!("<p class=\"answer good\">{}: {}</p>\n", escape(&name), escape(&found)))
        .collect();
    let debug = report.files.iter().any(|(_, file)| file.build.profile == "debug" && file.imported.is_none());
    let warning = if debug {
        "<p class=\"warn\">Some of these results come from a debug build: its figures are not worth comparing.</p>\n"
    } else {
        ""
    };
    (String::new(), format!("{answer}{found}{warning}{}", tables::key_results(&report.sides, &kernels)))
}

/// Whether all of the interval says that load makes it worse.
fn is_certain(of: Factor) -> bool {
    of.interval.is_some_and(|interval| interval.low > 1.0)
}

fn sentence(title: &str, place: &str, of: Factor) -> String {
    let times = factor(of.factor);
    let (times, title, bounds) = (times.trim_end_matches('x'), escape(title), escape(&bounds(of)));
    match of.interval {
        Some(_) if is_certain(of) => {
            format!("The hardest hit is {title}{place}: {times} times worse under load, 95% interval {bounds}.")
        }
        Some(_) => format!(
            "No impact is certain. The largest is on {title}{place}, {times} times worse under load, but the 95% interval goes \
             from {bounds}, and 1 is no impact."
        ),
        None => format!(
            "The hardest hit is {title}{place}: {times} times worse under load. How certain that is, this run cannot tell."
        ),
    }
}

fn bounds(of: Factor) -> String {
    let text = with_interval(of);
    text.split_once(' ')
        .map_or_else(String::new, |(_, interval)| interval.trim_matches(['[', ']']).replace(", ", " to "))
}

fn what_was_run(report: &Report<'_>) -> Content {
    let mut out = String::from("<div class=\"facts\">");
    for (at, side) in report.sides.iter().enumerate() {
        let [main, more] = tables::facts(side);
        let more = format!("<details><summary>More about {}</summary>{more}</details>", escape(&side.label));
        // The first few, such as MPI and three protocols, are open to the eye; a long list is folded.
        out += &match at {
            0..=3 => format!("<div>{main}{more}</div>"),
            _ => format!("<details><summary>{}</summary>{main}{more}</details>", escape(&side.label)),
        };
    }
    (String::new(), out + "</div>")
}

fn impact(report: &Report<'_>) -> Content {
    let (lead, mut content) = plots(
        &report.impacts(),
        "The headline of latencies (90th percentile by time), average and p99 of every canary, with 95% intervals over placements.",
        "",
    );
    if report.published && !content.is_empty() {
        let emulated = report.files.iter().any(|(_, file)| file.lab.is_some() || file.machine.is_some());
        let warning = if emulated { NOT_COMPARABLE } else { "" };
        let tables = [tables::published(), tables::newer(), tables::published_applications()].concat();
        let bars = match report.ranks_per_port() {
            Some(own) => format!(
                "Bars are of each system the job whose ranks per port are nearest to the {} of this result",
                tables::short(own)
            ),
            None => "Bars are the jobs of the paper's figure 11, with 16 to 24 ranks per port".to_owned(),
        };
        content = format!(
            "{warning}{content}<details><summary>Published systems</summary><p>{bars}. A p99 impact is p99 over p99, as GPCNeT 1.3 computes it; the paper's text fits p99 over the \
             isolated average, which has a column of its own.</p>{tables}</details>"
        );
    }
    (lead, content)
}

/// What each load does to each victim.
fn aggressors(report: &Report<'_>) -> Content {
    let Some(of) = Aggressors::of(&report.sides) else { return Content::default() };
    let map: Vec<Plot> = report.heat().into_iter().collect();
    let lead = "What each load does to each victim: the darker, the worse.".to_owned();
    (lead, gallery(&map) + &of.table().html(AGGRESSORS_TITLE))
}

/// Runs are compared with runs and studies with studies of their kind.
fn comparison(report: &Report<'_>) -> Content {
    let mut kinds: Vec<Vec<Side<'_>>> = Vec::new();
    for side in &report.sides {
        match kinds.iter_mut().find(|kind| kind[0].file.command == side.file.command) {
            Some(kind) => kind.push(side.clone()),
            None => kinds.push(vec![side.clone()]),
        }
    }
    let shown: Vec<String> = kinds.iter().filter(|kind| kind.len() > 1).map(|kind| compared(kind)).collect();
    if shown.is_empty() {
        return Content::default();
    }
    let lead = format!(
        "Every run beside the first. A star marks a significant difference: {TEST}; for studies, {FIGURES_TEST}. \
         When nothing differs, one comparison in twenty has a star all the same."
    );
    (lead, shown.concat())
}

fn compared(sides: &[Side<'_>]) -> String {
    let (comparison, shown) = tables::comparison(sides);
    let told: String = comparison
        .differences
        .iter()
        .map(|of| {
            let word = if of.fatal { "Not comparable" } else { "Note" };
            format!("<p class=\"warn\"><strong>{word}:</strong> {}: {}</p>\n", escape(&of.side), escape(&of.what))
        })
        .collect();
    let blame = comparison.attribution.as_ref().map_or_else(String::new, |of| {
        let said: String = of
            .shares
            .iter()
            .map(|share| format!("<li>{}: {}.</li>", escape(&share.title), escape(&share.sentence())))
            .collect();
        let shares = of.shares_table().html(&format!("Attribution of the impact of {}", of.mpi));
        let distances = of.distances_table().html("Distance of raw runs from MPI, in decades of slowdown");
        format!("<h3>Network or library</h3><ul>{said}</ul><p>{}</p>{shares}{distances}", escape(&of.resemblance()))
    });
    let protocols: String = comparison
        .protocols
        .iter()
        .map(|of| format!("<li>{} over {}: {}.</li>", escape(&of.title), escape(&of.backend), escape(&of.sentence())))
        .collect();
    let blame =
        if protocols.is_empty() { blame } else { format!("{blame}<h3>Network or protocol</h3><ul>{protocols}</ul>") };
    told + &shown + &blame
}

fn numbers(report: &Report<'_>) -> Content {
    let mut out = String::new();
    let mut fold = |name: &str, tables: &[String]| {
        let all = tables.concat();
        if !all.is_empty() {
            let open = if out.is_empty() { " open" } else { "" };
            out += &format!("<details{open}><summary>{}</summary>{all}</details>\n", escape(name));
        }
    };
    for side in &report.sides {
        fold(&side.label, &[tables::tests(side), tables::impacts(side), tables::loads(side)]);
    }
    for (name, file) in report.named() {
        fold(&format!("{name}: study"), &studies::numbers(&name, file, report.published));
        let most = report.each(1000, 40, 400);
        if let Some(lab) = &file.lab {
            fold(&format!("{name}: ports"), &[tables::emulated(&name, lab, most)]);
        }
        if let Some(counters) = &file.counters {
            let tables = [
                tables::ratios(&name, counters, most),
                tables::spreads(&name, counters, most),
                tables::by_node(&name, counters, most),
            ];
            fold(&format!("{name}: counters"), &tables);
        }
        if let Some(machine) = &file.machine {
            fold(&format!("{name}: ports"), &[tables::simulated(&name, machine, most)]);
        }
    }
    (String::new(), out)
}

/// Plots side by side, as many as fit.
pub(super) fn gallery(plots: &[Plot]) -> String {
    let mut out = String::from("<div class=\"gallery\">");
    for plot in plots {
        let _ = writeln!(
            out,
            "<figure id=\"{}\"><figcaption>{}</figcaption>{}</figure>",
            plot.id,
            escape(&plot.title),
            plot.inline()
        );
    }
    out + "</div>\n"
}

/// A section with its heading; nothing when there is nothing in it.
pub(super) fn section(id: &str, title: &str, lead: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>\n{lead}{content}</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    #[test]
    fn a_headline_claims_no_more_than_its_interval() {
        let of = |bounds: Option<(f64, f64)>| {
            let interval = bounds.map(|(low, high)| Interval { low, high });
            sentence("Lat", " in a", Factor { factor: 13.5, interval })
        };
        assert_eq!(
            of(Some((2.0, 90.0))),
            "The hardest hit is Lat in a: 13.5 times worse under load, 95% interval 2.00 to 90.0."
        );
        let wide = of(Some((0.2, 920.0)));
        assert!(wide.starts_with("No impact is certain. The largest is on Lat in a, 13.5 times worse"), "{wide}");
        assert!(wide.ends_with("from 0.20 to 920, and 1 is no impact."), "{wide}");
        assert!(of(None).ends_with("How certain that is, this run cannot tell."));
    }
}
