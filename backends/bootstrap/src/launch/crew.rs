//! The ranks' processes: started together, watched, and ended together.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, kill_process_group};
use socket2::{Domain, Socket, Type};
use tailback_transport::{Error, Rank, Result};

use super::member::Member;
use super::options::{Ground, LaunchOptions, Output};
use super::output::Stream;
use super::signals::Signals;
use crate::env::variables;
use crate::failure::{EXIT_CODE, say};
use crate::files;
use crate::lifeline::Lifeline;
use crate::polling::poll_until;
use crate::secret::Secret;

/// How long ranks have to end by themselves, and to say why, after one has failed.
const NOTICE: Duration = Duration::from_millis(1500);
/// How long output is waited for after the last rank ended: a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_secs(1);
/// How long they then have to end when they are told to: the job has failed, and there is nothing left to bring home.
const FAILED_GRACE: Duration = Duration::from_secs(2);
/// How often the ranks are looked at, and the ground under them where there is any to lose.
const LOOK: Duration = Duration::from_millis(500);
/// How long the ground may take to go after ranks that were killed with it, and how often it is looked at then.
const GROUND_GOES: Duration = Duration::from_secs(1);
const GROUND_LOOK: Duration = Duration::from_millis(50);

/// What the launcher will do next to ranks that are still there.
#[derive(Clone, Copy, Debug)]
enum Pressure {
    None,
    Terminate(Instant),
    Kill(Instant),
    Killed,
}

#[derive(Debug)]
pub(super) struct Crew {
    members: Vec<Member>,
    streams: Vec<Stream>,
    grace: Duration,
    stopped_limit: Duration,
    pressure: Pressure,
    first_failure: Option<(Rank, ExitStatus)>,
    interrupted: Option<Signal>,
    /// Whether ranks had to be told to end.
    pushed: bool,
    reported: bool,
    /// Whether the ground under the ranks was lost, which has been said.
    fell: bool,
    /// Why results did not reach the user. No reason to end the job: its result file may be what counts.
    lost: Option<io::Error>,
    /// Breaks when the launcher is gone.
    _lifeline: OwnedFd,
    /// Keeps rank 0's port from everybody else.
    _reservation: Option<Socket>,
}

impl Crew {
    pub(super) fn start(options: &LaunchOptions) -> Result<Self> {
        if options.size == 0 || options.command.is_empty() {
            return Err(Error::Setup("a launch needs at least one rank and a command".into()));
        }
        // Each rank's output comes through two pipes.
        files::check_tasks(options.size)?;
        files::make_room(&format!("the launcher of {} ranks", options.size), options.size.saturating_mul(2))?;
        let failed = |what: &'static str| move |e: io::Error| Error::Setup(format!("the launcher's {what}: {e}"));
        let (root, reservation) = root_address(options).map_err(failed("port for rank 0"))?;
        let (inherited, lifeline) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("pipe")(e.into()))?;
        fcntl_setfd(&inherited, FdFlags::empty()).map_err(|e| failed("pipe")(e.into()))?;
        let secret = Secret::random()?.to_hex();
        let common: Vec<(&str, String)> = vec![
            (variables::SIZE, options.size.to_string()),
            (variables::ROOT, root.to_string()),
            (variables::SECRET, secret),
            (variables::LAUNCHER, "tailback launch".into()),
            (variables::LIFELINE, Lifeline::name(&inherited).map_err(failed("pipe"))?),
            (variables::ROOT_RESERVED, if reservation.is_some() { "1" } else { "" }.into()),
        ];
        let mut crew = Crew {
            members: Vec::new(),
            streams: Vec::new(),
            grace: options.grace,
            stopped_limit: options.stopped_limit,
            pressure: Pressure::None,
            first_failure: None,
            interrupted: None,
            pushed: false,
            reported: false,
            fell: false,
            lost: None,
            _lifeline: lifeline,
            _reservation: reservation,
        };
        for rank in 0..options.size {
            if let Err(error) = crew.start_rank(Rank::from(rank), options, &common) {
                crew.kill_all();
                return Err(error);
            }
        }
        Ok(crew)
    }

    fn start_rank(&mut self, rank: Rank, options: &LaunchOptions, common: &[(&str, String)]) -> Result<()> {
        let mut member = Member::start(rank, options, common)?;
        let prefixed = options.output == Output::Prefix;
        let stdout = member.child.stdout.take().map(|s| Stream::new(s.into(), rank, prefixed, false));
        let stderr = member.child.stderr.take().map(|s| Stream::new(s.into(), rank, prefixed, true));
        self.streams.extend(stdout.into_iter().chain(stderr));
        self.members.push(member);
        Ok(())
    }

    /// Waits for the end of all ranks and gives the job's exit code. An error of `ground` ends them.
    pub(super) fn supervise(&mut self, signals: &Signals, ground: Option<&Ground>) -> Result<i32> {
        let mut drained = None;
        loop {
            let next = match self.pressure {
                Pressure::Terminate(at) | Pressure::Kill(at) => at,
                Pressure::None | Pressure::Killed => Instant::now() + LOOK,
            };
            self.wait(signals, drained.unwrap_or(next))?;
            for signal in signals.arrived() {
                self.pass_on(signal);
            }
            if let (Pressure::None, Some(Err(reason))) = (self.pressure, ground.map(|holds| holds())) {
                self.give_up(&reason);
            }
            if let (Pressure::None, false, Some(who)) = (self.pressure, self.reported, self.left_behind()) {
                let limit = self.stopped_limit.as_secs();
                let what = "by SIGSTOP or a debugger, while others run";
                self.give_up(&format!("{who} has been stopped for {limit} s, {what}"));
            }
            self.reap();
            self.press();
            if self.members.iter().all(|m| m.status.is_some()) {
                let until = *drained.get_or_insert_with(|| Instant::now() + DRAIN);
                if self.streams.is_empty() || Instant::now() >= until {
                    // Ranks that were killed with what they stood on did not live to say so, and may have gone first.
                    let killed = self.first_failure.is_some_and(|(_, status)| status.signal().is_some());
                    if killed
                        && !self.reported
                        && !self.fell
                        && let Some(reason) = ground.and_then(lost_soon)
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
            self.pressure = Pressure::Killed;
        } else {
            self.interrupted = Some(signal);
            self.signal_all(signal);
            self.pressure = Pressure::Kill(Instant::now() + self.grace);
        }
    }

    /// Ends the job for a reason that no rank knows. What ranks still say would only be its consequences.
    fn give_up(&mut self, reason: &str) {
        say("error", reason);
        self.fell = true;
        self.streams.iter_mut().for_each(Stream::silence);
        self.signal_all(Signal::KILL);
        self.pressure = Pressure::Killed;
    }

    /// A rank that has been standing still for too long. All of them together may: somebody stopped the job.
    fn left_behind(&mut self) -> Option<String> {
        let now = Instant::now();
        let mut running = self.members.iter_mut().filter(|m| m.status.is_none()).collect::<Vec<_>>();
        for member in &mut running {
            member.stopped = member.is_stopped().then(|| member.stopped.unwrap_or(now));
        }
        if running.iter().all(|m| m.stopped.is_some()) {
            running.iter_mut().for_each(|m| m.stopped = None);
        }
        let is_late = |m: &&&mut Member| m.stopped.is_some_and(|since| now - since >= self.stopped_limit);
        running.iter().find(is_late).map(|m| m.name())
    }

    fn reap(&mut self) {
        let mut failures = Vec::new();
        for member in self.members.iter_mut().filter(|m| m.status.is_none()) {
            // An error here means that the child is gone without a trace; it cannot be waited for again.
            let status = member.child.try_wait().unwrap_or(Some(ExitStatus::from_raw(2 << 8)));
            member.status = status;
            failures.extend(status.filter(|s| !s.success()).map(|s| (member.rank, s)));
        }
        // Seen together, a killed rank is the reason why others gave up.
        failures.sort_by_key(|(rank, status)| (status.signal().is_none(), *rank));
        if let (None, Some(first)) = (self.first_failure, failures.first()) {
            self.first_failure = Some(*first);
            if matches!(self.pressure, Pressure::None) {
                self.pressure = Pressure::Terminate(Instant::now() + NOTICE);
            }
        }
    }

    /// Ends ranks that had their time.
    fn press(&mut self) {
        let now = Instant::now();
        match self.pressure {
            Pressure::Terminate(at) if now >= at => {
                self.pushed |= self.signal_all(Signal::TERM);
                self.pressure = Pressure::Kill(now + self.grace.min(FAILED_GRACE));
            }
            Pressure::Kill(at) if now >= at => {
                self.signal_all(Signal::KILL);
                self.pressure = Pressure::Killed;
            }
            _ => {}
        }
    }

    /// Whether there was anyone to signal.
    fn signal_all(&self, signal: Signal) -> bool {
        let running: Vec<&Member> = self.members.iter().filter(|m| m.status.is_none()).collect();
        for member in &running {
            if let Some(pid) = member.pid() {
                let _ = kill_process_group(pid, signal);
            }
        }
        !running.is_empty()
    }

    fn kill_all(&mut self) {
        self.signal_all(Signal::KILL);
        for member in &mut self.members {
            let _ = member.child.wait();
        }
    }

    fn conclude(&self) -> i32 {
        if self.fell {
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
                // Code 1 is a result (a threshold failed), unless it took others down.
                if !self.reported && (code != 1 || self.pushed) {
                    say("error", &format!("rank {rank} ended with exit code {code}"));
                }
                code
            }
            (None, Some(_)) if self.reported => EXIT_CODE,
            (None, Some(signal)) => {
                // A rank that is part of a job has neighbours who notice, so this one was not, or no longer.
                let when = "in phase \"start-up\", or after its last phase";
                let who = self.members[rank.index()].name();
                say("error", &format!("{who} was ended by signal {signal} {when}"));
                EXIT_CODE
            }
            (None, None) => EXIT_CODE,
        }
    }

    /// Ranks that take a signal as a wish and end in order have a code of their own, which then is the job's.
    fn interrupted_code(&self, signal: Signal) -> i32 {
        let orderly = self.members.iter().all(|m| m.status.is_some_and(|s| s.code().is_some()));
        match self.first_failure {
            _ if !orderly => 128 + signal.as_raw(),
            None => 0,
            Some((_, status)) => status.code().unwrap_or(EXIT_CODE),
        }
    }
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

/// Why the ground is lost, now or in a moment.
fn lost_soon(holds: &Ground) -> Option<String> {
    let until = Instant::now() + GROUND_GOES;
    loop {
        match holds() {
            Err(reason) => return Some(reason),
            Ok(()) if Instant::now() >= until => return None,
            Ok(()) => std::thread::sleep(GROUND_LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn ground_that_goes_after_its_ranks_is_the_reason() {
        let looks = Cell::new(0);
        let goes: Ground = Box::new(move || {
            looks.set(looks.get() + 1);
            if looks.get() > 3 { Err("lab x was taken down".into()) } else { Ok(()) }
        });
        assert_eq!(lost_soon(&goes).as_deref(), Some("lab x was taken down"));
        assert_eq!(lost_soon(&(Box::new(|| Ok(())) as Ground)), None);
    }
}
