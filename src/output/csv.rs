//! CSV: one line per test and state, one per congestor, for spreadsheets and plots.

use std::fmt::Write as _;

use crate::result::{CongestorLoad, ResultFile};
use crate::stats::{Statistic, Summary};

const HEADER: &str = "transport,protocol,phase,role,kernel,while,bytes,unit,samples,passes,wall_s,avg,mean,best,p50,p90,p99,p999,worst,\
impact_avg,impact_p50,impact_p90,impact_p99,impact_p999,delivered_bytes,delivered_mib_per_s";

pub(super) fn render(result: &ResultFile) -> String {
    let mut out = format!("{HEADER}\n");
    for run in &result.runs {
        let start = format!("{},{}", run.transport.backend, run.transport.protocol.as_deref().unwrap_or(""));
        let mut congestor = |phase: &str, canary: &str, load: &CongestorLoad| {
            let figures = load.summary.as_ref().map_or_else(|| ",,,,,,,,,,".into(), |summary| figures(summary, None));
            let _ = writeln!(
                out,
                "{start},{phase},congestor,{},{canary},,MiB/s/rank,{figures},,,,,,{},{}",
                load.kernel, load.delivered_bytes, load.delivered_mib_per_s
            );
        };
        for load in &run.congestors {
            congestor("alone", "", load);
        }
        for test in &run.tests {
            for load in &test.load {
                congestor("loaded", test.kernel.info().key, load);
            }
        }
        for test in &run.tests {
            let Some(summary) = &test.summary else { continue };
            let impact = run.impacts.iter().find(|impact| impact.kernel == test.kernel);
            let factors: Vec<String> = Statistic::ALL
                .iter()
                .map(|&statistic| match impact.filter(|_| !test.load.is_empty()) {
                    Some(of) => of.impact.get(statistic).factor.to_string(),
                    None => String::new(),
                })
                .collect();
            let _ = writeln!(
                out,
                "{start},{},canary,{},,{},{},{},{},,",
                test.phase.word(),
                test.kernel,
                test.bytes,
                test.unit,
                figures(summary, Some(test.wall_s)),
                factors.join(",")
            );
        }
    }
    out
}

fn figures(summary: &Summary, wall_s: Option<f64>) -> String {
    let Summary { samples, passes, avg, mean, best, p50, p90, p99, p999, worst, .. } = summary;
    let wall = wall_s.map(|seconds| seconds.to_string()).unwrap_or_default();
    format!("{samples},{passes},{wall},{avg},{mean},{best},{p50},{p90},{p99},{p999},{worst}")
}
