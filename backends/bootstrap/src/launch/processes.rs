//! The ranks' processes: started together, watched, and ended together.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use socket2::{Domain, Socket, Type};
use tailback_transport::{Error, Rank, Result};

use super::options::{HealthCheck, LaunchOptions, Output};
use super::output::Stream;
use super::signals::Signals;
use crate::env::variables;
use crate::failure::{EXIT_CODE, say};
use crate::hosts::hostname;
use crate::launcher_pipe::LauncherPipe;
use crate::limits;
use crate::polling::poll_until;
use crate::secret::Secret;

/// How long ranks have to end by themselves, and to say why, after one has failed.
const NOTICE: Duration = Duration::from_millis(1500);
/// How long output is waited for after the last rank ended: a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_secs(1);
/// How long they then have to end when they are told to: the job has failed, and there is nothing left to save.
const FAILED_GRACE: Duration = Duration::from_secs(2);
/// How often the ranks and the health check are asked.
const LOOK: Duration = Duration::from_millis(500);
/// How long the health check may take to fail after ranks that were killed with what they depend on, and how often it is
/// asked then.
const LOSS_DELAY: Duration = Duration::from_secs(1);
const LOSS_CHECK: Duration = Duration::from_millis(50);

/// What the launcher will do next to ranks that are still there.
#[derive(Clone, Copy, Debug)]
enum Escalation {
    None,
    Terminate(Instant),
    Kill(Instant),
    Killed,
}

#[derive(Debug)]
pub(super) struct Processes {
    ranks: Vec<RankProcess>,
    streams: Vec<Stream>,
    grace: Duration,
    stopped_limit: Duration,
    escalation: Escalation,
    first_failure: Option<(Rank, ExitStatus)>,
    interrupted: Option<Signal>,
    /// Whether ranks had to be told to end.
    terminated: bool,
    reported: bool,
    /// Whether the launcher ended the job itself, and has said why.
    gave_up: bool,
    /// Why results did not reach the user. No reason to end the job: its result file may be what counts.
    lost: Option<io::Error>,
    /// Closed by the system when the launcher is gone.
    _launcher_pipe: OwnedFd,
    /// Keeps rank 0's port from everybody else.
    _reservation: Option<Socket>,
}

impl Processes {
    pub(super) fn start(options: &LaunchOptions) -> Result<Self> {
        if options.size == 0 || options.command.is_empty() {
            return Err(Error::Setup("a launch needs at least one rank and a command".into()));
        }
        // Each rank's output comes through two pipes.
        limits::require_tasks(options.size)?;
        limits::require_files(&format!("the launcher of {} ranks", options.size), options.size.saturating_mul(2))?;
        let failed = |what: &'static str| move |e: io::Error| Error::Setup(format!("the launcher's {what}: {e}"));
        let (root, reservation) = root_address(options).map_err(failed("port for rank 0"))?;
        let (inherited, pipe) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("pipe")(e.into()))?;
        fcntl_setfd(&inherited, FdFlags::empty()).map_err(|e| failed("pipe")(e.into()))?;
        let secret = Secret::random()?.to_hex();
        let common: Vec<(&str, String)> = vec![
            (variables::SIZE, options.size.to_string()),
            (variables::ROOT, root.to_string()),
            (variables::SECRET, secret),
            (variables::LAUNCHER, "tailback launch".into()),
            (variables::LAUNCHER_PIPE, LauncherPipe::name(&inherited).map_err(failed("pipe"))?),
            (variables::ROOT_RESERVED, if reservation.is_some() { "1" } else { "" }.into()),
        ];
        let mut processes = Processes {
            ranks: Vec::new(),
            streams: Vec::new(),
            grace: options.grace,
            stopped_limit: options.stopped_limit,
            escalation: Escalation::None,
            first_failure: None,
            interrupted: None,
            terminated: false,
            reported: false,
            gave_up: false,
            lost: None,
            _launcher_pipe: pipe,
            _reservation: reservation,
        };
        for rank in 0..options.size {
            if let Err(error) = processes.start_rank(Rank::from(rank), options, &common) {
                processes.kill_all();
                return Err(error);
            }
        }
        Ok(processes)
    }

    fn start_rank(&mut self, rank: Rank, options: &LaunchOptions, common: &[(&str, String)]) -> Result<()> {
        let mut process = RankProcess::start(rank, options, common)?;
        let prefixed = options.output == Output::Prefix;
        let stdout = process.child.stdout.take().map(|s| Stream::new(s.into(), rank, prefixed, false));
        let stderr = process.child.stderr.take().map(|s| Stream::new(s.into(), rank, prefixed, true));
        self.streams.extend(stdout.into_iter().chain(stderr));
        self.ranks.push(process);
        Ok(())
    }

    /// Waits for the end of all ranks and gives the job's exit code. An error of `health` ends them.
    pub(super) fn supervise(&mut self, signals: &Signals, health: Option<&HealthCheck>) -> Result<i32> {
        let mut drained = None;
        loop {
            let next = match self.escalation {
                Escalation::Terminate(at) | Escalation::Kill(at) => at,
                Escalation::None | Escalation::Killed => Instant::now() + LOOK,
            };
            self.wait(signals, drained.unwrap_or(next))?;
            for signal in signals.arrived() {
                self.pass_on(signal);
            }
            if let (Escalation::None, Some(Err(reason))) = (self.escalation, health.map(|check| check())) {
                self.give_up(&reason);
            }
            if let (Escalation::None, false, Some(who)) = (self.escalation, self.reported, self.stopped_rank()) {
                let limit = self.stopped_limit.as_secs();
                let what = "by SIGSTOP or a debugger, while others run";
                self.give_up(&format!("{who} has been stopped for {limit} s, {what}"));
            }
            self.reap();
            self.escalate();
            if self.ranks.iter().all(|p| p.status.is_some()) {
                let until = *drained.get_or_insert_with(|| Instant::now() + DRAIN);
                if self.streams.is_empty() || Instant::now() >= until {
                    // Ranks that were killed with what they depend on did not live to say so, and may have gone first.
                    let killed = self.first_failure.is_some_and(|(_, status)| status.signal().is_some());
                    if killed
                        && !self.reported
                        && !self.gave_up
                        && let Some(reason) = health.and_then(fails_soon)
                    {
                        self.give_up(&reason);
                    }
                    return Ok(self.conclude());
                }
            }
        }
    }

    fn wait(&mut self, signals: &Signals, until: Instant) -> Result<()> {
        let mut fds: Vec<PollFd<'_>> = self.streams.iter().map(|s| PollFd::new(s, PollFlags::IN)).collect();
        fds.extend(signals.streams().map(|s| PollFd::new(s, PollFlags::IN)));
        poll_until(&mut fds, until).map_err(|source| Error::Io {
            operation: "waiting for ranks",
            peer: None,
            source,
        })?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut ready = ready.into_iter();
        let (reported, lost) = (&mut self.reported, &mut self.lost);
        self.streams.retain_mut(|stream| {
            let open = !ready.next().unwrap_or(false) || stream.pump();
            *reported |= stream.reported;
            *lost = lost.take().or(stream.lost.take());
            open
        });
        Ok(())
    }

    fn pass_on(&mut self, signal: Signal) {
        if self.interrupted.is_some() {
            // Asked twice: the user does not want to wait.
            self.signal_all(Signal::KILL);
            self.escalation = Escalation::Killed;
        } else {
            self.interrupted = Some(signal);
            self.signal_all(signal);
            self.escalation = Escalation::Kill(Instant::now() + self.grace);
        }
    }

    /// Ends the job for a reason that no rank knows. What ranks still say would only be its consequences.
    fn give_up(&mut self, reason: &str) {
        say("error", reason);
        self.gave_up = true;
        self.streams.iter_mut().for_each(Stream::silence);
        self.signal_all(Signal::KILL);
        self.escalation = Escalation::Killed;
    }

    /// A rank that has been stopped for too long. All of them together may: somebody stopped the job.
    fn stopped_rank(&mut self) -> Option<String> {
        let now = Instant::now();
        let mut running = self.ranks.iter_mut().filter(|p| p.status.is_none()).collect::<Vec<_>>();
        for process in &mut running {
            process.stopped = process.is_stopped().then(|| process.stopped.unwrap_or(now));
        }
        if running.iter().all(|p| p.stopped.is_some()) {
            running.iter_mut().for_each(|p| p.stopped = None);
        }
        let is_late = |p: &&&mut RankProcess| p.stopped.is_some_and(|since| now - since >= self.stopped_limit);
        running.iter().find(is_late).map(|p| p.name())
    }

    fn reap(&mut self) {
        let mut failures = Vec::new();
        for process in self.ranks.iter_mut().filter(|p| p.status.is_none()) {
            // An error here means that the child is gone without a trace; it cannot be waited for again.
            let status = process.child.try_wait().unwrap_or(Some(ExitStatus::from_raw(2 << 8)));
            process.status = status;
            failures.extend(status.filter(|s| !s.success()).map(|s| (process.rank, s)));
        }
        // Seen together, a killed rank is the reason why others gave up.
        failures.sort_by_key(|(rank, status)| (status.signal().is_none(), *rank));
        if let (None, Some(first)) = (self.first_failure, failures.first()) {
            self.first_failure = Some(*first);
            if matches!(self.escalation, Escalation::None) {
                self.escalation = Escalation::Terminate(Instant::now() + NOTICE);
            }
        }
    }

    /// Ends ranks that had their time.
    fn escalate(&mut self) {
        let now = Instant::now();
        match self.escalation {
            Escalation::Terminate(at) if now >= at => {
                self.terminated |= self.signal_all(Signal::TERM);
                self.escalation = Escalation::Kill(now + self.grace.min(FAILED_GRACE));
            }
            Escalation::Kill(at) if now >= at => {
                self.signal_all(Signal::KILL);
                self.escalation = Escalation::Killed;
            }
            _ => {}
        }
    }

    /// Whether there was anyone to signal.
    fn signal_all(&self, signal: Signal) -> bool {
        let running: Vec<&RankProcess> = self.ranks.iter().filter(|p| p.status.is_none()).collect();
        for process in &running {
            if let Some(pid) = process.pid() {
                let _ = kill_process_group(pid, signal);
            }
        }
        !running.is_empty()
    }

    fn kill_all(&mut self) {
        self.signal_all(Signal::KILL);
        for process in &mut self.ranks {
            let _ = process.child.wait();
        }
    }

    fn conclude(&self) -> i32 {
        if self.gave_up {
            return EXIT_CODE;
        }
        if let Some(signal) = self.interrupted {
            return self.interrupted_code(signal);
        }
        if let Some(error) = &self.lost {
            say("error", &format!("cannot write to stdout: {error}"));
            return EXIT_CODE;
        }
        let Some((rank, status)) = self.first_failure else { return 0 };
        match (status.code(), status.signal()) {
            (Some(code), _) => {
                // Codes 1 and 3 are results (a threshold failed, or is inconclusive), unless they took others down.
                if !self.reported && (![1, 3].contains(&code) || self.terminated) {
                    say("error", &format!("rank {rank} ended with exit code {code}"));
                }
                code
            }
            (None, Some(_)) if self.reported => EXIT_CODE,
            (None, Some(signal)) => {
                // A rank that is part of a job has neighbours who notice, so this one was not, or no longer.
                let when = "in phase \"start-up\", or after its last phase";
                let who = self.ranks[rank.index()].name();
                say("error", &format!("{who} was ended by signal {signal} {when}"));
                EXIT_CODE
            }
            (None, None) => EXIT_CODE,
        }
    }

    /// Ranks that take a signal as a request and end in order have a code of their own, which then is the job's.
    fn interrupted_code(&self, signal: Signal) -> i32 {
        let orderly = self.ranks.iter().all(|p| p.status.is_some_and(|s| s.code().is_some()));
        match self.first_failure {
            _ if !orderly => 128 + signal.as_raw(),
            None => 0,
            Some((_, status)) => status.code().unwrap_or(EXIT_CODE),
        }
    }
}

/// One rank's process.
#[derive(Debug)]
struct RankProcess {
    rank: Rank,
    /// Where it says that it is.
    host: String,
    child: Child,
    status: Option<ExitStatus>,
    /// Since when it was seen to be stopped.
    stopped: Option<Instant>,
}

impl RankProcess {
    /// Starts a rank with what is common to all, what was asked for and what is its own, each over those before.
    fn start(rank: Rank, options: &LaunchOptions, common: &[(&str, String)]) -> Result<Self> {
        let setup = (options.setup)(rank);
        let words: Vec<&OsString> = setup.prefix.iter().chain(&options.command).collect();
        let mut command = Command::new(words[0]);
        // Its own process group: the terminal's signals reach the launcher alone, which passes each on once.
        command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let keep_stdin = rank.0 == 0 && !io::stdin().is_terminal();
        command.stdin(if keep_stdin { Stdio::inherit() } else { Stdio::null() });
        // These would contradict what is set below.
        for name in [variables::SECRET_FILE, variables::BOOTSTRAP_ADDR, variables::BOOTSTRAP_IF] {
            command.env_remove(name);
        }
        command.envs(common.iter().map(|(name, value)| (name, value))).env(variables::RANK, rank.to_string());
        if let Some(count) = options.ranks_per_node {
            command.env(variables::HOST, format!("node{}", rank.index() / count.max(1)));
        }
        command.envs(options.env.iter().chain(&setup.env).map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(|e| {
            let program = words[0].to_string_lossy();
            Error::Setup(match e.kind() {
                io::ErrorKind::NotFound => format!("cannot start rank {rank}: {program}: command not found"),
                _ => format!("cannot start rank {rank}: {program}: {e}"),
            })
        })?;
        Ok(RankProcess { rank, host: host_of(&command), child, status: None, stopped: None })
    }

    /// As errors name it.
    fn name(&self) -> String {
        format!("rank {} (host {})", self.rank, self.host)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn is_stopped(&self) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.pid().is_some_and(|pid| waitid(WaitId::Pid(pid), look).is_ok_and(|status| status.is_some()))
    }
}

/// The host that a rank names as its own: the one it is given, or this one.
fn host_of(command: &Command) -> String {
    let given = command.get_envs().find(|(name, _)| *name == OsStr::new(variables::HOST));
    let given = given.and_then(|(_, value)| value.map(OsStr::to_owned)).or_else(|| env::var_os(variables::HOST));
    given.map_or_else(hostname, |host| host.to_string_lossy().into_owned())
}

/// Rank 0's address, and the socket that keeps its port: bound but not listening, shared with rank 0 alone.
fn root_address(options: &LaunchOptions) -> io::Result<(SocketAddr, Option<Socket>)> {
    if let Some(port) = options.port {
        return Ok((SocketAddr::new(options.bind, port), None));
    }
    let address = SocketAddr::new(options.bind, 0);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no address"))?;
    Ok((bound, Some(socket)))
}

/// Why the check fails, now or in a moment.
fn fails_soon(check: &HealthCheck) -> Option<String> {
    let until = Instant::now() + LOSS_DELAY;
    loop {
        match check() {
            Err(reason) => return Some(reason),
            Ok(()) if Instant::now() >= until => return None,
            Ok(()) => std::thread::sleep(LOSS_CHECK),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_loss_that_shows_after_its_ranks_is_the_reason() {
        let looks = Cell::new(0);
        let goes: HealthCheck = Box::new(move || {
            looks.set(looks.get() + 1);
            if looks.get() > 3 { Err("lab x was taken down".into()) } else { Ok(()) }
        });
        assert_eq!(fails_soon(&goes).as_deref(), Some("lab x was taken down"));
        assert_eq!(fails_soon(&(Box::new(|| Ok(())) as HealthCheck)), None);
    }

    #[test]
    fn a_rank_is_on_the_host_that_it_is_given() {
        let mut command = Command::new("true");
        assert_eq!(host_of(&command), hostname());
        command.env(variables::HOST, "h3");
        assert_eq!(host_of(&command), "h3");
    }
}
