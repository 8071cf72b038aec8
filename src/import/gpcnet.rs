//! The tables that GPCNeT 1.3 prints, in both of its widths.
//!
//! GPCNeT keeps neither samples nor seed nor placement: an imported result has printed figures instead of histograms,
//! nodes without roles, and says what it was imported from. Lines may have a prefix (a rank, a time stamp), as launchers
//! and logs add them. Congestor figures and GPCNeT's own impact factors are not taken: the first say nothing about bytes
//! delivered, the second come from rounded values and are computed anew.

use super::{unknown_file, unknown_run, unknown_system};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::plan::{CanaryTest, Counts, Plan, Preset};
use crate::result::{Command, LARGEST_FIGURE, Printed, ResultFile, Run, Test};

/// GPCNeT never prints more ranks or nodes than a machine has; a damaged number must not take the memory.
const MOST_RANKS: usize = 100_000_000;
const MOST_NODES: usize = 1_000_000;

/// Why a text is no GPCNeT output.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ImportError {
    #[error("no GPCNeT output: neither 'Network Tests v' nor 'NetworkLoad Tests v' is in it")]
    NoHeader,
    #[error("{0} GPCNeT outputs in one file: import them one by one")]
    SeveralOutputs(usize),
    #[error("no line like 'Test with 10 MPI ranks (10 nodes)'")]
    NoSize,
    #[error("line {line}: {detail}")]
    Row { line: usize, detail: String },
    #[error("it has no table of network tests")]
    NoTables,
}

/// Reads the tables GPCNeT printed.
pub fn gpcnet(text: &str) -> Result<ResultFile, ImportError> {
    let headers: Vec<&str> = text.lines().filter_map(header).collect();
    let [header] = headers[..] else {
        return Err(if headers.is_empty() {
            ImportError::NoHeader
        } else {
            ImportError::SeveralOutputs(headers.len())
        });
    };
    let load_test = header.starts_with("NetworkLoad");
    let (ranks, nodes) = text.lines().find_map(size).ok_or(ImportError::NoSize)?;
    let tests = tests(text)?;
    if tests.is_empty() {
        return Err(ImportError::NoTables);
    }
    let mut notes = vec!["GPCNeT prints no seed, placement, versions or samples: none of them is known".to_owned()];
    let cut = load_test && !tests.iter().any(|test| test.phase == LoadState::Loaded);
    if cut {
        notes.push("the log ends before the tests under load: there are no impacts".to_owned());
    }
    let version = header.rsplit(" v").next().unwrap_or_default().trim();
    let run = Run { tests, ..unknown_run() };
    let command = if load_test { Command::Run } else { Command::Network };
    let file = unknown_file(command, format!("GPCNeT {version}"), unknown_system(ranks, nodes), plan(&run), run);
    Ok(ResultFile { notes, interrupted: cut, ..file })
}

fn header(line: &str) -> Option<&str> {
    let at = line.find("NetworkLoad Tests v").or_else(|| line.find("Network Tests v"))?;
    Some(line[at..].trim())
}

fn size(line: &str) -> Option<(usize, usize)> {
    let (_, rest) = line.split_once("Test with ")?;
    let (ranks, rest) = rest.split_once(" MPI ranks (")?;
    let (nodes, _) = rest.split_once(" nodes)")?;
    let (ranks, nodes) = (ranks.trim().parse().ok()?, nodes.trim().parse().ok()?);
    (ranks <= MOST_RANKS && nodes <= MOST_NODES).then_some((ranks, nodes))
}

/// What the rows under a title are.
enum Table {
    Of(LoadState),
    /// Congestors alone, key results, or something GPCNeT 1.3 does not print.
    Other,
}

fn tests(text: &str) -> Result<Vec<Test>, ImportError> {
    let (mut table, mut columns, mut tests) = (Table::Other, Vec::new(), Vec::<Test>::new());
    for (at, line) in text.lines().enumerate() {
        let Some(start) = line.find('|') else { continue };
        let row = line[start..].trim().trim_start_matches('|');
        let row = row.strip_suffix('|').ok_or_else(|| bad(at, "the row is cut short"))?;
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match cells[..] {
            [title] => (table, columns) = (titled(title), Vec::new()),
            ["Name", ..] => columns = cells,
            [name, ..] => {
                let Table::Of(phase) = table else { continue };
                let Some((kernel, bytes)) = canary(name) else { continue };
                if tests.iter().any(|test| test.kernel == kernel && test.phase == phase) {
                    return Err(bad(at, &format!("{name} is there twice")));
                }
                let printed = figures(&columns, &cells).map_err(|detail| bad(at, &detail))?;
                tests.push(test(phase, kernel, bytes, printed));
            }
            [] => {}
        }
    }
    Ok(tests)
}

fn bad(at: usize, detail: &str) -> ImportError {
    ImportError::Row { line: at + 1, detail: detail.to_owned() }
}

fn titled(title: &str) -> Table {
    const LOADED: &str = "Network Tests running with Congestion Tests";
    match title {
        "Isolated Network Tests" | "Network Tests" => Table::Of(LoadState::Isolated),
        _ if title.ends_with("Key Results") => Table::Other,
        _ if title.starts_with(LOADED) => Table::Of(LoadState::Loaded),
        _ => Table::Other,
    }
}

/// A row's canary and message size; nothing for the congestors that share the tables of `--verbose`.
fn canary(name: &str) -> Option<(Canary, usize)> {
    let (title, size) = name.split_once(" (")?;
    let bytes = size.trim_end_matches(')').trim_end_matches('B').trim().parse().ok()?;
    let kernel = Canary::kernels().find(|kernel| kernel.info().title == title)?;
    (bytes > 0).then_some((kernel, bytes))
}

fn figures(columns: &[&str], cells: &[&str]) -> Result<Printed, String> {
    let of = |name: &str| -> Result<Option<f64>, String> {
        let Some(column) = columns.iter().position(|column| *column == name) else { return Ok(None) };
        let cell = cells.get(column).ok_or_else(|| format!("no value under {name}"))?;
        match cell.parse::<f64>() {
            // What no result may hold.
            Ok(value) if (0.0..LARGEST_FIGURE).contains(&value) => Ok(Some(value)),
            _ => Err(format!("'{cell}' under {name} is no figure")),
        }
    };
    let need = |name: &str| of(name)?.ok_or_else(|| format!("the table has no column {name}"));
    Ok(Printed { avg: need("Avg")?, p99: need("99%")?, p999: of("99.9%")?, min: of("Min")?, max: of("Max")? })
}

fn test(phase: LoadState, kernel: Canary, bytes: usize, printed: Printed) -> Test {
    let info = kernel.info();
    Test {
        phase,
        kernel,
        title: info.row(bytes),
        bytes,
        direction: info.direction,
        unit: info.direction.unit().into(),
        wall_s: 0.0,
        covered: None,
        summary: None,
        histogram: None,
        schedule: None,
        printed: Some(printed),
        batches: Vec::new(),
        load: Vec::new(),
    }
}

fn plan(run: &Run) -> Plan {
    let canary = |test: &Test| {
        let counts = Counts { bytes: test.bytes, ..Counts::of(&test.kernel.info()) };
        CanaryTest { kernel: test.kernel, counts }
    };
    let mut canaries: Vec<CanaryTest> = Vec::new();
    for test in &run.tests {
        if !canaries.iter().any(|known| known.kernel == test.kernel) {
            canaries.push(canary(test));
        }
    }
    Plan { canaries, ..Preset::Gpcnet.plan() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assemble::synthetic;
    use crate::output::Format;
    use crate::stats::Statistic;

    #[test]
    fn our_own_gpcnet_tables_come_back() {
        let original = synthetic::file("mpi", None, 5.0);
        for verbose in [false, true] {
            let back = gpcnet(&Format::Gpcnet.render(&original, verbose)).unwrap();
            assert_eq!((back.system.ranks, back.system.nodes.len()), (10, 10));
            assert_eq!(back.imported.as_deref(), Some("GPCNeT 1.3"));
            assert_eq!(back.kernels(), original.kernels());
            for (theirs, ours) in back.runs[0].tests.iter().zip(&original.runs[0].tests) {
                assert_eq!((theirs.kernel, theirs.phase, &theirs.title), (ours.kernel, ours.phase, &ours.title));
                let summary = ours.summary.as_ref().unwrap();
                for (statistic, b) in [(Statistic::Avg, summary.avg), (Statistic::P99, summary.p99)] {
                    let a = theirs.figure(statistic).unwrap();
                    assert!((a - b).abs() <= 0.051, "{}: {a} for {b}", ours.title);
                }
                assert_eq!(theirs.figure(Statistic::P999).is_some(), verbose);
            }
            let impact = back.runs[0].impact(Canary::Lat, Statistic::P99).unwrap();
            assert!((impact.factor - 5.0).abs() < 0.2 && impact.interval.is_none(), "{impact:?}");
            let text = serde_json::to_string(&back).unwrap();
            serde_json::from_str::<ResultFile>(&text).unwrap();
        }
    }

    #[test]
    fn prefixes_of_launchers_do_not_matter() {
        let text = Format::Gpcnet.render(&synthetic::file("mpi", None, 5.0), false);
        let prefixed: String = text.lines().map(|line| format!("0: {line}\n")).collect();
        assert_eq!(gpcnet(&prefixed).unwrap().runs[0].tests.len(), 6);
    }

    #[test]
    fn what_is_no_gpcnet_output_is_refused_with_a_reason() {
        let text = Format::Gpcnet.render(&synthetic::file("mpi", None, 5.0), false);
        let error = |text: &str| gpcnet(text).unwrap_err();
        assert_eq!(error("hello"), ImportError::NoHeader);
        assert_eq!(error(&text.repeat(2)), ImportError::SeveralOutputs(2));
        assert_eq!(error(&text.replace("MPI ranks", "ranks")), ImportError::NoSize);
        assert_eq!(error(&text.replace("Network Tests ", "Tests ").replace("NetworkLoad", "x")), ImportError::NoHeader);
        let cut = error(&text.replacen("|         usec |", "", 1)).to_string();
        assert!(cut.starts_with("line ") && cut.ends_with("the row is cut short"), "{cut}");
        let twice = error(&text.replacen("Multiple Allreduce (8 B)", "RR Two-sided Lat (8 B)", 1)).to_string();
        assert!(twice.ends_with("is there twice"), "{twice}");
        for cell in ["x.1", "-1.0", "inf", "NaN", "2.4e32", ""] {
            let detail = figures(&["Name", "Avg", "99%"], &["", cell, "1.0"]).unwrap_err();
            assert_eq!(detail, format!("'{cell}' under Avg is no figure"));
        }
    }

    proptest! {
        #[test]
        fn mutated_outputs_never_panic(at in 0usize..4000, byte in any::<u8>(), cut in 0usize..6000) {
            let mut bytes = Format::Gpcnet.render(&ORIGINAL, true).into_bytes();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut);
            let _ = gpcnet(&String::from_utf8_lossy(&bytes));
        }
    }

    static ORIGINAL: std::sync::LazyLock<ResultFile> = std::sync::LazyLock::new(|| synthetic::file("mpi", None, 5.0));
}
