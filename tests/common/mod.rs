//! Starts the built binary with a clean environment and a bound on its time, and looks at its processes.
//!
//! Jobs take turns across all test processes: ten ranks already outnumber the cores of a small machine, and what is
//! asserted about time should depend on the product, not on the test next door. Under cargo nextest its settings
//! (ci/nextest.toml) say which tests have to be alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Longer than anything here takes on a loaded machine: a search of a quarter of a minute took two with 17 others in line.
pub const LIMIT: Duration = Duration::from_secs(400);

/// The binary, as if nothing in the environment spoke to it.
pub fn tailback<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailback"));
    // Plain local ranks unless a test is about the emulated cluster, and no result file where none is asked for.
    command.env("TAILBACK_NO_LAB", "1").env("TAILBACK_NO_OUT", "1");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["TAILBACK_", "SLURM_", "OMPI_", "PMI_", "COLUMNS"].iter().any(|start| name.starts_with(start)) {
            command.env_remove(name);
        }
    }
    command.args(arguments.into_iter().map(|argument| argument.as_ref().to_owned())).stdin(Stdio::null());
    command
}

/// A file of JSON.
pub fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file is there")).expect("it is JSON")
}

/// Fails for a file that the published schema does not have.
pub fn assert_schema(what: &str, file: &serde_json::Value) {
    let schema = serde_json::from_str(include_str!("../../docs/result.schema.json")).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    let problems: Vec<String> =
        validator.iter_errors(file).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{what}: {problems:?}");
}

/// Runs `line` and gives its result file, which must fit the schema and our own reader, and what it printed.
pub fn result_of(line: &str) -> (serde_json::Value, String) {
    let folder = Folder::new();
    let outcome = succeed(&format!("{line} --quiet --format table --out {}", folder.path("result.json")));
    assert_eq!(outcome.stderr, "", "tailback {line}");
    let file = folder.json("result.json");
    assert_schema(line, &file);
    tailback::result::read(folder.path("result.json").as_ref()).expect("our own reader takes it");
    (file, outcome.stdout)
}

/// A folder for the files of a test, gone with it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// A file in it, as a command line names it.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        read_json(self.path(name).as_ref())
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), text).expect("it can be written");
        self.path(name)
    }

    pub fn files(&self) -> usize {
        std::fs::read_dir(&self.0).expect("the folder is there").count()
    }
}

/// Words of a command line without quotes.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a whole command line to its end.
pub fn run(line: &str) -> Outcome {
    Job::start(tailback(words(line))).end()
}

/// Runs a command line that must succeed.
pub fn succeed(line: &str) -> Outcome {
    let outcome = run(line);
    assert_eq!(outcome.code(), Some(0), "tailback {line}\n{}{}", outcome.stdout, outcome.stderr);
    outcome
}

/// Runs command lines that must be refused, each with its words, and gives nothing but those.
pub fn refused(lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        let outcome = run(line);
        assert!(outcome.refusal().contains(expected), "tailback {line}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "tailback {line}");
    }
}

/// What a process left behind.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The lines that say why the job ended.
    pub fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("tailback: error: ")).collect()
    }

    /// Asserts that it ended with code 2 and one line about the reason, and gives that line.
    pub fn refusal(&self) -> &str {
        assert_eq!(self.code(), Some(2), "{self:?}");
        let errors = self.errors();
        assert_eq!(errors.len(), 1, "{self:?}");
        let noise = ["panicked", "RUST_BACKTRACE", "thread '"];
        assert!(!noise.iter().any(|word| self.stderr.contains(word)), "{}", self.stderr);
        errors[0]
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A process under way, with its output collected. Dropped, it is ended; its ranks end with it.
pub struct Job {
    child: Child,
    output: Option<(JoinHandle<String>, JoinHandle<String>)>,
    _turn: Option<File>,
}

impl Job {
    /// Waits for its turn and starts.
    pub fn start(command: Command) -> Self {
        let turn = turn();
        let mut job = Self::start_beside(command);
        job._turn = Some(turn);
        job
    }

    /// Starts without waiting for other jobs, for processes of one job.
    pub fn start_beside(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        Job { child, output: Some((stdout, stderr)), _turn: None }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the job is there");
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Polls until there is an answer, which must come while the job runs.
    pub fn eventually<T>(&mut self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        eventually(what, || {
            // Looked at before: what a job leaves at its end may be the answer.
            let running = self.is_running();
            let found = look();
            assert!(running || found.is_some(), "the job ended, and never: {what}; it said {:?}", self.said());
            found
        })
    }

    /// Waits until all `size` ranks have been started and gives their processes, in rank order.
    pub fn ranks(&mut self, size: usize) -> Vec<Pid> {
        let parent = self.pid();
        let found = self.eventually("all ranks started", || {
            let ranks = ranks_below(parent);
            (ranks.len() == size).then_some(ranks)
        });
        found.into_values().collect()
    }

    /// What it wrote to its two streams, once it has ended.
    fn said(&mut self) -> (String, String) {
        let (stdout, stderr) = self.output.take().expect("not yet taken");
        (stdout.join().expect("text"), stderr.join().expect("text"))
    }

    /// Waits for the end.
    pub fn end(self) -> Outcome {
        self.end_within(LIMIT)
    }

    /// Waits for the end, which must come within `limit`.
    pub fn end_within(mut self, limit: Duration) -> Outcome {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > limit {
                self.child.kill().expect("a child");
                panic!("still running after {limit:?}; it said {:?}", self.said());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = self.said();
        Outcome { status, stdout, stderr }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut source: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        source.read_to_string(&mut text).expect("output is text");
        text
    })
}

/// An address for rank 0 that no other test process uses: its own in 127/8, where nobody else's sockets linger.
pub fn free_address() -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let listener = TcpListener::bind(SocketAddr::from(([127, 64 | high, middle, low], 0))).expect("a port");
    listener.local_addr().expect("has one")
}

/// Held while a job runs; the kernel lets go of it whatever becomes of the test.
pub fn turn() -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("turn.lock");
    let file = File::create(path).expect("a lock file");
    let is_ordered = std::env::var_os("NEXTEST").is_some();
    flock(&file, if is_ordered { FlockOperation::LockShared } else { FlockOperation::LockExclusive }).expect("a lock");
    file
}

/// Polls until there is an answer.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The rank processes that `parent` started, by rank.
fn ranks_below(parent: Pid) -> BTreeMap<usize, Pid> {
    let mut ranks = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if stat(pid, 1).and_then(|ppid| ppid.parse().ok()) == Some(parent.as_raw_nonzero().get())
            && let Some(rank) = variable(pid, "TAILBACK_RANK").and_then(|rank| rank.parse().ok())
        {
            ranks.insert(rank, pid);
        }
    }
    ranks
}

/// A field of /proc/PID/stat, counted from the state, which is 0.
fn stat(pid: Pid, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name may hold anything, even brackets.
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}

fn variable(pid: Pid, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&environment);
    text.split('\0').find_map(|entry| Some(entry.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Processor time a process has used, in clock ticks of 10 ms.
pub fn cpu_ticks(pid: Pid) -> u64 {
    let ticks = |field| stat(pid, field).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    ticks(11) + ticks(12)
}

/// A size from /proc/PID/status, in KiB; nothing once the process is gone.
pub fn memory_kib(pid: Pid, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether a process has ended; one that nobody has waited for yet counts as ended.
pub fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err() || stat(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

/// Which ranks of a job with one-rank nodes measure and which load, from a dry run. It takes a turn of its own.
pub fn roles(line: &str) -> BTreeMap<String, Vec<usize>> {
    let shown = succeed(&format!("{line} --dry-run")).stdout;
    let placement = shown.split("Placement\n").nth(1).expect("a placement").lines();
    let mut roles = BTreeMap::new();
    for line in placement.take_while(|line| line.contains(" nodes: virtual")) {
        let (what, nodes) = line.split_once(" nodes: ").expect("filtered");
        let role = what.split_whitespace().next().expect("a role").to_owned();
        let ranks = nodes.split_whitespace().map(|node| node.trim_start_matches("virtual").parse().expect("a node"));
        roles.insert(role, ranks.collect());
    }
    roles
}
