//! The conformance suite over MPI, and the ways an MPI job can end. Started by mpirun: see `ci/mpi-test`.
//!
//! ```text
//! conformance            every case; exit code 0 when none found a fault
//! conformance describe   what the transport says about itself
//! conformance idle       makes a group, says "ready PID" and waits, for memory and kill tests
//! conformance abort      the last rank aborts the job while the others wait for it
//! conformance panic      the last rank panics while the others wait for it
//! conformance stall      the last rank makes no progress: its watcher ends the job
//! conformance truncate   a message is longer than its receiver expects: the error names call and peer
//! ```
//! TAILBACK_WAIT says how the ranks wait: `spin`, `yield`, `block`, or `mixed`: only the last rank blocks, the others spin.
//! Without it they wait as suits the machine. TAILBACK_MPI_THREAD is the thread level to ask for, `single` without it.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use tailback_host::WaitMode;
use tailback_mpi::{MpiBootstrap, MpiTransport, Threading};
use tailback_testkit::conformance;
use tailback_transport::{Bootstrap, Group, Monitor, Rank, Result, Span, Tag, Transport};

/// What ends a rank that the test forgot.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let monitor = Arc::new(Monitor::new());
    let stall = if mode == "stall" { Duration::from_secs(2) } else { PATIENCE * 5 };
    let planes = tailback_mpi::init(Arc::clone(&monitor), Some(stall), threads(), wait());
    let (mut bootstrap, mut transport) = match planes {
        Ok(planes) => planes,
        Err(error) => {
            eprintln!("tailback: error: {error}");
            return ExitCode::from(2);
        }
    };
    monitor.enter(if mode.is_empty() { "conformance" } else { &mode });
    if let Err(reason) = run(&mode, &monitor, &mut bootstrap, &mut transport) {
        bootstrap.abort(&reason);
    }
    ExitCode::SUCCESS
}

fn threads() -> Threading {
    match std::env::var("TAILBACK_MPI_THREAD").as_deref() {
        Err(_) | Ok("single") => Threading::Single,
        Ok("multiple") => Threading::Multiple,
        Ok(other) => panic!("no test asks for {other}"),
    }
}

fn wait() -> Option<WaitMode> {
    let asked = std::env::var("TAILBACK_WAIT").ok()?;
    if asked != "mixed" {
        return Some(asked.parse().expect("spin, yield, block or mixed"));
    }
    let launcher = tailback_mpi::launcher().expect("a launcher");
    let is_last = launcher.rank.map(|rank| rank + 1) == launcher.size;
    Some(if is_last { WaitMode::Block } else { WaitMode::Spin })
}

fn run(mode: &str, monitor: &Monitor, bootstrap: &mut MpiBootstrap, transport: &mut MpiTransport) -> Outcome {
    let is_last = bootstrap.rank().index() + 1 == bootstrap.size();
    match mode {
        "" => return suite(bootstrap, transport),
        "describe" => {
            transport.try_one_sided().map_err(|error| error.to_string())?;
            describe(bootstrap, transport);
        }
        "idle" => {
            let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
            let _group = transport.group(&members, 1 << 20).map_err(|error| error.to_string())?;
            say(&format!("ready {}", std::process::id()));
            if bootstrap.rank() == Rank(0) {
                sleep(PATIENCE);
            }
        }
        "abort" if is_last => return Err("asked to".into()),
        "panic" if is_last => panic!("asked to"),
        "stall" if is_last => sleep(PATIENCE),
        "abort" | "panic" => {}
        // Only the last rank is stuck; the others wait for it, which is no stall of theirs.
        "stall" => {
            for _ in 0..PATIENCE.as_millis() / 100 {
                monitor.tick();
                sleep(Duration::from_millis(100));
            }
        }
        "truncate" => return truncate(bootstrap, transport).map_err(|error| error.to_string()),
        other => return Err(format!("unknown mode {other:?}")),
    }
    bootstrap.barrier().map_err(|error| error.to_string())
}

type Outcome = std::result::Result<(), String>;

#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
}

fn suite(bootstrap: &mut MpiBootstrap, transport: &mut MpiTransport) -> Outcome {
    let report = conformance::run(bootstrap, transport).map_err(|failure| failure.to_string())?;
    // What the cases dropped is freed here, while errors can still be reported.
    bootstrap.barrier().map_err(|error| error.to_string())?;
    if bootstrap.rank() == Rank(0) {
        say(&report.to_string());
    }
    Ok(())
}

fn describe(bootstrap: &MpiBootstrap, transport: &MpiTransport) {
    if bootstrap.rank() == Rank(0) {
        let description = transport.describe();
        say(&format!("{} over {}", description.backend, description.library));
        say(&format!("started by {}; rank 0 is on {}", bootstrap.launcher(), bootstrap.host()));
        for (key, value) in description.details {
            say(&format!("  {key}: {value}"));
        }
    }
}

fn truncate(bootstrap: &mut MpiBootstrap, transport: &mut MpiTransport) -> Result<()> {
    let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&members, 64)?;
    match group.rank().index() {
        0 => group.post_send(Rank(1), Tag(0), Span::new(0, 64))?,
        1 => group.post_recv(Rank(0), Tag(0), Span::new(0, 8))?,
        _ => {}
    }
    group.wait_all()?;
    group.barrier()
}
