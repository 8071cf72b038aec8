//! The page: its sections in the order a reader needs them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use sha2::{Digest as _, Sha256};

use super::figures::gallery;
use super::plot::{Plot, STYLE};
use super::{Report, first, studies, tables};
use crate::analysis::compare::{AGGRESSORS_TITLE, Aggressors, FIGURES_TEST, Side, TEST};
use crate::output::{burst, sweep, tuning};
use crate::result::{MachineRecord, ResultFile};
use crate::stats::Statistic;
use crate::text::escape;

const GUIDE: &str = include_str!("guide.html");
const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const KEY: &str = "<p class=\"key\"><span><i style=\"background:var(--calm)\"></i>idle</span>\
<span><i style=\"background:var(--busy)\"></i>loaded</span></p>";

/// The colours of conditions; of wild jobs where there are any.
fn conditions_key(report: &Report<'_>) -> String {
    let is_wild = |file: &ResultFile| file.plan.congestors.is_empty();
    let wild = match report.files.iter().any(|(_, file)| is_wild(file)) {
        true => "<span><i style=\"background:var(--k2)\"></i>wild</span>",
        false => "",
    };
    format!(
        "<p class=\"key\"><span><i style=\"background:var(--calm)\"></i>quiet</span>{wild}\
         <span><i style=\"background:var(--busy)\"></i>loaded</span></p>"
    )
}

/// How violins are read.
const VIOLINS: &str = "The height of a violin is the density of devices, each of which is a dot. Solid upright line: median; dashed \
line: mean; level line: minimum to maximum.";

/// Said where results that are no machine's stand beside those of large ones.
const NOT_COMPARABLE: &str = "<p class=\"warn\"><strong>Not comparable:</strong> some of these results are of an emulated or \
simulated network. Published systems had thousands of nodes and other links, and stand here to show what impacts look like, not \
to be ranked against.</p>\n";

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        render(self)
    }
}

/// A part of the page below its first screen.
pub(super) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    pub lead: String,
    pub content: String,
    /// Whether it opens on a click only.
    pub folded: bool,
}

fn render(report: &Report<'_>) -> String {
    let head = [first::verdicts(report), simulated(report)].concat();
    whole(&title(report), &subtitle(report), &head, &first::screen(report), sections(report))
}

/// A page of its title, what is said below that, its first screen and those of its sections that have anything.
pub(super) fn whole(title: &str, subtitle: &str, head: &str, first: &str, sections: Vec<Section>) -> String {
    let shown: Vec<Section> = sections.into_iter().filter(|of| !of.content.is_empty()).collect();
    let links: String = shown.iter().map(|of| format!("<li><a href=\"#{}\">{}</a></li>", of.id, of.title)).collect();
    let body: String = shown.iter().map(Section::html).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n<style>{STYLE}{PAGE_STYLE}</style></head>\n\
         <body><a class=\"skip\" href=\"#content\">Skip to the results</a>\n<header><h1>{title}</h1>\
         <p class=\"sub\">{subtitle}</p>\n{head}</header>\n<main id=\"content\">\n\
         <section id=\"key\" aria-label=\"Key results\">{first}</section>\n\
         <nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n{body}</main>\n\
         <footer>Made by Tailback {version}. This page is complete in itself: it loads nothing.</footer>\n\
         <script>{SCRIPT}</script></body></html>\n",
        policy()
    )
}

/// What the page may do: nothing but its own style and its one script, whatever a result file may have brought in.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'"
    )
}

fn sections(report: &Report<'_>) -> Vec<Section> {
    let open = |id, title, (lead, content): Content| Section { id, title, lead, content, folded: false };
    let folded = |id, title, content| Section { folded: true, ..open(id, title, content) };
    vec![
        open("tests", "Tests", (String::new(), first::further(report))),
        open(
            "sizes",
            "Message sizes",
            plots(&report.sizes(), "Every canary over the size of its messages: median, mean and 99th percentile.", ""),
        ),
        open("settings", "Settings", settings(report)),
        open("sweep", "Sweep", sweeps(report)),
        open("bursts", "Bursts", bursts(report)),
        open("run", "What was run", what_was_run(report)),
        open("why", "Why", why(report)),
        open("comparison", "Comparison", comparison(report)),
        open("aggressors", "Victims and aggressors", aggressors(report)),
        open(
            "studies",
            "Studies",
            plots(&report.further_studies(), "Figures of the studies, measured and modelled.", ""),
        ),
        open(
            "repetitions",
            "Repetitions",
            plots(&report.repetitions(), "Every repetition of an application, idle and under load.", KEY),
        ),
        open("distributions", "Distributions", distributions(report)),
        Section { folded: !report.published, ..open("impact", "Impact by statistic", impact(report)) },
        folded(
            "percentiles",
            "Percentile curves",
            plots(&report.percentiles(), "The value that a share of the samples is at least as good as.", KEY),
        ),
        folded("spread", "Spread of the impact", spread(report)),
        folded(
            "load",
            "Load delivered",
            plots(&report.loads(), "What the congestors delivered while each canary measured.", ""),
        ),
        folded(
            "ports",
            "Ports",
            violins(&report.ports(), "Counters of every port of the emulated or simulated network, by phase."),
        ),
        folded(
            "counters",
            "Counters",
            violins(
                &report.counters(),
                "Counters of the nodes' devices, by phase: those that indicate congestion and rose most under load.",
            ),
        ),
        folded(
            "conditions",
            "Counters by condition",
            plots(
                &report.conditions(),
                &format!(
                    "Quiet (a load test's idle state), wild jobs and loaded ones on one scale: what devices and ports counted per \
                     second, over the mean of the quiet state. Endpoint ports are between a node and its switch, router ports \
                     between switches. {VIOLINS}"
                ),
                &conditions_key(report),
            ),
        ),
        folded(
            "queues",
            "Queues",
            plots(
                &report.queues(),
                "Bytes that waited in the queues of the simulated network, and the congestion tree of the worst moment: ports whose \
             own link was busy, and under each those that had no room because of it.",
                KEY,
            ),
        ),
        folded(
            "nodes",
            "Node map",
            plots(&report.node_maps(), "Canaries and congestors by node, in the order of ranks.", ""),
        ),
        folded("numbers", "All numbers", numbers(report)),
        folded("how", "How it was run", how(report)),
        folded("guide", "How to read this", (String::new(), GUIDE.to_owned())),
    ]
}

fn violins(of: &[Plot], lead: &str) -> Content {
    plots(of, &format!("{lead} {VIOLINS}"), KEY)
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

/// A run by itself has its states in one frame, several have a panel for each.
fn distributions(report: &Report<'_>) -> Content {
    const LEAD: &str =
        "Distribution of samples, idle and under load. Solid upright line: mean; dashed line: 99th percentile.";
    plots(&report.distributions(), LEAD, if report.sides.len() > 1 { "" } else { KEY })
}

/// The lead of a section and its content.
type Content = (String, String);

fn plots(plots: &[Plot], lead: &str, key: &str) -> Content {
    if plots.is_empty() { Content::default() } else { (lead.to_owned(), format!("{key}{}", gallery(plots))) }
}

fn what_was_run(report: &Report<'_>) -> Content {
    let mut out = String::from("<div class=\"facts\">");
    for (at, side) in report.sides.iter().enumerate() {
        let facts = tables::run_facts(side);
        // The first few, such as MPI and three protocols, are open to the eye; a long list is folded.
        out += &match at {
            0..=3 => format!("<div>{facts}</div>"),
            _ => format!("<details><summary>{}</summary>{facts}</details>", escape(&side.label)),
        };
    }
    (String::new(), out + "</div>")
}

/// What every reader of a number may ask for, and few do.
fn how(report: &Report<'_>) -> Content {
    let all = report.sides.iter().map(|side| format!("<div>{}</div>", tables::more_facts(side)));
    (String::new(), format!("<div class=\"facts\">{}</div>", all.collect::<String>()))
}

/// What explains the impact, or that there is none.
fn why(report: &Report<'_>) -> Content {
    let several = report.files.len() > 1;
    let list = |lines: Vec<String>| lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect::<String>();
    let of = |(name, file): (String, &ResultFile)| {
        let why = file.why()?;
        let seen = why.seen.into_iter().chain(tables::causes(file)).collect();
        let heading = if several { format!("<h3>{}</h3>", escape(&name)) } else { String::new() };
        let to_try = list(why.to_try);
        let to_try = if to_try.is_empty() { to_try } else { format!("<p>What may show more:</p><ul>{to_try}</ul>") };
        Some(format!("{heading}<ul>{}</ul>{to_try}", list(seen)))
    };
    (String::new(), report.named().filter_map(of).collect())
}

/// How the impact differs from placement to placement.
fn spread(report: &Report<'_>) -> Content {
    let lead = "The range of the impact over placements, the 95% prediction interval of the next placement, and the share of time \
                congested (above twice the idle median).";
    (lead.to_owned(), report.sides.iter().map(tables::spread).collect())
}

fn impact(report: &Report<'_>) -> Content {
    let (lead, mut content) = plots(
        &report.impacts(),
        &format!("{}, avg and p99 of every canary, with 95% intervals over placements.", Statistic::HEADLINE.title()),
        "",
    );
    if report.published && !content.is_empty() {
        let emulated = report.files.iter().any(|(_, file)| file.lab.is_some() || file.machine.is_some());
        let warning = if emulated { NOT_COMPARABLE } else { "" };
        let tables =
            [tables::published_systems(), tables::published(), tables::newer(), tables::published_applications()]
                .concat();
        let bars = match report.ranks_per_port() {
            Some(own) => format!(
                "Bars are of each system the job whose ranks per port are nearest to the {} of this result",
                tables::short(own)
            ),
            None => "Bars are the jobs of the paper's figure 11, with 16 to 24 ranks per port".to_owned(),
        };
        content = format!(
            "{warning}{content}<details><summary>Published systems</summary><p>{bars}. A p99 impact is p99 over p99, as GPCNeT 1.3 computes it; the paper's text fits p99 over the \
             idle average, which has a column of its own.</p>{tables}</details>"
        );
    }
    (lead, content)
}

/// Settings that took turns, ranked.
fn settings(report: &Report<'_>) -> Content {
    let of = |(name, file): (String, &ResultFile)| {
        let record = file.tuning.as_ref()?;
        let verdict = escape(&tuning::verdict(file, record));
        let ranked = |test| tuning::ranking(file, test).html(&format!("Settings of {name}, ranked"));
        let ranked: String = record.ranking.iter().map(ranked).collect();
        Some(format!("<p>{verdict}</p>{ranked}{}", tuning::pairs(record).html(tuning::PAIRS_TITLE)))
    };
    let shown: String = report.named().filter_map(of).collect();
    if shown.is_empty() { Content::default() } else { (format!("{}.", tuning::PLACES), shown) }
}

/// Every curve, and the table of its points.
fn sweeps(report: &Report<'_>) -> Content {
    let of = |(name, file): (String, &ResultFile)| {
        let record = file.sweep.as_ref()?;
        let table = sweep::curves(record).html(&format!("{name}: {}", sweep::CURVES_TITLE));
        Some(format!("<p>{}</p>{table}", escape(&sweep::verdict(file, record))))
    };
    let tables: String = report.named().filter_map(of).collect();
    if tables.is_empty() {
        Content::default()
    } else {
        (format!("{}.", sweep::STARS), gallery(&report.sweeps()) + &tables)
    }
}

/// Every folded curve, and the table of what bursts do.
fn bursts(report: &Report<'_>) -> Content {
    let of = |(name, file): (String, &ResultFile)| {
        let all = burst::all(file);
        let table = burst::effects(&all).html(&format!("{name}: {}", burst::EFFECTS_TITLE));
        let loads = burst::loads(&all).html(&format!("{name}: load in bursts"));
        (!all.is_empty()).then(|| format!("<p>{}</p>{table}{loads}", escape(&burst::verdict(file))))
    };
    let tables: String = report.named().filter_map(of).collect();
    if tables.is_empty() {
        Content::default()
    } else {
        (format!("{}.", burst::WORDS), gallery(&report.bursts()) + &tables)
    }
}

/// What each load does to each victim.
fn aggressors(report: &Report<'_>) -> Content {
    let Some(of) = Aggressors::of(&report.sides) else { return Content::default() };
    let map: Vec<Plot> = report.heat().into_iter().collect();
    let lead = "Impact of each load on each victim: the more colour, the worse.".to_owned();
    (lead, gallery(&map) + &of.table().html(AGGRESSORS_TITLE))
}

/// Runs are compared with runs and studies with studies of their kind.
fn comparison(report: &Report<'_>) -> Content {
    let mut kinds: Vec<Vec<Side<'_>>> = Vec::new();
    // Other sizes have other figures: that is no difference of networks.
    for side in report.sides.iter().filter(|side| side.run.size_bytes.is_none()) {
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
        fold(&side.label, &[tables::tests(side), tables::impacts(side), tables::rings(side), tables::loads(side)]);
    }
    for ((name, file), found) in report.named().zip(&report.found) {
        fold(&format!("{name}: study"), &studies::numbers(found, report.published));
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

impl Section {
    /// With its heading. What is folded has its name on what is inside: a link to it opens it.
    fn html(&self) -> String {
        let Section { id, title, lead, content, folded } = self;
        let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
        if *folded {
            return format!(
                "<details class=\"part\"><summary><h2>{title}</h2></summary>\
                 <section id=\"{id}\" aria-label=\"{title}\">{lead}{content}</section></details>\n"
            );
        }
        format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>\n{lead}{content}</section>\n"
        )
    }
}
