//! Whose fault the congestion is, network's or protocol's: the impacts of one raw backend's protocols beside each other.
//!
//! Every protocol is held against every other, placement by placement, by the headline, corrected for all pairs of all
//! canaries. One is
//! called the least only if it beats every other; then what the others have beyond it is their own. Where none does,
//! nothing is blamed: the least of several noisy figures is always somebody's. Out of scope: MPI, whose protocol is not
//! ours to choose; see [`super::attribution`].

use serde::Serialize;

use super::Side;
use super::verdict::same_placements;
use crate::kernel::Canary;
use crate::result::distinct;
use crate::stats::AllPairs;
use crate::text::factor;

/// One canary's impact over one backend with every protocol.
#[derive(Clone, Debug, Serialize)]
pub struct ProtocolFinding {
    /// The backend, with that of the congestors where it is another.
    pub backend: String,
    /// The canary.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// The protocols with their impacts, by the headline.
    pub impacts: Vec<(String, f64)>,
    /// Protocols whose impact may not be reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_reportable: Vec<String>,
    /// Every pair of the others; absent with too few placements, or when the runs' placements differ.
    pub pairs: Option<AllPairs>,
}

/// The findings for every raw backend that ran with several protocols, under congestors over itself or over the same
/// other network.
pub fn findings(sides: &[Side<'_>]) -> Vec<ProtocolFinding> {
    let over = |side: &Side<'_>| {
        let under = side.run.congestors_over.as_ref().map(|of| format!(" under {}", of.label())).unwrap_or_default();
        format!("{}{under}", side.run.transport.backend)
    };
    let chosen = || sides.iter().filter(|side| side.run.transport.protocol.is_some());
    let mut findings = Vec::new();
    for backend in distinct(chosen().map(over)) {
        let runs: Vec<&Side<'_>> = chosen().filter(|side| over(side) == backend).collect();
        let kernels = runs.first().map(|side| side.kernels()).unwrap_or_default();
        let mut found: Vec<(ProtocolFinding, Vec<Vec<f64>>)> =
            kernels.into_iter().filter_map(|kernel| finding(&backend, &runs, kernel)).collect();
        // Blame by any canary is blame: all of them are one family.
        let logs: Vec<Vec<Vec<f64>>> = found.iter_mut().map(|(_, logs)| std::mem::take(logs)).collect();
        let pairs = AllPairs::of_all(&logs);
        let with = |((finding, _), pairs)| ProtocolFinding { pairs, ..finding };
        findings.extend(found.into_iter().zip(pairs).map(with));
    }
    findings
}

/// One canary's finding, its pairs still to be made of every protocol's logarithms of factors; none where the runs'
/// placements differ.
fn finding(backend: &str, runs: &[&Side<'_>], kernel: Canary) -> Option<(ProtocolFinding, Vec<Vec<f64>>)> {
    let (mut impacts, mut logs, mut not_reportable) = (Vec::new(), Vec::new(), Vec::new());
    for side in runs {
        let Some(impact) = side.run.impact(kernel, kernel.headline()).map(|of| of.factor) else { continue };
        let protocol = side.run.transport.protocol.clone()?;
        if !side.run.judgement(kernel).is_reportable() {
            not_reportable.push(protocol);
            continue;
        }
        impacts.push((protocol, impact));
        let each = side.run.factors(kernel, kernel.headline()).unwrap_or_default();
        logs.push(each.into_iter().map(f64::ln).collect::<Vec<f64>>());
    }
    // The same protocol in two files asks what else differs between them, which is not for protocols to answer.
    let again = |(at, (protocol, _)): (usize, &(String, f64))| impacts[..at].iter().any(|(other, _)| other == protocol);
    if impacts.iter().enumerate().any(again) {
        return None;
    }
    let first = runs.first()?;
    if !runs.iter().all(|side| same_placements(first, side)) {
        logs.clear();
    }
    let title = first.run.tests.iter().find(|test| test.kernel == kernel)?.title.clone();
    let backend = backend.to_owned();
    let finding = ProtocolFinding { backend, kernel, title, impacts, not_reportable, pairs: None };
    (finding.impacts.len() > 1).then_some((finding, logs))
}

impl ProtocolFinding {
    /// The finding in words.
    pub fn sentence(&self) -> String {
        let name = |at: usize| self.impacts[at].0.as_str();
        let all: Vec<String> =
            self.impacts.iter().map(|(name, impact)| format!("{name} {}", factor(*impact))).collect();
        let not = match &self.not_reportable[..] {
            [] => String::new(),
            those => format!(" ({} not reportable)", those.join(", ")),
        };
        let all = all.join(", ") + &not;
        let Some(pairs) = &self.pairs else {
            return format!("{all}; too few placements to tell them apart");
        };
        let ratio = |one: usize, other: usize| {
            let pair = pairs.pairs.iter().find(|pair| (pair.first, pair.second) == (one.min(other), one.max(other)));
            pair.map_or(1.0, |pair| if pair.first == one { pair.ratio } else { 1.0 / pair.ratio })
        };
        let others = |one: usize| (0..self.impacts.len()).filter(move |&at| at != one);
        if let Some(least) = pairs.least {
            let beyond: Vec<String> =
                others(least).map(|at| format!("{} {}", name(at), factor(ratio(least, at)))).collect();
            return format!("{all}; {} suffers least, the others more by {}", name(least), beyond.join(" and "));
        }
        if let Some(worst) = pairs.greatest {
            return format!("{all}; {} suffers more than every other", name(worst));
        }
        let differ: Vec<String> = pairs
            .pairs
            .iter()
            .filter(|pair| pair.differs())
            .map(|pair| {
                let (worse, better) =
                    if pair.ratio > 1.0 { (pair.second, pair.first) } else { (pair.first, pair.second) };
                format!("{} suffers more than {}", name(worse), name(better))
            })
            .collect();
        match differ.is_empty() {
            true => format!("{all}; no difference between them was shown"),
            false => format!("{all}; {}", differ.join(", ")),
        }
    }
}

/// For a terminal; empty without findings.
pub fn render(findings: &[ProtocolFinding]) -> String {
    let mut out = String::new();
    for group in findings.chunk_by(|a, b| a.backend == b.backend) {
        out += &format!("Network or protocol: the impact over {} (rules: docs/methodology.md)\n", group[0].backend);
        for finding in group {
            out += &format!("  {}: {}.\n", finding.title, finding.sentence());
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sides::of_file;
    use super::*;
    use crate::assemble::synthetic;
    use crate::result::ResultFile;

    fn file(eager: f64, put: f64, get: f64) -> ResultFile {
        let mut file = synthetic::file("tcp", Some("eager"), eager);
        for (protocol, impact) in [("put", put), ("get", get)] {
            file.runs.extend(synthetic::file("tcp", Some(protocol), impact).runs);
        }
        file
    }

    #[test]
    fn a_protocol_that_beats_every_other_is_named() {
        let file = file(5.0, 10.0, 7.0);
        let found = findings(&of_file(&file));
        assert_eq!(found.len(), 3, "{found:?}");
        for finding in &found {
            let said = finding.sentence();
            assert!(said.contains("eager suffers least, the others more by put 2.0"), "{said}");
        }
        assert!(render(&found).starts_with("Network or protocol: the impact over tcp"), "{}", render(&found));
    }

    #[test]
    fn two_that_share_the_least_leave_the_worst() {
        let said: Vec<String> =
            findings(&of_file(&file(5.0, 10.0, 5.0))).iter().map(ProtocolFinding::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("put suffers more than every other")), "{said:?}");
    }

    #[test]
    fn protocols_that_suffer_alike_are_not_blamed() {
        let said: Vec<String> =
            findings(&of_file(&file(4.0, 4.0, 4.0))).iter().map(ProtocolFinding::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("no difference between them was shown")), "{said:?}");
    }

    #[test]
    fn what_may_not_be_reported_has_no_factor() {
        let mut file = file(5.0, 10.0, 7.0);
        file.runs[1].tests.iter_mut().for_each(|test| test.covered = Some(0.1));
        for finding in findings(&of_file(&file)) {
            let said = finding.sentence();
            assert!(said.contains("(put not reportable)") && !said.contains("put 1"), "{said}");
        }
        file.runs[0].tests.iter_mut().for_each(|test| test.covered = Some(0.1));
        assert!(findings(&of_file(&file)).is_empty());
    }

    #[test]
    fn one_placement_tells_nothing_apart() {
        let mut file = file(5.0, 10.0, 5.0);
        file.runs.iter_mut().for_each(|run| run.placements.truncate(1));
        let said: Vec<String> = findings(&of_file(&file)).iter().map(ProtocolFinding::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("too few placements to tell them apart")), "{said:?}");
    }

    #[test]
    fn one_protocol_or_none_has_nothing_to_share() {
        let mut file = synthetic::file("mpi", None, 3.0);
        file.runs.extend(synthetic::file("tcp", Some("put"), 3.0).runs);
        assert!(findings(&of_file(&file)).is_empty());
    }
}
