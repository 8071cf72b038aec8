//! Devices that count: which ones a rank uses, which ones a host has, and the files in which the kernel shows their counters: a
//! number a file, and the tables of `/proc/net`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tailback_transport::Description;

/// Where the kernel shows what it counts; tests have recorded trees instead, and containers the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Usually `/sys`.
    pub sys: PathBuf,
    /// Usually `/proc`.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sys: "/sys".into(), proc: "/proc".into() }
    }
}

/// A device of this host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Device {
    /// A port of an RDMA adapter: InfiniBand or RoCE.
    Infiniband {
        /// As `ibv_devices` names it.
        name: String,
        /// From 1.
        port: u8,
    },
    /// A card of Slingshot.
    Cxi(String),
    /// A network interface.
    Net(String),
}

impl Device {
    /// The devices that a transport says it uses, one per rail, if it says so.
    pub fn of(description: &Description) -> Option<Vec<Self>> {
        (0..description.rails()).map(|rail| Self::of_rail(description, rail)).collect()
    }

    fn of_rail(description: &Description, rail: usize) -> Option<Self> {
        let detail = |name: &str| description.of_rail(rail, name);
        match description.backend.as_str() {
            "tcp" => detail("interface").map(Device::Net),
            "verbs" => Some(Device::Infiniband { name: detail("device")?, port: detail("port")?.parse().ok()? }),
            // Providers name domains after devices; verbs' has its kind of endpoint behind it.
            "libfabric" => Some(match detail("device").or_else(|| detail("domain"))? {
                name if name.starts_with("cxi") => Device::Cxi(name),
                name if detail("provider").is_some_and(|of| of.starts_with("verbs")) => {
                    let name = name.split('-').next().unwrap_or(&name).to_owned();
                    Device::Infiniband { name, port: 1 }
                }
                name => Device::Net(name),
            }),
            _ => None,
        }
    }

    pub(super) fn source(&self) -> &'static str {
        match self {
            Device::Infiniband { .. } => "infiniband",
            Device::Net(_) => "net",
            Device::Cxi(_) => "cxi",
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Device::Infiniband { name, port } => format!("{name} port {port}"),
            Device::Net(name) | Device::Cxi(name) => name.clone(),
        }
    }

    /// What it shows now.
    pub(super) fn counters(&self, roots: &Roots) -> BTreeMap<String, f64> {
        let class = roots.sys.join("class");
        match self {
            Device::Infiniband { name, port } => {
                let folder = port_folder(&class, name, *port);
                let mut counters = numbers(&folder.join("counters"));
                counters.extend(numbers(&folder.join("hw_counters")));
                // How long the driver keeps what it has read, in milliseconds.
                counters.remove("lifespan");
                counters
            }
            Device::Net(name) => numbers(&class.join("net").join(name).join("statistics")),
            Device::Cxi(name) => numbers(&class.join("cxi").join(name).join("device/telemetry")),
        }
    }

    /// The network interfaces on the same card, which count what its driver drops.
    pub(super) fn interfaces(&self, roots: &Roots) -> Vec<Device> {
        let class = roots.sys.join("class");
        match self {
            Device::Net(_) => Vec::new(),
            Device::Cxi(name) => {
                names(&class.join("cxi").join(name).join("device/net")).into_iter().map(Device::Net).collect()
            }
            Device::Infiniband { name, port } => {
                let folder = port_folder(&class, name, *port).join("gid_attrs/ndevs");
                let of_gids = names(&folder).into_iter().filter_map(|index| word(&folder.join(index)));
                of_gids.map(Device::Net).collect()
            }
        }
    }
}

fn port_folder(class: &Path, name: &str, port: u8) -> PathBuf {
    class.join("infiniband").join(name).join("ports").join(port.to_string())
}

/// Every device of the host that is up, without the loopback.
pub(super) fn all(roots: &Roots) -> Vec<Device> {
    let class = roots.sys.join("class");
    let mut devices = Vec::new();
    for name in names(&class.join("infiniband")) {
        for port in names(&class.join("infiniband").join(&name).join("ports")) {
            let state = word(&class.join("infiniband").join(&name).join("ports").join(&port).join("state"));
            if let (Ok(port), Some(true)) = (port.parse(), state.map(|state| state.contains("ACTIVE"))) {
                devices.push(Device::Infiniband { name: name.clone(), port });
            }
        }
    }
    devices.extend(names(&class.join("cxi")).into_iter().map(Device::Cxi));
    for name in names(&class.join("net")).into_iter().filter(|name| name != "lo") {
        if word(&class.join("net").join(&name).join("operstate")).is_some_and(|state| state == "up") {
            devices.push(Device::Net(name));
        }
    }
    devices
}

/// Every file of a folder that holds a number; of `number@time`, the number. What cannot be read or is none is left out: some
/// drivers answer "N/A", and files that reset counters give nothing.
fn numbers(folder: &Path) -> BTreeMap<String, f64> {
    let of = |name: String| {
        let text = word(&folder.join(&name))?;
        let number = text.split_once('@').map_or(text.as_str(), |(number, _)| number);
        Some((name, number.parse::<u64>().ok()? as f64))
    };
    names(folder).into_iter().filter_map(of).collect()
}

/// The names in a folder, in order; none where there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// What a small file holds, without the line's end.
fn word(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What TCP counts in this network namespace.
pub(super) fn tcp(proc: &Path) -> BTreeMap<String, f64> {
    /// Settings and the state of the moment, which stand among the counters.
    const NO_COUNTERS: [&str; 5] = ["RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab"];
    let mut counters = BTreeMap::new();
    for (file, prefix) in [("net/snmp", "Tcp:"), ("net/netstat", "TcpExt:")] {
        let text = fs::read_to_string(proc.join(file)).unwrap_or_default();
        counters.extend(table(&text, prefix));
    }
    counters.retain(|name, _| !NO_COUNTERS.contains(&name.as_str()));
    counters
}

/// Two lines with the same first word: names, and their values.
fn table(text: &str, prefix: &str) -> BTreeMap<String, f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse::<u64>().ok()? as f64))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(backend: &str, details: &[(&str, &str)]) -> Option<Vec<Device>> {
        let details = details.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Device::of(&Description { backend: backend.into(), library: String::new(), details })
    }

    fn described(backend: &str, details: &[(&str, &str)]) -> Option<Device> {
        let devices = all(backend, details)?;
        assert_eq!(devices.len(), 1);
        devices.into_iter().next()
    }

    #[test]
    fn transports_say_which_device_they_use() {
        let port = Device::Infiniband { name: "mlx5_3".into(), port: 2 };
        assert_eq!(described("verbs", &[("device", "mlx5_3"), ("port", "2")]), Some(port));
        assert_eq!(described("tcp", &[("interface", "eth1")]), Some(Device::Net("eth1".into())));
        let over = |provider, domain| described("libfabric", &[("provider", provider), ("domain", domain)]);
        assert_eq!(over("cxi", "cxi2"), Some(Device::Cxi("cxi2".into())));
        assert_eq!(over("tcp;ofi_rxm", "eth0"), Some(Device::Net("eth0".into())));
        let first = Device::Infiniband { name: "mlx5_0".into(), port: 1 };
        assert_eq!(over("verbs;ofi_rxm", "mlx5_0-xrc"), Some(first));
        assert_eq!(described("mpi", &[]), None);
        let rails = [("rails", "2"), ("interface", "d0"), ("rail_1_interface", "d1")];
        assert_eq!(all("tcp", &rails), Some(vec![Device::Net("d0".into()), Device::Net("d1".into())]));
    }
}
