//! Jobs on the hosts of a lab: what their results know of it.

use super::bench::{Bench, for_each_user};

/// The result of a small network test of two ranks on the hosts of a lab; `before` is put before rank 0's command.
fn network_test(bench: &Bench, before: &[&str]) -> serde_json::Value {
    let outputs = bench.network_test(2, "10.77.0.1:4777", before, &["--data-interface", "d0"]);
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&outputs[0].stdout).expect("rank 0 prints the result file")
}

fn notes_about<'r>(result: &'r serde_json::Value, what: &str) -> Vec<&'r str> {
    let notes = result["notes"].as_array().expect("a list").iter().filter_map(|note| note.as_str());
    notes.filter(|note| note.contains(what)).collect()
}

#[test]
fn a_job_on_its_hosts_has_the_lab_in_its_result() {
    for_each_user("inside", |bench| {
        bench.ok(&["up", "--hosts", "3", "--leaves", "1", "--link-rate", "150mbit"]);
        let result = network_test(bench, &[]);
        let lab = &result["lab"];
        assert_eq!(lab["spec"]["name"], bench.name.as_str());
        assert_eq!(lab["spec"]["link_rate_bits_per_second"], 150_000_000);
        assert_eq!(lab["hosts"].as_array().map(Vec::len), Some(3));
        assert!(bench.ok(&["status"]).contains(lab["mode"].as_str().expect("is text")));
        let status: serde_json::Value = serde_json::from_str(&bench.ok(&["status", "--json"])).expect("it is JSON");
        let mut labs = status.as_array().expect("a list").iter();
        let known = labs.find(|of| of["lab"]["name"] == bench.name.as_str()).expect("it is up");
        assert_eq!((known["hosts"].as_array().map(Vec::len), &known["mode"]), (Some(3), &lab["mode"]));
        let ports = lab["phases"][0]["ports"].as_array().unwrap_or_else(|| panic!("no counters: {}", result["notes"]));
        let sent = |host: &str| ports.iter().find(|port| port["from"] == host).and_then(|port| port["bytes"].as_u64());
        let (busy, idle) = (sent("h1").expect("has a port"), sent("h2").expect("has a port"));
        assert!(busy > 2_000 && busy > 10 * idle, "h1 sent {busy} bytes, h2 {idle}");
        assert_eq!(notes_about(&result, "counters"), [""; 0]);

        // Ranks of one host, started by this program, are in the lab all the same.
        let mut command =
            bench.command(&["exec", "h2", "--", bench.program.to_str().expect("is text"), "run", "-n", "4"]);
        command.args(["--no-lab", "--canaries", "lat", "--placements", "1", "--blocks", "1", "--budget", "200ms"]);
        let output = command.args(["--format", "json"]).output().expect("starts");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("prints the result file");
        assert_eq!(result["lab"]["spec"]["name"], bench.name.as_str());
        let phases = result["lab"]["phases"].as_array().expect("a list").iter().map(|phase| phase["phase"].as_str());
        assert_eq!(phases.flatten().count(), 2, "alone and under load: {:?}", result["lab"]["phases"]);
    });
}

#[test]
fn what_cannot_be_known_of_the_lab_is_said() {
    for_each_user("unseen", |bench| {
        bench.ok(&["up", "--hosts", "2", "--leaves", "1"]);
        // Other namespaces cannot be entered without this.
        let result = network_test(bench, &["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
        assert_eq!(result["lab"]["hosts"].as_array().map(Vec::len), Some(2));
        assert_eq!(result["lab"]["phases"].as_array().map(Vec::len), Some(0));
        let notes = notes_about(&result, "counters of the lab's ports could not be read by rank 0");
        assert!(matches!(notes[..], [note] if note.contains("not permitted")), "{}", result["notes"]);

        let result = network_test(bench, &["env", "TAILBACK_LAB_DIR=/nonexistent"]);
        assert!(result["lab"].is_null());
        assert_eq!(notes_about(&result, "inside a lab that is not recorded").len(), 1, "{}", result["notes"]);
    });
}
