//! HPC Challenge's output file: the summary at its end, a figure a line.
//!
//! The summary says nothing of nodes, network or checks but its own verdict; figures of tests that did not run are
//! negative there and are left out here.

use std::collections::BTreeMap;

use super::{unknown_file, unknown_run, unknown_system};
use crate::models::hpcc::Hpcc;
use crate::plan::Plan;
use crate::result::{Command, ModelResults, ResultFile, is_possible};

const BEGIN: &str = "Begin of Summary section";
const END: &str = "End of Summary section";
/// No machine has more; a damaged number must not take the memory.
const MOST_RANKS: f64 = 1e8;

/// Why a text is no output of HPC Challenge.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum HpccError {
    #[error("no output of HPC Challenge: '{BEGIN}' is not in it (it is near the end of hpccoutf.txt)")]
    NoSummary,
    #[error("{0} summaries in one file, to which HPC Challenge appends: import them one by one")]
    SeveralSummaries(usize),
    #[error("the summary is cut short: '{END}' is not in it")]
    Cut,
    #[error("line {line}: {detail}")]
    Line { line: usize, detail: String },
    #[error("the summary has no {0}")]
    Missing(&'static str),
    #[error("{0} cannot be")]
    Figure(String),
    #[error("the summary has no figure of any test")]
    NoFigures,
}

/// Reads the summary.
pub fn hpcc(text: &str) -> Result<ResultFile, HpccError> {
    let begins: Vec<usize> = positions(text, BEGIN);
    let begin = match begins[..] {
        [begin] => begin,
        [] => return Err(HpccError::NoSummary),
        _ => return Err(HpccError::SeveralSummaries(begins.len())),
    };
    let end = positions(text, END).into_iter().find(|end| *end > begin).ok_or(HpccError::Cut)?;
    let (mut figures, mut success) = (BTreeMap::new(), None);
    for (at, line) in text.lines().enumerate().take(end).skip(begin + 1).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |detail: String| HpccError::Line { line: at + 1, detail };
        let (name, value) = line.split_once('=').ok_or_else(|| wrong(format!("'{}' is no figure", line.trim())))?;
        // Words, such as the letter of the release, are no figures.
        let Ok(value) = value.trim().parse::<f64>() else { continue };
        match name.trim() {
            "Success" => success = Some(value == 1.0),
            name if figures.contains_key(name) => return Err(wrong(format!("{name} is there twice"))),
            name if value.is_finite() && value >= 0.0 => drop(figures.insert(name.to_owned(), value)),
            _ => {}
        }
    }
    let of = |name: &'static str| figures.get(name).copied().ok_or(HpccError::Missing(name));
    let ranks = of("CommWorldProcs")?;
    if !(1.0..=MOST_RANKS).contains(&ranks) {
        return Err(HpccError::Missing("usable CommWorldProcs"));
    }
    let version = ["VersionMajor", "VersionMinor", "VersionMicro"].map(of);
    let [Ok(major), Ok(minor), Ok(micro)] = version else { return Err(HpccError::Missing("version")) };
    // What the machine and the program are is no figure of a test.
    figures.retain(|name, _| crate::models::hpcc::name(name).is_some() || name == "MPIRandomAccess_ErrorsFraction");
    if figures.is_empty() {
        return Err(HpccError::NoFigures);
    }
    if let Some((name, figure)) = figures.iter().find(|(_, figure)| !is_possible(**figure)) {
        return Err(HpccError::Figure(format!("{name} = {figure:e}")));
    }
    let found = Hpcc { figures, ..Hpcc::default() };
    Ok(file(found, ranks as usize, format!("HPC Challenge {major}.{minor}.{micro}"), success))
}

/// The numbers of lines that have it.
fn positions(text: &str, what: &str) -> Vec<usize> {
    text.lines().enumerate().filter(|(_, line)| line.contains(what)).map(|(at, _)| at).collect()
}

fn file(found: Hpcc, ranks: usize, from: String, success: Option<bool>) -> ResultFile {
    let verdict = match success {
        Some(true) => "HPC Challenge says that all its checks passed",
        Some(false) => "HPC Challenge says that a check of its own FAILED: these figures are not to be trusted",
        None => "HPC Challenge does not say whether its checks passed",
    };
    let unknown = "HPC Challenge prints no nodes, network or seed: none of them is known";
    // Compared by ranks: how they were spread over nodes is not known.
    let system = unknown_system(ranks, 0);
    let file = unknown_file(Command::Hpcc, from, system, Plan::of_a_study(), unknown_run());
    ResultFile {
        models: Some(ModelResults { hpcc: Some(found), ..ModelResults::default() }),
        notes: vec![verdict.into(), unknown.into()],
        ..file
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of the file; a real one is in the tests of the whole program.
    const TEXT: &str = "\
Some tests before.
Begin of Summary section.
VersionMajor=1
VersionMinor=5
VersionMicro=0
VersionRelease=f
LANG=C
Success=1
CommWorldProcs=2
HPL_Tflops=0.00416
HPL_N=1000
PTRANS_GBs=-1
MPI_Wtick=1e-09

End of Summary section.
####
";

    #[test]
    fn the_summary_is_read() {
        let file = hpcc(TEXT).unwrap();
        assert_eq!((file.system.ranks, file.imported.as_deref()), (2, Some("HPC Challenge 1.5.0")));
        let found = file.models.as_ref().unwrap().hpcc.as_ref().unwrap();
        assert!((found.hpl_gflops().unwrap() - 4.16).abs() < 1e-12);
        assert_eq!(found.figures.len(), 2, "what did not run, and what is no figure, is left out: {:?}", found.figures);
        assert!(file.notes[0].ends_with("all its checks passed"));
        let failed = hpcc(&TEXT.replace("Success=1", "Success=0")).unwrap();
        assert!(failed.notes[0].contains("FAILED"));
        let text = serde_json::to_string(&file).unwrap();
        serde_json::from_str::<ResultFile>(&text).unwrap();
    }

    #[test]
    fn what_is_no_output_of_hpcc_is_refused_with_a_reason() {
        let error = |text: &str| hpcc(text).unwrap_err();
        assert_eq!(error("hello"), HpccError::NoSummary);
        assert_eq!(error(&TEXT.repeat(3)), HpccError::SeveralSummaries(3));
        assert_eq!(error(TEXT.split("End of").next().unwrap()), HpccError::Cut);
        assert_eq!(error(&TEXT.replace("CommWorldProcs=2", "")), HpccError::Missing("CommWorldProcs"));
        assert_eq!(
            error(&TEXT.replace("CommWorldProcs=2", "CommWorldProcs=1e300")).to_string(),
            "the summary has no usable CommWorldProcs"
        );
        assert_eq!(error(&TEXT.replace("HPL_", "hpl_")), HpccError::NoFigures);
        assert_eq!(
            error(&TEXT.replace("PTRANS_GBs=-1", "PTRANS_GBs=1e300")).to_string(),
            "PTRANS_GBs = 1e300 cannot be"
        );
        assert_eq!(error(&TEXT.replace("LANG=C", "LANG C")).to_string(), "line 7: 'LANG C' is no figure");
        assert_eq!(error(&TEXT.replace("PTRANS_GBs=-1", "HPL_N=7")).to_string(), "line 12: HPL_N is there twice");
    }

    proptest! {
        #[test]
        fn mutated_outputs_never_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..500) {
            let mut bytes = TEXT.as_bytes().to_vec();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut);
            let _ = hpcc(&String::from_utf8_lossy(&bytes));
        }
    }
}
