//! What this program does when a test starts it as a launcher or as a rank.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use tailback_bootstrap::launch::{LaunchOptions, run};
use tailback_bootstrap::{JoinConfig, TcpBootstrap};
use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Rendezvous};
use tailback_libfabric::{DomainSelection, LibfabricConfig, Source};
use tailback_testkit::conformance;
use tailback_transport::{Bootstrap, Error, Group, Monitor, Rank, Result, Span, Tag, Transport};

/// How long a rank that is to be killed waits for that.
const PATIENCE: Duration = Duration::from_secs(120);

/// `launch SIZE WHAT ...` or `WHAT PROVIDER PROTOCOL [WAIT [DOMAIN [CASES]]]`; an empty word is none
pub fn main(arguments: &[String]) {
    if arguments[0] == "launch" {
        return launch(&arguments[1..]);
    }
    let size = ["TAILBACK_SIZE", "OMPI_COMM_WORLD_SIZE"].iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    assert!(tailback_libfabric::make_room(size.expect("a launcher's variables")), "a rank starts with one thread");
    let monitor = Arc::new(Monitor::new());
    monitor.enter(&arguments[0]);
    if std::env::var_os("TAILBACK_RANK").is_none() {
        return under_mpi(arguments, &monitor);
    }
    let mut config = JoinConfig::from_env().unwrap_or_else(|error| fail(&error)).expect("variables of a launcher");
    // The suite does not say that it makes progress; whoever started the job bounds its time.
    config.stall_limit = None;
    let mut bootstrap = TcpBootstrap::join(config, monitor).unwrap_or_else(|error| fail(&error));
    serve(arguments, &mut bootstrap);
    bootstrap.finish().unwrap_or_else(|error| fail(&error));
}

#[cfg(feature = "mpi")]
fn under_mpi(arguments: &[String], monitor: &Arc<Monitor>) {
    let planes = tailback_mpi::init(Arc::clone(monitor), None, tailback_mpi::Threading::Single, None);
    let (mut bootstrap, _mpi) = planes.unwrap_or_else(|error| fail(&error));
    serve(arguments, &mut bootstrap);
}

#[cfg(not(feature = "mpi"))]
fn under_mpi(_arguments: &[String], _monitor: &Arc<Monitor>) {
    eprintln!("no TAILBACK_RANK, and built without MPI");
    exit(2);
}

fn serve<B: Bootstrap>(arguments: &[String], bootstrap: &mut B) {
    if let Err(reason) = work(arguments, bootstrap) {
        bootstrap.abort(&reason);
    }
}

fn work<B: Bootstrap>(arguments: &[String], bootstrap: &mut B) -> std::result::Result<(), String> {
    let text = |error: Error| error.to_string();
    let word = |at: usize| arguments.get(at).filter(|word| !word.is_empty()).cloned();
    let protocol = arguments[2].parse().map_err(text)?;
    let config = LibfabricConfig {
        path: std::env::var_os("TAILBACK_LIBFABRIC").map(Into::into),
        selection: DomainSelection {
            provider: word(1),
            domain: word(4).map(|names| names.parse()).transpose()?,
            source: Some(Source {
                address: IpAddr::V4(Ipv4Addr::LOCALHOST),
                asked: false,
                reason: "all ranks share one host".into(),
            }),
            undirected: arguments[0] == "undirected",
            ..DomainSelection::default()
        },
        wait: word(3).map(|wait| wait.parse()).transpose().map_err(text)?,
    };
    let mut raw = tailback_libfabric::open(bootstrap, &config).map_err(text)?;
    if arguments[0] == "ring" {
        let said = conformance::ring_memory(bootstrap, &mut raw).map_err(text)?;
        said.iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    let mut transport = Collective::new(Rendezvous::new(raw, protocol, DEFAULT_THRESHOLD));
    match arguments[0].as_str() {
        "suite" | "undirected" => {
            let chosen = |case: &str| word(5).is_none_or(|part| case.contains(&part));
            let report =
                conformance::run_only(bootstrap, &mut transport, chosen).map_err(|failure| failure.to_string())?;
            if bootstrap.rank() == Rank(0) {
                println!("{report}");
            }
        }
        "describe" => {
            if bootstrap.rank() == Rank(0) {
                println!("{:#?}", transport.describe());
            }
        }
        other => misbehave(other, bootstrap, &mut transport).map_err(text)?,
    }
    bootstrap.barrier().map_err(text)
}

fn misbehave<B: Bootstrap, T: Transport>(what: &str, bootstrap: &mut B, transport: &mut T) -> Result<()> {
    let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&members, 1 << 20)?;
    let last = group.rank().index() + 1 == group.size();
    match what {
        "truncate" => {
            match group.rank().index() {
                0 => group.post_send(Rank(1), Tag(0), Span::new(0, 64))?,
                _ => group.post_recv(Rank(0), Tag(0), Span::new(0, 8))?,
            }
            group.wait_all()?;
            group.barrier()
        }
        "kill" if last => kill_self(),
        // Without a word to the bootstrap: the transport itself has to notice.
        "vanish" if last => kill_self(),
        "vanish" => loop {
            group.put(Rank(1), Span::new(0, 1 << 20), 0)?;
            group.flush(Rank(1))?;
        },
        "kill" => {
            std::thread::sleep(PATIENCE);
            Ok(())
        }
        other => Err(Error::Setup(format!("unknown behaviour {other}"))),
    }
}

/// As the system does it when memory is short: without a chance to clean up.
fn kill_self() -> ! {
    let own = std::process::id().to_string();
    let _ = std::process::Command::new("kill").args(["-9", &own]).status();
    std::thread::sleep(PATIENCE);
    exit(1)
}

fn launch(arguments: &[String]) {
    let program = std::env::current_exe().expect("this program").into_os_string();
    let rest = arguments[1..].iter().map(OsString::from);
    let command = [program, "as-rank".into()].into_iter().chain(rest).collect();
    match run(&LaunchOptions::new(arguments[0].parse().expect("a size"), command)) {
        Ok(code) => exit(code),
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ! {
    eprintln!("tailback: error: {error}");
    exit(2)
}
