//! Whose fault the congestion is, network's or protocol's: the impacts of one raw backend's protocols beside each other.
//!
//! What every protocol suffers is the network's: the smallest p99 impact among them. What another protocol has beyond it
//! is that protocol's, and is only called so when the interval of the ratio excludes 1. Out of scope: MPI, whose
//! protocol is not ours to choose; see [`super::attribution`].

use serde::Serialize;

use super::measured::Measured;
use super::{Side, State, Verdict};
use crate::kernel::Canary;
use crate::stats::{Factor, Statistic};
use crate::text::factor;

/// Below this there is no impact to share out.
const NO_IMPACT: f64 = 1.1;

/// One canary's impact over one backend, taken apart.
#[derive(Clone, Debug, Serialize)]
pub struct ProtocolFinding {
    /// The backend.
    pub backend: String,
    /// The canary.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// The protocol that suffers least.
    pub least: String,
    /// Its p99 impact: the network's part.
    pub network: f64,
    /// What the others have beyond it.
    pub added: Vec<Added>,
}

/// What a protocol adds.
#[derive(Clone, Debug, Serialize)]
pub struct Added {
    /// The protocol.
    pub protocol: String,
    /// Its p99 impact.
    pub impact: f64,
    /// That over the smallest one.
    pub ratio: Factor,
    /// Whether that is significant.
    pub verdict: Verdict,
}

/// The findings for every raw backend that ran with several protocols.
pub fn findings(sides: &[Side<'_>]) -> Vec<ProtocolFinding> {
    let mut backends: Vec<&str> = Vec::new();
    for side in sides.iter().filter(|side| side.run.transport.protocol.is_some()) {
        if !backends.contains(&side.run.transport.backend.as_str()) {
            backends.push(&side.run.transport.backend);
        }
    }
    let mut findings = Vec::new();
    for backend in backends {
        let of = |side: &&Side<'_>| side.run.transport.backend == backend && side.run.transport.protocol.is_some();
        let runs: Vec<&Side<'_>> = sides.iter().filter(of).collect();
        let kernels = runs.first().map(|side| side.kernels()).unwrap_or_default();
        findings.extend(kernels.into_iter().filter_map(|kernel| finding(backend, &runs, kernel)));
    }
    findings
}

fn finding(backend: &str, runs: &[&Side<'_>], kernel: Canary) -> Option<ProtocolFinding> {
    let mut impacts: Vec<(String, f64, Measured)> = Vec::new();
    for side in runs {
        let measured = Measured::of(side, kernel);
        if let Some(impact) = measured.value(State::Impact, Statistic::P99) {
            impacts.push((side.run.transport.protocol.clone()?, impact, measured));
        }
    }
    impacts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((least, network, base), rest) = impacts.split_first()?;
    let (first, direction) = (runs.first()?, kernel.info().direction);
    let added = rest.iter().filter_map(|(protocol, impact, measured)| {
        let ratio = measured.ratio(base, direction, State::Impact, Statistic::P99, first.file.seed)?;
        Some(Added { protocol: protocol.clone(), impact: *impact, verdict: Verdict::of(&ratio), ratio })
    });
    let added: Vec<Added> = added.collect();
    let title = first.run.tests.iter().find(|test| test.kernel == kernel)?.title.clone();
    let (backend, least) = (backend.to_owned(), least.clone());
    (!added.is_empty()).then_some(ProtocolFinding { backend, kernel, title, least, network: *network, added })
}

impl ProtocolFinding {
    /// The finding in words.
    pub fn sentence(&self) -> String {
        let blamed: Vec<String> = self
            .added
            .iter()
            .filter(|added| added.verdict == Verdict::Worse)
            .map(|added| format!("{} makes that {} worse", added.protocol, factor(added.ratio.factor)))
            .collect();
        let network = if self.network < NO_IMPACT {
            format!("no impact with {}", self.least)
        } else {
            format!("the network causes {} whatever the protocol ({} suffers least)", factor(self.network), self.least)
        };
        match (blamed.is_empty(), self.added.iter().any(|added| added.verdict == Verdict::Unknown)) {
            (false, _) => format!("{network}; {}", blamed.join(", ")),
            (true, true) => format!("{network}; there is no interval to judge the others by"),
            (true, false) => format!("{network}; no share of a protocol could be shown"),
        }
    }
}

/// For a terminal; empty without findings.
pub fn render(findings: &[ProtocolFinding]) -> String {
    let mut out = String::new();
    for group in findings.chunk_by(|a, b| a.backend == b.backend) {
        out += &format!("Network or protocol: the p99 impact over {} (rules: docs/methodology.md)\n", group[0].backend);
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
    use crate::result::{ResultFile, synthetic};

    fn file(eager: f64, put: f64, get: f64) -> ResultFile {
        let mut file = synthetic::file("tcp", Some("eager"), eager);
        for (protocol, impact) in [("put", put), ("get", get)] {
            file.runs.extend(synthetic::file("tcp", Some(protocol), impact).runs);
        }
        file
    }

    #[test]
    fn a_protocol_that_doubles_the_impact_is_found_out() {
        let file = file(5.0, 10.0, 5.0);
        let found = findings(&of_file(&file));
        assert_eq!(found.len(), 3, "{found:?}");
        for finding in &found {
            assert!((finding.network - 5.0).abs() < 0.05, "{finding:?}");
            let said = finding.sentence();
            assert!(said.contains("whatever the protocol") && said.contains("put makes that 2.0"), "{said}");
            assert!(!said.contains("get makes") && !said.contains("eager makes"), "{said}");
        }
        assert!(render(&found).starts_with("Network or protocol: the p99 impact over tcp"), "{}", render(&found));
    }

    #[test]
    fn protocols_that_suffer_alike_are_not_blamed() {
        let (same, calm) = (file(4.0, 4.0, 4.0), file(1.0, 1.0, 3.0));
        let said: Vec<String> = findings(&of_file(&same)).iter().map(ProtocolFinding::sentence).collect();
        assert!(said.iter().all(|said| said.ends_with("no share of a protocol could be shown")), "{said:?}");
        let said: Vec<String> = findings(&of_file(&calm)).iter().map(ProtocolFinding::sentence).collect();
        assert!(said.iter().all(|said| said.starts_with("no impact with") && said.contains("get makes that 3.0")));
    }

    #[test]
    fn one_protocol_or_none_has_nothing_to_share() {
        let mut file = synthetic::file("mpi", None, 3.0);
        file.runs.extend(synthetic::file("tcp", Some("put"), 3.0).runs);
        assert!(findings(&of_file(&file)).is_empty());
    }
}
