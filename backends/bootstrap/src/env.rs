//! A job's shape from the environment: Tailback's own variables, or Slurm's.
//!
//! Nothing is guessed: variables that contradict each other or are half there are an error that names one of them, and
//! an environment that only looks like a job (a Slurm allocation's shell) is none.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use tailback_transport::{Error, Rank, Result};

use crate::config::JoinConfig;
use crate::hosts::first_of_slurm_list;
use crate::launcher_pipe::LauncherPipe;
use crate::secret::Secret;

/// The names of the variables that a rank reads and the launcher sets.
pub mod variables {
    /// This rank, from 0.
    pub const RANK: &str = "TAILBACK_RANK";
    /// How many ranks the job has.
    pub const SIZE: &str = "TAILBACK_SIZE";
    /// Where rank 0 is reached: `host:port`.
    pub const ROOT: &str = "TAILBACK_ROOT";
    /// The job secret: 64 hexadecimal digits.
    pub const SECRET: &str = "TAILBACK_SECRET";
    /// A private file that holds the job secret.
    pub const SECRET_FILE: &str = "TAILBACK_SECRET_FILE";
    /// The name of this rank's host; ranks with equal names share a node.
    pub const HOST: &str = "TAILBACK_HOST";
    /// The interface whose address the bootstrap listens on.
    pub const BOOTSTRAP_IF: &str = "TAILBACK_BOOTSTRAP_IF";
    /// The address the bootstrap listens on.
    pub const BOOTSTRAP_ADDR: &str = "TAILBACK_BOOTSTRAP_ADDR";
    /// Set to 1 by the launcher when it holds rank 0's port for it.
    pub const ROOT_RESERVED: &str = "TAILBACK_ROOT_RESERVED";
    /// Set by the launcher: the inherited pipe that closes when the launcher is gone, as `descriptor:inode`.
    pub const LAUNCHER_PIPE: &str = "TAILBACK_LAUNCHER_PIPE";
    /// How the ranks were started, for the result file.
    pub const LAUNCHER: &str = "TAILBACK_LAUNCHER";
}

use self::variables::{
    BOOTSTRAP_ADDR, BOOTSTRAP_IF, HOST, LAUNCHER, LAUNCHER_PIPE, RANK, ROOT, ROOT_RESERVED, SECRET, SECRET_FILE, SIZE,
};

/// Slurm numbers real steps from 0; batch scripts, interactive and external steps have numbers from here.
const FIRST_SPECIAL_STEP: u64 = 0xffff_fff0;
/// Ports for jobs under Slurm: below Linux's usual range for outgoing connections, which starts at 32768.
const SLURM_PORTS: std::ops::Range<u64> = 20_000..32_000;

impl JoinConfig {
    /// The job that the environment describes; `None` when it describes none.
    pub fn from_env() -> Result<Option<Self>> {
        Environment(&|name| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(_) => Err(Error::Setup(format!("{name} is not valid text"))),
        })
        .config()
    }
}

/// A way to look variables up, so that tests need not change the process's own.
struct Environment<'a>(&'a dyn Fn(&str) -> Result<Option<String>>);

/// Who and where, from either family of variables.
struct Shape {
    rank: Rank,
    size: usize,
    /// `host:port`.
    root: String,
    launcher: &'static str,
}

impl Environment<'_> {
    fn config(&self) -> Result<Option<JoinConfig>> {
        let shape = match self.own_shape()? {
            Some(shape) => Some(shape),
            None => self.slurm_shape()?,
        };
        let Some(shape) = shape else { return Ok(None) };
        if shape.size == 0 || shape.rank.index() >= shape.size {
            let text = format!("rank {} is out of range for a job of {} ranks", shape.rank, shape.size);
            return Err(Error::Setup(text));
        }
        let secret = self.secret(shape.size)?;
        // One rank meets nobody, so its root need not even resolve.
        let alone = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let root = if shape.size == 1 { alone } else { resolve(&shape.root)? };
        let mut config = JoinConfig::new(shape.rank, shape.size, root, secret);
        config.listen = self.listen(root)?;
        let literal = shape.root.parse::<SocketAddr>().is_ok();
        if config.rank.0 == 0 && config.listen.is_none() && !literal {
            // A host often knows its own name by an address that others cannot reach.
            config.listen = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).filter(|_| root.is_ipv4());
        }
        if let Some(host) = self.get(HOST)? {
            config.host = host;
        }
        config.launcher = self.get(LAUNCHER)?.unwrap_or_else(|| shape.launcher.to_owned());
        config.root_reserved = self.get(ROOT_RESERVED)?.is_some_and(|v| v == "1");
        config.launcher_pipe = self.get(LAUNCHER_PIPE)?.as_deref().and_then(LauncherPipe::inherited).map(Arc::new);
        Ok(Some(config))
    }

    /// An empty variable counts as absent: that is how shells unset one for a single command.
    fn get(&self, name: &str) -> Result<Option<String>> {
        Ok((self.0)(name)?.filter(|v| !v.is_empty()))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        let parse = |text: String| {
            text.trim().parse().map_err(|_| Error::Setup(format!("{name}={text} is not a number that fits")))
        };
        self.get(name)?.map(parse).transpose()
    }

    fn own_shape(&self) -> Result<Option<Shape>> {
        let (rank, size, root) = (self.number(RANK)?, self.number(SIZE)?, self.get(ROOT)?);
        let missing = match (rank, size, root) {
            (None, None, None) => return Ok(None),
            (Some(rank), Some(size), Some(root)) => {
                return Ok(Some(Shape { rank: Rank(rank), size, root, launcher: "environment" }));
            }
            (Some(rank), Some(1), None) => {
                return Ok(Some(Shape { rank: Rank(rank), size: 1, root: String::new(), launcher: "environment" }));
            }
            (None, _, _) => RANK,
            (_, None, _) => SIZE,
            (_, _, None) => ROOT,
        };
        let text = format!("{missing} is not set, but others of {RANK}, {SIZE} and {ROOT} are: set all three or none");
        Err(Error::Setup(text))
    }

    fn slurm_shape(&self) -> Result<Option<Shape>> {
        // The shell of an allocation has SLURM_NTASKS, a batch script even SLURM_PROCID: only a step is a job.
        let step = self.either("SLURM_STEP_ID", "SLURM_STEPID", Self::number::<u64>)?;
        let (Some(rank), Some(step)) = (self.number("SLURM_PROCID")?, step) else { return Ok(None) };
        if step >= FIRST_SPECIAL_STEP {
            return Ok(None);
        }
        let incomplete = |what: &str| Error::Setup(format!("SLURM_PROCID is set, but {what}"));
        let size = self.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", Self::number)?;
        let (rank, size) = (Rank(rank), size.ok_or_else(|| incomplete("SLURM_NTASKS is not"))?);
        if size == 1 {
            return Ok(Some(Shape { rank, size, root: String::new(), launcher: "Slurm" }));
        }
        let nodes = self.either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", Self::get)?;
        let nodes = nodes.ok_or_else(|| incomplete("neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is"))?;
        let job = self.either("SLURM_JOB_ID", "SLURM_JOBID", Self::number)?;
        let job = job.ok_or_else(|| incomplete("SLURM_JOB_ID is not"))?;
        let root = format!("{}:{}", first_of_slurm_list(&nodes)?, slurm_port(job, step));
        Ok(Some(Shape { rank, size, root, launcher: "Slurm" }))
    }

    /// The first of two variables that is set: some versions of Slurm have other names.
    fn either<T>(
        &self,
        first: &str,
        second: &str,
        get: impl Fn(&Self, &str) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        get(self, first)?.map_or_else(|| get(self, second), |value| Ok(Some(value)))
    }

    fn secret(&self, size: usize) -> Result<Secret> {
        match (self.get(SECRET)?, self.get(SECRET_FILE)?) {
            (Some(_), Some(_)) => {
                Err(Error::Setup(format!("{SECRET} and {SECRET_FILE} are both set: set one of them")))
            }
            (Some(hex), None) => Secret::from_hex(&hex).map_err(|e| Error::Setup(format!("{SECRET}: {e}"))),
            (None, Some(path)) => secret_from_file(&path),
            (None, None) if size == 1 => Secret::random(),
            (None, None) => Err(Error::Setup(format!(
                "{SECRET} is not set: ranks need a secret that keeps strangers out; \
                 before starting them: export {SECRET}=$(tailback secret)"
            ))),
        }
    }

    fn listen(&self, root: SocketAddr) -> Result<Option<IpAddr>> {
        match (self.get(BOOTSTRAP_ADDR)?, self.get(BOOTSTRAP_IF)?) {
            (Some(_), Some(_)) => {
                Err(Error::Setup(format!("{BOOTSTRAP_ADDR} and {BOOTSTRAP_IF} are both set: set one of them")))
            }
            (Some(text), None) => {
                let bad = |_| Error::Setup(format!("{BOOTSTRAP_ADDR}={text} is not an IP address"));
                text.parse().map(Some).map_err(bad)
            }
            (None, Some(name)) => interface_address(&name, root).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The same port for all ranks of a step, and a different one for the steps and jobs next to it.
fn slurm_port(job: u64, step: u64) -> u16 {
    let count = SLURM_PORTS.end - SLURM_PORTS.start;
    // 97 keeps a job's first steps apart from those of the jobs with the next numbers.
    (SLURM_PORTS.start + (job.wrapping_mul(97).wrapping_add(step)) % count) as u16
}

fn resolve(root: &str) -> Result<SocketAddr> {
    let bad = |detail: String| Error::Setup(format!("rank 0's address {root} (from {ROOT} or Slurm): {detail}"));
    let addresses: Vec<SocketAddr> = root.to_socket_addrs().map_err(|e| bad(e.to_string()))?.collect();
    let preferred = addresses.iter().find(|a| a.is_ipv4()).or(addresses.first());
    let address = preferred.copied().ok_or_else(|| bad("the name has no address".into()))?;
    if address.port() == 0 { Err(bad("port 0 is not a port".into())) } else { Ok(address) }
}

fn interface_address(name: &str, root: SocketAddr) -> Result<IpAddr> {
    let all = if_addrs::get_if_addrs().map_err(|e| Error::Setup(format!("the interfaces cannot be listed: {e}")))?;
    let suitable = all.iter().find(|i| i.name == name && i.ip().is_ipv4() == root.is_ipv4());
    suitable.map(if_addrs::Interface::ip).ok_or_else(|| {
        let mut known: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        known.dedup();
        let text =
            format!("{BOOTSTRAP_IF}={name}: no such interface with a fitting address; there are {}", known.join(", "));
        Error::Setup(text)
    })
}

/// A secret has 64 digits.
const LONGEST_SECRET_FILE: u64 = 4096;

fn secret_from_file(path: &str) -> Result<Secret> {
    let bad = |detail: String| Error::Setup(format!("{SECRET_FILE}={path}: {detail}"));
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            let mode = mode & 0o777;
            return Err(io::Error::other(format!("its group or others can open it (mode {mode:03o}): chmod 600 it")));
        }
        let mut text = String::new();
        if file.take(LONGEST_SECRET_FILE + 1).read_to_string(&mut text)? as u64 > LONGEST_SECRET_FILE {
            let limit = format!("it is larger than {LONGEST_SECRET_FILE} bytes, the limit of a secret file");
            return Err(io::Error::other(limit));
        }
        Ok(text)
    };
    Secret::from_hex(&read().map_err(|error| bad(error.to_string()))?).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

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
}
