//! The watcher: one thread per rank that notices when the job can no longer succeed, and ends it in order.
//!
//! It sleeps in poll and wakes about once a second to send a sign of life up and a pulse down the tree, so that it
//! takes no measurable time from what is timed. Invariants:
//! - Reports travel up to rank 0, which waits a moment for the root cause, prints one message and sends `End` down.
//! - A rank ends by `End`, by the loss of its parent, or, when nothing comes back, by a time limit of its own.
//! - Only rank 0 prints; rank 1 does when rank 0 is gone; a rank that aborts does when nobody confirms.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::{Rank, START_UP};

use crate::config::JoinConfig;
use crate::failure::Failure;
use crate::judge::{Judge, lost_message};
use crate::message::{Beat, Report, State, Watch};
use crate::peer::{self, Peer};
use crate::polling::poll_until;
use crate::shared::{Command, Shared};

/// How long rank 0 waits for the root cause after a first report.
const SETTLE: Duration = Duration::from_millis(250);
/// How long an aborting rank waits for rank 0 to confirm.
const CONFIRM: Duration = Duration::from_secs(1);
/// How long a rank waits to be ended once something was reported.
const PATIENCE: Duration = Duration::from_secs(4);
const INTERVAL: Duration = Duration::from_secs(1);

/// The end of this rank, decided but not carried out yet.
#[derive(Debug)]
struct Ending {
    at: Instant,
    message: Option<String>,
    /// Whether the reason is what the user asked for, and no news.
    excused: bool,
}

pub(crate) struct Watcher {
    pub(crate) config: JoinConfig,
    pub(crate) shared: Arc<Shared>,
    pub(crate) wake: UnixStream,
    pub(crate) parent: Option<Peer>,
    pub(crate) children: Vec<Peer>,
    /// The collectives' connections, shut to free a rank that waits in one.
    pub(crate) data: Vec<TcpStream>,
    /// On rank 0.
    pub(crate) judge: Option<Judge>,
    state: Progress,
}

#[derive(Debug)]
struct Progress {
    outbox: Vec<Beat>,
    told_phase: Option<String>,
    next_beat: Instant,
    ending: Option<Ending>,
}

/// Whether the watcher goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Continue,
    Stop,
}

impl Watcher {
    pub(crate) fn new(
        config: JoinConfig,
        shared: Arc<Shared>,
        wake: UnixStream,
        peers: (Option<Peer>, Vec<Peer>),
        data: Vec<TcpStream>,
        judge: Option<Judge>,
    ) -> Self {
        let (parent, children) = peers;
        let state = Progress { outbox: Vec::new(), told_phase: None, next_beat: Instant::now(), ending: None };
        Watcher { config, shared, wake, parent, children, data, judge, state }
    }

    /// Watches until the job fails or the rank finishes.
    pub(crate) fn run(mut self) {
        self.shared.monitor.begin_watch();
        loop {
            let flow = self.wait();
            self.shared.monitor.woke();
            if flow == Flow::Stop || self.take_commands() == Flow::Stop {
                return;
            }
            if self.read_parent() == Flow::Stop {
                return;
            }
            self.read_children();
            let now = Instant::now();
            if now >= self.state.next_beat {
                if self.beat(now) == Flow::Stop {
                    return;
                }
            } else if self.state.told_phase.as_deref() != Some(&*self.shared.monitor.phase()) {
                self.announce();
            }
            if let Some(ending) = self.state.ending.take_if(|e| now >= e.at) {
                let verdict = self.judge.as_ref().map(Judge::verdict);
                return self.end(ending.message.or(verdict).filter(|_| !ending.excused));
            }
        }
    }

    fn wait(&mut self) -> Flow {
        let deadline = self.state.ending.as_ref().map_or(self.state.next_beat, |e| e.at.min(self.state.next_beat));
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        for peer in self.parent.iter().chain(&self.children).filter(|p| !p.closed) {
            let out = if peer.link.has_outgoing() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::new(peer.link.stream(), PollFlags::IN | out));
        }
        if let Some(lifeline) = &self.config.lifeline {
            fds.push(PollFd::new(&**lifeline, PollFlags::IN));
        }
        let polled = poll_until(&mut fds, deadline);
        drop(fds);
        if let Err(e) = polled {
            self.end(Some(format!("rank {} cannot watch its neighbours: {e}", self.config.rank)));
            return Flow::Stop;
        }
        if self.config.lifeline.as_ref().is_some_and(|l| l.is_cut()) {
            self.end(None);
            return Flow::Stop;
        }
        let mut drain = [0; 64];
        let _ = self.wake.read(&mut drain);
        Flow::Continue
    }

    fn take_commands(&mut self) -> Flow {
        for command in self.shared.take_commands() {
            match command {
                Command::Finish if self.state.ending.is_none() => {
                    self.say_goodbye();
                    return Flow::Stop;
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
        Flow::Continue
    }

    fn read_parent(&mut self) -> Flow {
        let Some(parent) = self.parent.as_mut().filter(|p| !p.closed) else { return Flow::Continue };
        parent.link.flush();
        let inbox = parent.link.receive();
        for message in inbox.messages {
            parent.heard = Instant::now();
            match message {
                Watch::Pulse(phase) => parent.phase = Some(phase),
                Watch::Goodbye => parent.done = true,
                Watch::Noted => {
                    self.state.ending = Some(Ending { at: Instant::now() + PATIENCE, message: None, excused: false });
                    self.children.iter_mut().for_each(|c| c.link.send(&Watch::Noted));
                }
                Watch::End => {
                    self.end(None);
                    return Flow::Stop;
                }
                Watch::Beats(_) | Watch::Report(_) => {}
            }
        }
        if let Some(detail) = inbox.closed {
            parent.closed = true;
            if !parent.done {
                self.parent_lost(&detail);
            }
        }
        Flow::Continue
    }

    fn read_children(&mut self) {
        for index in 0..self.children.len() {
            let child = &mut self.children[index];
            if child.closed {
                continue;
            }
            child.link.flush();
            let inbox = child.link.receive();
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
        match &mut self.judge {
            Some(judge) => beats.iter().for_each(|b| judge.note(b, Instant::now())),
            None => self.state.outbox.extend(beats),
        }
    }

    /// Sends signs of life and looks for their absence.
    fn beat(&mut self, now: Instant) -> Flow {
        // Whoever was stopped, or had no processor, has heard nothing meanwhile; that is not the others' silence.
        if now.saturating_duration_since(self.state.next_beat) > 2 * INTERVAL {
            self.judge.iter_mut().for_each(|judge| judge.forgive(now));
            self.parent.iter_mut().chain(&mut self.children).for_each(|peer| peer.heard = now);
        }
        let shortest = [self.config.silence_limit, self.config.stall_limit].into_iter().flatten().min();
        self.state.next_beat = now + shortest.map_or(INTERVAL, |l| (l / 4).min(INTERVAL));
        let phase = self.note_own_beat();
        for child in self.children.iter_mut().filter(|c| !c.closed) {
            child.link.send(&Watch::Pulse(phase.clone()));
        }
        self.send_beats();
        if self.state.ending.is_some() { Flow::Continue } else { self.look_for_stalls(now) }
    }

    /// Tells at once of a phase that was entered, those who would have to say in which phase this rank was lost.
    fn announce(&mut self) {
        let phase = self.note_own_beat();
        self.send_beats();
        if let (Some(_), Some(child)) = (&self.judge, self.children.first_mut().filter(|c| !c.closed)) {
            child.link.send(&Watch::Pulse(phase));
        }
    }

    /// Adds this rank's own sign of life to those that are to be passed on, and gives its phase.
    fn note_own_beat(&mut self) -> String {
        let phase = self.shared.monitor.phase();
        let mut mine = self.shared.beat(self.config.rank);
        if self.state.told_phase.as_ref() != Some(&phase) {
            mine.phase = Some(phase.clone());
            self.state.told_phase = Some(phase.clone());
        }
        self.pass_on(vec![mine]);
        phase
    }

    fn send_beats(&mut self) {
        if let Some(parent) = self.parent.as_mut().filter(|p| !p.closed) {
            parent.link.send(&Watch::Beats(std::mem::take(&mut self.state.outbox)));
        }
    }

    fn look_for_stalls(&mut self, now: Instant) -> Flow {
        // A rank that makes no progress is not waited for longer because it is silent as well.
        let (silence, stall) = (self.config.silence_limit, self.config.stall_limit);
        let silence = silence.into_iter().chain(stall).min();
        if let Some(judge) = &self.judge {
            let silent = silence.and_then(|limit| judge.silent(limit, now));
            let message = silent.or_else(|| stall.and_then(|limit| judge.stuck(limit, now)));
            if message.is_some() {
                self.end(message);
                return Flow::Stop;
            }
        }
        // Rank 0 names a silent rank first; this is for those it cannot reach.
        let Some(limit) = silence.map(|limit| limit + INTERVAL) else { return Flow::Continue };
        let silent = |p: &Peer| !p.closed && now.saturating_duration_since(p.heard) > limit;
        if self.parent.as_ref().is_some_and(silent) {
            self.parent_lost(&format!("no sign of life for {} s", limit.as_secs_f64()));
        }
        Flow::Continue
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
        if self.state.ending.as_ref().is_none_or(|e| e.at > at) {
            self.state.ending = Some(Ending { at, message, excused });
        }
    }

    /// Whether a rank lost in `phase` ended because the user wants the job to end: ranks then give up joining. Later they
    /// end in order, so that a loss is news all the same; and so is one noticed before the wish.
    fn excuses(&self, phase: Option<&str>) -> bool {
        self.config.is_interrupted() && phase.is_none_or(|phase| phase == START_UP)
    }

    /// Takes a report towards rank 0; `own` is what to print if nobody there takes it.
    fn report(&mut self, report: Report, mut own: Option<String>) {
        let now = Instant::now();
        let excused = matches!(&report, Report::Lost { phase, .. } if self.excuses(phase.as_deref()));
        let patience = if own.is_some() { CONFIRM } else { PATIENCE };
        let at = match (&mut self.judge, &mut self.parent) {
            (Some(judge), _) => {
                judge.report(report);
                self.children.iter_mut().for_each(|c| c.link.send(&Watch::Noted));
                now + SETTLE
            }
            (None, Some(parent)) => {
                parent.link.send(&Watch::Report(report));
                let quiet = now.saturating_duration_since(parent.heard) > 2 * INTERVAL;
                match self.config.silence_limit.map(|limit| limit + INTERVAL).filter(|_| quiet && own.is_some()) {
                    // It may be the one that is lost, and what is reported what became of that: whoever speaks for it does.
                    Some(limit) => {
                        let detail = format!("no sign of life for {} s", limit.as_secs_f64());
                        let speaks = speaks_for(self.config.rank, parent);
                        own = speaks.then(|| lost(parent, &detail));
                        let end = parent.heard + limit + if speaks { Duration::ZERO } else { INTERVAL };
                        end.max(now + patience)
                    }
                    None => now + patience,
                }
            }
            (None, None) => now,
        };
        match &mut self.state.ending {
            Some(ending) => ending.excused &= excused,
            none => {
                let message = if self.judge.is_some() { None } else { own };
                *none = Some(Ending { at, message, excused });
            }
        }
    }

    /// Ends this rank: prints if it is the one to, tells those below, and lets the process go.
    fn end(&mut self, message: Option<String>) {
        let failure = message.map_or_else(Failure::silent, Failure::saying);
        if let Some(message) = &failure.message {
            self.config.on_failure.report(message);
        }
        peer::last_words(self.children.iter_mut(), &Watch::End);
        self.shared.set_failed();
        for stream in &self.data {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.config.on_failure.end(&failure);
    }

    fn say_goodbye(&mut self) {
        peer::last_words(self.parent.iter_mut().chain(&mut self.children), &Watch::Goodbye);
    }
}

/// Whether a rank is the one to say that its parent is lost: rank 1, of rank 0.
fn speaks_for(rank: Rank, parent: &Peer) -> bool {
    rank.0 == 1 && parent.rank.0 == 0
}

fn lost(peer: &Peer, detail: &str) -> String {
    lost_message(peer.rank, &peer.host, peer.phase.as_deref().unwrap_or(START_UP), detail)
}
