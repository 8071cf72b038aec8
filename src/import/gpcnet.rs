//! The tables that GPCNeT prints, in both of its widths, wherever they are in the log of a job.
//!
//! A log has any number of outputs, of the network test and of the load test; each begins with its header and is a result
//! of its own. What its lines say is read in `scan`; what of an output is lost is told here, and the result says so too.
//!
//! GPCNeT keeps neither samples nor seed nor placement: an imported result has printed figures instead of histograms,
//! nodes without roles, and says what it was imported from. Congestor figures and GPCNeT's own impact factors are not
//! taken: the first say nothing about bytes delivered, the second come from rounded values and are computed anew.

mod scan;

use std::collections::BTreeMap;

use super::{unknown_file, unknown_run, unknown_system};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::plan::{CanaryTest, Counts, Plan, Preset};
use crate::result::{Command, ResultFile, Run, Test};
use scan::{Row, Seen, Tables, canary, header, quoted, size};

/// A file is written for each output, with all of its nodes; a damaged number must not take the memory.
const MOST_OUTPUTS: usize = 10_000;
const MOST_NODES_OF_ALL: usize = 2_000_000;
/// Of one output; more say no more.
const MOST_WARNINGS: usize = 20;

/// Why there is nothing to import.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ImportError {
    #[error("no GPCNeT output: expected a line 'Network Tests v1.3' or 'NetworkLoad Tests v1.3'")]
    NoHeader,
    #[error("line {line}: no size of the job below it: expected a line like 'Test with 10 MPI ranks (10 nodes)'")]
    NoSize { line: usize },
    #[error("line {line}: no figures below it: expected rows like '| RR Two-sided Lat (8 B) | 2.9 | 4.3 | usec |'")]
    NoFigures { line: usize },
    #[error(
        "line {line}: figures of {row} differ from those in line {first}: expected one row in a table; did two programs write at once?"
    )]
    Mixed { line: usize, row: String, first: usize },
    #[error("too many outputs: expected at most {MOST_OUTPUTS}, of {MOST_NODES_OF_ALL} nodes together; split the file")]
    TooMany,
}

/// Finds the outputs of a log, in their order.
pub fn gpcnet(text: &str) -> Result<Vec<Output<'_>>, ImportError> {
    let (mut outputs, mut simulated, mut headless) = (Vec::<Output<'_>>::new(), None, None);
    for (line, text) in (1..).zip(text.lines()) {
        if let Some((load_test, version)) = header(text) {
            if outputs.len() == MOST_OUTPUTS {
                return Err(ImportError::TooMany);
            }
            outputs.push(Output::new(line, load_test, version, simulated.take()));
        } else {
            // Tailback's own tables say so above their header.
            simulated = text.find("Simulated: machine ").map(|at| text[at..].trim());
            match outputs.last_mut() {
                Some(output) => output.take(line, text),
                None if text.split('|').any(|cell| canary(cell.trim()).is_some()) => headless = headless.or(Some(line)),
                None => {}
            }
        }
    }
    let first = outputs.first_mut().ok_or(ImportError::NoHeader)?;
    if let Some(line) = headless {
        first.warn(format!(
            "line {line}: figures from here to line {} are left out: expected a header above",
            first.line
        ));
    }
    if outputs.iter().filter_map(|of| of.size).map(|(_, nodes)| nodes).sum::<usize>() > MOST_NODES_OF_ALL {
        return Err(ImportError::TooMany);
    }
    let (count, mut seen) = (outputs.len(), BTreeMap::new());
    for (number, output) in (1..).zip(&mut outputs) {
        output.position = (number, count);
        output.tell_missing();
        let twin = *seen.entry(output.figures()).or_insert(number);
        if twin != number && !output.tests.is_empty() {
            let warning =
                format!("line {}: all figures are those of output {twin}: was it printed twice?", output.line);
            output.warnings.insert(0, warning);
        }
    }
    Ok(outputs)
}

/// One output of GPCNeT.
#[derive(Debug)]
pub struct Output<'t> {
    /// The line of its header.
    line: usize,
    /// Which of how many.
    position: (usize, usize),
    load_test: bool,
    version: &'t str,
    simulated: Option<&'t str>,
    /// Ranks and nodes.
    size: Option<(usize, usize)>,
    /// Each with its line.
    tests: Vec<(usize, Test)>,
    /// Rows whose figures cannot be read.
    damaged: Vec<(Canary, LoadState)>,
    mixed: Option<ImportError>,
    is_cut: bool,
    warnings: Vec<String>,
    tables: Tables<'t>,
}

impl<'t> Output<'t> {
    fn new(line: usize, load_test: bool, version: &'t str, simulated: Option<&'t str>) -> Self {
        Output {
            line,
            position: (1, 1),
            load_test,
            version,
            simulated,
            size: None,
            tests: Vec::new(),
            damaged: Vec::new(),
            mixed: None,
            is_cut: false,
            warnings: Vec::new(),
            tables: Tables::default(),
        }
    }

    /// What was lost of it or looks wrong, with lines of the log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The output as a result.
    pub fn file(&self) -> Result<ResultFile, ImportError> {
        if let Some(mixed) = &self.mixed {
            return Err(mixed.clone());
        }
        if self.tests.is_empty() {
            return Err(ImportError::NoFigures { line: self.line });
        }
        let (ranks, nodes) = self.size.ok_or(ImportError::NoSize { line: self.line })?;
        let mut notes = vec!["GPCNeT prints no seed, placement, versions or samples: none of them is known".to_owned()];
        if let (number, count @ 2..) = self.position {
            notes.push(format!("output {number} of {count} in the log, from line {}", self.line));
        }
        notes.extend(self.simulated.map(|of| format!("no such network was measured: the log says '{}'", quoted(of))));
        notes.extend_from_slice(&self.warnings);
        let run = Run { tests: self.tests.iter().map(|(_, test)| test.clone()).collect(), ..unknown_run() };
        let command = if self.load_test { Command::Run } else { Command::Network };
        let from = format!("GPCNeT {}", self.version);
        let file = unknown_file(command, from, unknown_system(ranks, nodes), plan(&run), run);
        Ok(ResultFile { notes, interrupted: self.is_cut, ..file })
    }

    fn take(&mut self, line: usize, text: &'t str) {
        self.size = self.size.or_else(|| size(text));
        for seen in self.tables.take(text) {
            match seen {
                Seen::Row { name, state, row: Ok(row) } => self.keep(line, name, state, row),
                Seen::Row { name, state, row: Err((kernel, detail)) } => {
                    self.warn(format!("line {line}: {name} is left out: {detail}"));
                    self.damaged.push((kernel, state));
                }
                Seen::Untitled { name } => {
                    self.warn(format!("line {line}: {name} is left out: expected the title of its table above"));
                }
                Seen::Other { name } => {
                    self.warn(format!("line {line}: invalid test '{}': expected a test of GPCNeT's", quoted(name)));
                }
            }
        }
    }

    fn keep(&mut self, line: usize, name: &str, state: LoadState, row: Row) {
        let test = test(state, row);
        let known = self.tests.iter().find(|(_, known)| (known.kernel, known.phase) == (test.kernel, test.phase));
        match known {
            None => self.tests.push((line, test)),
            // A script may have looked it up again.
            Some((_, known)) if (known.bytes, known.printed) == (test.bytes, test.printed) => {}
            Some((first, _)) => {
                let mixed = ImportError::Mixed { line, row: name.to_owned(), first: *first };
                self.mixed.get_or_insert(mixed);
            }
        }
    }

    /// A load test prints what it measured idle again under load; the network test always has the same eight rows.
    fn tell_missing(&mut self) {
        let has = |of: (Canary, LoadState)| self.tests.iter().any(|(_, test)| (test.kernel, test.phase) == of);
        let known = |of: &Canary| {
            [LoadState::Isolated, LoadState::Loaded].iter().any(|phase| has((*of, *phase)))
                || self.damaged.iter().any(|(kernel, _)| kernel == of)
        };
        let expected: Vec<(Canary, LoadState, &str)> = match self.load_test {
            false => Canary::GPCNETS.iter().map(|kernel| (*kernel, LoadState::Isolated, "")).collect(),
            true => {
                let of = |phase, word| Canary::kernels().filter(known).map(move |kernel| (kernel, phase, word));
                of(LoadState::Isolated, " idle").chain(of(LoadState::Loaded, " under load")).collect()
            }
        };
        let missing = expected.into_iter().filter(|(kernel, phase, _)| !has((*kernel, *phase)));
        let missing: Vec<(Canary, LoadState, &str)> = missing.collect();
        let untold = missing.iter().filter(|(kernel, phase, _)| !self.damaged.contains(&(*kernel, *phase)));
        let untold: Vec<String> = untold.map(|(kernel, _, state)| format!("{}{state}", kernel.info().title)).collect();
        self.is_cut = !missing.is_empty();
        if let Some((last, _)) = self.tests.last().filter(|_| !untold.is_empty()) {
            let untold = untold.join(", ");
            let warning =
                format!("line {last}: the output ends here, cut off or not run to its end: expected {untold} too");
            self.warnings.insert(0, warning);
        }
    }

    /// What tells it from another.
    fn figures(&self) -> String {
        let of = |(_, test): &(usize, Test)| format!("{} {:?} {:?};", test.title, test.phase, test.printed);
        self.tests.iter().map(of).collect()
    }

    fn warn(&mut self, warning: String) {
        match self.warnings.len() {
            ..MOST_WARNINGS => self.warnings.push(warning),
            MOST_WARNINGS => self.warnings.push(format!("more of the kind, not shown; the first: {warning}")),
            _ => {}
        }
    }
}

fn test(phase: LoadState, Row { kernel, bytes, printed }: Row) -> Test {
    let info = kernel.info();
    Test {
        phase,
        kernel,
        title: info.name(bytes),
        bytes,
        direction: info.direction,
        unit: info.direction.unit().into(),
        wall_s: 0.0,
        covered: None,
        summary: None,
        histogram: None,
        schedule: None,
        burst: None,
        printed: Some(printed),
        collective: None,
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

    use super::scan::unit;
    use super::*;
    use crate::assemble::synthetic;
    use crate::output::Format;
    use crate::result::Printed;
    use crate::stats::Statistic;

    static ORIGINAL: std::sync::LazyLock<ResultFile> = std::sync::LazyLock::new(|| synthetic::file("mpi", None, 5.0));

    fn load_test(verbose: bool) -> String {
        Format::Gpcnet.render(&ORIGINAL, verbose)
    }

    /// A network test of GPCNeT's, with so many of its rows.
    fn network_test(rows: usize) -> String {
        let rule = format!("+{}{}+\n", "-".repeat(33), format!("+{}", "-".repeat(14)).repeat(3));
        let row = |(at, canary): (usize, &Canary)| {
            let (info, figure) = (canary.info(), 10.0 + at as f64);
            let unit = unit(info.direction);
            format!("| {:>31} | {figure:>12.1} | {:>12.1} | {unit:>12} |\n{rule}", info.row(info.bytes), 2.0 * figure)
        };
        format!(
            "Network Tests v1.3\n  Test with 1408 MPI ranks (16 nodes)\n\n  Legend\n   Lat = latency\n+{}+\n|{:^78}|\n{rule}| {:>31} | {:>12} | {:>12} | {:>12} |\n{rule}{}",
            "-".repeat(78),
            "Isolated Network Tests",
            "Name",
            "Avg",
            "99%",
            "Units",
            Canary::GPCNETS.iter().enumerate().take(rows).map(row).collect::<String>()
        )
    }

    /// The only output of a log, of which nothing was lost.
    fn whole(log: &str) -> ResultFile {
        let outputs = gpcnet(log).unwrap();
        assert_eq!((outputs.len(), outputs[0].warnings()), (1, &[][..]));
        outputs[0].file().unwrap()
    }

    fn printed(file: &ResultFile) -> Vec<(Canary, LoadState, Printed)> {
        file.runs[0].tests.iter().map(|test| (test.kernel, test.phase, test.printed.unwrap())).collect()
    }

    #[test]
    fn our_own_gpcnet_tables_come_back() {
        for verbose in [false, true] {
            let back = whole(&load_test(verbose));
            assert_eq!((back.system.ranks, back.system.nodes.len()), (10, 10));
            assert_eq!(back.imported.as_deref(), Some("GPCNeT 1.3"));
            assert_eq!(back.kernels(), ORIGINAL.kernels());
            for (theirs, ours) in back.runs[0].tests.iter().zip(&ORIGINAL.runs[0].tests) {
                assert_eq!((theirs.kernel, theirs.phase, &theirs.title), (ours.kernel, ours.phase, &ours.title));
                let summary = ours.summary.as_ref().unwrap();
                for (statistic, b) in [(Statistic::Avg, summary.avg), (Statistic::P99, summary.percentiles.p99)] {
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
    fn a_simulated_network_stays_one() {
        let log = format!("Simulated: machine small, 64 nodes\n{}", load_test(false));
        assert!(whole(&log).notes[1].ends_with("the log says 'Simulated: machine small, 64 nodes'"));
        assert_eq!(whole(&load_test(false)).notes.len(), 1);
    }

    #[test]
    fn what_launchers_write_before_a_line_does_not_matter() {
        for prefix in ["0: ", "[0] ", "[1,0]<stdout>:", "2024-05-01T10:00:00Z ", "gpcnet-0  | ", "  "] {
            for text in [load_test(false), load_test(true), network_test(8)] {
                let prefixed: String = text.lines().map(|line| format!("{prefix}{line}\r\n")).collect();
                assert_eq!(printed(&whole(&prefixed)), printed(&whole(&text)), "{prefix}");
            }
        }
    }

    #[test]
    fn every_output_of_a_log_is_a_result() {
        let script = "#!/bin/bash\nfor job in $(flux jobs -a --json | jq -r .jobs[].id); do\n\
                      network_test |& tee out.txt | grep 'Network Tests v1.3' |\n";
        let after = "cxi0 tx 587019953\n| slurm | 3 | 4 | up |\n+------+\n| NVIDIA |\n";
        let log = [script, &network_test(8), after, script, &load_test(false), after, &load_test(true)].concat();
        let outputs = gpcnet(&log).unwrap();
        assert!(outputs.iter().all(|output| output.warnings().is_empty()), "{outputs:?}");
        let files: Vec<ResultFile> = outputs.iter().map(|output| output.file().unwrap()).collect();
        let read: Vec<_> = files.iter().map(|of| (of.command, of.system.ranks, of.runs[0].tests.len())).collect();
        assert_eq!(read, [(Command::Network, 1408, 8), (Command::Run, 10, 6), (Command::Run, 10, 6)]);
        assert_eq!(files[1].notes[1], format!("output 2 of 3 in the log, from line {}", outputs[1].line));
        assert!(log.lines().nth(outputs[1].line - 1) == Some("NetworkLoad Tests v1.3"));
        assert_eq!(printed(&files[0]), printed(&whole(&network_test(8))));
    }

    #[test]
    fn an_output_that_was_printed_twice_is_told() {
        let log = network_test(8).repeat(2);
        let outputs = gpcnet(&log).unwrap();
        assert!(outputs[0].warnings().is_empty());
        assert_eq!(outputs[1].warnings(), ["line 27: all figures are those of output 1: was it printed twice?"]);
        assert!(outputs[1].file().unwrap().notes.contains(&outputs[1].warnings()[0]));
        // Rows that a script looked up again say nothing new.
        let rows: String = network_test(8).lines().filter(|line| line.contains("(8 B)")).collect::<Vec<_>>().join("\n");
        assert_eq!(whole(&(network_test(8) + &rows)).runs[0].tests.len(), 8);
    }

    #[test]
    fn a_table_that_was_cut_off_is_kept_as_far_as_it_goes() {
        let log = network_test(2) + "1090.713s: job.exception type=cancel severity=0\n";
        let outputs = gpcnet(&log).unwrap();
        let warning = "line 13: the output ends here, cut off or not run to its end: expected RR Two-sided BW, \
                       RR Put BW, RR Two-sided BW+Sync, Nat Two-sided BW, Multiple Allreduce, Multiple Alltoall too";
        assert_eq!(outputs[0].warnings(), [warning]);
        let file = outputs[0].file().unwrap();
        assert!(file.interrupted && file.notes.contains(&warning.to_owned()));
        assert_eq!(file.runs[0].tests.len(), 2);

        let text = load_test(false);
        let loaded = text.find("Network Tests running").unwrap();
        let outputs = gpcnet(&text[..loaded]).unwrap();
        let told = &outputs[0].warnings()[0];
        assert!(told.ends_with("expected RR Two-sided Lat under load, RR Two-sided BW+Sync under load, Multiple Allreduce under load too"), "{told}");
        assert!(outputs[0].file().unwrap().interrupted);
    }

    #[test]
    fn an_output_that_lost_its_header_is_told() {
        let log = network_test(8).lines().skip(9).collect::<Vec<_>>().join("\n") + "\n" + &network_test(8);
        let outputs = gpcnet(&log).unwrap();
        let told = "line 2: figures from here to line 18 are left out: expected a header above";
        assert_eq!((outputs.len(), outputs[0].warnings()), (1, &[told.to_owned()][..]));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_left_out_by_name() {
        let text = network_test(8);
        for (from, to, expected) in [
            ("         10.0 |", "         10.0", "line 11: RR Two-sided Lat (8 B) is left out: invalid figure '10.0"),
            ("         20.0 |         usec |", "   20", "is left out: cut short: expected a figure under 99%"),
            ("10.0", "-nan", "is left out: invalid figure '-nan' under Avg: expected a number like 12.3"),
            ("usec", "msec", "is left out: invalid unit 'msec': expected usec"),
            ("RR Two-sided Lat", "RR Two-sided Mat", "line 11: invalid test 'RR Two-sided Mat (8 B)'"),
            ("Isolated Network Tests", "x", "line 11: RR Two-sided Lat (8 B) is left out: expected the title"),
            ("99%", "98%", "is left out: expected a line with Name and Avg above it"),
        ] {
            let log = text.replacen(from, to, 1);
            let outputs = gpcnet(&log).unwrap();
            let told = outputs[0].warnings();
            assert!(told.iter().any(|told| told.contains(expected)), "{expected}: {told:?}");
            if let Ok(file) = outputs[0].file() {
                assert_eq!(printed(&file), printed(&whole(&text))[1..], "the others are as they were");
            }
        }
        let noise = format!("{}{}", network_test(1), "| RR Two-sided BW (8 B) | x | 1.0 | usec |\n".repeat(100));
        assert_eq!(gpcnet(&noise).unwrap()[0].warnings().len(), MOST_WARNINGS + 2, "and that it is cut off");
    }

    #[test]
    fn what_is_no_gpcnet_output_is_refused_with_a_reason() {
        let text = load_test(false);
        let error = |text: &str| gpcnet(text).and_then(|outputs| outputs[0].file()).unwrap_err();
        assert_eq!(error("hello\necho Network Tests v\n'Network Tests v1.3'"), ImportError::NoHeader);
        assert_eq!(error(&text.replace("MPI ranks", "ranks")), ImportError::NoSize { line: 1 });
        assert_eq!(error(&text.replace("10 nodes)", "200001 nodes)")), ImportError::NoSize { line: 1 });
        assert_eq!(error("0: NetworkLoad Tests v1.3\n"), ImportError::NoFigures { line: 1 });
        let twice = network_test(8).replacen("      RR Get Lat (8 B)", "RR Two-sided Lat (8 B)", 1);
        let row = "RR Two-sided Lat (8 B)".to_owned();
        assert_eq!(error(&twice), ImportError::Mixed { line: 13, row, first: 11 });
        assert_eq!(error(&"Network Tests v1\n".repeat(MOST_OUTPUTS + 1)), ImportError::TooMany);
        let large = network_test(8).replace("16 nodes", "200000 nodes");
        assert_eq!(gpcnet(&large.repeat(10)).unwrap().len(), 10);
        assert_eq!(error(&large.repeat(11)), ImportError::TooMany);
    }

    /// Lines that jobs leave between those of GPCNeT.
    fn other_lines() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("srun: warning: can't honor --ntasks-per-node | set to 64".to_owned()),
            Just("+ jq -r '.jobs[] | .id' | sort | uniq |".to_owned()),
            Just("| Name | Persistence-M| Bus-Id |".to_owned()),
            Just("+-----------------------------------------------------------------------------+".to_owned()),
            Just("[node1:71] mca_base_component_repository_open: unable to open mca_btl_openib".to_owned()),
            "[ -~]{0,60}",
            ".{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn mutated_outputs_never_panic(at in 0usize..4000, byte in any::<u8>(), cut in 0usize..6000) {
            let mut bytes = load_test(true).into_bytes();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(cut);
            read(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn garbage_never_panics(lines in prop::collection::vec(piece(), 0..40)) {
            read(&lines.concat());
        }

        #[test]
        fn lines_between_change_no_figure(
            lines in prop::collection::vec((0usize..200, other_lines()), 0..12),
            text in prop_oneof![Just(load_test(false)), Just(load_test(true)), Just(network_test(8))],
        ) {
            let mut log: Vec<&str> = text.lines().collect();
            for (at, line) in &lines {
                log.insert(at % (log.len() + 1), line);
            }
            prop_assert_eq!(printed(&gpcnet(&log.join("\n")).unwrap()[0].file().unwrap()), printed(&whole(&text)));
        }

        #[test]
        fn a_cut_output_has_no_wrong_figure_and_says_what_it_lacks(
            cut in 0usize..8000,
            text in prop_oneof![Just(load_test(false)), Just(load_test(true)), Just(network_test(8))],
        ) {
            let all = printed(&whole(&text));
            let cut = &text[..cut % text.len()];
            let Ok(outputs) = gpcnet(cut) else { return Ok(()) };
            if let Ok(file) = outputs[0].file() {
                let kept = printed(&file);
                prop_assert_eq!(&kept[..], &all[..kept.len()]);
                prop_assert_eq!(file.interrupted, kept.len() < all.len());
                prop_assert_eq!(outputs[0].warnings().is_empty(), kept.len() == all.len());
            }
        }
    }

    /// Pieces of outputs, in any order.
    fn piece() -> impl Strategy<Value = String> {
        let lines: Vec<String> = (load_test(true) + &network_test(8)).lines().map(|line| format!("{line}\n")).collect();
        prop_oneof![prop::sample::select(lines), ".{0,30}", "[|+ \\-0-9.\n]{0,30}"]
    }

    /// Whatever it is, what is made of it can be written and read again, and what is said of it is one line.
    fn read(log: &str) {
        for output in gpcnet(log).into_iter().flatten() {
            assert!(output.warnings().iter().all(|warning| !warning.contains('\n')));
            if let Ok(file) = output.file() {
                crate::result::parse(&serde_json::to_vec(&file).unwrap(), "x.json").unwrap();
            }
        }
    }
}
