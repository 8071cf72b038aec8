//! Settings of a network that are compared: the commands that put one in force and read which is, and what they have to say.

use std::time::Duration;

use clap::Args;

use super::runs_on::RunsOn;
use crate::counters::UserCommand;

/// How long a command may take: switches are slow.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Where a command finds the setting.
const VARIABLE: &str = "TAILBACK_SETTING";
/// What stands for the setting in a command.
const PLACE: &str = "{setting}";

/// Which settings are compared, and how one is put in force.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Settings")]
pub struct TuneSelection {
    /// Settings to compare, e.g. off,on or 64,256: they take turns on every placement, in a balanced order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub settings: Vec<String>,

    /// Shell command that puts a setting in force: {setting} in it, and $TAILBACK_SETTING, is the setting. It has 60 s, and ends
    /// when the setting is in force
    #[arg(long, value_name = "CMD", default_value = "", hide_default_value = true)]
    pub set_by: String,

    /// Where it runs
    #[arg(long, value_enum, value_name = "WHERE", default_value = "every")]
    pub set_on: RunsOn,

    /// Shell command that prints the setting in force. It is run there before the first change and after every one; what it
    /// prints has to name the setting, and no other of --settings
    #[arg(long, value_name = "CMD")]
    pub read_by: Option<String>,

    /// Keep what --read-by prints, whatever it names
    #[arg(long, requires = "read_by")]
    pub read_any: bool,

    /// Setting to put back at the end; also after Ctrl-C and when a rank is killed [default: what --read-by prints before the
    /// first change]
    #[arg(long, value_name = "SETTING")]
    pub former: Option<String>,
}

impl TuneSelection {
    /// Says what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.settings.len() < 2 {
            return Err("tune compares settings: give at least two with --settings".into());
        }
        if let Some(wrong) = self.settings.iter().chain(&self.former).find(|setting| !is_setting(setting)) {
            return Err(format!("invalid setting '{wrong}': expected letters, digits and any of _.:=/+@%-"));
        }
        if self.set_by.trim().is_empty() {
            return Err("tune needs the command that puts a setting in force: give it with --set-by".into());
        }
        if self.read_by.is_none() && self.former.is_none() {
            return Err(
                "nothing says which setting to put back at the end: give --read-by CMD or --former SETTING".into()
            );
        }
        Ok(())
    }

    /// The settings as results name them: one that is given again has a number.
    pub(crate) fn names(&self) -> Vec<String> {
        let name =
            |(at, setting): (usize, &String)| match self.settings[..at].iter().filter(|of| *of == setting).count() {
                0 => setting.clone(),
                before => format!("{setting}#{}", before + 1),
            };
        self.settings.iter().enumerate().map(name).collect()
    }

    /// The setting in force before the first change.
    ///
    /// # Errors
    /// If it cannot be read, or what was read is no setting.
    pub(crate) fn find_former(&self) -> Result<String, String> {
        let read = self.read()?;
        match (&self.former, read) {
            (Some(former), _) => Ok(former.clone()),
            (None, Some(read)) if is_setting(&read) => Ok(read),
            (None, read) => Err(format!(
                "--read-by prints '{}', which is more than a setting that can be put back: give --former SETTING",
                read.unwrap_or_default()
            )),
        }
    }

    /// Puts a setting in force, and gives what was read after it; empty where nothing reads it.
    ///
    /// # Errors
    /// If a command fails, or another setting is in force.
    pub(crate) fn put(&self, setting: &str) -> Result<String, String> {
        let set = UserCommand::new(&self.set_by.replace(PLACE, setting)).within(COMMAND_TIME).told(VARIABLE, setting);
        set.output().map_err(|why| format!("--set-by for '{setting}': {why}"))?;
        let read = self.read()?.unwrap_or_default();
        if self.read_by.is_some() && !self.read_any {
            self.check_read(setting, &read)?;
        }
        Ok(read)
    }

    fn read(&self) -> Result<Option<String>, String> {
        let Some(read_by) = &self.read_by else { return Ok(None) };
        let read = UserCommand::new(read_by).within(COMMAND_TIME).output();
        read.map(|text| Some(text.trim().to_owned())).map_err(|why| format!("--read-by: {why}"))
    }

    fn check_read(&self, setting: &str, read: &str) -> Result<(), String> {
        if !names(read, setting) {
            return Err(format!("'{setting}' was put in force, and --read-by prints '{}'", shortened(read)));
        }
        match self.settings.iter().find(|other| *other != setting && names(read, other)) {
            Some(other) => Err(format!(
                "'{setting}' was put in force, and --read-by prints '{}', which names '{other}' too: it has to print only what is \
                 in force",
                shortened(read)
            )),
            None => Ok(()),
        }
    }
}

/// Whether a text can be a setting: it stands in a shell command as it is, and in names of phases.
fn is_setting(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:=/+@%-".contains(c))
}

/// Whether a text has a setting in it as a word.
fn names(text: &str, setting: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_.-".contains(c));
    text.match_indices(setting)
        .any(|(at, _)| !part(text[..at].chars().next_back()) && !part(text[at + setting.len()..].chars().next()))
}

fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(settings: &[&str], set_by: &str, read_by: Option<&str>) -> TuneSelection {
        TuneSelection {
            settings: settings.iter().map(ToString::to_string).collect(),
            set_by: set_by.into(),
            set_on: RunsOn::Every,
            read_by: read_by.map(str::to_owned),
            read_any: false,
            former: None,
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (wrong, why) in [
            (selection(&["a"], "true", Some("true")), "at least two"),
            (selection(&["a", "b c"], "true", Some("true")), "invalid setting 'b c'"),
            (selection(&["a", "$(x)"], "true", Some("true")), "invalid setting '$(x)'"),
            (selection(&["a", "b"], " ", Some("true")), "--set-by"),
            (selection(&["a", "b"], "true", None), "--former"),
        ] {
            let said = wrong.check().unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(selection(&["a", "b"], "true", Some("true")).check(), Ok(()));
        assert_eq!(selection(&["a", "b", "a", "a"], "", None).names(), ["a", "b", "a#2", "a#3"]);
    }

    #[test]
    fn a_setting_is_named_as_a_word() {
        assert!(
            names("net.ipv4.tcp_congestion_control = bbr\n", "bbr") && names("cc=bbr", "bbr") && names("bbr", "bbr")
        );
        assert!(!names("bbr2", "bbr") && !names("0x1", "1") && !names("10", "1") && !names("", "1"));
    }

    #[test]
    fn a_change_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        std::fs::write(&file, "old\n").unwrap();
        let (set, read) = (format!("echo {{setting}} > {}", file.display()), format!("cat {}", file.display()));
        let of = selection(&["a", "b"], &set, Some(&read));
        assert_eq!(of.find_former().as_deref(), Ok("old"));
        assert_eq!(of.put("a").as_deref(), Ok("a"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\n");
        let by_variable = selection(&["a", "b"], &set.replace("{setting}", "$TAILBACK_SETTING"), Some(&read));
        assert_eq!(by_variable.put("b").as_deref(), Ok("b"));
        let idle = selection(&["a", "b"], "true", Some(&read));
        assert!(idle.put("a").unwrap_err().contains("'a' was put in force, and --read-by prints 'b'"));
        let both = selection(&["a", "b"], &set, Some("echo '[a] b'"));
        assert!(both.put("a").unwrap_err().contains("names 'b' too"));
        assert_eq!(TuneSelection { read_any: true, ..both.clone() }.put("a").as_deref(), Ok("[a] b"));
        assert!(both.find_former().unwrap_err().contains("--former"));
        assert_eq!(TuneSelection { former: Some("a".into()), ..both }.find_former().as_deref(), Ok("a"));
        let failing = selection(&["a", "b"], "echo no such switch >&2; exit 4", Some(&read)).put("a").unwrap_err();
        assert!(failing.contains("--set-by for 'a'") && failing.contains("exit code 4: no such switch"), "{failing}");
    }
}
