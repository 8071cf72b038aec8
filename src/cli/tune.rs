//! `tailback tune`: settings of a network, compared on the same placements and ranked.

use std::str::FromStr;

use clap::{Arg, Args};

use super::options::RunOptions;
use crate::body::setter;
use crate::job::{Request, RunsOn, TuneSelection};
use crate::lab::LabKey;
use crate::result::Command;

/// Options of `tailback tune`.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
#[command(mut_args(without_unused))]
pub struct TuneOptions {
    #[command(flatten)]
    selection: TuneSelection,

    /// In the emulated cluster, instead of the options above: cc=LIST compares TCP congestion controls, queue=LIST lengths of the
    /// queues at its ports, e.g. cc=cubic,reno,bbr or queue=64KiB,256KiB
    #[arg(
        long,
        value_name = "KEY=LIST",
        help_heading = "Settings",
        conflicts_with_all = ["settings", "set_by", "set_on", "read_by", "read_any", "former"]
    )]
    lab_settings: Option<LabSettings>,

    #[command(flatten)]
    run: RunOptions,
}

/// A setting of the emulated cluster and its values.
#[derive(Clone, Debug)]
struct LabSettings {
    key: LabKey,
    values: Vec<String>,
}

impl FromStr for LabSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text.split_once('=').ok_or("expected cc=LIST or queue=LIST")?;
        let key: LabKey = key.parse()?;
        let values = values.split(',').map(|value| key.canonical(value)).collect::<Result<_, String>>()?;
        Ok(LabSettings { key, values })
    }
}

impl LabSettings {
    /// The commands that change and read it, on the first host, which reaches all others.
    fn selection(self) -> Result<TuneSelection, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let program = program.to_string_lossy().replace('\'', r"'\''");
        let read = format!("'{program}' lab set {}", self.key);
        let set_by = format!("{read}={{setting}}");
        let (set_on, read_by) = (RunsOn::First, Some(read));
        Ok(TuneSelection { settings: self.values, set_by, set_on, read_by, read_any: false, former: None })
    }
}

/// Hides what is refused here with the reason.
fn without_unused(option: Arg) -> Arg {
    const UNUSED: [&str; 4] = ["launches", "control", "no_control", "congestor_transport"];
    if UNUSED.contains(&option.get_id().as_str()) { option.hide(true) } else { option }
}

impl TuneOptions {
    /// What is asked for, as plain values.
    pub fn request(self) -> Result<Request, String> {
        let settings = &self.run.common.settings;
        let several = settings.transports.len() > 1 || settings.protocols.len() > 1 || settings.copies > 1;
        let refused = [
            ("several networks", several, "settings are compared over one transport with one protocol"),
            (
                "--congestor-transport",
                !self.run.roles.congestor_transport.is_empty(),
                "it is of comparisons of networks",
            ),
            ("--congestors each", self.run.congestors.each().is_some(), "settings are compared under one load"),
            ("--launches", self.run.local.launches > 1, "settings take turns within one job"),
            ("--control", self.run.local.control.is_some(), "a control is for `tailback run` with one setting"),
        ];
        if let Some((option, _, why)) = refused.into_iter().find(|(_, given, _)| *given) {
            return Err(format!("{option}: not for tune: {why}"));
        }
        let tuning = match self.lab_settings {
            Some(of) => of.selection()?,
            None => self.selection,
        };
        let request = self.run.request()?;
        Ok(Request { command: Command::Tune, tuning: Some(tuning), ..request })
    }
}

/// Options of the process that changes settings for a rank.
#[derive(Clone, Debug, Args)]
pub struct SetterOptions {
    #[command(flatten)]
    selection: TuneSelection,
}

impl SetterOptions {
    /// Changes settings until nobody tells it more.
    pub fn execute(&self) -> u8 {
        setter(&self.selection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_lab_have_commands() {
        let of: LabSettings = "queue=64KiB,262144".parse().unwrap();
        let selection = of.selection().unwrap();
        assert_eq!(selection.settings, ["64KiB", "256KiB"]);
        assert!(selection.set_by.ends_with("' lab set queue={setting}"), "{}", selection.set_by);
        assert!(selection.read_by.unwrap().ends_with("' lab set queue") && selection.set_on == RunsOn::First);
        for wrong in ["cubic,reno", "mtu=1500,9000", "queue=much,more"] {
            assert!(wrong.parse::<LabSettings>().is_err(), "{wrong}");
        }
    }
}
