//! Devices that count: which ones a rank uses, which ones a host has, and where each shows its counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tailback_transport::Description;

use super::files::{names, numbers, word};
use super::roots::Roots;

/// A device of this host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// In one line that [`Device::decode`] reads.
    pub fn encode(&self) -> String {
        match self {
            Device::Infiniband { name, port } => format!("infiniband {name} {port}"),
            Device::Net(name) => format!("net {name}"),
            Device::Cxi(name) => format!("cxi {name}"),
        }
    }

    /// From such a line.
    pub fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["infiniband", name, port] => Some(Device::Infiniband { name: name.into(), port: port.parse().ok()? }),
            ["net", name] => Some(Device::Net(name.into())),
            ["cxi", name] => Some(Device::Cxi(name.into())),
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

    #[test]
    fn devices_travel_as_lines() {
        let port = Device::Infiniband { name: "mlx5_3".into(), port: 2 };
        for device in [port, Device::Net("eth0".into()), Device::Cxi("cxi0".into())] {
            assert_eq!(Device::decode(&device.encode()), Some(device));
        }
        assert_eq!(Device::decode("net"), None);
        assert_eq!(Device::decode("infiniband mlx5_0 first"), None);
    }
}
