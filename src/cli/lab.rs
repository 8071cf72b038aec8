//! `tailback lab ...`: the lab's own commands, except `run`, which belongs to the benchmark.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tailback_transport::Bytes;

use crate::lab::{self, Degradation, Error, Host, Lab, LabKey, LabSpec, Result, SHIM_VARIABLE, default_name};
use crate::output;
use crate::text::{Cell, Table};

/// What can be done with a lab.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Bring a lab up and leave it up
    Up(LabSpec),
    /// End a lab and remove all of it, also what a crash left
    Down(Name),
    /// Show the labs that are up, their hosts and addresses
    Status(Status),
    /// Change or print a setting of a lab that is up: cc (TCP congestion control) or queue
    Set(Set),
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
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// What to change.
#[derive(Debug, Args)]
pub struct Set {
    #[command(flatten)]
    lab: Name,
    /// cc=reno or queue=64KiB; without a value, it is printed
    #[arg(value_name = "KEY[=VALUE]")]
    setting: String,
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
pub(super) fn execute(command: LabCommand) -> std::result::Result<u8, String> {
    output::print(&told(command).map_err(|error| error.to_string())?)
}

fn told(command: LabCommand) -> Result<String> {
    Ok(match command {
        LabCommand::Up(spec) => {
            let lab = Lab::up(&spec)?;
            let text = describe(&lab);
            lab.stay()?;
            text
        }
        LabCommand::Down(Name { name }) => {
            let found = lab::down(&name)?;
            let mut text = format!("lab {name} {}\n", if found { "is down" } else { "was not up" });
            for left in lab::remove_dead()? {
                text += &format!("lab {left}, whose processes were gone, is removed\n");
            }
            match lab::names()?.as_slice() {
                others @ [_, ..] if !found => text += &format!("up are: {}\n", others.join(", ")),
                _ => {}
            }
            text
        }
        LabCommand::Status(status) => show(&status)?,
        LabCommand::Set(set) => change(&set)?,
        LabCommand::Exec(exec) => return Err(run(&exec)?),
    })
}

fn show(status: &Status) -> Result<String> {
    let names = match &status.name {
        Some(name) => vec![name.clone()],
        None => lab::names()?,
    };
    if status.json {
        return json(&names, status);
    }
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
                text += &format!(
                    "lab {name} cannot be read, as one of another version of Tailback: {error} (if nobody uses it, `tailback lab \
                     down --name {name}` removes it)\n"
                );
            }
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

/// The same for programs; of a lab that cannot be read, why.
fn json(names: &[String], status: &Status) -> Result<String> {
    let facts = |lab: &Lab| -> Result<Value> {
        let host = |of: &Host| json!({"name": of.name, "leaf": of.leaf, "data": of.data, "control": of.control});
        let hosts: Vec<Value> = lab.hosts().iter().map(host).collect();
        let ports = status.counters.then(|| lab.counters()).transpose()?;
        let (mode, shaped) = (lab.mode().to_string(), lab.is_shaped());
        let mut all = json!({"lab": lab.spec(), "mode": mode, "shaped": shaped, "notes": lab.notes(), "hosts": hosts});
        ports.into_iter().for_each(|of| all["ports"] = json!(of));
        Ok(all)
    };
    let one = |name: &String| match Lab::open(name).and_then(|lab| facts(&lab)) {
        Err(error) if status.name.is_none() => Ok(json!({"lab": {"name": name}, "error": error.to_string()})),
        of => of,
    };
    let all: Vec<Value> = names.iter().map(one).collect::<Result<_>>()?;
    Ok(serde_json::to_string_pretty(&all).expect("plain data") + "\n")
}

/// Changes a setting, and gives what is in force.
fn change(set: &Set) -> Result<String> {
    let mut lab = Lab::open(&set.lab.name)?;
    let (key, value) =
        set.setting.split_once('=').map_or((set.setting.as_str(), None), |(key, value)| (key, Some(value)));
    let key: LabKey = key.parse().map_err(Error::Usage)?;
    if let Some(value) = value {
        lab.set(key, value)?;
    }
    Ok(lab.setting(key)? + "\n")
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
    if !spec.degraded.is_empty() {
        text += &format!("degraded: {}\n", spec.degradations());
    }
    for note in lab.notes() {
        text += &format!("note: {note}\n");
    }
    let hosts = Table::of(lab.hosts())
        .column("host", |host| host.name.clone())
        .column("leaf", |host| host.leaf.to_string())
        .column("data (d0)", |host| host.data.to_string())
        .column("control (c0)", |host| host.control.to_string());
    text + &hosts.done().text()
}

fn counters(lab: &Lab) -> Result<String> {
    let known = |value: Option<u64>| value.map_or(Cell::Unknown, |value| Cell::from(value.to_string()));
    let lossy = lab.spec().degraded.iter().any(Degradation::is_loss);
    let ports = Table::of(lab.counters()?)
        .column("port", |port| format!("{}>{}", port.from, port.to))
        .column("sent B", |port| port.bytes.to_string())
        .column("packets", |port| port.packets.to_string())
        .column("drops", |port| known(port.queue.as_ref().map(|queue| queue.drops)))
        .column_if(lossy, "lost", |port| known(port.queue.as_ref().map(|queue| queue.lost)))
        .column("overlimits", |port| known(port.queue.as_ref().map(|queue| queue.overlimits)))
        .column("backlog B", |port| known(port.queue.as_ref().map(|queue| queue.backlog_bytes)));
    Ok(ports.done().text())
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

/// The options of OpenSSH's client that have a value, which may be a word of its own.
const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// What a launcher asks of `ssh`, as far as a stand-in has to understand it: options are skipped, the first other word is the
/// host, the rest is a line for the remote shell. Encryption, forwarding and log-in names mean nothing inside a lab.
#[derive(Debug, PartialEq, Eq)]
struct SshCall {
    host: String,
    /// The line for the shell there.
    line: String,
}

impl SshCall {
    /// Understands the arguments of an `ssh` call.
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut words = arguments.iter();
        let host = loop {
            let word =
                words.next().ok_or_else(|| Error::Usage("--ssh: no host name among the arguments".to_owned()))?;
            match word.strip_prefix('-') {
                None => break word,
                Some("-") => continue,
                Some(letters) => {
                    // Flags may be written together; the first one with a value takes the rest, or the next word.
                    if letters.find(|letter| WITH_VALUE.contains(letter)).is_some_and(|at| at + 1 == letters.len()) {
                        words.next();
                    }
                }
            }
        };
        let host = host.rsplit_once('@').map_or(host.as_str(), |(_, host)| host);
        let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            return Err(Error::Usage(format!(
                "--ssh: no command for {host}; for a shell use `tailback lab exec {host} -- sh`"
            )));
        }
        Ok(SshCall { host: host.to_owned(), line })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &[&str]) -> Result<SshCall> {
        SshCall::parse(&text.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn launchers_calls_are_understood() {
        let call = |host: &str, line: &str| SshCall { host: host.into(), line: line.into() };
        for (text, expected) in [
            (&["h1", "orted", "-mca", "x"][..], call("h1", "orted -mca x")),
            (
                &["-x", "h1", "\"/usr/bin/hydra_pmi_proxy\"", "--demux"],
                call("h1", "\"/usr/bin/hydra_pmi_proxy\" --demux"),
            ),
            (&["-o", "BatchMode=yes", "-oX=y", "-p22", "-l", "me", "-qT", "a@h2", "ls -l"], call("h2", "ls -l")),
            (&["-xo", "K=v", "h3", "-v"], call("h3", "-v")),
            (&["--", "h4", "true"], call("h4", "true")),
        ] {
            assert_eq!(parse(text).expect("understood"), expected, "{text:?}");
        }
    }

    #[test]
    fn a_call_without_host_or_command_is_refused() {
        for text in [&[][..], &["-x"], &["-o", "h1"], &["h1"]] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_command_arrives_as_it_was(words in prop::collection::vec("[ -~]{1,8}", 1..6)) {
            let arguments: Vec<String> = ["-x", "h9"].iter().map(ToString::to_string).chain(words.clone()).collect();
            prop_assert_eq!(SshCall::parse(&arguments).expect("understood").line, words.join(" "));
        }
    }
}
