//! Starts traffic on a lab's hosts and reads what it measured.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tailback::lab::Lab;

/// Every host has its own network: one port number serves all.
const PORT: u16 = 7000;

/// What a canary measured alone and under load.
pub struct Canary {
    pub isolated: Ping,
    pub loaded: Ping,
}

impl Canary {
    pub fn impact(&self) -> f64 {
        self.loaded.mean_us / self.isolated.mean_us
    }

    /// What other work on the machine disturbs little: it delays some round trips by much, a queue delays all.
    pub fn median_impact(&self) -> f64 {
        self.loaded.median_us / self.isolated.median_us
    }
}

/// One run of `ping`: round trips, and those that were not answered.
pub struct Ping {
    pub count: u64,
    pub mean_us: f64,
    pub median_us: f64,
    pub lost: u64,
}

/// Programs on a lab's hosts; ended when dropped.
pub struct Traffic<'a> {
    lab: &'a Lab,
    running: RefCell<Vec<Child>>,
}

impl<'a> Traffic<'a> {
    /// With servers on these hosts.
    pub fn new(lab: &'a Lab, servers: &[usize]) -> Self {
        let traffic = Traffic { lab, running: RefCell::default() };
        for &host in servers {
            let mut child = traffic.start(host, &["serve", &traffic.address(host)]);
            let mut line = String::new();
            let stdout = child.stdout.take().expect("is a pipe");
            BufReader::new(stdout).read_line(&mut line).expect("reads");
            traffic.running.borrow_mut().push(child);
            assert_eq!(line, "ready\n", "the server on h{host}");
        }
        traffic
    }

    pub fn ping(&self, from: usize, to: usize, seconds: f64) -> Ping {
        let words = self.finish(from, &["ping", &self.address(to), &seconds.to_string()]);
        Ping { count: words[0] as u64, mean_us: words[1], median_us: words[2], lost: words[3] as u64 }
    }

    /// Seconds that `bytes` took.
    pub fn transfer(&self, from: usize, to: usize, bytes: u64) -> f64 {
        self.finish(from, &["transfer", &self.address(to), &bytes.to_string()])[0]
    }

    pub fn bulk(&self, from: usize, to: usize) {
        let child = self.start(from, &["bulk", &self.address(to)]);
        self.running.borrow_mut().push(child);
    }

    fn address(&self, host: usize) -> String {
        format!("{}:{PORT}", self.lab.hosts()[host].data)
    }

    fn start(&self, host: usize, words: &[&str]) -> Child {
        let prefix = self.lab.command_on(&self.lab.hosts()[host]);
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(std::env::current_exe().expect("has a path")).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starts")
    }

    /// The numbers that a program prints.
    fn finish(&self, host: usize, words: &[&str]) -> Vec<f64> {
        let output = self.start(host, words).wait_with_output().expect("waits");
        assert!(output.status.success(), "{words:?} on h{host}");
        let text = String::from_utf8(output.stdout).expect("is text");
        text.split_whitespace().map(|word| word.parse().expect("is a number")).collect()
    }
}

impl Drop for Traffic<'_> {
    fn drop(&mut self) {
        for child in self.running.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Measures canaries alone and under the load of flows, both as pairs of host numbers.
pub fn measure<const N: usize>(lab: &Lab, flows: &[(usize, usize)], canaries: [(usize, usize); N]) -> [Canary; N] {
    let mut servers: Vec<usize> = flows.iter().chain(&canaries).map(|(_, to)| *to).collect();
    servers.sort_unstable();
    servers.dedup();
    let traffic = Traffic::new(lab, &servers);
    let isolated = canaries.map(|(from, to)| traffic.ping(from, to, 1.0));
    flows.iter().for_each(|&(from, to)| traffic.bulk(from, to));
    // Long enough for every flow to find its share.
    std::thread::sleep(Duration::from_millis(800));
    let mut loaded = canaries.map(|(from, to)| traffic.ping(from, to, 2.0)).into_iter();
    isolated.map(|isolated| Canary { isolated, loaded: loaded.next().expect("as many as isolated") })
}
