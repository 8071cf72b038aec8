//! One repetition of an application: started under guard, watched, and its figure read.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rustix::process::{Pid, Signal, kill_process_group};
use tailback_transport::Nanos;

use super::command::{Victims, prepare_environment, words};
use super::guard::{Said, held_up};
use crate::engine::{Ended, Starter};
use crate::job::Scratch;
use crate::plan::Application;

/// How often the rank looks whether the user wants the job to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program that takes too long is watched for why: a core that many share comes to each of them in that time.
const WATCHED: Duration = Duration::from_secs(1);
/// How many lines of output are shown of a program that failed.
const SHOWN: usize = 8;
/// Of an output without end, so much is read for its figure and for its last lines.
const MOST_OUTPUT: u64 = 16 << 20;

/// Repeats an application on the victims of one placement.
pub(crate) struct Repetitions {
    application: Application,
    victims: Victims,
}

impl Repetitions {
    pub(crate) fn new(application: &Application, victims: Victims) -> Self {
        Repetitions { application: application.clone(), victims }
    }

    fn try_once(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Ended, String> {
        let pattern = self.application.figure.as_deref().map(Pattern::new).transpose()?;
        let scratch = Scratch::new()?;
        let (hostfile, output) = (scratch.path("hosts"), scratch.path("output"));
        std::fs::write(&hostfile, self.victims.file()).map_err(|error| format!("could not be given hosts: {error}"))?;
        let words = words(&self.application.command, self.application.launcher, &self.victims, &hostfile)?;
        let mut guard = guard_command(&words, &output)?;
        prepare_environment(&mut guard, &self.victims, &hostfile, self.application.idle_shim)?;
        let mut guarded = Guarded::start(guard)?;
        let limit = self.application.limit();
        let badly = |why: String| Ok(Ended::Badly(format!("{why}{}", last_lines(&output))));
        match guarded.wait(limit, goes_on) {
            Outcome::Said(Said::Code { code: 0, wall_ns, left: 0 }) => {
                let figure = match pattern {
                    Some(pattern) => pattern.find(&read(&output)),
                    None => Ok(wall_ns as f64 * 1e-9),
                };
                match figure {
                    Ok(figure) => Ok(Ended::Well { figure, wall: Nanos(wall_ns) }),
                    Err(why) => badly(why),
                }
            }
            Outcome::Said(Said::Code { code: 0, left, .. }) => {
                badly(format!("ended, but {left} of its processes went on without it and were ended"))
            }
            Outcome::Said(Said::Code { code, .. }) => badly(format!("ended with exit code {code}")),
            Outcome::Said(Said::Signal { signal, .. }) => badly(format!("was ended by signal {signal}")),
            Outcome::Said(Said::Unstartable(why)) => badly(format!("could not be started: {why}")),
            Outcome::Said(Said::Started(_)) | Outcome::Lost => badly("was lost: its guard was ended".into()),
            Outcome::TooLong(why) => {
                let why = why.map_or(String::new(), |why| format!("; {why}"));
                badly(format!("did not end within {} s (--limit) and was ended{why}", limit.as_secs_f64()))
            }
            Outcome::Interrupted => Ok(Ended::Interrupted),
        }
    }
}

impl Starter for Repetitions {
    fn once(&self, goes_on: &mut dyn FnMut() -> bool) -> Ended {
        let named = |why: &str| format!("the application {} {why}", self.application.name);
        match self.try_once(goes_on) {
            Ok(Ended::Badly(why)) => Ended::Badly(named(&why)),
            Ok(ended) => ended,
            Err(why) => Ended::Badly(named(&why)),
        }
    }
}

/// This very program as the guard of another.
fn guard_command(words: &[String], output: &Path) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("could not be guarded: {error}"))?;
    let mut command = Command::new(program);
    command.arg("guard").arg("--output").arg(output).arg("--").args(words);
    // A group of its own: a terminal's Ctrl-C is this rank's to hear.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    Ok(command)
}

enum Outcome {
    Said(Said),
    /// The guard was ended by someone.
    Lost,
    /// It took longer than it may; why, if that can be seen.
    TooLong(Option<String>),
    Interrupted,
}

/// A guard and what it says. Dropped, it has ended, and with it the application.
struct Guarded {
    guard: Child,
    said: Receiver<Said>,
    group: Option<Pid>,
}

impl Guarded {
    fn start(mut command: Command) -> Result<Self, String> {
        let mut guard = command.spawn().map_err(|error| format!("could not be guarded: {error}"))?;
        let stdout = BufReader::new(guard.stdout.take().expect("piped"));
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some(said) = Said::parse(&line)
                    && sender.send(said).is_err()
                {
                    return;
                }
            }
        });
        Ok(Guarded { guard, said, group: None })
    }

    fn wait(&mut self, limit: Duration, goes_on: &mut dyn FnMut() -> bool) -> Outcome {
        let begun = Instant::now();
        loop {
            match self.said.recv_timeout(LOOK) {
                Ok(Said::Started(pid)) => self.group = Pid::from_raw(pid),
                Ok(said) => return Outcome::Said(said),
                Err(RecvTimeoutError::Disconnected) => return Outcome::Lost,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !goes_on() {
                return Outcome::Interrupted;
            }
            if begun.elapsed() > limit {
                return Outcome::TooLong(held_up(Pid::from_child(&self.guard), WATCHED));
            }
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let guarded_to_the_end = self.guard.wait().is_ok_and(|status| status.code().is_some());
        if let Some(group) = self.group.filter(|_| !guarded_to_the_end) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The end of what a program wrote, as far as it is text.
fn read(output: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let end = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(output)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST_OUTPUT)))?;
        let mut bytes = Vec::new();
        file.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&end().unwrap_or_default()).into_owned()
}

/// The last lines of an output, a mark before each; or that there are none.
fn last_lines(output: &Path) -> String {
    let text = read(output);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "; it wrote nothing".into();
    }
    let shown = &lines[lines.len().saturating_sub(SHOWN)..];
    shown.iter().map(|line| format!("\n  | {}", line.replace(char::is_control, " "))).collect()
}

/// A pattern that finds a figure in a program's output: what its only group matched last.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let regex = Regex::new(text).map_err(|error| format!("invalid regular expression '{text}': {error}"))?;
        match regex.captures_len() {
            2 => Ok(Pattern(regex)),
            groups => Err(format!("'{text}' has {} groups: one in parentheses is the figure", groups - 1)),
        }
    }

    /// The last figure in a text: programs print a summary at their end.
    pub(crate) fn find(&self, text: &str) -> Result<f64, String> {
        let last = self.0.captures_iter(text).last().and_then(|found| found.get(1));
        let word = last.ok_or_else(|| format!("printed nothing that matches '{}'", self.0.as_str()))?.as_str().trim();
        match word.parse::<f64>() {
            Ok(figure) if figure.is_finite() && figure > 0.0 => Ok(figure),
            _ => Err(format!("printed '{word}' where its figure was looked for: no number above 0")),
        }
    }
}

/// Whether a text can be a pattern for a figure.
pub fn check_pattern(text: &str) -> Result<String, String> {
    Pattern::new(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        assert_eq!(last_lines(&path), "; it wrote nothing");
        std::fs::write(&path, (0..20).map(|line| format!("line {line}\x1b[1m\n\n")).collect::<String>()).unwrap();
        let shown = last_lines(&path);
        assert_eq!(shown.matches("\n  | ").count(), SHOWN);
        assert!(shown.ends_with("| line 19 [1m") && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn the_last_match_is_the_figure() {
        let pattern = Pattern::new("Loop time of ([0-9.]+)").unwrap();
        let output = "Loop time of 1.5 on 4 procs\nnoise\nLoop time of 12.25 on 4 procs for 100 steps\n";
        assert_eq!(pattern.find(output), Ok(12.25));
        assert!(pattern.find("no loop").unwrap_err().contains("printed nothing that matches 'Loop time"));
        let loose = Pattern::new("time (.*)").unwrap();
        for bad in ["time soon", "time 0", "time -3", "time inf", "time NaN"] {
            assert!(loose.find(bad).unwrap_err().contains("no number above 0"), "{bad}");
        }
        assert_eq!(loose.find("time  3e2 "), Ok(300.0));
    }

    #[test]
    fn a_pattern_has_one_group() {
        assert!(check_pattern("([0-9]+) of ([0-9]+)").unwrap_err().contains("has 2 groups"));
        assert!(check_pattern("[0-9]+").unwrap_err().contains("has 0 groups"));
        assert!(check_pattern("([0-9]+").unwrap_err().contains("invalid regular expression"));
        assert_eq!(check_pattern("(?:a|b) ([0-9]+)").unwrap(), "(?:a|b) ([0-9]+)");
    }
}
