//! Files that lie: about their size, about the memory they take, and about what was measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Job, Outcome, run, succeed};
use serde_json::{Value, json};
use tailback::analysis::compare::{compare, render, sides};
use tailback::output::Format;
use tailback::report::Report;
use tailback::result::{self, ResultFile};
use tailback::stats::Statistic;

/// A line of the shell for the built binary, `{}`, in a process that has so much address space.
fn within(mib: u64, line: &str) -> Outcome {
    let line = format!("ulimit -v {}; exec {}", mib << 10, line.replace("{}", env!("CARGO_BIN_EXE_tailback")));
    let mut command = Command::new("sh");
    command.args(["-c", &line]);
    Job::start(command).end()
}

/// What any command takes, with its libraries and its stack.
const PLAIN_MIB: u64 = 256;

fn measured(folder: &Path, line: &str) -> PathBuf {
    let out = folder.join(format!("{}.json", line.split(' ').next().unwrap()));
    succeed(&format!("{line} --transport sim --machine small -q --out {}", out.display()));
    out
}

/// A load test of one canary and one congestor.
const RUN: &str = "run -n 8 --budget 200us --placements 3 --canaries lat --congestors incast";

#[test]
fn a_file_of_a_few_kilobytes_takes_no_gigabytes() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let folder = tempfile::tempdir().unwrap();
    let path = measured(folder.path(), RUN);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(within(PLAIN_MIB, &format!("{{}} show {}", path.display())).code(), Some(0), "the file as it is");
    let mut file: Value = serde_json::from_str(&text).unwrap();
    // Uncompressed and of counters of which there are 1.5 GiB, by its header.
    let words = [0x1c84_9313, 0x6000_0000, 0, 3u32].map(u32::to_be_bytes).concat();
    let plain = [words, [1, 1000, 1f64.to_bits()].map(u64::to_be_bytes).concat()].concat();
    file["runs"][0]["tests"][0]["histogram"] = STANDARD.encode(plain).into();
    std::fs::write(&path, file.to_string()).unwrap();
    let said = within(PLAIN_MIB, &format!("{{}} show {}", path.display())).refusal().to_owned();
    assert!(said.contains("damaged histogram"), "{said}");
}

#[test]
fn a_file_takes_a_few_times_its_size() {
    const MIB: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.json");
    for (item, expected) in [
        (r#""","#, "more values than a result of this size has"),
        (r#""aaaa","#, "missing field"),
        ("[0.25,0.125],", "invalid type"),
        (r#"{"a":[[],{}]},"#, "more values than a result of this size has"),
    ] {
        let items = item.repeat((MIB << 20) / item.len());
        std::fs::write(&path, format!(r#"{{"schema_version":2,"notes":[{items}""]}}"#)).unwrap();
        let said = within(PLAIN_MIB + 8 * MIB as u64, &format!("{{}} show {}", path.display())).refusal().to_owned();
        assert!(said.contains(expected), "{item}: {said}");
    }
}

#[test]
fn every_reader_has_a_limit_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    let name = path.display();
    let simulated = "run --transport sim --machine small -n 8 --dry-run";
    for (line, mib, kind) in [
        (format!("show {name}"), 256, "a result file"),
        (format!("compare {name} {name}"), 256, "a result file"),
        (format!("report {name}"), 256, "a result file"),
        (format!("maxrate --predict {name} --halo 6x16KiB"), 256, "a result file"),
        (format!("contention --shape in-2 --predict-only --model {name}"), 256, "a result file"),
        (format!("{simulated} --plan {name}"), 1, "a plan file"),
        (format!("{simulated} --groups {name}"), 16, "a groups file"),
        (format!("contention --predict-only --graph {name}"), 16, "a graph file"),
        (format!("import gpcnet {name}"), 64, "a log"),
        (format!("import hpcc {name}"), 64, "a log"),
    ] {
        std::fs::File::create(&path).unwrap().set_len((mib << 20) + 1).unwrap();
        let said = run(&line).refusal().to_owned();
        assert!(said.ends_with(&format!("it is larger than {mib} MiB, the limit of {kind}")), "{line}: {said}");
    }
    for line in ["contention --predict-only --graph", "import hpcc"] {
        let said = within(PLAIN_MIB + 256, &format!("{{}} {line} /dev/zero")).refusal().to_owned();
        assert!(said.contains("it is larger than"), "{line}: {said}");
    }
}

/// Paths to all numbers, one for each field: what stands in a list is like what stands beside it.
fn numbers(value: &Value, path: &str, fields: &mut BTreeSet<String>, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => {
            let field: String =
                path.split('/').map(|step| if step.parse::<u32>().is_ok() { "0" } else { step }).collect();
            if fields.insert(field) {
                found.push(path.to_owned());
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| numbers(item, &format!("{path}/{at}"), fields, found));
        }
        Value::Object(items) => {
            items
                .iter()
                .for_each(|(key, item)| numbers(item, &format!("{path}/{}", key.replace('/', "~1")), fields, found));
        }
        _ => {}
    }
}

/// Everything that shows two results of one plan, each by itself and one beside the other.
fn views(one: &ResultFile, other: &ResultFile) -> String {
    let formats =
        if one.studies().is_empty() { &[Format::Table, Format::Gpcnet, Format::Csv][..] } else { &[Format::Table] };
    let files = vec![("a.json".into(), one.clone()), ("b.json".into(), other.clone())];
    let mut shown: Vec<String> =
        formats.iter().flat_map(|format| [one, other].map(|result| format.render(result, true))).collect();
    shown.push(render(&compare(&sides(&files), &[Statistic::P99])));
    shown.push(Report::new(&files, false).html());
    shown.join("\n")
}

fn is_finite(shown: &str) -> bool {
    !shown.split(|mark: char| !mark.is_alphanumeric()).any(|word| ["NaN", "nan", "inf", "Infinity"].contains(&word))
}

#[test]
fn a_number_that_cannot_be_is_refused_or_every_view_is_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (mut seen, mut wrong) = (0, Vec::new());
    for line in [
        RUN,
        "maxrate -n 4 --ranks-per-node 2 --largest 1024 --repetitions 2 --halo 2x64x2/1",
        "contention --shape in-2 -n 6 --ranks-per-node 2 --repetitions 3",
        "beff -n 4 --rings 2 --pairs 2 --repetitions 3",
    ] {
        let path = measured(folder.path(), line);
        let whole: Value = common::read_json(&path);
        let as_it_is = result::read(&path).unwrap();
        assert!(is_finite(&views(&as_it_is, &as_it_is)), "{line}: as it is");
        let mut found = Vec::new();
        numbers(&whole, "", &mut BTreeSet::new(), &mut found);
        for place in found {
            let mut accepted = Vec::new();
            for bad in [json!(1e308), json!(-1), json!("NaN"), json!(1_000_000_000_000_000u64), json!(1e-30)] {
                let mut file = whole.clone();
                *file.pointer_mut(&place).unwrap() = bad.clone();
                let told = result::parse(file.to_string().as_bytes(), "x.json");
                assert!(bad != json!(1e308) || told.is_err(), "{line}: {place} may be {bad}");
                accepted.extend(told);
                seen += 1;
            }
            // Two at a time, since comparisons and reports take two.
            for pair in accepted.chunks(2) {
                let shown = is_finite(&views(&pair[0], pair.last().unwrap_or(&pair[0])));
                wrong.extend((!shown).then(|| format!("{line}: {place}")));
            }
        }
    }
    assert!(seen > 500, "{seen} changes");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
