//! What the backend costs over bare endpoints: Tailback's ping-pong and libfabric's own `fi_pingpong`, over the same
//! provider and library, alternating, each run two fresh processes that spin, on a core each (`taskset`).
//!
//! A latency ratio is ours / theirs (lower is better), a bandwidth ratio too is ours / theirs (higher is better): each
//! the median over neighbouring runs. The second ratio is to a `fi_pingpong` with a second, sleeping thread, as
//! a rank has, for the C library's locks may cost more then; so far the two ratios hardly differ. Nothing is asserted.
//!
//! `cargo bench -p tailback-libfabric --bench ratio [-- NAME_PART [RUNS]]`; without cargo's `--bench` flag (as under
//! `cargo test --benches`) one short run of each only shows that it works.

#![allow(clippy::print_stdout)]

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio, exit};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tailback_bootstrap::launch::{self, LaunchOptions, RankSetup};
use tailback_bootstrap::{JoinConfig, TcpBootstrap};
use tailback_engine::{Collective, Rendezvous};
use tailback_host::WaitMode;
use tailback_libfabric::{DomainSelection, LibfabricConfig, Source};
use tailback_transport::{Bootstrap, Group, Monitor, Rank, Result, Span, Tag, Transport};

/// No run takes this long, however loaded the machine.
const LIMIT: Duration = Duration::from_secs(120);

struct Plan {
    provider: String,
    bytes: usize,
    iterations: usize,
}

impl Plan {
    fn name(&self) -> String {
        format!("{}_{}B", self.provider.replace(';', "_"), self.bytes)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The same for every process of the benchmark, so that all of them measure the same.
    tailback_libfabric::make_room(2);
    match arguments.first().map(String::as_str) {
        Some("as-launcher") => return launcher(&arguments[1..]),
        Some("as-rank") => return rank(&arguments[1..]).unwrap_or_else(|error| fail(&error.to_string())),
        _ => {}
    }
    let measured = arguments.iter().any(|a| a == "--bench");
    let mut words = arguments.iter().filter(|a| !a.starts_with('-'));
    let part = words.next().cloned().unwrap_or_default();
    let asked = words.next().and_then(|n| n.parse().ok());
    let idle_thread = IdleThread::build();
    // Runs of a tenth of a second or more, also where a message takes less than a microsecond. Processes that do the same
    // over shared memory differ by 15% there, so 21 of them do not tell 5% apart.
    let plans = [
        ("tcp;ofi_rxm", 8, 20_000, 21),
        ("tcp;ofi_rxm", 128 << 10, 3_000, 21),
        ("shm", 8, 100_000, 101),
        ("shm", 128 << 10, 3_000, 21),
    ];
    for (provider, bytes, iterations, runs) in plans {
        let (iterations, runs) = if measured { (iterations, runs) } else { (20, 1) };
        let plan = Plan { provider: provider.into(), bytes, iterations };
        if plan.name().contains(&part) {
            report(&plan, asked.unwrap_or(runs), &idle_thread.0);
        }
    }
}

/// Microseconds of one way, ours, theirs and theirs with a second thread, in turn; who goes first changes.
fn report(plan: &Plan, runs: usize, idle_thread: &Path) {
    let mut turns = Vec::new();
    for run in 0..runs {
        let early = (run % 2 == 0).then(|| ours(plan));
        let (alone, threaded) = (theirs(plan, None), theirs(plan, Some(idle_thread)));
        turns.push((early.unwrap_or_else(|| ours(plan)), alone, threaded));
    }
    let of = |which: fn(&(f64, f64, f64)) -> f64| median(turns.iter().map(which));
    let (ours, theirs, threaded) = (of(|t| t.0), of(|t| t.1), of(|t| t.2));
    let name = plan.name();
    if plan.bytes < 1024 {
        let (ratio, second) = (of(|t| t.0 / t.1), of(|t| t.0 / t.2));
        println!(
            "{name} latency ratio {ratio:.3}, with a second thread {second:.3} (ours {ours:.2} us, fi_pingpong {theirs:.2} us \
             and {threaded:.2} us, {runs} runs)"
        );
    } else {
        let (ratio, second) = (of(|t| t.1 / t.0), of(|t| t.2 / t.0));
        let rate = |micros: f64| plan.bytes as f64 / micros * 1e-3;
        let (ours, theirs, threaded) = (rate(ours), rate(theirs), rate(threaded));
        println!(
            "{name} bandwidth ratio {ratio:.3}, with a second thread {second:.3} (ours {ours:.3} GB/s, fi_pingpong \
             {theirs:.3} GB/s and {threaded:.3} GB/s, {runs} runs)"
        );
    }
}

/// The library that gives fi_pingpong its thread, for as long as this lives.
struct IdleThread(PathBuf);

impl IdleThread {
    fn build() -> Self {
        let path = std::env::temp_dir().join(format!("tailback-idle-thread-{}.so", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/idle_thread.c");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O2", source, "-lpthread", "-o"]).arg(&path).status();
        if !built.is_ok_and(|status| status.success()) {
            fail("idle_thread.c cannot be compiled: install a C compiler");
        }
        IdleThread(path)
    }
}

impl Drop for IdleThread {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn theirs(plan: &Plan, preload: Option<&Path>) -> f64 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port().to_string();
    let (bytes, iterations) = (plan.bytes.to_string(), plan.iterations.to_string());
    let mut common = vec!["-p", &plan.provider, "-e", "rdm", "-S", &bytes, "-I", &iterations];
    // Shared memory has its own idea of domains; sockets are to use the loopback interface, as ours do.
    if plan.provider.contains("tcp") {
        common.extend(["-d", "lo"]);
    }
    let start = |core: &str, more: &[&str]| -> Child {
        let mut command = Command::new("taskset");
        preload.map(|library| command.env("LD_PRELOAD", library));
        command
            .args(["-c", core, "fi_pingpong"])
            .args(&common)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| fail(&format!("taskset fi_pingpong: {error}")))
    };
    let server = start("0", &["-B", &port]);
    sleep(Duration::from_millis(300));
    let client = start("1", &["-P", &port, "127.0.0.1"]);
    let output = finish(client);
    finish(server);
    let line = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    // By the rate, in bytes per microsecond: its figures have more digits than those of the time.
    let rate: Option<f64> = line.split_whitespace().nth(5).and_then(|word| word.parse().ok());
    rate.map(|rate| plan.bytes as f64 / rate)
        .unwrap_or_else(|| fail(&format!("fi_pingpong said: {line}{}", String::from_utf8_lossy(&output.stderr))))
}

fn ours(plan: &Plan) -> f64 {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["as-launcher", &plan.provider, &plan.bytes.to_string(), &plan.iterations.to_string()]);
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a launcher"));
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().unwrap_or_else(|_| fail(&format!("{text}{}", String::from_utf8_lossy(&output.stderr))))
}

fn finish(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("its state").is_none() {
        if start.elapsed() > LIMIT {
            let _ = child.kill();
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

fn launcher(arguments: &[String]) {
    let program = std::env::current_exe().expect("this program").into_os_string();
    let words = ["as-rank".to_owned()].into_iter().chain(arguments.iter().cloned()).map(Into::into);
    let mut options = LaunchOptions::new(2, [program].into_iter().chain(words).collect());
    options.setup = Box::new(|rank| RankSetup {
        prefix: ["taskset", "-c"].map(Into::into).into_iter().chain([rank.to_string().into()]).collect(),
        ..RankSetup::default()
    });
    match launch::run(&options) {
        Ok(code) => exit(code),
        Err(error) => fail(&error.to_string()),
    }
}

/// `PROVIDER BYTES ITERATIONS`; rank 0 prints the microseconds of one way.
fn rank(arguments: &[String]) -> Result<()> {
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let (bytes, iterations) = (number(1), number(2));
    let mut join = JoinConfig::from_env()?.expect("a launcher");
    join.stall_limit = None;
    let mut bootstrap = TcpBootstrap::join(join, Arc::new(Monitor::new()))?;
    let source =
        Source { address: IpAddr::V4(Ipv4Addr::LOCALHOST), asked: false, reason: "all ranks share one host".into() };
    let selection =
        DomainSelection { provider: Some(arguments[0].clone()), source: Some(source), ..DomainSelection::default() };
    let config = LibfabricConfig { path: None, selection, wait: Some(WaitMode::Spin) };
    // The whole stack that a kernel sees.
    let raw = tailback_libfabric::open(&mut bootstrap, &config)?;
    let mut transport = Collective::new(Rendezvous::eager(raw));
    let mut group = transport.group(&[Rank(0), Rank(1)], 2 * bytes)?;
    let leads = bootstrap.rank() == Rank(0);
    round(&mut group, leads, bytes, iterations / 10 + 10)?;
    let start = Instant::now();
    round(&mut group, leads, bytes, iterations)?;
    let micros = start.elapsed().as_secs_f64() * 1e6 / iterations as f64 / 2.0;
    if leads {
        println!("{micros:.4}");
    }
    bootstrap.finish()
}

fn round(group: &mut impl Group, leads: bool, bytes: usize, iterations: usize) -> Result<()> {
    let (peer, out, back) = (Rank::from(usize::from(leads)), Span::new(0, bytes), Span::new(bytes, bytes));
    for _ in 0..iterations {
        group.post_recv(peer, Tag(0), back)?;
        if !leads {
            group.wait_all()?;
        }
        group.post_send(peer, Tag(0), out)?;
        group.wait_all()?;
    }
    Ok(())
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(2)
}
