//! `tailback simulate`: what if the network were another?

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;

use super::options::RunOptions;
use crate::backend::simulator::machine::Machine;
use crate::backend::{Backend, can_simulate};
use crate::launch;

/// Options of `tailback simulate`.
#[derive(Clone, Debug, Args)]
pub struct SimulateOptions {
    /// A key of the machine file and other values for it, each simulated by itself; repeatable, e.g.
    /// routing.kind=minimal,adaptive or topology.global_links=4,2,1 or control.kind=none
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    what_if: Vec<WhatIf>,

    /// Keep the result of each alternative in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// One key and its other values.
#[derive(Clone, Debug)]
struct WhatIf {
    key: String,
    values: Vec<String>,
}

impl FromStr for WhatIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid change '{text}': expected KEY=VALUE, or KEY=VALUE,VALUE");
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(WhatIf { key: key.trim().to_owned(), values })
    }
}

impl SimulateOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        can_simulate()?;
        let mut request = self.run.request()?;
        let machine = request.settings.machine.clone().ok_or("simulate needs --machine NAME_OR_FILE")?;
        if request.settings.transports.is_empty() {
            request.settings.transports.push(Backend::Sim);
        }
        let output = &request.output;
        if output.out.is_some() || output.csv.is_some() || output.metrics.is_some() {
            return Err(
                "--out, --csv and --metrics are for one result: --keep DIR keeps those of all alternatives".into()
            );
        }
        if request.launches > 1 {
            return Err("--launches is for `tailback run`: a simulation gives the same again".into());
        }
        if !request.checks.fail_if.is_empty() || request.checks.junit.is_some() || request.dry_run {
            return Err(
                "simulate compares and checks nothing: --fail-if, --junit and --dry-run are for `tailback run`".into(),
            );
        }
        let machines = alternatives(&machine, &self.what_if)?;
        launch::what_if(&request, &machines, self.keep)
    }
}

/// The machine as it is and every alternative, with their labels: all of them make sense before one is simulated.
fn alternatives(machine: &Arc<Machine>, changes: &[WhatIf]) -> Result<Vec<(String, Arc<Machine>)>, String> {
    let mut machines = vec![(machine.name.clone(), Arc::clone(machine))];
    for WhatIf { key, values } in changes {
        for value in values {
            let changed = machine.changed(key, value).map_err(|error| format!("--what-if: {error}"))?;
            // What the machine has already is no alternative to it.
            if !changed.is_like(machine) {
                machines.push((format!("{key}={value}"), Arc::new(changed)));
            }
        }
    }
    if machines.len() == 1 && !changes.is_empty() {
        return Err(format!("--what-if: the machine {} is like that already", machine.name));
    }
    Ok(machines)
}
