//! Where each rank's data leaves: device, address, how it waits, and the cores it may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Description, WatchPost};

/// One rank's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankEnds {
    /// Which rank.
    pub rank: u32,
    /// The cores it may use, as the kernel writes them: `0-3,8`; absent where it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cores: String,
    /// Its end on every network of the job.
    pub networks: Vec<NetworkEnd>,
    /// Where its watcher thread runs; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<WatcherEnd>,
}

/// The thread of a rank that notices when the job cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatcherEnd {
    /// The cores it may use, as the kernel writes them.
    pub cores: String,
    /// What was done to keep it off the cores that ranks spin on, or why nothing.
    pub why: String,
}

impl WatcherEnd {
    /// As the transport layer tells it.
    pub fn of(post: WatchPost) -> Self {
        WatcherEnd { cores: post.cores, why: post.why }
    }
}

/// A rank's end on one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnd {
    /// The backend.
    pub over: String,
    /// The device with its port, the domain, or the interface; absent where the backend does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Its address: a GID, or one of the Internet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How the rank waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// Over several rails: the end on each of them, in order; the first is also told above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<RailEnd>,
}

/// A rank's end on one rail of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RailEnd {
    /// As a network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// As a network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl RankEnds {
    /// The ends of a rank on networks that describe themselves so; networks of one backend are one.
    pub fn of(rank: u32, cores: String, descriptions: &[Description]) -> Self {
        let mut networks: Vec<NetworkEnd> = Vec::new();
        for end in descriptions.iter().map(NetworkEnd::of) {
            if !networks.contains(&end) {
                networks.push(end);
            }
        }
        RankEnds { rank, cores, networks, watcher: None }
    }
}

impl NetworkEnd {
    fn of(description: &Description) -> Self {
        let RailEnd { device, address } = RailEnd::of(description, 0);
        let rails = match description.rails() {
            1 => Vec::new(),
            count => (0..count).map(|rail| RailEnd::of(description, rail)).collect(),
        };
        let wait = description.details.get("wait").cloned();
        NetworkEnd { over: description.backend.clone(), device, address, wait, rails }
    }

    /// Its devices: one per rail.
    pub fn devices(&self) -> impl Iterator<Item = &String> {
        let further = self.rails.iter().skip(1).map(|of| &of.device);
        std::iter::once(&self.device).chain(further).flatten()
    }
}

impl RailEnd {
    fn of(description: &Description, rail: usize) -> Self {
        let detail = |name: &str| description.of_rail(rail, name);
        let port = |name: String| match detail("port") {
            Some(port) => format!("{name} port {port}"),
            None => name,
        };
        RailEnd {
            device: detail("device").map(port).or_else(|| detail("domain")).or_else(|| detail("interface")),
            address: detail("gid").or_else(|| detail("address")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(backend: &str, details: &[(&str, &str)]) -> Description {
        let details = details.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Description { backend: backend.into(), library: String::new(), details }
    }

    #[test]
    fn every_backend_has_its_words_for_the_same() {
        let verbs = described("verbs", &[("device", "mlx5_0"), ("port", "1"), ("gid", "fe80::1"), ("wait", "spin")]);
        let tcp = described("tcp", &[("interface", "eth0"), ("address", "10.0.0.1"), ("wait", "block")]);
        let ends = RankEnds::of(3, "0-1".into(), &[verbs.clone(), verbs, tcp, described("mpi", &[])]);
        let told: Vec<_> = ends
            .networks
            .iter()
            .map(|of| (of.over.as_str(), of.device.as_deref(), of.address.as_deref(), of.wait.as_deref()))
            .collect();
        let expected = [
            ("verbs", Some("mlx5_0 port 1"), Some("fe80::1"), Some("spin")),
            ("tcp", Some("eth0"), Some("10.0.0.1"), Some("block")),
            ("mpi", None, None, None),
        ];
        assert_eq!(told, expected);
        assert!(ends.networks.iter().all(|of| of.rails.is_empty()), "one end each");
    }

    #[test]
    fn every_rail_has_its_end() {
        let details = [
            ("rails", "2"),
            ("interface", "d0"),
            ("address", "10.0.0.1"),
            ("rail_1_interface", "d1"),
            ("rail_1_address", "10.1.0.1"),
        ];
        let end = NetworkEnd::of(&described("tcp", &details));
        assert_eq!((end.device.as_deref(), end.address.as_deref()), (Some("d0"), Some("10.0.0.1")));
        let rails: Vec<_> = end.rails.iter().map(|of| (of.device.as_deref(), of.address.as_deref())).collect();
        assert_eq!(rails, [(Some("d0"), Some("10.0.0.1")), (Some("d1"), Some("10.1.0.1"))]);
        assert_eq!(end.devices().collect::<Vec<_>>(), ["d0", "d1"]);
    }
}
