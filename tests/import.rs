//! `tailback import gpcnet`: logs as jobs leave them.

use crate::common::{Folder, assert_schema, refused, succeed};

/// A job script, module loads and tables of other programs; a network test and two load tests under `srun -l`, the last of
/// them cut off in the middle of a figure.
const LOG: &str = include_str!("data/gpcnet.log");

#[test]
fn every_output_of_a_log_becomes_a_result() {
    let folder = Folder::new();
    let log = folder.write("job.log", LOG);
    let told = succeed(&format!("import gpcnet {log}"));
    let wrote = |number: usize, what: &str| format!("Wrote {log}-{number}.json: {what}, 640 ranks on 20 nodes\n");
    let expected = [wrote(1, "network test, 8 rows"), wrote(2, "load test, 6 rows"), wrote(3, "load test, 4 rows")];
    assert_eq!(told.stdout, expected.concat());
    let lost = "line 125: RR Two-sided BW+Sync (131072 B) is left out: cut short: expected a figure under 99%";
    let cut =
        "line 123: the output ends here, cut off or not run to its end: expected Multiple Allreduce under load too";
    let warning = |what: &str| format!("tailback: warning: {log}: {what}\n");
    assert_eq!(told.stderr, warning(cut) + &warning(lost));
    let files = [1, 2, 3].map(|number| format!("job.log-{number}.json"));
    for (name, (command, cut_off)) in files.iter().zip([("network", false), ("run", false), ("run", true)]) {
        let file = folder.json(name);
        assert_schema(name, &file);
        assert_eq!((file["command"].as_str(), file["interrupted"].as_bool()), (Some(command), Some(cut_off)), "{name}");
    }
    let notes = folder.json(&files[2])["notes"].to_string();
    assert!([lost, cut, "output 3 of 3 in the log, from line 96"].iter().all(|text| notes.contains(text)), "{notes}");

    let paths: Vec<String> = files.iter().map(|name| folder.path(name)).collect();
    let shown = succeed(&format!("show {}", paths.join(" "))).stdout;
    for text in ["712.6", "31.5", "21.3", "Note: line 125: RR Two-sided BW+Sync"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("398.8"), "a row without its second figure is none: {shown}");
    succeed(&format!("report {} --published --out {}", paths.join(" "), folder.path("report.html")));
    for text in ["Google GKE h3-standard-88", "GPCNET: issue 8", "4057.7"] {
        assert!(folder.text("report.html").contains(text), "{text}");
    }
    let summary = succeed(&format!("show {} --format summary", paths[1])).stdout;
    assert!(
        summary.contains("Imported from GPCNeT 1.3: 640 ranks on 20 nodes\n") && !summary.contains("seed"),
        "{summary}"
    );
    // GPCNeT's own factors, as it printed them: of rounded figures, and so are ours.
    let factors = succeed(&format!("show {} --format gpcnet", paths[1])).stdout;
    let key = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.ends_with("X |"))
            .map(|line| line.trim_start_matches("0: ").to_owned())
            .collect()
    };
    assert_eq!(key(&factors), key(LOG));
}

#[test]
fn one_output_is_chosen_by_its_number() {
    let folder = Folder::new();
    let (log, one) = (folder.write("job.log", LOG), folder.path("one.json"));
    assert_eq!(succeed(&format!("import gpcnet {log} --nth 2 --out {one}")).stderr, "", "the third is not looked at");
    assert_eq!(folder.json("one.json")["command"], "run");
    succeed(&format!("import gpcnet {log} --nth 1"));
    assert_eq!(folder.json("job.log-1.json")["command"], "network");
    succeed(&format!("import gpcnet {log} --out {one}"));
    assert!(folder.has("one-1.json") && folder.has("one-3.json"));
    let printed = succeed(&format!("import gpcnet {log} --nth 2 --out -")).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap()["command"], "run", "and nothing else");
    assert!(succeed("import -h").stdout.contains("Write the result file here\n"), "and not where others write theirs");
    refused(&[
        (&format!("import gpcnet {log} --nth 4"), "invalid --nth 4: expected 1 to 3, the number of outputs in"),
        (&format!("import gpcnet {log} --nth 0"), "invalid value '0' for '--nth <N>'"),
        (&format!("import gpcnet {log} --out -"), "has 3 outputs, and stdout takes one result: choose it with --nth"),
        (&format!("import hpcc {log} --nth 1"), "--nth is for logs of GPCNeT"),
    ]);
}

#[test]
fn an_output_without_figures_is_named() {
    let folder = Folder::new();
    let died = "NetworkLoad Tests v1.3\n  Test with 640 MPI ranks (20 nodes)\nsrun: error: nid0003: task 7: Killed\n";
    let log = folder.write("died.log", died);
    refused(&[(&format!("import gpcnet {log}"), "died.log: line 1: no figures below it: expected rows like '| RR")]);
    let both = folder.write("both.log", died.to_owned() + LOG);
    let told = succeed(&format!("import gpcnet {both}"));
    assert!(told.stderr.contains("both.log: output 1 left out: line 1: no figures below it"), "{}", told.stderr);
    assert_eq!(folder.files(), 2 + 3, "{}", told.stdout);
    assert!(folder.has("both.log-4.json"), "numbers are those of the log");
    let none = folder.write("none.log", "| a | b |\n");
    refused(&[(&format!("import gpcnet {none}"), "none.log: no GPCNeT output: expected a line 'Network Tests v1.3'")]);
}
