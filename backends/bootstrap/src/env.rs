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
use crate::lifeline::Lifeline;
use crate::nodelist::first_host;
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
    /// Set by the launcher: the inherited pipe that breaks when the launcher is gone, as `descriptor:inode`.
    pub const LIFELINE: &str = "TAILBACK_LIFELINE";
    /// How the ranks were started, for the result file.
    pub const LAUNCHER: &str = "TAILBACK_LAUNCHER";
}

use self::variables::{
    BOOTSTRAP_ADDR, BOOTSTRAP_IF, HOST, LAUNCHER, LIFELINE, RANK, ROOT, ROOT_RESERVED, SECRET, SECRET_FILE, SIZE,
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
        config.lifeline = self.get(LIFELINE)?.as_deref().and_then(Lifeline::inherited).map(Arc::new);
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
        let step = match self.number::<u64>("SLURM_STEP_ID")? {
            Some(step) => Some(step),
            None => self.number("SLURM_STEPID")?,
        };
        let (Some(rank), Some(step)) = (self.number("SLURM_PROCID")?, step) else { return Ok(None) };
        if step >= FIRST_SPECIAL_STEP {
            return Ok(None);
        }
        let size = match self.number("SLURM_STEP_NUM_TASKS")? {
            Some(size) => Some(size),
            None => self.number("SLURM_NTASKS")?,
        };
        let size = size.ok_or_else(|| Error::Setup("SLURM_PROCID is set, but SLURM_NTASKS is not".into()))?;
        let rank = Rank(rank);
        if size == 1 {
            return Ok(Some(Shape { rank, size, root: String::new(), launcher: "Slurm" }));
        }
        let nodes = match self.get("SLURM_STEP_NODELIST")? {
            Some(nodes) => Some(nodes),
            None => self.get("SLURM_JOB_NODELIST")?,
        };
        let nodes = nodes.ok_or_else(|| {
            Error::Setup("SLURM_PROCID is set, but neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is".into())
        })?;
        let job = match self.number::<u64>("SLURM_JOB_ID")? {
            Some(job) => job,
            None => self
                .number("SLURM_JOBID")?
                .ok_or_else(|| Error::Setup("SLURM_PROCID is set, but SLURM_JOB_ID is not".into()))?,
        };
        let root = format!("{}:{}", first_host(&nodes)?, slurm_port(job, step));
        Ok(Some(Shape { rank, size, root, launcher: "Slurm" }))
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
#[path = "env_tests.rs"]
mod tests;
