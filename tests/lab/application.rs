//! A program in the lab: it is given hosts of the lab that measure, reaches them as launchers do, and its impact has a
//! control.

use super::bench::as_ordinary_user;

/// A program that calls each of its hosts by the lab's stand-in for ssh and says which answered.
const PROGRAM: &str =
    "for host in $(echo {hosts} | tr , ' '); do $TAILBACK_LAB_SSH $host hostname; done; echo took {n}.5";

#[test]
fn a_program_runs_on_the_victims_of_every_placement() {
    as_ordinary_user("app", |bench| {
        let mut words = vec!["run", "--hosts", "8", "--leaves", "2", "--placements", "3", "--seed", "5", "--quiet"];
        words.extend(["--congestors", "incast", "--warm-up", "0", "--format", "json"]);
        words.extend(["--app", PROGRAM, "--figure", "took ([0-9.]+)", "--figure-unit", "s"]);
        let result: serde_json::Value = serde_json::from_str(&bench.ok(&words)).expect("the result file");
        let run = &result["runs"][0];
        for test in run["tests"].as_array().expect("tests") {
            assert_eq!(
                (&test["kernel"], &test["summary"]["mean"]),
                (&"app".into(), &2.5.into()),
                "two hosts a placement"
            );
        }
        let spread = &run["impacts"][0]["headline"];
        assert_eq!(
            (&spread["factor"], &spread["placements"], &spread["statistic"]),
            (&1.0.into(), &3.into(), &"avg".into())
        );
        assert_eq!(result["lab"]["control"]["kind"], "unshaped");
        assert_eq!(result["lab"]["control"]["verdicts"][0]["cause"], "no-impact");
        let bytes = |phase: &str| -> u64 {
            let phases = result["lab"]["phases"].as_array().expect("phases");
            let of = phases.iter().filter(|of| of["phase"].as_str().is_some_and(|name| name.starts_with(phase)));
            of.flat_map(|of| of["ports"].as_array().expect("ports")).filter_map(|port| port["bytes"].as_u64()).sum()
        };
        assert!(bytes("loaded") > 10 * bytes("isolated"), "{} and {}", bytes("loaded"), bytes("isolated"));
        bench.assert_nothing_left();
    });
}

#[test]
fn a_program_that_cannot_reach_its_hosts_says_so() {
    as_ordinary_user("app-fails", |bench| {
        let program = "$TAILBACK_LAB_SSH no-such-host true {n}";
        let mut words = vec!["run", "--hosts", "6", "--leaves", "2", "--placements", "1", "--quiet"];
        words.extend(["--app", program, "--app-name", "lost"]);
        let output = bench.run(&words);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("the application lost ended with exit code 2"), "{message}");
        assert!(message.contains("  | tailback: error:"), "{message}");
        bench.assert_nothing_left();
    });
}
