//! Settings that take turns: put in force before a run, read back, and put back at the end.
//!
//! On every node one rank, or in the whole job rank 0, has a setter: a process of its own that runs the user's commands, one
//! after the other. Its standard input is its lifeline, on which it is told the next setting; once that is closed it puts the
//! former setting back. So that happens however the rank ends, and never while a command of before still runs.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tailback_transport::{Bootstrap, Rank, Result};

use crate::job::{RunsOn, Session, TuneSelection, gather, tell};
use crate::result::{FormerSetting, ReadBack, SettingChange, TuningRecord, distinct};

/// How often a setter tries to put the former setting back, and how long it waits in between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// What was read, or why a command failed.
type Said = std::result::Result<String, String>;

/// A rank's part in it.
pub(super) struct Tuner<'a> {
    selection: &'a TuneSelection,
    names: Vec<String>,
    node: &'a str,
    /// On ranks that have one.
    setter: Option<Setter>,
    /// What is known of it, on rank 0.
    pub record: TuningRecord,
}

/// What a rank with a setter tells rank 0.
#[derive(Serialize, Deserialize)]
struct Told {
    node: String,
    said: Said,
    seconds: f64,
}

impl<'a> Tuner<'a> {
    /// Starts the setters, which read the former settings; the inner error says why nothing can be changed, on every rank.
    /// Nothing where no settings take turns. Collective over the job.
    pub(super) fn begin(
        bootstrap: &mut dyn Bootstrap,
        session: &'a Session<'_>,
    ) -> Result<std::result::Result<Option<Self>, String>> {
        let Some(selection) = &session.request.tuning else { return Ok(Ok(None)) };
        let (me, hosts) = (bootstrap.rank(), &session.hosts);
        let node = hosts[me.index()].as_str();
        let once = selection.set_on == RunsOn::First;
        let sets = if once { me == Rank(0) } else { hosts.iter().position(|host| host == node) == Some(me.index()) };
        let names = selection.names();
        let (set_by, read_by) = (selection.set_by.clone(), selection.read_by.clone());
        let record = TuningRecord { settings: names.clone(), set_by, read_by, once, ..TuningRecord::default() };
        let mut tuner = Tuner { selection, names, node, setter: None, record };
        let mine = sets.then(|| {
            let (setter, said) =
                Setter::start(selection).map_or_else(|why| (None, Err(why)), |(of, said)| (Some(of), said));
            tuner.setter = setter;
            Told { node: node.to_owned(), said, seconds: 0.0 }
        });
        let former = |told: Vec<(String, String, f64)>, record: &mut TuningRecord| {
            for setting in distinct(told.iter().map(|(_, said, _)| said)) {
                let has = |(node, said, _): &(String, String, f64)| (said == setting).then(|| node.clone());
                let mut nodes: Vec<String> = told.iter().filter_map(has).collect();
                nodes.sort();
                record.former.push(FormerSetting { setting: setting.clone(), nodes });
            }
        };
        let outcome = tuner.agree(bootstrap, mine.as_slice(), former)?;
        for FormerSetting { setting, nodes } in &tuner.record.former {
            let on = if nodes.len() == 1 { nodes[0].clone() } else { format!("{} nodes", nodes.len()) };
            session.request.say(&format!("'{setting}' is in force on {on}, and put back at the end"));
        }
        Ok(outcome.map(|()| Some(tuner)))
    }

    /// Puts the setting of this number in force before a placement; the inner error says why it is not, on every rank.
    /// Collective over the job: nobody goes on before it is in force everywhere.
    pub(super) fn put(
        &mut self,
        bootstrap: &mut dyn Bootstrap,
        number: usize,
        index: u32,
    ) -> Result<std::result::Result<(), String>> {
        let value = &self.selection.settings[number];
        let mine = self.setter.as_mut().map(|setter| {
            let begun = Instant::now();
            let said = setter.put(value);
            Told { node: self.node.to_owned(), said, seconds: begun.elapsed().as_secs_f64() }
        });
        let setting = self.names[number].clone();
        let reads = self.selection.read_by.is_some();
        self.agree(bootstrap, mine.as_slice(), |told, record| {
            let texts = distinct(told.iter().map(|(_, said, _)| said)).into_iter().filter(|_| reads);
            let nodes = |text: &String| told.iter().filter(|(_, said, _)| said == text).count();
            let read = texts.map(|text| ReadBack { text: text.clone(), nodes: nodes(text) }).collect();
            let seconds = told.iter().map(|(.., seconds)| *seconds).fold(0.0, f64::max);
            record.changes.push(SettingChange { placement: index + 1, setting, seconds, read });
        })
    }

    /// Puts the former setting back, and gives on rank 0 what became of it. Collective over the job.
    pub(super) fn end(mut self, bootstrap: &mut dyn Bootstrap) -> Result<TuningRecord> {
        let mine =
            self.setter.take().map(|setter| Told { node: self.node.to_owned(), said: setter.end(), seconds: 0.0 });
        // A setter that failed has said so itself.
        let outcome = self.agree(bootstrap, mine.as_slice(), |_, _| ())?;
        self.record.put_back = Some(outcome.is_ok());
        Ok(self.record)
    }

    /// Has rank 0 keep what all were told, if nothing failed anywhere; what did is told to all.
    fn agree(
        &mut self,
        bootstrap: &mut dyn Bootstrap,
        mine: &[Told],
        keep: impl FnOnce(Vec<(String, String, f64)>, &mut TuningRecord),
    ) -> Result<std::result::Result<(), String>> {
        let mut told: Vec<Told> = gather(bootstrap, mine)?;
        told.sort_by(|one, other| one.node.cmp(&other.node));
        let outcome = (bootstrap.rank() == Rank(0)).then(|| {
            let failed: Vec<String> =
                told.iter().filter_map(|of| Some(format!("on {}: {}", of.node, of.said.as_ref().err()?))).collect();
            if let [first, others @ ..] = &failed[..] {
                let more =
                    if others.is_empty() { String::new() } else { format!("; and on {} more nodes", others.len()) };
                return Err(format!("{first}{more}"));
            }
            let said = told.into_iter().filter_map(|of| Some((of.node, of.said.ok()?, of.seconds)));
            keep(said.collect(), &mut self.record);
            Ok(())
        });
        tell(bootstrap, outcome.as_ref())
    }
}

/// A setter that listens to this rank. Dropped, it puts the former setting back by itself.
struct Setter {
    child: Child,
    lifeline: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Setter {
    /// Starts one; with the former setting, or why that is not known.
    fn start(selection: &TuneSelection) -> std::result::Result<(Self, Said), String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(program);
        command.args(["setter", "--settings", &selection.settings.join(","), "--set-by", &selection.set_by]);
        selection.read_by.iter().for_each(|of| _ = command.args(["--read-by", of]));
        selection.former.iter().for_each(|of| _ = command.args(["--former", of]));
        command.args(selection.read_any.then_some("--read-any"));
        // A group of its own: neither a terminal's Ctrl-C nor a launcher that ends this rank ends it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("no process can be started: {error}"))?;
        let (lifeline, said) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut setter = Setter { child, lifeline, said: BufReader::new(said) };
        let former = setter.hear();
        Ok((setter, former))
    }

    fn put(&mut self, setting: &str) -> Said {
        // One that is gone says nothing either.
        let _ = writeln!(self.lifeline, "{setting}");
        self.hear()
    }

    fn end(self) -> Said {
        let Setter { mut child, lifeline, mut said } = self;
        drop(lifeline);
        let said = hear(&mut said);
        let _ = child.wait();
        said
    }

    fn hear(&mut self) -> Said {
        hear(&mut self.said)
    }
}

fn hear(from: &mut impl BufRead) -> Said {
    let mut line = String::new();
    let read = from.read_line(&mut line).is_ok().then(|| serde_json::from_str(&line).ok()).flatten();
    read.unwrap_or_else(|| Err("the process that changes settings was ended".into()))
}

/// The process: changes settings as it is told, and puts the former one back once nobody tells it more.
pub fn setter(selection: &TuneSelection) -> u8 {
    // Whoever ends the job means the ranks: this ends when all is as before.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    let former = selection.find_former();
    say(&former);
    let Ok(former) = former else { return 2 };
    let mut changed = false;
    for setting in io::stdin().lock().lines().map_while(io::Result::ok) {
        changed = true;
        say(&selection.put(&setting));
    }
    let put_back = if changed { put_back(selection, &former) } else { Ok(String::new()) };
    say(&put_back);
    let Err(why) = put_back else { return 0 };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let _ = writeln!(io::stderr(), "tailback: error: '{former}' is not put back on {host}: {why}");
    2
}

fn put_back(selection: &TuneSelection, former: &str) -> Said {
    let mut outcome = selection.put(former);
    // Whoever ends a job may have ended the command as well.
    for _ in 1..TRIES {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        outcome = selection.put(former);
    }
    outcome
}

fn say(said: &Said) {
    // A rank that is gone hears nothing, and needs not.
    let text = serde_json::to_string(said).expect("plain data");
    let _ = writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
}
