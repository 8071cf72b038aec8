//! `tailback hpcc`, end to end: every test over tcp with its checks, files that fit the schema, comparison, report, and
//! results of the original beside ours.

use serde_json::Value;

use crate::common::{Folder, refused, result_of, succeed};

const SMALL: &str = "--no-lab --order 256 --block 32";
/// Written by HPC Challenge 1.5.0 of Debian 12 with Open MPI 4.1.4 on two ranks: the end of its hpccoutf.txt.
const ORIGINAL: &str = include_str!("data/hpccoutf.txt");

fn measured(line: &str) -> (Value, String) {
    result_of(&format!("hpcc {line}"))
}

#[test]
fn all_tests_run_and_are_checked() {
    let (file, shown) = measured(&format!("{SMALL} -n 2"));
    let hpcc = &file["models"]["hpcc"];
    for name in ["HPL_Tflops", "PTRANS_GBs", "MPIRandomAccess_GUPs", "MPIFFT_Gflops", "SingleSTREAM_Triad"]
        .into_iter()
        .chain(["StarDGEMM_Gflops", "StarFFT_Gflops", "RandomlyOrderedRingBandwidth_GBytes"])
    {
        assert!(hpcc["figures"][name].as_f64().unwrap() > 0.0 && shown.contains(name), "{name}\n{shown}");
    }
    let checks = hpcc["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 15);
    assert!(checks.iter().all(|check| check["value"].as_f64().unwrap() <= check["limit"].as_f64().unwrap()));
    assert_eq!(shown.matches("passed").count(), 15);
    assert!(shown.contains("random rings / HPL") && shown.contains("byte/kflop"), "{shown}");
    assert_eq!(hpcc["figures"]["HPL_N"], 256.0);
    let folder = Folder::new();
    let path = folder.write("hpcc.json", file.to_string());
    assert_eq!(succeed(&format!("show {path}")).stdout, shown);
    assert!(succeed(&format!("show --format csv {path}")).stdout.contains(",HPL_Tflops,Tflop/s,"));
    stands_beside_the_originals(&folder, &path);
}

#[test]
fn odd_numbers_of_ranks_and_other_grids_pass_too() {
    for line in ["-n 3", "-n 4 --grid 4x1", "-n 1", "-n 6 --grid 2x3"] {
        let (file, shown) = measured(&format!("{SMALL} {line} --tests hpl,ptrans,random-access,fft"));
        assert!(!shown.contains("FAILED"), "{line}\n{shown}");
        assert_eq!(file["models"]["hpcc"]["checks"].as_array().unwrap().len(), 11);
    }
}

#[test]
fn a_dry_run_tells_the_time_of_every_test_and_keeps_nothing() {
    let told = succeed(&format!("hpcc {SMALL} -n 2 --threads 2 --dry-run")).stdout;
    for text in
        ["HPC Challenge on 2 ranks on 2 nodes", "random-access", "Expected duration: about ", "Too small to report"]
    {
        assert!(told.contains(text), "{text}\n{told}");
    }
    assert!(!told.contains("HPL_Tflops"), "{told}");
    refused(&[("hpcc --dry-run --out x.json", "--dry-run makes none")]);
}

#[test]
fn runs_are_labelled_and_small_ones_are_not_to_be_published() {
    let (file, shown) = measured(&format!("{SMALL} -n 2 --threads 2 --tests stream,dgemm,hpl"));
    let hpcc = &file["models"]["hpcc"];
    assert!(["base", "optimised"].contains(&hpcc["run"].as_str().unwrap()));
    assert!(hpcc["data"]["matrix_of_memory"].as_f64().unwrap() < 0.25);
    assert!(shown.contains(" run, 2 threads per rank: ") && shown.contains("Too small to report"), "{shown}");
}

#[test]
fn hpl_of_elsewhere_gives_a_balance() {
    let (file, shown) = measured(&format!("{SMALL} -n 2 --tests beff --hpl-gflops 100"));
    let ring = file["models"]["hpcc"]["figures"]["RandomlyOrderedRingBandwidth_GBytes"].as_f64().unwrap();
    let line = shown.lines().find(|line| line.contains("random rings / HPL")).unwrap();
    let found: f64 = line.split_whitespace().rev().nth(1).unwrap().parse().unwrap();
    assert!((found / (1e3 * ring / 50.0) - 1.0).abs() < 0.01, "{line} for {ring}");
}

#[test]
fn mistakes_are_one_line() {
    refused(&[
        ("hpcc --no-lab -n 3 --grid 2x2 -q", "--grid 2x2 has 4 ranks, and the job 3"),
        ("hpcc --no-lab -n 2 --order 9000000 -q", "give a smaller --memory or --order"),
        ("hpcc --grid two", "invalid grid 'two': expected rows x columns"),
        ("hpcc --memory 90%", "expected above 0, up to 60%"),
        ("hpcc --memory 10% --order 100", "cannot be used with"),
        ("hpcc --tests linpack", "invalid value 'linpack'"),
        ("hpcc --hpl-gflops 0", "a number above 0"),
        ("hpcc --no-lab -n 1 --tests beff -q", "at least 2 ranks"),
        ("hpcc --transport sim --machine small -q", "hpcc computes, which takes no virtual time"),
    ]);
}

fn stands_beside_the_originals(folder: &Folder, ours: &str) {
    let (log, theirs) = (folder.write("hpccoutf.txt", ORIGINAL), folder.path("original.json"));
    let told = succeed(&format!("import hpcc {log} --out {theirs}")).stdout;
    assert!(told.contains("figures"), "{told}");
    let compared = succeed(&format!("compare {ours} {theirs}")).stdout;
    assert!(compared.contains("HPL, all ranks (HPL_Tflops)") && compared.contains("HPL_N"), "{compared}");
    let shown = succeed(&format!("show {theirs}")).stdout;
    assert!(shown.contains("SingleDGEMM_Gflops") && shown.contains("byte/kflop"), "{shown}");
    let (page, plots) = (folder.path("page.html"), folder.path("plots"));
    succeed(&format!("report {ours} {theirs} --published --out {page} --plots {plots}"));
    let html = folder.text("page.html");
    for text in ["part of the best of these systems", "byte/kflop", "IBM Colony, 256 processes", "StarSTREAM_Triad"] {
        assert!(html.contains(text), "{text}");
    }
    for name in ["hpcc-kiviat.svg", "hpcc-balance.svg", "hpcc-network.svg"] {
        assert!(folder.text(&format!("plots/{name}")).contains("<svg"), "{name}");
    }
}

#[test]
fn a_cut_output_is_refused_by_name() {
    let folder = Folder::new();
    let path = folder.write("cut.txt", &ORIGINAL[..ORIGINAL.len() / 2]);
    refused(&[(&format!("import hpcc {path}"), "cut.txt: the summary is cut short")]);
}

#[test]
fn its_patterns_are_canaries() {
    let line = "run --no-lab -n 6 --budget 200ms --placements 2 --canaries ptrans,gups,fft,panel -q --format table";
    let shown = succeed(line).stdout;
    for name in ["ptrans 128 KiB", "gups 8 KiB", "fft 16 KiB", "panel 128 KiB"] {
        assert!(shown.contains(name), "{name}\n{shown}");
    }
}
