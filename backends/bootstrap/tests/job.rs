//! A job whose ranks are threads of this process, and what it says when it fails.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tailback_bootstrap::{Interrupt, JoinConfig, OnFailure, Secret, TcpBootstrap};
use tailback_transport::{Monitor, Rank};

/// Keeps what would be printed, and how ranks end.
#[derive(Debug, Default)]
pub struct Record {
    pub said: Mutex<Vec<String>>,
    pub ended: Mutex<Vec<Option<String>>>,
}

impl OnFailure for Record {
    fn report(&self, message: &str) {
        self.said.lock().unwrap().push(message.to_owned());
    }

    fn end(&self, message: Option<&str>) {
        self.ended.lock().unwrap().push(message.map(str::to_owned));
    }
}

/// A job whose ranks are threads of this process.
#[derive(Clone)]
pub struct Job {
    pub size: usize,
    pub fan_out: usize,
    pub root: SocketAddr,
    pub secret: Secret,
    pub record: Arc<Record>,
    pub join_timeout: Duration,
    pub stall_limit: Option<Duration>,
    /// Raised when the user wants the job to end.
    pub interrupt: Arc<AtomicBool>,
}

impl Job {
    pub fn new(size: usize, fan_out: usize) -> Self {
        Job {
            size,
            fan_out,
            root: free_address(),
            secret: Secret::random().unwrap(),
            record: Arc::default(),
            join_timeout: Duration::from_secs(60),
            stall_limit: None,
            interrupt: Arc::default(),
        }
    }

    pub fn config(&self, rank: usize) -> JoinConfig {
        let mut config = JoinConfig::new(Rank::from(rank), self.size, self.root, self.secret.clone());
        config.fan_out = self.fan_out;
        config.host = format!("node{rank}");
        config.join_timeout = self.join_timeout;
        config.stall_limit = self.stall_limit;
        config.interrupt = Some(Interrupt::new(Arc::clone(&self.interrupt)));
        config.on_failure = self.record.clone();
        config
    }

    pub fn join(&self, rank: usize) -> tailback_transport::Result<TcpBootstrap> {
        TcpBootstrap::join(self.config(rank), Arc::new(Monitor::new()))
    }

    /// Runs `work` on every rank of `ranks` and gives what each returned.
    pub fn run<T: Send + 'static>(
        &self,
        ranks: impl IntoIterator<Item = usize>,
        work: impl Fn(&Job, usize) -> T + Send + Sync + 'static,
    ) -> Vec<thread::Result<T>> {
        let work = Arc::new(work);
        let start = |rank| {
            let (job, work) = (self.clone(), work.clone());
            thread::spawn(move || work(&job, rank))
        };
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
        threads.into_iter().map(thread::JoinHandle::join).collect()
    }

    pub fn said(&self) -> Vec<String> {
        self.record.said.lock().unwrap().clone()
    }
}

/// An address for rank 0. Every process has its own in 127/8, where no other test's sockets linger, and takes ports below the
/// range of outgoing connections.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 64 | high, middle, low], NEXT.fetch_add(1, Ordering::Relaxed)));
    TcpListener::bind(address).unwrap_or_else(|e| panic!("{address}: {e}"));
    address
}
