//! What a lab is to look like, as the user asks for it and as the result file keeps it.
//!
//! A [`LabSpec`] is a request until [`LabSpec::validate`] passed; [`Topology`](super::Topology) is built from valid ones
//! only.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::traffic_class;

use super::degrade::{Degradation, Quality};
use super::error::{Error, Result};
use crate::units::{self, Rate};

/// Addresses end in 1 to 250: one network of 256 for data, one for control.
pub const MAX_HOSTS: usize = 250;
/// More than any port of a real switch has.
const MAX_BANDS: usize = 15;
/// More than anyone plants.
const MAX_DEGRADED: usize = 1024;
/// The bits of the traffic class byte that are the code point; the others tell of congestion.
pub(super) const DSCP: u8 = 0xfc;
/// The traffic class byte of packets that pass queues by, a code point that no standard gives a meaning.
pub const BYPASS: u8 = 63 << 2;
/// Two packets of the usual size.
const LEAST_MARK: u64 = 3000;
const MIN_RATE: Rate = Rate::bits_per_second(1_000_000);
const MAX_RATE: Rate = Rate::bits_per_second(100_000_000_000);
/// What a shaped port sends at once. Smaller buckets lose tokens to late timers on a busy machine, larger ones blur the
/// queue; a kernel packet of up to this size crosses the port whole.
const MIN_BURST: u64 = 16 << 10;

/// A lab: hosts on leaf switches, joined by a spine, every data link shaped in rate and queue length.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Lab")]
#[serde(deny_unknown_fields)]
pub struct LabSpec {
    /// Name of the lab, when there is more than one [default: $TAILBACK_LAB, else "default"]
    #[arg(long = "name", value_name = "NAME", default_value_t = default_name(), hide_default_value = true)]
    pub name: String,
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub hosts: usize,
    /// Number of leaf switches the hosts are spread over
    #[arg(long, value_name = "N", default_value_t = 2, default_value_if("hosts", "1", "1"))]
    pub leaves: usize,
    /// Rate of each host's link, in each direction
    #[arg(long, value_name = "RATE", default_value = "200mbit")]
    #[serde(rename = "link_rate_bits_per_second")]
    #[schemars(with = "u64")]
    pub link_rate: Rate,
    /// Rate of each link between leaf switches [default: half the link rate, so that the spine congests first]
    #[arg(long, value_name = "RATE")]
    #[serde(rename = "spine_rate_bits_per_second")]
    #[schemars(with = "Option<u64>")]
    pub spine_rate: Option<Rate>,
    /// Length of the queue at each port
    #[arg(long = "queue", value_name = "SIZE", default_value = "128KiB", value_parser = units::size)]
    pub queue_bytes: u64,
    /// Traffic classes that have a queue of their own at each port, the first before all others: dscp:0 to dscp:63, or
    /// the whole byte. What has no class of these shares one more queue, the last. Every queue may use the whole link
    /// while the others are idle, and is sure of an equal part of it
    #[arg(long, value_name = "CLASSES", value_delimiter = ',', value_parser = traffic_class)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<u8>,
    /// Ports mark packets while more than a part of their queue is full, and TCP heeds it (ECN): what dctcp is made for. Needs
    /// the kernel's red queue
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// Length of the queue from which on packets are marked [default: a quarter of --queue]
    #[arg(long = "mark-above", value_name = "SIZE", requires = "ecn", value_parser = units::size)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above_bytes: Option<u64>,
    /// TCP congestion control of the data network
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub congestion_control: String,
    /// Minimum time after which TCP sends a lost packet again. Linux's own default, 200ms, is for wide-area networks
    #[arg(long = "rto-min", value_name = "TIME", default_value = "50ms", value_parser = units::milliseconds)]
    #[serde(default = "linux_rto_min")]
    pub rto_min_ms: u64,
    /// Break a link on purpose, e.g. h3:rate=50%, h5:loss=1%, leaf0-leaf1:delay=2ms; h3:send.rate=50% for one direction. May be
    /// given several times
    #[arg(long = "degrade", value_name = "PLACE:KEY=VALUE")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub degraded: Vec<Degradation>,
    /// Leave the links unshaped: then only the processor is the limit
    #[arg(long = "unshaped", action = clap::ArgAction::SetFalse)]
    pub shaped: bool,
    /// Use a user namespace even where root does not need one
    #[arg(long)]
    pub user_namespace: bool,
}

/// What labs had before this was an option.
fn linux_rto_min() -> u64 {
    200
}

impl Default for LabSpec {
    fn default() -> Self {
        LabSpec {
            name: default_name(),
            hosts: 16,
            leaves: 2,
            link_rate: Rate::bits_per_second(200_000_000),
            spine_rate: None,
            queue_bytes: 128 << 10,
            bands: Vec::new(),
            ecn: false,
            mark_above_bytes: None,
            congestion_control: "cubic".to_owned(),
            rto_min_ms: 50,
            degraded: Vec::new(),
            shaped: true,
            user_namespace: false,
        }
    }
}

impl LabSpec {
    /// The rate of the links between switches: what was asked for, or half the link rate. At the full rate an incast
    /// onto one host queues at that host's port alone, which no canary of another host shares.
    #[must_use]
    pub fn spine_rate(&self) -> Rate {
        self.spine_rate.unwrap_or_else(|| Rate::bits_per_second(self.link_rate.bits() / 2).max(MIN_RATE))
    }

    /// The length of a queue from which on packets are marked, where they are.
    #[must_use]
    pub fn mark_above(&self) -> Option<u64> {
        self.ecn.then(|| self.mark_above_bytes.unwrap_or(self.queue_bytes / 4))
    }

    /// How long a packet waits behind a full queue of a host's port: the delay that congestion on it tends to.
    #[must_use]
    pub fn full_queue_seconds(&self) -> f64 {
        self.link_rate.seconds(self.queue_bytes)
    }

    /// The leaf switch of a host.
    pub(super) fn leaf_of(&self, host: usize) -> usize {
        host * self.leaves / self.hosts
    }

    /// The pairs of switches with a link between them. Two leaves are joined directly, more through a spine switch: the
    /// direct link saves a two-core machine a hop.
    pub(super) fn trunks(&self) -> Vec<[String; 2]> {
        let leaf = |number: usize| format!("leaf{number}");
        match self.leaves {
            1 => Vec::new(),
            2 => vec![[leaf(0), leaf(1)]],
            leaves => (0..leaves).map(|number| [leaf(number), "spine".to_owned()]).collect(),
        }
    }

    /// Its links that are broken on purpose, as one text.
    #[must_use]
    pub fn degradations(&self) -> String {
        self.degraded.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// What the port through which `from` sends to `to` is left with, of the rate of its kind.
    pub(super) fn quality(&self, from: &str, to: &str, rate: Rate) -> Quality {
        self.degraded.iter().fold(Quality::whole(rate), |quality, of| of.applied(from, to, quality))
    }

    /// Bytes that a port of this rate may send at once.
    #[must_use]
    pub(super) fn burst(rate: Rate) -> u64 {
        (rate.bits() / 8 / 10_000).max(MIN_BURST)
    }

    /// Checks what can be checked without touching the system.
    ///
    /// # Errors
    /// Names the first option that makes no sense, and the values that do.
    pub fn validate(&self) -> Result<()> {
        validate_name(&self.name)?;
        let wrong = |text: String| Err(Error::Spec(text));
        if !(1..=MAX_HOSTS).contains(&self.hosts) {
            return wrong(format!("--hosts {}: a lab has 1 to {MAX_HOSTS} hosts", self.hosts));
        }
        if !(1..=self.hosts).contains(&self.leaves) {
            return wrong(format!(
                "--leaves {}: a lab has at least one leaf and at most one for each host",
                self.leaves
            ));
        }
        for (option, rate) in [("--link-rate", self.link_rate), ("--spine-rate", self.spine_rate())] {
            if !(MIN_RATE..=MAX_RATE).contains(&rate) {
                return wrong(format!("{option} {rate}: rates from {MIN_RATE} to {MAX_RATE} can be shaped"));
            }
        }
        let least = 2 * Self::burst(self.link_rate.max(self.spine_rate()));
        if !(least..=1 << 30).contains(&self.queue_bytes) {
            return wrong(format!(
                "--queue {}: at this rate a queue has {least} bytes (two bursts) to 1 GiB",
                self.queue_bytes
            ));
        }
        if !(1..=10_000).contains(&self.rto_min_ms) {
            return wrong(format!("--rto-min {}ms: times from 1ms to 10s can be set", self.rto_min_ms));
        }
        let points: Vec<u8> = self.bands.iter().map(|class| class & DSCP).collect();
        let twice = (1..points.len()).any(|at| points[..at].contains(&points[at]));
        if points.len() > MAX_BANDS || twice || points.contains(&BYPASS) {
            return wrong(format!(
                "--bands: up to {MAX_BANDS} classes with different code points (two bits of the byte are no part of it), \
                 none of them dscp:63, which the control uses"
            ));
        }
        if !points.is_empty() && !self.shaped {
            return wrong("--bands: links without a rate (--unshaped) have no queues".into());
        }
        if self.ecn && !self.shaped {
            return wrong("--ecn: links without a rate (--unshaped) have no queues".into());
        }
        if self.mark_above().is_some_and(|above| !(LEAST_MARK..self.queue_bytes).contains(&above)) {
            return wrong(format!(
                "--mark-above {}: a mark is set between {LEAST_MARK} bytes (two packets) and the length of the queue",
                self.mark_above().unwrap_or_default()
            ));
        }
        self.validate_degraded()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if self.congestion_control.is_empty() || !self.congestion_control.chars().all(plain) {
            return wrong(format!("--congestion-control `{}` is no name", self.congestion_control));
        }
        Ok(())
    }

    fn validate_degraded(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Spec(text));
        if self.degraded.is_empty() {
            return Ok(());
        }
        if !self.shaped {
            return wrong("--degrade: links that are not shaped (--unshaped) have nothing that can be broken".into());
        }
        if self.degraded.len() > MAX_DEGRADED {
            return wrong(format!("--degrade: {} of them, expected at most {MAX_DEGRADED}", self.degraded.len()));
        }
        let of_host = |host: usize| [format!("h{host}"), format!("leaf{}", self.leaf_of(host))];
        let links: Vec<[String; 2]> = (0..self.hosts).map(of_host).chain(self.trunks()).collect();
        for of in &self.degraded {
            if !of.is_of(&links) {
                let hosts = if self.hosts == 1 { "h0".into() } else { format!("a host (h0 to h{})", self.hosts - 1) };
                let [host, leaf] = &links[0];
                let trunks = self.trunks().into_iter().map(|[a, b]| format!(", {a}-{b}")).collect::<String>();
                let place = of.place();
                return wrong(format!(
                    "--degrade {of}: no link '{place}': expected {hosts}, or a link: {host}-{leaf}{trunks}"
                ));
            }
        }
        for (links, rate) in [(&links[..self.hosts], self.link_rate), (&links[self.hosts..], self.spine_rate())] {
            for [a, b] in links {
                let slowest = self.quality(a, b, rate).rate.min(self.quality(b, a, rate).rate);
                if slowest < MIN_RATE {
                    return wrong(format!("--degrade leaves {a}-{b} {slowest}: rates from {MIN_RATE} can be shaped"));
                }
            }
        }
        Ok(())
    }
}

/// The lab that a command without `--name` means: the one it runs in, or `default`.
pub(crate) fn default_name() -> String {
    std::env::var("TAILBACK_LAB")
        .ok()
        .filter(|name| validate_name(name).is_ok())
        .unwrap_or_else(|| "default".to_owned())
}

/// Names become file names, so they are kept to what is safe in one.
pub(super) fn validate_name(name: &str) -> Result<()> {
    let good = (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if good {
        return Ok(());
    }
    Err(Error::Spec(format!(
        "--name `{name}`: a lab's name has 1 to 32 letters, digits, - and _, a letter or digit first"
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        spec: LabSpec,
    }

    fn parse(arguments: &[&str]) -> std::result::Result<LabSpec, clap::Error> {
        Cli::try_parse_from(["lab"].iter().chain(arguments)).map(|cli| cli.spec)
    }

    #[test]
    fn no_option_gives_the_default() {
        let spec = parse(&[]).expect("defaults parse");
        assert_eq!(spec, LabSpec::default());
        spec.validate().expect("defaults are valid");
        assert_eq!(spec.spine_rate().bits() * 2, spec.link_rate.bits());
        LabSpec { link_rate: MIN_RATE, ..spec }.validate().expect("the slowest link has a spine too");
    }

    #[test]
    fn options_are_taken() {
        let spec = parse(&[
            "--name=b",
            "--hosts=5",
            "--leaves=1",
            "--link-rate=1gbit",
            "--spine-rate=2gbit",
            "--queue=512KiB",
            "--ecn",
            "--mark-above=64KiB",
            "--congestion-control=reno",
            "--rto-min=0.2s",
            "--degrade=h3:rate=50%",
            "--degrade=leaf0-h4:loss=1%",
            "--unshaped",
            "--user-namespace",
        ])
        .expect("options parse");
        let expected = LabSpec {
            name: "b".into(),
            hosts: 5,
            leaves: 1,
            link_rate: Rate::bits_per_second(1_000_000_000),
            spine_rate: Some(Rate::bits_per_second(2_000_000_000)),
            queue_bytes: 512 << 10,
            bands: Vec::new(),
            ecn: true,
            mark_above_bytes: Some(64 << 10),
            congestion_control: "reno".into(),
            rto_min_ms: 200,
            degraded: vec!["h3:rate=50%".parse().unwrap(), "leaf0-h4:loss=1%".parse().unwrap()],
            shaped: false,
            user_namespace: true,
        };
        assert_eq!(spec, expected);
        assert_eq!(LabSpec { mark_above_bytes: None, ..expected.clone() }.mark_above(), Some(128 << 10));
        LabSpec { ecn: false, degraded: Vec::new(), ..expected }.validate().expect("valid");
    }

    #[test]
    fn each_nonsense_is_named() {
        for (arguments, named) in [
            (&["--hosts=0"][..], "--hosts 0"),
            (&["--hosts=251"], "--hosts 251"),
            (&["--leaves=0"], "--leaves 0"),
            (&["--hosts=3", "--leaves=4"], "--leaves 4"),
            (&["--link-rate=10kbit"], "--link-rate"),
            (&["--spine-rate=200gbit"], "--spine-rate"),
            (&["--queue=1KiB"], "--queue 1024"),
            (&["--queue=32KiB", "--link-rate=10gbit"], "--queue"),
            (&["--rto-min=0ms"], "--rto-min 0ms"),
            (&["--degrade=h3:rate=50%", "--unshaped"], "--degrade"),
            (
                &["--degrade=h16:rate=50%"],
                "no link 'h16': expected a host (h0 to h15), or a link: h0-leaf0, leaf0-leaf1",
            ),
            (&["--degrade=leaf0:rate=50%", "--leaves=3"], "h0-leaf0, leaf0-spine, leaf1-spine, leaf2-spine"),
            (&["--degrade=h1-leaf1:rate=50%"], "no link 'h1-leaf1'"),
            (&["--degrade=h1:rate=10%", "--degrade=h1:rate=1%"], "--degrade leaves h1-leaf0 200 kbit/s"),
            (&["--ecn", "--unshaped"], "--ecn"),
            (&["--ecn", "--mark-above=1KiB"], "--mark-above 1024"),
            (&["--ecn", "--mark-above=128KiB"], "--mark-above 131072"),
            (&["--congestion-control=a b"], "--congestion-control"),
            (&["--name=../x"], "--name"),
            (&["--name="], "--name"),
        ] {
            let message = parse(arguments).expect("parses").validate().expect_err("makes no sense").to_string();
            assert!(message.contains(named) && !message.contains('\n'), "{arguments:?}: {message}");
        }
    }

    #[test]
    fn the_result_file_reads_back() {
        let spec = LabSpec { spine_rate: Some(Rate::bits_per_second(5_000_000)), ..LabSpec::default() };
        let json = serde_json::to_string(&spec).expect("serialises");
        assert!(json.contains("\"link_rate_bits_per_second\":200000000"), "{json}");
        assert_eq!(serde_json::from_str::<LabSpec>(&json).expect("reads back"), spec);
    }
}
