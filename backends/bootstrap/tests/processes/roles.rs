//! What this program does when a test starts it as a rank or as a launcher.

use std::ffi::OsString;
use std::io::Write;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use tailback_bootstrap::launch::{LaunchOptions, Output, RankSetup, run};
use tailback_bootstrap::{JoinConfig, TcpBootstrap};
use tailback_transport::{Bootstrap, Monitor};

/// `as-rank BEHAVIOUR [FAN_OUT [STALL_SECONDS]]`
pub fn rank(arguments: &[String]) {
    let number = |at: usize| arguments.get(at).and_then(|a| a.parse::<u64>().ok());
    let rank: usize = std::env::var("TAILBACK_RANK").unwrap().parse().unwrap();
    match arguments[0].as_str() {
        "exit7-2" => exit(if rank == 2 { 7 } else { sleep_long() }),
        "exit1-0" => exit(i32::from(rank == 0)),
        "sleep" => exit(sleep_long()),
        "lines" => return print_lines(rank),
        "print" => {
            print!("no end of line");
            return;
        }
        _ => {}
    }
    let mut config = JoinConfig::from_env().and_then(|c| c.ok_or_else(|| unreachable!())).unwrap_or_else(|e| fail(&e));
    config.fan_out = number(1).map_or(32, |n| n as usize);
    config.stall_limit = number(2).map(Duration::from_secs);
    let monitor = Arc::new(Monitor::new());
    let mut bootstrap = TcpBootstrap::join(config, monitor.clone()).unwrap_or_else(|e| fail(&e));
    monitor.enter("loaded test");
    match arguments[0].as_str() {
        "ok" => {
            let all = bootstrap.allgather(&[rank as u8]).unwrap();
            if rank == 0 {
                println!("{} ranks, {}", all.len(), bootstrap.launcher());
            }
        }
        "work" => {
            bootstrap.barrier().unwrap();
            println!("ready {}", std::process::id());
            // Longer than a heartbeat, so that everybody's phase is known.
            for _ in 0..6000 {
                monitor.tick();
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        "abort-2" => {
            if rank == 2 {
                bootstrap.abort("the answer is wrong");
            }
            let _ = bootstrap.barrier();
        }
        "panic-1" => {
            assert_ne!(rank, 1, "a bug");
            let _ = bootstrap.barrier();
        }
        other => panic!("unknown behaviour {other}"),
    }
    bootstrap.finish().unwrap_or_else(|e| fail(&e));
}

fn fail(error: &tailback_transport::Error) -> ! {
    eprintln!("tailback: error: {error}");
    exit(2)
}

fn sleep_long() -> i32 {
    std::thread::sleep(Duration::from_secs(120));
    0
}

/// Long lines in small writes, so that they would mix if nobody kept them whole.
fn print_lines(rank: usize) {
    for line in 0..200 {
        for _ in 0..20 {
            print!("{rank}.{line} ");
            std::io::stdout().flush().unwrap();
        }
        println!();
    }
}

/// `as-launcher SIZE merge|prefix PROGRAM ARGUMENTS...`; `self` as program is this one as a rank.
pub fn launcher(arguments: &[String]) {
    let mut command: Vec<OsString> = arguments[2..].iter().map(OsString::from).collect();
    if command.first().is_some_and(|c| c == "self") {
        command.splice(0..1, [std::env::current_exe().unwrap().into_os_string(), "as-rank".into()]);
    }
    let mut options = LaunchOptions::new(arguments[0].parse().unwrap(), command);
    options.output = if arguments[1] == "prefix" { Output::Prefix } else { Output::Merge };
    options.ranks_per_node = Some(2);
    // Whoever has joined is missed by the others, however busy the machine is.
    options.stopped_limit = Duration::from_secs(60);
    if std::env::var_os("NO_WRAPPER").is_none() {
        options.setup = Box::new(|rank| RankSetup {
            prefix: vec!["env".into(), format!("WRAPPED={rank}").into()],
            env: vec![("SETUP".into(), rank.to_string().into())],
        });
    }
    match run(&options) {
        Ok(code) => exit(code),
        Err(e) => fail(&e),
    }
}
