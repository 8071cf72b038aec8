//! Facts about the program, the host and the ranks that a reader of a result needs.

use std::collections::{BTreeMap, BTreeSet};

use tailback_host::pages::{HugePages, PagesHad};
use tailback_transport::{Description, WatchPost};

use crate::result::{
    Build, CountersRecord, HostFacts, KnownBy, MemoryRecord, NetworkEnd, NodePorts, RailEnd, RankEnds, WatchRecord,
    WatcherEnd, distinct, steers_transports,
};

impl Build {
    /// This program.
    pub fn this() -> Self {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Build {
            version: env!("CARGO_PKG_VERSION").into(),
            git: set(env!("TAILBACK_GIT")),
            features: env!("TAILBACK_FEATURES").split(',').filter_map(set).collect(),
            rustc: env!("TAILBACK_RUSTC").into(),
            profile: env!("TAILBACK_PROFILE").into(),
        }
    }
}

impl HostFacts {
    /// This host.
    pub fn this() -> Self {
        let uname = rustix::system::uname();
        let field = |file: &str, key: &str| -> Option<String> {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        HostFacts {
            name: uname.nodename().to_string_lossy().into_owned(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            cpu: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: memory.map(|kib| kib / 1024),
        }
    }
}

/// Variables that steer MPI libraries, libfabric, UCX and Tailback itself. The job's secret is never kept.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars().filter(|(key, _)| steers_transports(key) && !key.contains("SECRET")).collect()
}

/// The time now, UTC, RFC 3339, to the second.
pub fn now_rfc3339() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    rfc3339(seconds)
}

/// Civil date from a count of days, after Howard Hinnant's algorithm for the proleptic Gregorian calendar.
fn rfc3339(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

impl RankEnds {
    /// The ends of a rank on networks that describe themselves so; networks of one backend are one.
    pub fn of(rank: u32, cores: String, descriptions: &[Description]) -> Self {
        RankEnds { rank, cores, networks: distinct(descriptions.iter().map(NetworkEnd::of)), watcher: None }
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

impl WatcherEnd {
    /// As the transport layer tells it.
    pub fn of(post: WatchPost) -> Self {
        WatcherEnd { cores: post.cores, why: post.why }
    }
}

impl NodePorts {
    /// From the devices of the ranks of each node, on their first network, with `ends` in rank order; or else from the nodes'
    /// adapters that counted.
    pub fn find(nodes: &[Vec<u32>], ends: &[RankEnds], counters: &CountersRecord) -> Option<Self> {
        let end = |rank: &u32| ends.binary_search_by_key(rank, |of| of.rank).ok().map(|at| &ends[at]);
        let devices =
            |rank: &u32| end(rank).and_then(|of| of.networks.first()).into_iter().flat_map(NetworkEnd::devices);
        // What stays inside a host goes through no port.
        let outside = |name: &&String| *name != "lo";
        let used = nodes.iter().map(|ranks| ranks.iter().flat_map(devices).filter(outside).collect::<BTreeSet<_>>());
        let most = |counts: &mut dyn Iterator<Item = usize>| counts.max().filter(|count| *count > 0);
        if let Some(ports) = most(&mut used.map(|devices| devices.len())) {
            return Some(NodePorts { per_node: ports as u32, known_by: KnownBy::Devices });
        }
        let knows = ends.iter().flat_map(|of| of.networks.first()).any(|network| network.device.is_some());
        let mut adapters: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let counted = counters.phases.iter().flat_map(|phase| &phase.devices);
        for of in counted.filter(|of| ["infiniband", "cxi"].contains(&of.source.as_str())) {
            adapters.entry(&of.node).or_default().insert(&of.device);
        }
        let ports = most(&mut adapters.values().map(BTreeSet::len)).filter(|_| !knows)?;
        Some(NodePorts { per_node: ports as u32, known_by: KnownBy::Adapters })
    }
}

impl MemoryRecord {
    /// One rank's.
    pub fn of(asked: HugePages, had: PagesHad, placed: Option<(usize, usize)>) -> Self {
        MemoryRecord {
            huge_pages: asked.to_string(),
            usual_bytes: had.usual as u64,
            reserved_huge_bytes: had.reserved as u64,
            transparent_huge_bytes: had.transparent as u64,
            why: had.why,
            near_bytes: placed.map(|(near, _)| near as u64),
            away_bytes: placed.map(|(_, away)| away as u64),
        }
    }

    /// Both of them together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| one.zip(two).map(|(one, two)| one + two);
        MemoryRecord {
            huge_pages: self.huge_pages,
            usual_bytes: self.usual_bytes + other.usual_bytes,
            reserved_huge_bytes: self.reserved_huge_bytes + other.reserved_huge_bytes,
            transparent_huge_bytes: self.transparent_huge_bytes + other.transparent_huge_bytes,
            why: self.why.or(other.why),
            near_bytes: sum(self.near_bytes, other.near_bytes),
            away_bytes: sum(self.away_bytes, other.away_bytes),
        }
    }

    /// One line of what was had of huge pages, if they were asked for.
    pub fn huge(&self) -> Option<String> {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let why = self.why.as_ref().map(|why| format!("; not all, for there were {why}")).unwrap_or_default();
        (self.huge_pages != HugePages::No.to_string()).then(|| {
            format!(
                "memory of messages, over all ranks: {:.1} MiB in reserved huge pages, {:.1} MiB in transparent ones, {:.1} MiB in \
                 usual ones{why}",
                mib(self.reserved_huge_bytes),
                mib(self.transparent_huge_bytes),
                mib(self.usual_bytes)
            )
        })
    }
}

impl WatchRecord {
    /// One rank's watcher.
    pub fn of(rank: u32, wakeups: u64, seconds: f64) -> Self {
        WatchRecord {
            watchers: 1,
            wakeups,
            seconds,
            most_on_rank: rank,
            most_per_s: wakeups as f64 / seconds.max(1e-9),
        }
    }

    /// Both of them together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let most = if other.most_per_s > self.most_per_s { other } else { self };
        WatchRecord {
            watchers: self.watchers + other.watchers,
            wakeups: self.wakeups + other.wakeups,
            seconds: self.seconds.max(other.seconds),
            ..most
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn dates_are_right() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(rfc3339(seconds), expected);
        }
    }

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

    fn ends(devices: &[Option<&str>]) -> Vec<RankEnds> {
        let end = |(rank, device): (usize, &Option<&str>)| {
            let device = device.map(str::to_owned);
            let network = NetworkEnd { over: "verbs".into(), device, address: None, wait: None, rails: Vec::new() };
            RankEnds { rank: rank as u32, cores: String::new(), networks: vec![network], watcher: None }
        };
        devices.iter().enumerate().map(end).collect()
    }

    fn adapters(names: &[&str]) -> CountersRecord {
        let mut record = CountersRecord::default();
        for (source, device) in names.iter().map(|name| ("cxi", name)).chain([("net", &"eth0")]) {
            record.add("loaded lat", synthetic::device("n0", (source, device), 1.0, &[("drops", 1.0)]));
        }
        record
    }

    #[test]
    fn ports_are_the_devices_that_the_ranks_of_a_node_use() {
        let four = ends(&[Some("mlx5_0 port 1"), Some("mlx5_1 port 1"), Some("mlx5_0 port 1"), Some("mlx5_0 port 1")]);
        let found = |nodes: &[Vec<u32>], ends: &[RankEnds]| NodePorts::find(nodes, ends, &adapters(&["cxi0", "cxi1"]));
        let two = NodePorts { per_node: 2, known_by: KnownBy::Devices };
        assert_eq!(found(&[vec![0, 1], vec![2, 3]], &four), Some(two), "the second node used one of them");
        assert_eq!(found(&[vec![0, 1]], &ends(&[Some("lo"), Some("lo")])), None, "nothing left the host");
        let unsaid = NodePorts { per_node: 2, known_by: KnownBy::Adapters };
        assert_eq!(found(&[vec![0, 1]], &ends(&[None, None])), Some(unsaid), "a library that does not say");
        assert_eq!(NodePorts::find(&[vec![0]], &ends(&[None]), &adapters(&[])), None);
    }

    #[test]
    fn ranks_add_up_and_a_reason_is_kept() {
        let had = |usual, transparent, why: Option<&str>| PagesHad {
            usual,
            reserved: 0,
            transparent,
            why: why.map(Into::into),
        };
        let one = MemoryRecord::of(HugePages::Try, had(1 << 20, 4 << 20, None), Some((5, 1)));
        let two = MemoryRecord::of(HugePages::Try, had(3 << 20, 0, Some("none left")), Some((2, 0)));
        let both = one.clone().with(two);
        assert_eq!((both.near_bytes, both.away_bytes), (Some(7), Some(1)));
        let line = both.huge().expect("they were asked for");
        assert!(
            line.contains("4.0 MiB in transparent")
                && line.ends_with("4.0 MiB in usual ones; not all, for there were none left")
        );
        let unknown = MemoryRecord::of(HugePages::No, had(8, 0, None), None);
        assert_eq!((unknown.huge(), one.with(unknown).near_bytes), (None, None));
    }

    #[test]
    fn watchers_add_up_and_the_busiest_is_named() {
        let all = WatchRecord::of(0, 30, 2.0).with(WatchRecord::of(1, 90, 2.0)).with(WatchRecord::of(2, 4, 2.5));
        let expected = WatchRecord { watchers: 3, wakeups: 124, seconds: 2.5, most_on_rank: 1, most_per_s: 45.0 };
        assert_eq!(all, expected);
    }
}
