//! The conformance suite over verbs, in processes that find each other through the built-in bootstrap. Needs an RDMA
//! device, so `ci/verbs-test` starts it, in the guest of `ci/rdma-guest`.
//!
//! ```text
//! conformance suite RANKS [WAIT [PART [PROTOCOL [CREDITS BYTES]]]]
//!                                                    every case, or those with PART in their name, with long messages by
//!                                                    PROTOCOL (eager, put, get), through CREDITS buffers of BYTES at most;
//!                                                    exit code 0 when none found a fault
//! conformance describe                               what the transport says about itself
//! conformance ring RANKS                             each talks to two others: the memory of the largest rank
//! conformance silence                                a peer that no longer answers: an error in time that names it
//! conformance unlike                                 ranks that have unlike numbers of rails: refused
//! ```
//!
//! With `--rails N` before that, over so many ports.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailback_bootstrap::launch::{self, LaunchOptions};
use tailback_bootstrap::{JoinConfig, TcpBootstrap};
use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Engine, Lane, Protocol, Rendezvous};
use tailback_testkit::conformance;
use tailback_transport::{Bootstrap, Monitor, Rank, Span, Tag};
use tailback_verbs::{Buffers, Tries, VerbsConfig, VerbsTransport};

/// For an emulated machine with more ranks than cores.
const PATIENCE: Duration = Duration::from_secs(400);

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[String]) -> Result<i32, String> {
    let (rails, arguments) = match words {
        [option, count, arguments @ ..] if option == "--rails" => {
            (count.parse::<usize>().map_err(|error| format!("--rails {count}: {error}"))?, arguments)
        }
        arguments => (1, arguments),
    };
    match JoinConfig::from_env() {
        Ok(Some(config)) => as_rank(config, rails, arguments).map(|()| 0),
        Ok(None) => launch(words, arguments),
        Err(error) => Err(error.to_string()),
    }
}

/// Starts this program again as ranks, with the same words, of which `arguments` are the last.
fn launch(words: &[String], arguments: &[String]) -> Result<i32, String> {
    let ranks = match arguments.first().map(String::as_str) {
        Some("suite" | "ring") => arguments.get(1).and_then(|count| count.parse().ok()).ok_or("how many ranks?")?,
        Some("describe") => 1,
        Some("silence" | "unlike") => 2,
        _ => {
            let suite = "suite RANKS [WAIT [PART [PROTOCOL [CREDITS BYTES]]]]";
            return Err(format!("conformance [--rails N] {suite} | ring RANKS | describe | silence | unlike"));
        }
    };
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let command = [program.into()].into_iter().chain(words.iter().map(OsString::from)).collect();
    launch::run(&LaunchOptions::new(ranks, command)).map_err(|error| error.to_string())
}

fn as_rank(mut config: JoinConfig, rails: usize, arguments: &[String]) -> Outcome {
    config.stall_limit = Some(PATIENCE);
    let monitor = Arc::new(Monitor::new());
    let text = |error: tailback_transport::Error| error.to_string();
    let secret = config.secret.clone();
    let mut bootstrap = TcpBootstrap::join(config, Arc::clone(&monitor)).map_err(text)?;
    monitor.enter("conformance");
    let wait = arguments.get(2).map(|mode| mode.parse()).transpose().map_err(text)?;
    // Who waits for silence has not all day.
    let timeout = if arguments[0] == "silence" { Duration::from_millis(250) } else { Tries::default().timeout };
    let tries = Tries { timeout, ..Tries::default() };
    let rails = if arguments[0] == "unlike" { rails + bootstrap.rank().index() } else { rails };
    let config = VerbsConfig { rails, wait, tries, buffers: buffers(arguments)?, ..VerbsConfig::new(secret) };
    let transport = match tailback_verbs::open(&mut bootstrap, &config) {
        Ok(transport) => transport,
        Err(error) => bootstrap.abort(&error.to_string()),
    };
    match arguments[0].as_str() {
        "describe" => describe(&transport),
        "ring" => {
            let mut transport = transport;
            let said = conformance::ring_memory(&mut bootstrap, &mut transport).map_err(text)?;
            said.iter().for_each(|line| println!("{line}"));
            if bootstrap.rank() == Rank(0) {
                describe(&transport);
            }
        }
        "silence" => silence(&mut bootstrap, transport)?,
        "unlike" => return Err("ranks with unlike numbers of rails were not refused".into()),
        _ => {
            let protocol = arguments.get(4).map(|name| name.parse()).transpose().map_err(text)?.unwrap_or_default();
            suite(&mut bootstrap, transport, arguments.get(3).map_or("", String::as_str), protocol);
        }
    }
    bootstrap.finish().map_err(text)
}

/// The buffers that the last two words ask for.
fn buffers(arguments: &[String]) -> Result<Buffers, String> {
    let number = |word: &String| word.parse::<u32>().map_err(|error| format!("{word}: {error}"));
    match arguments {
        [.., credits, bytes] if arguments.len() == 7 => {
            Ok(Buffers { credits: number(credits)?, bytes: number(bytes)? as usize })
        }
        _ => Ok(Buffers::default()),
    }
}

#[allow(clippy::print_stdout)]
fn suite(bootstrap: &mut TcpBootstrap, transport: VerbsTransport, part: &str, protocol: Protocol) {
    let mut transport = Collective::new(Rendezvous::new(transport, protocol, DEFAULT_THRESHOLD));
    match conformance::run_only(bootstrap, &mut transport, |name| name.contains(part)) {
        Ok(report) if bootstrap.rank() == Rank(0) => println!("{report}"),
        Ok(_) => {}
        Err(failure) => bootstrap.abort(&failure.to_string()),
    }
}

#[allow(clippy::print_stdout)]
fn describe(transport: &VerbsTransport) {
    let description = transport.describe();
    println!("{} over {}", description.backend, description.library);
    for (key, value) in description.details {
        println!("  {key}: {value}");
    }
}

/// Rank 1 closes its end and stays; rank 0 goes on talking to it.
#[allow(clippy::print_stdout)]
fn silence(bootstrap: &mut TcpBootstrap, mut transport: VerbsTransport) -> Outcome {
    let text = |error: tailback_transport::Error| error.to_string();
    let group = transport.make_group(&[Rank(0), Rank(1)], 1 << 20).map_err(text)?.slot;
    let (peer, span) = (Rank(1 - bootstrap.rank().0), Span::new(0, 1 << 19));
    transport.post_send(group, Lane::Data, peer, Tag(0), span).map_err(text)?;
    transport.post_recv(group, Lane::Data, peer, Tag(0), Span::new(1 << 19, 1 << 19)).map_err(text)?;
    transport.wait(group, Lane::Data).map_err(text)?;
    bootstrap.barrier().map_err(text)?;
    if bootstrap.rank() == Rank(1) {
        drop(transport);
        return bootstrap.barrier().and_then(|()| bootstrap.barrier()).map_err(text);
    }
    bootstrap.barrier().map_err(text)?;
    let started = Instant::now();
    let outcome =
        transport.post_send(group, Lane::Data, peer, Tag(0), span).and_then(|()| transport.wait(group, Lane::Data));
    bootstrap.barrier().map_err(text)?;
    match outcome {
        Err(error) => {
            println!("after {:.1} s: {error}", started.elapsed().as_secs_f64());
            if started.elapsed() < Duration::from_secs(10) { Ok(()) } else { Err("that took too long".into()) }
        }
        Ok(()) => Err("a message to nobody was sent".into()),
    }
}
