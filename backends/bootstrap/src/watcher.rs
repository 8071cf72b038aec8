//! The watcher: one thread per rank that notices when the job can no longer succeed, and ends it in order.
//!
//! It sleeps in poll and wakes about once a second to send a sign of life up and a pulse down the tree, so that it
//! takes no measurable time from what is timed. Invariants:
//! - Reports travel up to rank 0, which waits a moment for the root cause, prints one message and sends `End` down.
//! - A rank ends by `End`, by the loss of its parent, or, when nothing comes back, by a time limit of its own.
//! - Only rank 0 prints; rank 1 does when rank 0 is gone; a rank that aborts does when nobody confirms.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::{Monitor, Rank, START_UP};

use crate::config::JoinConfig;
use crate::failure::lost_message;
use crate::failure_detector::FailureDetector;
use crate::message::{Beat, Report, State, Watch};
use crate::neighbour::{Neighbour, send_last};
use crate::polling::poll_until;
use crate::tree::Tree;

/// How long rank 0 waits for the root cause after a first report.
const SETTLE: Duration = Duration::from_millis(250);
/// How long an aborting rank waits for rank 0 to confirm.
const CONFIRM: Duration = Duration::from_secs(1);
/// How long a rank waits to be ended once something was reported.
const END_LIMIT: Duration = Duration::from_secs(4);
const INTERVAL: Duration = Duration::from_secs(1);

/// What the rank's own thread asks of its watcher.
#[derive(Debug)]
pub(crate) enum Command {
    /// End the job.
    Abort(String),
    /// A collective found this neighbour gone.
    Lost(Rank, String),
    /// Say goodbye and stop watching.
    Finish,
}

/// What a rank's own thread and its watcher share.
#[derive(Debug)]
pub(crate) struct WatcherHandle {
    pub(crate) monitor: Arc<Monitor>,
    waiting: AtomicBool,
    collectives: AtomicU64,
    commands: Mutex<Vec<Command>>,
    /// Written to whenever there is a command.
    wake: UnixStream,
    failed: Mutex<bool>,
    changed: Condvar,
}

impl WatcherHandle {
    pub(crate) fn enter_collective(&self) {
        self.collectives.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn leave_collective(&self) {
        self.waiting.store(false, Ordering::Relaxed);
    }

    /// This rank's sign of life, without its phase.
    pub(crate) fn beat(&self, rank: Rank) -> Beat {
        let waiting = self.waiting.load(Ordering::Relaxed) || self.monitor.is_waiting();
        let state = if waiting { State::Waiting } else { State::Busy };
        let collectives = self.collectives.load(Ordering::Relaxed);
        Beat { rank, ticks: self.monitor.ticks(), collectives, state, phase: None }
    }

    pub(crate) fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        // The pipe is never read-blocked: one byte that does not fit means others wait there already.
        let _ = (&self.wake).write(&[1]);
    }

    pub(crate) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut lock(&self.commands))
    }

    pub(crate) fn set_failed(&self) {
        *lock(&self.failed) = true;
        self.changed.notify_all();
    }

    pub(crate) fn has_failed(&self) -> bool {
        *lock(&self.failed)
    }

    /// Waits until the watcher has ended the job; `false` if it did not within `limit`.
    pub(crate) fn wait_failed(&self, limit: Duration) -> bool {
        let guard = lock(&self.failed);
        let waited = self.changed.wait_timeout_while(guard, limit, |failed| !*failed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of this rank, decided but not carried out yet.
#[derive(Debug)]
struct Ending {
    at: Instant,
    message: Option<String>,
    /// Whether the reason is what the user asked for, and no news.
    excused: bool,
}

pub(crate) struct Watcher {
    config: JoinConfig,
    shared: Arc<WatcherHandle>,
    wake: UnixStream,
    parent: Option<Neighbour>,
    children: Vec<Neighbour>,
    /// The collectives' connections, shut to free a rank that waits in one.
    data: Vec<TcpStream>,
    /// On rank 0.
    detector: Option<FailureDetector>,
    outbox: Vec<Beat>,
    told_phase: Option<String>,
    next_beat: Instant,
    ending: Option<Ending>,
}

impl Watcher {
    /// Starts the watcher of a rank that has joined, as a thread.
    pub(crate) fn start(
        config: &JoinConfig,
        tree: &Tree,
        (parent, children): (Option<Neighbour>, Vec<Neighbour>),
        hosts: Vec<String>,
        monitor: Arc<Monitor>,
    ) -> io::Result<(Arc<WatcherHandle>, JoinHandle<()>)> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        monitor.wake_on_enter(waker.try_clone()?);
        let shared = Arc::new(WatcherHandle {
            monitor,
            waiting: AtomicBool::new(false),
            collectives: AtomicU64::new(0),
            commands: Mutex::default(),
            wake: waker,
            failed: Mutex::new(false),
            changed: Condvar::new(),
        });
        let now = Instant::now();
        let mut watcher = Watcher {
            config: config.clone(),
            shared: Arc::clone(&shared),
            wake,
            parent,
            children,
            data: tree.parent.iter().chain(&tree.children).map(|e| e.stream.try_clone()).collect::<io::Result<_>>()?,
            detector: (config.rank.0 == 0).then(|| FailureDetector::new(hosts, config.fan_out, now)),
            outbox: Vec::new(),
            told_phase: None,
            next_beat: now,
            ending: None,
        };
        watcher.parent.iter_mut().chain(&mut watcher.children).for_each(|neighbour| neighbour.heard = now);
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(|| watcher.run())?;
        Ok((shared, thread))
    }

    /// Watches until the job fails or the rank finishes.
    fn run(mut self) {
        self.shared.monitor.begin_watch();
        while self.step().is_continue() {}
    }

    fn step(&mut self) -> ControlFlow<()> {
        let flow = self.wait();
        self.shared.monitor.woke();
        flow?;
        self.take_commands()?;
        self.read_parent()?;
        self.read_children();
        let now = Instant::now();
        if now >= self.next_beat {
            self.beat(now)?;
        } else if self.told_phase.as_deref() != Some(&*self.shared.monitor.phase()) {
            self.announce();
        }
        let Some(ending) = self.ending.take_if(|e| now >= e.at) else { return ControlFlow::Continue(()) };
        let verdict = self.detector.as_ref().map(FailureDetector::verdict);
        self.end(ending.message.or(verdict).as_deref().filter(|_| !ending.excused))
    }

    fn wait(&mut self) -> ControlFlow<()> {
        let deadline = self.ending.as_ref().map_or(self.next_beat, |e| e.at.min(self.next_beat));
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        for peer in self.parent.iter().chain(&self.children).filter(|p| !p.closed) {
            fds.push(peer.poll_fd());
        }
        if let Some(pipe) = &self.config.launcher_pipe {
            fds.push(PollFd::new(&**pipe, PollFlags::IN));
        }
        let polled = poll_until(&mut fds, deadline);
        drop(fds);
        if let Err(e) = polled {
            return self.end(Some(&format!("rank {} cannot watch its neighbours: {e}", self.config.rank)));
        }
        if self.config.launcher_pipe.as_ref().is_some_and(|pipe| pipe.is_closed()) {
            return self.end(None);
        }
        let mut drain = [0; 64];
        let _ = self.wake.read(&mut drain);
        ControlFlow::Continue(())
    }

    fn take_commands(&mut self) -> ControlFlow<()> {
        for command in self.shared.take_commands() {
            match command {
                Command::Finish if self.ending.is_none() => {
                    send_last(self.parent.iter_mut().chain(&mut self.children), &Watch::Goodbye);
                    return ControlFlow::Break(());
                }
                Command::Finish => {}
                Command::Abort(reason) => {
                    let (rank, host) = (self.config.rank, self.config.host.clone());
                    let phase = self.shared.monitor.phase();
                    let message = format!("rank {rank} (host {host}), phase \"{phase}\": {reason}");
                    self.report(Report::Abort { rank, host, phase, reason }, Some(message));
                }
                Command::Lost(rank, detail) => {
                    if self.parent.as_ref().is_some_and(|p| p.rank == rank) {
                        self.parent_lost(&detail);
                    } else {
                        self.child_lost(rank, detail);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn read_parent(&mut self) -> ControlFlow<()> {
        let Some(parent) = self.parent.as_mut().filter(|p| !p.closed) else { return ControlFlow::Continue(()) };
        parent.flush();
        let inbox = parent.receive();
        for message in inbox.messages {
            parent.heard = Instant::now();
            match message {
                Watch::Pulse(phase) => parent.phase = Some(phase),
                Watch::Goodbye => parent.done = true,
                Watch::Noted => {
                    self.ending = Some(Ending { at: Instant::now() + END_LIMIT, message: None, excused: false });
                    self.children.iter_mut().for_each(|c| c.send(&Watch::Noted));
                }
                Watch::End => return self.end(None),
                Watch::Beats(_) | Watch::Report(_) => {}
            }
        }
        if let Some(detail) = inbox.closed {
            parent.closed = true;
            if !parent.done {
                self.parent_lost(&detail);
            }
        }
        ControlFlow::Continue(())
    }

    fn read_children(&mut self) {
        for index in 0..self.children.len() {
            let child = &mut self.children[index];
            if child.closed {
                continue;
            }
            child.flush();
            let inbox = child.receive();
            for message in inbox.messages {
                self.hear_child(index, message);
            }
            if let Some(detail) = inbox.closed {
                let child = &mut self.children[index];
                child.closed = true;
                if !child.done {
                    let rank = child.rank;
                    self.child_lost(rank, detail);
                }
            }
        }
    }

    fn hear_child(&mut self, index: usize, message: Watch) {
        let child = &mut self.children[index];
        child.heard = Instant::now();
        match message {
            Watch::Beats(beats) => {
                if let Some(phase) = beats.iter().filter(|b| b.rank == child.rank).find_map(|b| b.phase.as_ref()) {
                    child.phase = Some(phase.clone());
                }
                self.pass_on(beats);
            }
            Watch::Report(report) => self.report(report, None),
            Watch::Goodbye => {
                child.done = true;
                let rank = child.rank;
                self.pass_on(vec![Beat { rank, ticks: 0, collectives: 0, state: State::Done, phase: None }]);
            }
            Watch::Pulse(_) | Watch::Noted | Watch::End => {}
        }
    }

    fn pass_on(&mut self, beats: Vec<Beat>) {
        match &mut self.detector {
            Some(detector) => beats.iter().for_each(|b| detector.note(b, Instant::now())),
            None => self.outbox.extend(beats),
        }
    }

    /// Sends signs of life and looks for their absence.
    fn beat(&mut self, now: Instant) -> ControlFlow<()> {
        // Whoever was stopped, or had no processor, has heard nothing meanwhile; that is not the others' silence.
        if now.saturating_duration_since(self.next_beat) > 2 * INTERVAL {
            self.detector.iter_mut().for_each(|detector| detector.forgive(now));
            self.parent.iter_mut().chain(&mut self.children).for_each(|peer| peer.heard = now);
        }
        let shortest = [self.config.silence_limit, self.config.stall_limit].into_iter().flatten().min();
        self.next_beat = now + shortest.map_or(INTERVAL, |l| (l / 4).min(INTERVAL));
        let phase = self.note_own_beat();
        for child in self.children.iter_mut().filter(|c| !c.closed) {
            child.send(&Watch::Pulse(phase.clone()));
        }
        self.send_beats();
        if self.ending.is_some() { ControlFlow::Continue(()) } else { self.look_for_stalls(now) }
    }

    /// Tells at once of a phase that was entered, those who would have to say in which phase this rank was lost.
    fn announce(&mut self) {
        let phase = self.note_own_beat();
        self.send_beats();
        if let (Some(_), Some(child)) = (&self.detector, self.children.first_mut().filter(|c| !c.closed)) {
            child.send(&Watch::Pulse(phase));
        }
    }

    /// Adds this rank's own sign of life to those that are to be passed on, and gives its phase.
    fn note_own_beat(&mut self) -> String {
        let phase = self.shared.monitor.phase();
        let mut mine = self.shared.beat(self.config.rank);
        if self.told_phase.as_ref() != Some(&phase) {
            mine.phase = Some(phase.clone());
            self.told_phase = Some(phase.clone());
        }
        self.pass_on(vec![mine]);
        phase
    }

    fn send_beats(&mut self) {
        if let Some(parent) = self.parent.as_mut().filter(|p| !p.closed) {
            parent.send(&Watch::Beats(std::mem::take(&mut self.outbox)));
        }
    }

    fn look_for_stalls(&mut self, now: Instant) -> ControlFlow<()> {
        // A rank that makes no progress is not waited for longer because it is silent as well.
        let (silence, stall) = (self.config.silence_limit, self.config.stall_limit);
        let silence = silence.into_iter().chain(stall).min();
        if let Some(detector) = &self.detector {
            let silent = silence.and_then(|limit| detector.silent(limit, now));
            let message = silent.or_else(|| stall.and_then(|limit| detector.stuck(limit, now)));
            if message.is_some() {
                return self.end(message.as_deref());
            }
        }
        // Rank 0 names a silent rank first; this is for those it cannot reach.
        let Some(limit) = silence.map(|limit| limit + INTERVAL) else { return ControlFlow::Continue(()) };
        let silent = |p: &Neighbour| !p.closed && now.saturating_duration_since(p.heard) > limit;
        if self.parent.as_ref().is_some_and(silent) {
            self.parent_lost(&format!("no sign of life for {} s", limit.as_secs_f64()));
        }
        ControlFlow::Continue(())
    }

    fn child_lost(&mut self, rank: Rank, detail: String) {
        let child = self.children.iter().find(|c| c.rank == rank);
        let early = child.is_some_and(|c| c.done);
        let detail = if early { "it ended before the others".to_owned() } else { detail };
        let phase = child.and_then(|c| c.phase.clone());
        self.report(Report::Lost { rank, phase, detail }, None);
    }

    /// Without its parent a rank cannot ask anyone: it ends, and rank 1 speaks for rank 0.
    fn parent_lost(&mut self, detail: &str) {
        let Some(parent) = &self.parent else { return };
        let (me, at) = (self.config.rank, Instant::now() + SETTLE);
        let detail = if parent.done { "it ended before the others" } else { detail };
        let message = speaks_for(me, parent).then(|| lost(parent, detail));
        let excused = self.excuses(parent.phase.as_deref());
        if self.ending.as_ref().is_none_or(|e| e.at > at) {
            self.ending = Some(Ending { at, message, excused });
        }
    }

    /// Whether a rank lost in `phase` ended because the user wants the job to end: ranks then give up joining. Later they
    /// end in order, so that a loss is news all the same; and so is one noticed before the interrupt.
    fn excuses(&self, phase: Option<&str>) -> bool {
        self.config.is_interrupted() && phase.is_none_or(|phase| phase == START_UP)
    }

    /// Takes a report towards rank 0; `own` is what to print if nobody there takes it.
    fn report(&mut self, report: Report, mut own: Option<String>) {
        let now = Instant::now();
        let excused = matches!(&report, Report::Lost { phase, .. } if self.excuses(phase.as_deref()));
        let limit = if own.is_some() { CONFIRM } else { END_LIMIT };
        let at = match (&mut self.detector, &mut self.parent) {
            (Some(detector), _) => {
                detector.report(report);
                self.children.iter_mut().for_each(|c| c.send(&Watch::Noted));
                now + SETTLE
            }
            (None, Some(parent)) => {
                parent.send(&Watch::Report(report));
                let quiet = now.saturating_duration_since(parent.heard) > 2 * INTERVAL;
                match self.config.silence_limit.map(|limit| limit + INTERVAL).filter(|_| quiet && own.is_some()) {
                    // It may be the one that is lost, and what is reported what became of that: whoever speaks for it does.
                    Some(silence) => {
                        let detail = format!("no sign of life for {} s", silence.as_secs_f64());
                        let speaks = speaks_for(self.config.rank, parent);
                        own = speaks.then(|| lost(parent, &detail));
                        let end = parent.heard + silence + if speaks { Duration::ZERO } else { INTERVAL };
                        end.max(now + limit)
                    }
                    None => now + limit,
                }
            }
            (None, None) => now,
        };
        match &mut self.ending {
            Some(ending) => ending.excused &= excused,
            none => {
                let message = if self.detector.is_some() { None } else { own };
                *none = Some(Ending { at, message, excused });
            }
        }
    }

    /// Ends this rank: prints if it is the one to, tells those below, and lets the process go.
    fn end(&mut self, message: Option<&str>) -> ControlFlow<()> {
        if let Some(message) = message {
            self.config.on_failure.report(message);
        }
        send_last(self.children.iter_mut(), &Watch::End);
        self.shared.set_failed();
        for stream in &self.data {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.config.on_failure.end(message);
        ControlFlow::Break(())
    }
}

/// Whether a rank is the one to say that its parent is lost: rank 1, of rank 0.
fn speaks_for(rank: Rank, parent: &Neighbour) -> bool {
    rank.0 == 1 && parent.rank.0 == 0
}

fn lost(peer: &Neighbour, detail: &str) -> String {
    lost_message(peer.rank, &peer.host, peer.phase.as_deref().unwrap_or(START_UP), detail)
}
