//! A job without a launcher: this very command, as ranks on this machine.
//!
//! By default the ranks sit on the hosts of the emulated cluster, where there is a network to congest; where namespaces
//! are not allowed they are plain local ranks. The process that starts them hears of their phases, reads the lab's
//! counters in between, and shows the results that rank 0 hands over.

mod in_lab;
mod phases;
mod scratch;
mod study;

use std::ffi::OsString;
use std::time::Duration;

use tailback_tcp::launch::{self, LaunchOptions};
use tailback_transport::Nanos;

use crate::backend::Backend;
use crate::cli::TransportOptions;
use crate::lab::{self, LabSpec};
use crate::output::Progress;
use crate::plan::Preset;
use crate::session::Request;

pub use in_lab::run_in_lab;
use phases::PhaseListener;
pub use phases::PhaseReporter;
use scratch::Scratch;
pub use study::run_study;

/// Where rank 0 leaves the result, for the process that started it.
pub const RESULT_VARIABLE: &str = "TAILBACK_RESULT";

/// Ranks that are started on this machine when there is no lab.
const LOCAL_RANKS: usize = 10;
/// How long ranks have to end in order after Ctrl-C: longer than a phase takes to notice.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the request on this machine.
pub fn run(request: &Request) -> Result<u8, String> {
    if request.transport.no_lab {
        return plain(request, "");
    }
    if let Some(backend) = outside_lab(&request.transport) {
        return plain(request, &format!(" (the emulated cluster has no {backend})"));
    }
    match lab::available() {
        Ok(_) => {
            let hosts = request.transport.ranks.unwrap_or_else(|| LabSpec::default().hosts);
            run_in_lab(request, &LabSpec { hosts, name: scratch::unique_name(), ..LabSpec::default() })
        }
        Err(reason) => plain(request, &format!(" (no emulated cluster: {reason})")),
    }
}

/// A network under test that the emulated cluster does not have.
fn outside_lab(options: &TransportOptions) -> Option<Backend> {
    options.transport.iter().copied().find(|backend| !backend.fits_lab())
}

/// Plain local ranks, each a virtual node.
fn plain(request: &Request, why: &str) -> Result<u8, String> {
    // Mistakes are said once, here, rather than by a rank.
    let plan = request.resolve(Preset::Quick)?;
    let ranks = request.transport.ranks.unwrap_or(LOCAL_RANKS);
    if ranks == 0 {
        return Err("a job has at least 1 rank: give -n N".into());
    }
    let mut command = this_command()?;
    command.extend(request.fixed(&plan, request.seed()));
    if plan.ranks_per_node.is_none() {
        command.extend(["--ranks-per-node".into(), "1".into()]);
    }
    request.say(&format!(
        "no launcher: starting {ranks} ranks on this machine as {} virtual nodes, {} plan{why}. They share this machine's \
         cores, so what follows is the cores' congestion as much as a network's.",
        ranks.div_ceil(plan.ranks_per_node.unwrap_or(1)),
        plan.preset
    ));
    let progress = Progress::new(!request.quiet());
    let scratch = Scratch::new()?;
    let _listener = PhaseListener::start(&scratch.path("phases"), move |name, budget| progress.phase(name, budget))?;
    let mut options = LaunchOptions::new(ranks, command);
    options.grace = GRACE;
    options.env = vec![(phases::VARIABLE.into(), scratch.path("phases").into())];
    exit_code(launch::run(&options))
}

/// This process's own command line.
fn this_command() -> Result<Vec<OsString>, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok([program.into()].into_iter().chain(std::env::args_os().skip(1)).collect())
}

fn exit_code(code: tailback_transport::Result<i32>) -> Result<u8, String> {
    // A shell's code for a signal means the same here: it could not run.
    match code.map_err(|error| error.to_string())? {
        code @ (0 | 1) => Ok(code as u8),
        _ => Ok(2),
    }
}

/// Hears of a phase: its name and its budget.
type Heard = dyn FnMut(&str, Nanos) + Send;
