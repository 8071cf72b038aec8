//! The environment's combinations, each with what it must lead to.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use super::*;

const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn config(pairs: &[(&str, &str)]) -> Result<Option<JoinConfig>> {
    let map: HashMap<&str, &str> = pairs.iter().copied().collect();
    Environment(&|name| Ok(map.get(name).map(|v| (*v).to_owned()))).config()
}

fn error(pairs: &[(&str, &str)]) -> String {
    match config(pairs) {
        Err(e) => e.to_string(),
        Ok(found) => panic!("expected an error, got a job: {}", found.is_some()),
    }
}

const OWN: [(&str, &str); 4] =
    [("TAILBACK_RANK", "2"), ("TAILBACK_SIZE", "4"), ("TAILBACK_ROOT", "127.0.0.1:4000"), ("TAILBACK_SECRET", HEX)];

const SLURM: [(&str, &str); 6] = [
    ("SLURM_PROCID", "1"),
    ("SLURM_NTASKS", "4"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_JOB_ID", "1234"),
    ("SLURM_STEP_NODELIST", "127.0.0.[1-3]"),
    ("TAILBACK_SECRET", HEX),
];

fn without<'a>(pairs: &[(&'a str, &'a str)], name: &str) -> Vec<(&'a str, &'a str)> {
    pairs.iter().copied().filter(|(n, _)| *n != name).collect()
}

fn with<'a>(pairs: &[(&'a str, &'a str)], name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut pairs = without(pairs, name);
    pairs.push((name, value));
    pairs
}

#[test]
fn nothing_set_is_no_job() {
    assert!(config(&[]).unwrap().is_none());
    assert!(config(&[("TAILBACK_SECRET", HEX), ("TAILBACK_RANK", "")]).unwrap().is_none());
}

#[test]
fn own_variables() {
    let c = config(&with(&OWN, "TAILBACK_HOST", "nodeB")).unwrap().unwrap();
    assert_eq!((c.rank, c.size, c.root.to_string().as_str()), (Rank(2), 4, "127.0.0.1:4000"));
    assert_eq!((c.host.as_str(), c.launcher.as_str(), c.listen), ("nodeB", "environment", None));
    assert_eq!(c.secret, Secret::from_hex(HEX).unwrap());
    let named = with(&with(&OWN, "TAILBACK_ROOT", "localhost:4000"), "TAILBACK_RANK", "0");
    assert_eq!(config(&named).unwrap().unwrap().listen, Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
}

#[test]
fn each_mistake_names_its_variable() {
    for name in ["TAILBACK_RANK", "TAILBACK_SIZE", "TAILBACK_ROOT"] {
        assert!(error(&without(&OWN, name)).starts_with(&format!("{name} is not set")), "{name}");
    }
    assert!(error(&without(&OWN, "TAILBACK_SECRET")).contains("export TAILBACK_SECRET=$(tailback secret)"));
    assert!(error(&with(&OWN, "TAILBACK_SECRET", "12")).starts_with("TAILBACK_SECRET: a job secret has 64"));
    assert!(error(&with(&OWN, "TAILBACK_RANK", "4")).contains("rank 4 is out of range for a job of 4 ranks"));
    assert!(error(&with(&OWN, "TAILBACK_RANK", "-1")).contains("TAILBACK_RANK=-1"));
    assert!(error(&with(&OWN, "TAILBACK_ROOT", "127.0.0.1")).contains("TAILBACK_ROOT"));
    assert!(error(&with(&OWN, "TAILBACK_ROOT", "127.0.0.1:0")).contains("port 0"));
    assert!(error(&with(&OWN, "TAILBACK_SECRET_FILE", "/x")).contains("both set"));
    assert!(error(&with(&OWN, "TAILBACK_BOOTSTRAP_ADDR", "eth0")).contains("not an IP address"));
    let unknown = error(&with(&OWN, "TAILBACK_BOOTSTRAP_IF", "nosuch0"));
    assert!(unknown.contains("no such interface") && unknown.contains("lo"), "{unknown}");
}

#[test]
fn interface_and_address_choose_where_to_listen() {
    let c = config(&with(&OWN, "TAILBACK_BOOTSTRAP_IF", "lo")).unwrap().unwrap();
    assert_eq!(c.listen, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let c = config(&with(&OWN, "TAILBACK_BOOTSTRAP_ADDR", "127.0.0.9")).unwrap().unwrap();
    assert_eq!(c.listen, Some("127.0.0.9".parse().unwrap()));
}

#[test]
fn slurm_steps_are_jobs() {
    let c = config(&SLURM).unwrap().unwrap();
    assert_eq!((c.rank, c.size, c.launcher.as_str()), (Rank(1), 4, "Slurm"));
    assert_eq!(c.root.ip().to_string(), "127.0.0.1");
    assert_eq!(c.root.port(), slurm_port(1234, 0));
    assert!(error(&without(&SLURM, "TAILBACK_SECRET")).contains("tailback secret"));
    assert!(error(&without(&SLURM, "SLURM_STEP_NODELIST")).contains("SLURM_JOB_NODELIST"));
    assert!(error(&without(&SLURM, "SLURM_NTASKS")).contains("SLURM_NTASKS"));
    assert!(error(&without(&SLURM, "SLURM_JOB_ID")).contains("SLURM_JOB_ID"));
    assert!(error(&with(&SLURM, "SLURM_STEP_NODELIST", "a[")).contains("a["));
    let single = without(&with(&SLURM, "SLURM_NTASKS", "1"), "TAILBACK_SECRET");
    assert_eq!(config(&with(&single, "SLURM_PROCID", "0")).unwrap().unwrap().size, 1);
}

#[test]
fn slurm_allocations_without_a_step_are_none() {
    assert!(config(&[("SLURM_NTASKS", "1"), ("SLURM_JOB_ID", "7")]).unwrap().is_none());
    assert!(config(&without(&SLURM, "SLURM_STEP_ID")).unwrap().is_none(), "batch script");
    assert!(config(&with(&SLURM, "SLURM_STEP_ID", "4294967290")).unwrap().is_none(), "interactive step");
}

#[test]
fn own_variables_win_over_slurm() {
    let both: Vec<_> = OWN.iter().chain(&SLURM[..5]).copied().collect();
    assert_eq!(config(&both).unwrap().unwrap().rank, Rank(2));
}

#[test]
fn slurm_ports_differ_between_neighbours() {
    let ports: std::collections::HashSet<u16> =
        (1000..1010).flat_map(|job| (0..50).map(move |step| slurm_port(job, step))).collect();
    assert_eq!(ports.len(), 500);
    assert!(ports.iter().all(|p| SLURM_PORTS.contains(&u64::from(*p))));
}

#[test]
fn a_secret_file_must_be_private() {
    let path = std::env::temp_dir().join(format!("tailback-secret-{}", std::process::id()));
    std::fs::write(&path, format!("{HEX}\n")).unwrap();
    let pairs = without(&OWN, "TAILBACK_SECRET");
    let name = path.to_str().unwrap();
    let pairs = with(&pairs, "TAILBACK_SECRET_FILE", name);
    let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o644, 0o640, 0o620, 0o604] {
        set(mode);
        let refused = error(&pairs);
        assert!(refused.contains(&format!("mode {mode:o}")) && refused.contains("chmod 600"), "{refused}");
    }
    set(0o600);
    assert_eq!(config(&pairs).unwrap().unwrap().secret, Secret::from_hex(HEX).unwrap());
    std::fs::write(&path, format!("{HEX}{}", " ".repeat(1 << 20))).unwrap();
    let refused = error(&pairs);
    assert!(refused.ends_with("it is larger than 4096 bytes, the limit of a secret file"), "{refused}");
    std::fs::remove_file(&path).unwrap();
}
