//! `tailback lab ...`: the lab's own commands, except `run`, which belongs to the benchmark.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::{Args, Subcommand};
use tailback_transport::Bytes;

use super::cluster::{Lab, down, sweep};
use super::error::{Error, Result};
use super::shim::SHIM_VARIABLE;
use super::spec::{LabSpec, default_name};
use super::ssh::SshCall;
use super::state::Registry;

/// What can be done with a lab.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Bring a lab up and leave it up
    Up(LabSpec),
    /// End a lab and remove all of it, also what a crash left
    Down(Name),
    /// Show the labs that are up, their hosts and addresses
    Status(Status),
    /// Run a command on a host, with its exit status
    Exec(Exec),
}

/// Which lab is meant.
#[derive(Debug, Args)]
pub struct Name {
    /// Name of the lab [default: $TAILBACK_LAB, else "default"]
    #[arg(long, value_name = "NAME", default_value_t = default_name(), hide_default_value = true)]
    name: String,
}

/// How to show the labs.
#[derive(Debug, Args)]
pub struct Status {
    /// Only this lab; an error if it is not up
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The counters of every port too
    #[arg(long)]
    counters: bool,
}

/// What to run where.
#[derive(Debug, Args)]
pub struct Exec {
    #[command(flatten)]
    lab: Name,
    /// Stand in for ssh: skip ssh's options, take the host name, run the rest by a shell
    #[arg(long)]
    ssh: bool,
    /// Preload the idle-poll shim, for MPI ranks that outnumber the cores
    #[arg(long)]
    idle_shim: bool,
    /// Set what MPI launchers need: `exec --mpi h0 -- mpirun -n 16 PROGRAM` starts a rank on each of 16 hosts
    #[arg(long)]
    mpi: bool,
    /// The host, then the command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "HOST [--] COMMAND")]
    words: Vec<String>,
}

/// Does what is asked and gives the exit code. A command on a host takes this process's place, and its exit code.
///
/// # Errors
/// If it cannot be done.
pub fn execute(command: LabCommand) -> Result<u8> {
    let text = match command {
        LabCommand::Up(spec) => {
            let lab = Lab::up(&spec)?;
            let text = describe(&lab);
            lab.stay()?;
            text
        }
        LabCommand::Down(Name { name }) => {
            let found = down(&name)?;
            let registry = Registry::open()?;
            let mut text = format!("lab {name} {}\n", if found { "is down" } else { "was not up" });
            for left in sweep(&registry) {
                text += &format!("lab {left}, whose processes were gone, is removed\n");
            }
            match registry.names()?.as_slice() {
                others @ [_, ..] if !found => text += &format!("up are: {}\n", others.join(", ")),
                _ => {}
            }
            text
        }
        LabCommand::Status(status) => show(&status)?,
        LabCommand::Exec(exec) => return Err(run(&exec)?),
    };
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that has gone away (`| head`) is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::command("writing to stdout")(error)),
        _ => Ok(0),
    }
}

fn show(status: &Status) -> Result<String> {
    let names = match &status.name {
        Some(name) => vec![name.clone()],
        None => Registry::open()?.names()?,
    };
    if names.is_empty() {
        return Ok("no lab is up\n".to_owned());
    }
    let mut text = String::new();
    for name in names {
        match Lab::open(&name) {
            Ok(lab) => {
                text += &describe(&lab);
                if status.counters {
                    text += &counters(&lab)?;
                }
            }
            Err(error @ (Error::Damaged { .. } | Error::NotUp { .. })) if status.name.is_none() => {
                text += &format!("{error}\n");
            }
            Err(error) if status.name.is_none() => {
                text +=
                    &format!("lab {name} cannot be told: {error}; remove it with `tailback lab down --name {name}`\n");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

fn describe(lab: &Lab) -> String {
    let spec = lab.spec();
    let (hosts, leaves, name) = (spec.hosts, spec.leaves, &spec.name);
    let links = if lab.is_shaped() {
        let (link, spine, queue) = (spec.link_rate, spec.spine_rate(), Bytes(spec.queue_bytes));
        let delay = spec.full_queue_seconds() * 1e3;
        format!("links {link}, spine {spine}, queues {queue} ({delay:.1} ms when full)")
    } else {
        "links unshaped".to_owned()
    };
    let mut text =
        format!("lab {name}: {hosts} hosts on {leaves} leaves, {links}, {}, {}\n", spec.congestion_control, lab.mode());
    for note in lab.notes() {
        text += &format!("note: {note}\n");
    }
    text += &format!("{:<6} {:>4}  {:<15} {:<15}\n", "host", "leaf", "data (d0)", "control (c0)");
    for host in lab.hosts() {
        text += &format!("{:<6} {:>4}  {:<15} {:<15}\n", host.name, host.leaf, host.data, host.control);
    }
    text
}

fn counters(lab: &Lab) -> Result<String> {
    let heads = ["sent B", "packets", "drops", "overlimits", "backlog B"];
    let mut text = format!("{:<16}", "port");
    heads.iter().for_each(|head| text += &format!(" {head:>12}"));
    text.push('\n');
    for port in lab.counters()? {
        let queue = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let (drops, overlimits, backlog) = match &port.queue {
            Some(queue) => (Some(queue.drops), Some(queue.overlimits), Some(queue.backlog_bytes)),
            None => (None, None, None),
        };
        let name = format!("{}>{}", port.from, port.to);
        text += &format!("{name:<16} {:>12} {:>12}", port.bytes, port.packets);
        text += &format!(" {:>12} {:>12} {:>12}\n", queue(drops), queue(overlimits), queue(backlog));
    }
    Ok(text)
}

/// Becomes the command; comes back only with the error that prevented it.
fn run(exec: &Exec) -> Result<Error> {
    let lab = Lab::open(&exec.lab.name)?;
    let (host, words) = if exec.ssh {
        let call = SshCall::parse(&exec.words)?;
        (call.host, vec!["sh".to_owned(), "-c".to_owned(), call.line])
    } else {
        let (host, rest) = exec.words.split_first().expect("clap asks for at least one word");
        let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
        if rest.is_empty() {
            return Err(Error::Usage(format!(
                "what is to run on {host}? As in `tailback lab exec {host} -- hostname`"
            )));
        }
        (host.clone(), rest.to_vec())
    };
    let prefix = lab.command_on(lab.host(&host)?);
    let mut command = Command::new(&prefix[0]);
    command.args(&prefix[1..]).args(&words);
    if exec.mpi {
        command.envs(lab.mpi_environment());
    }
    if exec.idle_shim {
        let mut preload = OsString::from(lab.shim()?);
        if let Some(others) = std::env::var_os("LD_PRELOAD") {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload).env(SHIM_VARIABLE, "1");
    }
    Ok(Error::command("nsenter")(command.exec()))
}
