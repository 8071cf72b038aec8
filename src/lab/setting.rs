//! What of a lab that is up can be changed, and is read back from the kernel: the congestion control of the data network's
//! routes, and the length of its queues.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use tailback_transport::Bytes;

use super::cluster::Lab;
use super::error::{Error, Result};
use super::spec::LabSpec;
use super::system::check_congestion_control;
use super::topology::{Namespace, Shaping, Topology};
use crate::units;

/// Which setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabKey {
    /// TCP's congestion control, of connections that are made from then on.
    CongestionControl,
    /// The length of the queue at each port.
    Queue,
}

impl LabKey {
    /// A value as it is read back.
    ///
    /// # Errors
    /// If it is none.
    pub fn canonical(self, value: &str) -> std::result::Result<String, String> {
        match self {
            LabKey::CongestionControl if value.is_empty() => Err("expected a congestion control, e.g. cc=cubic".into()),
            LabKey::CongestionControl => Ok(value.to_owned()),
            LabKey::Queue => units::size(value).map(length),
        }
    }
}

/// A size as one word that is read again.
fn length(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(' ', "")
}

impl FromStr for LabKey {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let known = [LabKey::CongestionControl, LabKey::Queue].into_iter().find(|key| key.to_string() == text);
        known.ok_or_else(|| format!("invalid setting '{text}' of a lab: expected cc or queue"))
    }
}

impl fmt::Display for LabKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LabKey::CongestionControl => "cc",
            LabKey::Queue => "queue",
        })
    }
}

impl Lab {
    /// Changes a setting on all hosts and switches.
    ///
    /// # Errors
    /// If the value makes no sense, or a tool fails; some ports or hosts may have been changed then.
    pub fn set(&mut self, key: LabKey, value: &str) -> Result<()> {
        let spec = self.changed(key, value)?;
        let topology = Topology::new(&spec);
        let shaping = self.state.shaping;
        let job = |namespace: Namespace| {
            let (tool, batch): (&[&str], String) = match (key, namespace) {
                (LabKey::CongestionControl, Namespace::Host(index)) => {
                    (&["ip", "-batch", "-"], topology.data_route(index))
                }
                (LabKey::CongestionControl, Namespace::Switch) => return None,
                (LabKey::Queue, _) => (&["tc", "-batch", "-"], topology.shaping_batch(namespace, shaping, shaping)),
            };
            Some((self.holder(namespace), tool, batch))
        };
        let jobs: Vec<_> = self.namespaces().into_iter().filter_map(job).collect();
        self.system.run_in(&jobs)?;
        self.state.spec = spec;
        self.topology = topology;
        self.registry.save(&self.state)
    }

    fn changed(&self, key: LabKey, value: &str) -> Result<LabSpec> {
        let spec = self.spec().clone();
        let spec = match key {
            LabKey::CongestionControl => LabSpec { congestion_control: value.to_owned(), ..spec },
            LabKey::Queue if self.state.shaping == Shaping::Off => {
                return Err(Error::Usage("links of this lab are not shaped, and have no queues".into()));
            }
            LabKey::Queue => LabSpec { queue_bytes: units::size(value).map_err(Error::Spec)?, ..spec },
        };
        spec.validate()?;
        check_congestion_control(&spec.congestion_control)?;
        Ok(spec)
    }

    /// The setting that the kernel has on all hosts and switches.
    ///
    /// # Errors
    /// If a tool fails, or they do not all have the same.
    pub fn setting(&self, key: LabKey) -> Result<String> {
        let words: &[&str] = match key {
            LabKey::CongestionControl => &["ip", "route", "show", "dev", "d0"],
            LabKey::Queue => &["tc", "-raw", "-j", "qdisc", "show"],
        };
        let read = |output: &str| match key {
            LabKey::CongestionControl => controls(output),
            LabKey::Queue => lengths(output),
        };
        let of_hosts = |namespace: &Namespace| key == LabKey::Queue || *namespace != Namespace::Switch;
        let namespaces = self.namespaces().into_iter().filter(of_hosts);
        let jobs: Vec<_> = namespaces.map(|namespace| (self.holder(namespace), words, String::new())).collect();
        let mut found: Vec<String> = self.system.run_in(&jobs)?.iter().flat_map(|output| read(output)).collect();
        found.sort();
        found.dedup();
        match &found[..] {
            [one] => Ok(one.clone()),
            [] => Err(Error::Usage(format!("this lab has no {key}"))),
            several => {
                Err(Error::Usage(format!("hosts and switches of this lab differ in {key}: {}", several.join(", "))))
            }
        }
    }
}

/// The congestion controls of routes, as `ip` tells them.
fn controls(output: &str) -> Vec<String> {
    let of_route = |line: &str| {
        let after = line.split_whitespace().skip_while(|word| *word != "congctl").skip(1);
        after.filter(|word| *word != "lock").map(str::to_owned).next()
    };
    output.lines().filter_map(of_route).collect()
}

/// The lengths of queues, as `tc` tells them.
fn lengths(output: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Qdisc {
        kind: String,
        #[serde(default)]
        options: Options,
    }
    #[derive(Default, Deserialize)]
    struct Options {
        limit: Option<u64>,
    }
    let qdiscs: Vec<Qdisc> = serde_json::from_str(output).unwrap_or_default();
    let queues = qdiscs.into_iter().filter(|of| ["tbf", "bfifo", "red"].contains(&of.kind.as_str()));
    queues.filter_map(|of| of.options.limit).map(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_understood() {
        let route = "10.77.0.0/24 scope link src 10.77.0.1 rto_min lock 50ms congctl bbr \n10.78.0.0/24 proto kernel\n";
        assert_eq!(controls(route), ["bbr"]);
        assert_eq!(controls("10.77.0.0/24 congctl lock reno\n"), ["reno"]);
        let tc = r#"[{"kind":"noqueue","dev":"lo","options":{}},{"kind":"tbf","dev":"d0","options":{"lat":4587,"limit":131072}},
            {"kind":"bfifo","dev":"d1","options":{"limit":70000}}]"#;
        assert_eq!(lengths(tc), ["128KiB", "70000B"]);
        assert_eq!(lengths("no JSON"), [""; 0]);
    }

    #[test]
    fn values_are_read_back_as_they_are_named() {
        for (value, named) in [("64KiB", "64KiB"), ("65536", "64KiB"), ("70000", "70000B"), ("1MiB", "1MiB")] {
            assert_eq!(LabKey::Queue.canonical(value).as_deref(), Ok(named));
            assert_eq!(LabKey::Queue.canonical(named).as_deref(), Ok(named));
        }
        assert!(LabKey::Queue.canonical("long").is_err() && LabKey::CongestionControl.canonical("").is_err());
        assert_eq!("queue".parse(), Ok(LabKey::Queue));
        assert!("mtu".parse::<LabKey>().unwrap_err().contains("expected cc or queue"));
    }
}
