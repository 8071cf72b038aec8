//! Where a rank is, for those who must say so when something goes wrong.
//!
//! The benchmark writes (phase, ticks); the bootstrap's watcher thread reads, tells the job, and names the rank that
//! made no progress. A tick is a relaxed atomic add and a store and may sit between timed iterations, never inside one.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

use crate::cpu_list::number_list;

/// The phase of a rank that has not entered any.
pub const START_UP: &str = "start-up";

/// A rank's current phase and a counter that moves while it makes progress.
#[derive(Debug, Default)]
pub struct Monitor {
    phase: Mutex<String>,
    ticks: AtomicU64,
    waiting: AtomicBool,
    excused: Mutex<Option<Instant>>,
    wake: Mutex<Option<UnixStream>>,
    watcher: Mutex<Watcher>,
    begun: Condvar,
    wakeups: AtomicU64,
}

/// How long a watcher is waited for that was started, on a busy machine.
const TO_BEGIN: Duration = Duration::from_secs(5);

/// Where the watcher thread runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchPost {
    /// The threads of the machine that it may use, as the kernel writes them: `0-3,8`.
    pub cores: String,
    /// What was done, or why nothing.
    pub why: String,
}

/// The watcher thread, and where it is wanted.
#[derive(Debug, Default)]
struct Watcher {
    thread: Option<Pid>,
    wanted: Option<Vec<usize>>,
    post: Option<WatchPost>,
}

impl Watcher {
    /// Sends it where it is wanted, once both are known.
    fn send(&mut self) {
        let Some(thread) = self.thread else { return };
        let Some(wanted) = self.wanted.take() else { return };
        let mut set = CpuSet::new();
        wanted.into_iter().filter(|of| *of < CpuSet::MAX_CPU).for_each(|of| set.set(of));
        let why = match sched_setaffinity(Some(thread), &set) {
            Ok(()) => "off the cores of ranks".to_owned(),
            Err(error) => format!("left where ranks are: the system refuses other cores ({error})"),
        };
        self.post = Some(WatchPost { cores: cores_of(thread), why });
    }
}

/// What a thread may use; nothing where the kernel does not say.
fn cores_of(thread: Pid) -> String {
    let set = sched_getaffinity(Some(thread)).unwrap_or_else(|_| CpuSet::new());
    number_list((0..CpuSet::MAX_CPU).filter(|of| set.is_set(*of)))
}

impl Monitor {
    /// A monitor in phase [`START_UP`].
    #[must_use]
    pub fn new() -> Self {
        Monitor { phase: Mutex::new(START_UP.into()), ..Monitor::default() }
    }

    /// Enters a phase; entering counts as progress.
    pub fn enter(&self, phase: &str) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase.to_owned();
        self.tick();
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            // A byte that does not fit means that others wait there already.
            let _ = (&*wake).write(&[1]);
        }
    }

    /// From now on a byte is written to `wake`, which must not block, whenever a phase is entered: whoever reads it can
    /// tell others at once, before anything is measured.
    pub fn wake_on_enter(&self, wake: UnixStream) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    /// Says that progress was made.
    pub fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(false, Ordering::Relaxed);
    }

    /// Says that from now until the next tick this rank has nothing to do but wait for others, so that it is not the
    /// one to blame when nothing moves.
    pub fn wait(&self) {
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// Says that for so long nothing may move on this rank, and rightly so: it computes by itself, or waits for one that
    /// does. To those who look, it makes progress.
    pub fn excuse(&self, longest: Duration) {
        // What has no end is no excuse.
        *self.excused.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now().checked_add(longest);
    }

    /// Whether the rank waits for others.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The phase entered last.
    #[must_use]
    pub fn phase(&self) -> String {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This thread is the watcher.
    pub fn begin_watch(&self) {
        let mut watcher = self.watcher();
        watcher.thread = Some(gettid());
        watcher.send();
        self.begun.notify_all();
    }

    /// The watcher has woken up.
    pub fn woke(&self) {
        self.wakeups.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the watcher woke up.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Sends the watcher, which was started, to these threads of the machine, or says why it stays where it is. The first word
    /// counts.
    pub fn post_watcher(&self, wanted: Result<Vec<usize>, String>) {
        let waited = self.begun.wait_timeout_while(self.watcher(), TO_BEGIN, |watcher| watcher.thread.is_none());
        let mut watcher = waited.unwrap_or_else(PoisonError::into_inner).0;
        if watcher.post.is_some() || watcher.wanted.is_some() {
            return;
        }
        match wanted {
            Ok(wanted) => {
                watcher.wanted = Some(wanted);
                watcher.send();
            }
            Err(why) => {
                let cores = cores_of(watcher.thread.unwrap_or_else(gettid));
                watcher.post = Some(WatchPost { cores, why: format!("left where ranks are: {why}") });
            }
        }
    }

    /// Where the watcher is; nothing where nobody said where it should be.
    #[must_use]
    pub fn watch_post(&self) -> Option<WatchPost> {
        self.watcher().post.clone()
    }

    fn watcher(&self) -> MutexGuard<'_, Watcher> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often progress was made; only differences mean something.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        let excused = *self.excused.lock().unwrap_or_else(PoisonError::into_inner);
        if excused.is_some_and(|until| Instant::now() < until) {
            self.ticks.fetch_add(1, Ordering::Relaxed);
        }
        self.ticks.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cpu_list::core_numbers;

    /// A watcher that ends when its sender does.
    fn watcher(monitor: &Arc<Monitor>) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let monitor = Arc::clone(monitor);
        let thread = std::thread::spawn(move || {
            monitor.begin_watch();
            begun.send(()).unwrap();
            let _ = stopped.recv();
        });
        has_begun.recv().unwrap();
        (stop, thread)
    }

    #[test]
    fn a_watcher_goes_where_it_is_sent_also_when_it_begins_late() {
        let own = cores_of(gettid());
        let last = core_numbers(&own).last().expect("a core");
        for late in [Duration::ZERO, Duration::from_millis(50)] {
            let monitor = Arc::new(Monitor::new());
            let starter = {
                let monitor = Arc::clone(&monitor);
                std::thread::spawn(move || {
                    std::thread::sleep(late);
                    watcher(&monitor)
                })
            };
            monitor.post_watcher(Ok(vec![last]));
            monitor.post_watcher(Err("a second word".into()));
            let post = monitor.watch_post().expect("a post");
            assert_eq!((post.cores, post.why), (last.to_string(), "off the cores of ranks".to_owned()));
            let (stop, thread) = starter.join().unwrap();
            drop(stop);
            thread.join().unwrap();
        }
        assert_eq!(cores_of(gettid()), own, "nobody else was moved");
    }

    #[test]
    fn what_is_excused_makes_progress_to_those_who_look() {
        let monitor = Monitor::new();
        assert_eq!(monitor.ticks(), monitor.ticks(), "nothing moves");
        monitor.excuse(Duration::from_secs(3600));
        assert!(monitor.ticks() < monitor.ticks());
        monitor.excuse(Duration::ZERO);
        assert_eq!(monitor.ticks(), monitor.ticks(), "the excuse is over");
        monitor.excuse(Duration::MAX);
        assert_eq!(monitor.ticks(), monitor.ticks(), "what has no end is no excuse");
    }

    #[test]
    fn a_watcher_that_cannot_move_stays_and_says_why() {
        let monitor = Arc::new(Monitor::new());
        let (stop, thread) = watcher(&monitor);
        monitor.post_watcher(Ok(vec![CpuSet::MAX_CPU - 1]));
        let post = monitor.watch_post().expect("a post");
        assert!(post.why.contains("refuses other cores") && post.cores == cores_of(gettid()), "{post:?}");
        drop(stop);
        thread.join().unwrap();
        monitor.woke();
        assert_eq!(monitor.wakeups(), 1);
    }
}
