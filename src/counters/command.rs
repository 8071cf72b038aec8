//! A command of the user's: one that prints counters, for switches and for whatever else has its own tools, or one that changes
//! a setting.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The longest that a command which prints counters may take.
pub const MOST_TIME: Duration = Duration::from_secs(10);
/// The most that is read of what it prints.
const MOST_BYTES: u64 = 1 << 20;
/// How often its end is looked for.
const PAUSE: Duration = Duration::from_millis(2);

/// A command for the shell, with a limit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    text: String,
    limit: Duration,
    variable: Option<(&'static str, String)>,
}

impl UserCommand {
    /// A command that may take [`MOST_TIME`].
    pub fn new(text: &str) -> Self {
        UserCommand { text: text.to_owned(), limit: MOST_TIME, variable: None }
    }

    /// The same with another limit.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        UserCommand { limit, ..self }
    }

    /// The same with a variable in its environment.
    #[must_use]
    pub fn told(self, name: &'static str, value: &str) -> Self {
        UserCommand { variable: Some((name, value.to_owned())), ..self }
    }

    /// Runs it and reads the counters that it prints.
    ///
    /// # Errors
    /// If it cannot be started, fails, takes too long, or prints something else than counters.
    pub fn counters(&self) -> Result<Devices, String> {
        parse(&self.output()?)
    }

    /// Runs it and gives what it prints.
    ///
    /// # Errors
    /// If it cannot be started, fails, takes too long, or prints too much.
    pub fn output(&self) -> Result<String, String> {
        let mut child = Command::new("sh")
            .args(["-c", &self.text])
            .envs(self.variable.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("it cannot be started: {error}"))?;
        let [printed, said] =
            [collect(child.stdout.take().expect("piped")), collect(child.stderr.take().expect("piped"))];
        let status = self.end(&mut child)?;
        let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
        if !status.success() {
            let how = match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            };
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            let last = last.map(|line| format!(": {}", shortened(line).replace(char::is_control, " ")));
            return Err(format!("it ended with {how}{}", last.unwrap_or_default()));
        }
        if printed.len() as u64 > MOST_BYTES {
            return Err(format!("it prints more than {MOST_BYTES} bytes"));
        }
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// Waits for its end, or ends it; and all that it started, which would keep the pipes open.
    fn end(&self, child: &mut Child) -> Result<ExitStatus, String> {
        let (start, pid) = (Instant::now(), Pid::from_child(child));
        // Not yet taken note of, it keeps its number, by which the others are known too.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let is_over = || !matches!(waitid(WaitId::Pid(pid), look), Ok(None));
        while !is_over() && start.elapsed() < self.limit {
            std::thread::sleep(PAUSE);
        }
        let late = !is_over();
        let _ = kill_process_group(pid, Signal::KILL);
        let status = child.wait().map_err(|error| format!("it cannot be waited for: {error}"))?;
        if late { Err(format!("it took longer than {:?}", self.limit)) } else { Ok(status) }
    }
}

fn collect(source: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What is too much is refused; it has to be read all the same, lest the command wait for a reader.
        let mut source = source;
        let _ = source.by_ref().take(MOST_BYTES + 1).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut source, &mut std::io::sink());
        bytes
    })
}

/// Counters by device; those of none in particular under an empty name.
pub type Devices = BTreeMap<String, BTreeMap<String, f64>>;

/// Reads a JSON object of numbers, or of devices that are such objects, or lines of a name and a value. Names may end in a colon;
/// lines that are only a name with one, empty ones and comments (#) are passed over, so that the output of `ethtool -S` and of
/// exporters can be used as it is.
fn parse(text: &str) -> Result<Devices, String> {
    let devices = match text.trim_start().starts_with('{') {
        true => object(text)?,
        false => Devices::from([(String::new(), lines(text)?)]),
    };
    if devices.values().all(BTreeMap::is_empty) {
        return Err(
            "it prints no counter: a JSON object of numbers or {device: {counter: number}}, or lines of a name and a \
                    value"
                .into(),
        );
    }
    Ok(devices)
}

fn object(text: &str) -> Result<Devices, String> {
    use serde_json::{Map, Value};
    let map: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("it prints no JSON object: {error}"))?;
    let number = |name: &str, value: &Value| {
        value.as_f64().ok_or_else(|| {
            format!("it prints {} for {:?}, which is no number", shortened(&value.to_string()), shortened(name))
        })
    };
    let mut devices = Devices::new();
    for (name, value) in &map {
        match value {
            Value::Object(counters) => {
                let counters = counters.iter().map(|(counter, value)| Ok((counter.clone(), number(counter, value)?)));
                devices.entry(name.clone()).or_default().extend(counters.collect::<Result<Vec<_>, String>>()?);
            }
            value => _ = devices.entry(String::new()).or_default().insert(name.clone(), number(name, value)?),
        }
    }
    Ok(devices)
}

fn lines(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let mut counters = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') || line.ends_with(':') {
            continue;
        }
        let pair = line.rsplit_once(char::is_whitespace);
        let value = pair.and_then(|(_, value)| value.parse::<f64>().ok()).filter(|value| value.is_finite());
        let (Some((name, _)), Some(value)) = (pair, value) else {
            return Err(format!("it prints {:?}, which is no name and value", shortened(line)));
        };
        let name = name.trim_end().trim_end_matches(':');
        if counters.insert(name.to_owned(), value).is_some() {
            return Err(format!("it prints {:?} twice", shortened(name)));
        }
    }
    Ok(counters)
}

fn shortened(line: &str) -> String {
    const MOST: usize = 100;
    if line.chars().count() <= MOST { line.to_owned() } else { line.chars().take(MOST).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str, limit: Duration) -> UserCommand {
        UserCommand::new(text).within(limit)
    }

    fn found(text: &str) -> Vec<(String, f64)> {
        let devices: Vec<(String, BTreeMap<String, f64>)> = parse(text).unwrap().into_iter().collect();
        assert!(devices.len() == 1 && devices[0].0.is_empty(), "of no device: {devices:?}");
        devices.into_iter().flat_map(|(_, counters)| counters).collect()
    }

    #[test]
    fn an_object_may_have_devices() {
        let text = r#"{"leaf1 port 3": {"drops": 2, "bytes": 1e9}, "leaf1 port 4": {"drops": 0}, "uptime_s": 7}"#;
        let found = parse(text).unwrap();
        let names: Vec<(&str, usize)> = found.iter().map(|(name, of)| (name.as_str(), of.len())).collect();
        assert_eq!(names, [("", 1), ("leaf1 port 3", 2), ("leaf1 port 4", 1)]);
        assert_eq!((found["leaf1 port 3"]["drops"], found[""]["uptime_s"]), (2.0, 7.0));
        for (text, why) in [
            (r#"{"leaf1": {"drops": {"in": 1}}}"#, "for \"drops\", which is no number"),
            (r#"{"leaf1": {}}"#, "it prints no counter"),
            (r#"{"leaf1": null}"#, "it prints null for \"leaf1\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn lines_and_objects_are_read() {
        assert_eq!(found(r#" {"b": 2, "a": 1.5} "#), [("a".to_owned(), 1.5), ("b".to_owned(), 2.0)]);
        let ethtool = "NIC statistics:\n     rx_prio3_pause: 17\n     tx_prio3_pause: 0\n";
        assert_eq!(found(ethtool), [("rx_prio3_pause".to_owned(), 17.0), ("tx_prio3_pause".to_owned(), 0.0)]);
        let exporter = "# TYPE port_drops counter\nport_drops{port=\"1\"} 3e2\n\nleaf 1 marks 4\n";
        assert_eq!(found(exporter), [("leaf 1 marks".to_owned(), 4.0), ("port_drops{port=\"1\"}".to_owned(), 300.0)]);
    }

    #[test]
    fn what_is_no_counter_is_said() {
        let refused = |text: &str, why: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        };
        refused("", "prints no counter");
        refused("drops", "\"drops\", which is no name and value");
        refused("drops many", "no name and value");
        refused("drops NaN", "no name and value");
        refused("drops 1\ndrops 2", "\"drops\" twice");
        refused("{\"drops\": \"many\"}", "\"many\" for \"drops\", which is no number");
        refused("{\"drops\": 1", "no JSON object");
        refused(&"x".repeat(1000), "xxx...\"");
    }

    #[test]
    fn a_command_that_fails_hangs_or_floods_is_one_line() {
        let failed = |text: &str, why: &str| {
            let error = command(text, Duration::from_secs(5)).counters().unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{text}: {error}");
        };
        failed("echo no switch here >&2; exit 3", "exit code 3: no switch here");
        failed("kill -9 $$", "signal 9");
        failed("yes 'a 1' | head -c 3000000", "more than 1048576 bytes");
        let start = Instant::now();
        let error = command("sleep 60 & sleep 60", Duration::from_millis(100)).counters().unwrap_err();
        assert!(error.contains("longer than 100ms"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30), "what it started ended too");
    }

    #[test]
    fn what_a_command_leaves_behind_does_not_hold_anyone_up() {
        let start = Instant::now();
        let counters = command("sleep 60 & echo a 1", Duration::from_secs(50)).counters().unwrap();
        assert_eq!(counters[""]["a"], 1.0);
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
