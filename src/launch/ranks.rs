//! Starting ranks: what every way of doing so on this machine shares.

use std::ffi::OsString;
use std::net::IpAddr;
use std::time::Duration;

use tailback_bootstrap::launch::{LaunchOptions, RankSetup};

use crate::backend::{Backend, CongestorNetworks, Settings};
use crate::job::Request;
use crate::lab::{Host, Lab};

/// Ranks that are started where nothing else says how many.
const LOCAL_RANKS: usize = 10;
/// Any port does: rank 0 of a lab has a network namespace of its own.
const LAB_PORT: u16 = 4777;

/// How long ranks have to end in order after Ctrl-C: longer than a phase takes to notice, or a step of a study of default sizes
/// over an emulated network.
pub(crate) fn grace(request: &Request) -> Duration {
    Duration::from_secs(if request.study.is_some() { 30 } else { 10 })
}

/// How many ranks are started on this machine, and how many of them make a node.
pub(crate) fn local_ranks(request: &Request, per_node: Option<usize>) -> Result<(usize, usize), String> {
    let (ranks, per_node) = match &request.study {
        Some(of) => of.study.local_ranks(of.ranks_per_node),
        None => (LOCAL_RANKS, per_node.unwrap_or(1)),
    };
    match request.local.ranks.unwrap_or(ranks) {
        0 => Err("a job has at least 1 rank: give -n N".into()),
        ranks => Ok((ranks, per_node)),
    }
}

/// Options that start `command` on hosts of a lab, a host for each rank.
pub(crate) fn on_hosts<'l>(lab: &Lab, hosts: impl Iterator<Item = &'l Host>, command: Vec<OsString>) -> LaunchOptions {
    let setup = |host: &Host| RankSetup {
        prefix: lab.command_on(host),
        env: vec![("TAILBACK_HOST".into(), host.name.clone().into()), ("TAILBACK_GROUP".into(), host.group().into())],
    };
    let setups: Vec<RankSetup> = hosts.map(setup).collect();
    let mut options = LaunchOptions::new(setups.len(), command);
    options.bind = IpAddr::V4(lab.hosts()[0].control);
    options.port = Some(LAB_PORT);
    options.env = [
        // All hosts share this machine's cores: spinning ranks would measure those.
        ("TAILBACK_WAIT", "block"),
        ("TAILBACK_DATA_IF", "d0"),
        ("TAILBACK_BOOTSTRAP_IF", "c0"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    options.setup = Box::new(move |rank| setups[rank.index()].clone());
    let ground = lab.ground();
    options.health_check = Some(Box::new(move || ground.check()));
    options
}

/// This process's own command line.
pub(crate) fn this_command() -> Result<Vec<OsString>, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok([program.into()].into_iter().chain(std::env::args_os().skip(1)).collect())
}

/// A command with more options, which stand before what is the application's own.
pub(crate) fn with_options(mut command: Vec<OsString>, options: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let end = command.iter().position(|word| word == "--").unwrap_or(command.len());
    command.splice(end..end, options);
    command
}

pub(crate) fn exit_code(code: tailback_transport::Result<i32>) -> Result<u8, String> {
    // A shell's code for a signal means the same here: it could not run.
    match code.map_err(|error| error.to_string())? {
        code @ (0 | 1 | 3) => Ok(code as u8),
        _ => Ok(2),
    }
}

/// A network under test that the emulated cluster does not have.
pub(super) fn outside_lab(settings: &Settings) -> Option<Backend> {
    named(settings).find(|backend| !backend.fits_lab())
}

/// A network under test whose packets cannot be told apart in the emulated cluster.
pub(super) fn unmarked(settings: &Settings) -> Option<Backend> {
    named(settings).find(|backend| !backend.is_marked_in_lab())
}

/// Whether the hosts of the emulated cluster have what was asked for; the user may know of interfaces that it does not.
pub(super) fn fits_hosts(settings: &Settings) -> Result<(), String> {
    if settings.rails > 1 && settings.data_interface.is_empty() && settings.data_address.is_empty() {
        return Err(format!(
            "--rails {}: a host of the emulated cluster has one interface for data, d0: name others with --data-interface, or run \
             with --no-lab or a launcher",
            settings.rails
        ));
    }
    Ok(())
}

/// Those the user named; without any it is tcp.
fn named(settings: &Settings) -> impl Iterator<Item = Backend> {
    let congestors = match &settings.congestors {
        CongestorNetworks::Over(backends) => &backends[..],
        CongestorNetworks::Same | CongestorNetworks::Crossed => &[],
    };
    settings.transports.iter().chain(congestors).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_before_the_applications_own_words() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let preset = || words("--preset lab");
        assert_eq!(with_options(words("tailback run -q"), preset()), words("tailback run -q --preset lab"));
        assert_eq!(
            with_options(words("tailback app -q -- env -- lmp"), preset()),
            words("tailback app -q --preset lab -- env -- lmp")
        );
    }

    #[test]
    fn results_have_codes_of_their_own_and_all_else_could_not_run() {
        for (code, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (7, 2), (137, 2)] {
            assert_eq!(exit_code(Ok(code)), Ok(expected));
        }
    }
}
