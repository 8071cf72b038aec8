//! Which of a host's devices a rank should use: one near its cores, and among equally near ones each in its turn.
//!
//! Ranks of one host that all took the first device would measure one of four cards. Ranks that took whatever is near, of any
//! kind, might not reach each other. So a host's devices are ordered: those of the first one's kind before others, near ones
//! before far ones, and equals rotated by the rank's place on its host, times the devices that a rank takes. The i-th ranks of
//! hosts that are built alike then have the same ones.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use tailback_transport::cpu_list::core_numbers;
use tailback_transport::{Bootstrap, Result};

/// What the user says of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceSelection {
    /// Near ones, dealt out.
    #[default]
    Auto,
    /// All of them, dealt out, near or not.
    RoundRobin,
    /// These, near ones first, dealt out.
    Named(Vec<String>),
}

impl FromStr for DeviceSelection {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match text {
            "auto" => Ok(DeviceSelection::Auto),
            "round-robin" => Ok(DeviceSelection::RoundRobin),
            _ if names.iter().any(String::is_empty) => {
                Err(format!("invalid list of names '{text}': expected names between commas"))
            }
            _ if names.iter().any(|name| name == "auto" || name == "round-robin") => {
                Err(format!("'{text}': auto and round-robin stand alone"))
            }
            _ => Ok(DeviceSelection::Named(names)),
        }
    }
}

impl fmt::Display for DeviceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSelection::Auto => f.write_str("auto"),
            DeviceSelection::RoundRobin => f.write_str("round-robin"),
            DeviceSelection::Named(names) => f.write_str(&names.join(",")),
        }
    }
}

impl DeviceSelection {
    /// Whether a device of this name may be used.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            DeviceSelection::Named(names) => names.iter().any(|known| known == name),
            DeviceSelection::Auto | DeviceSelection::RoundRobin => true,
        }
    }

    /// Whether every one that it names is another, as rails are; else what is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, rails: usize) -> std::result::Result<(), String> {
        let DeviceSelection::Named(names) = self else { return Ok(()) };
        match (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            Some(at) if rails > 1 => Err(format!("--device names {} twice: each rail has its own", names[at])),
            _ => Ok(()),
        }
    }

    /// The names that `there` does not have.
    #[must_use]
    pub fn missing(&self, there: &[String]) -> Vec<String> {
        match self {
            DeviceSelection::Named(names) => names.iter().filter(|name| !there.contains(name)).cloned().collect(),
            DeviceSelection::Auto | DeviceSelection::RoundRobin => Vec::new(),
        }
    }
}

/// Where a rank sits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its place among the ranks of its host, from 0.
    pub index: usize,
    /// The cores it may use.
    pub cores: Vec<usize>,
}

impl Seat {
    /// This rank's. Collective over the job.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn find(bootstrap: &mut dyn Bootstrap) -> Result<Seat> {
        let host = bootstrap.host().to_owned();
        let hosts = bootstrap.allgather(host.as_bytes())?;
        let before = hosts.iter().take(bootstrap.rank().index());
        Ok(Seat { index: before.filter(|other| **other == host.as_bytes()).count(), cores: cores() })
    }

    /// Whether a device in this folder of sysfs is near: its cores are this rank's, some of them at least. What says nothing of
    /// cores is as near as any.
    #[must_use]
    pub fn is_near(&self, device: &Path) -> bool {
        let list = fs::read_to_string(device.join("local_cpulist")).unwrap_or_default();
        let mut near = core_numbers(list.trim()).peekable();
        near.peek().is_none() || near.any(|core| self.cores.contains(&core))
    }

    /// Orders what a host has, as the module says, for ranks that take `each` devices. Items with one `device` stay together
    /// and in their order.
    #[must_use]
    pub fn deal<T, K: PartialEq>(
        &self,
        items: Vec<T>,
        each: usize,
        device: impl Fn(&T) -> String,
        kind: impl Fn(&T) -> K,
        is_near: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let Some(first) = items.first().map(&kind) else { return items };
        let mut devices: Vec<(String, Vec<T>)> = Vec::new();
        for item in items {
            let name = device(&item);
            match devices.iter_mut().find(|(known, _)| *known == name) {
                Some((_, of)) => of.push(item),
                None => devices.push((name, vec![item])),
            }
        }
        let merit = |of: &[T]| (kind(&of[0]) != first, !is_near(&of[0]));
        devices.sort_by_key(|(_, of)| merit(of));
        let best = devices.first().map(|(_, of)| merit(of));
        let equals = devices.iter().take_while(|(_, of)| Some(merit(of)) == best).count();
        devices[..equals].rotate_left(self.index * each % equals.max(1));
        devices.into_iter().flat_map(|(_, of)| of).collect()
    }
}

/// The cores that this process may use.
fn cores() -> Vec<usize> {
    core_numbers(&core_list()).collect()
}

/// The same as the kernel writes them: `0-3,8`. Empty where the kernel does not say.
#[must_use]
pub fn core_list() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_words_or_names() {
        assert_eq!("auto".parse(), Ok(DeviceSelection::Auto));
        assert_eq!("round-robin".parse(), Ok(DeviceSelection::RoundRobin));
        let named: DeviceSelection = "mlx5_1,mlx5_0".parse().unwrap();
        assert_eq!(named.to_string(), "mlx5_1,mlx5_0");
        assert!(named.allows("mlx5_0") && !named.allows("mlx5_2") && DeviceSelection::Auto.allows("mlx5_2"));
        assert_eq!(named.missing(&["mlx5_0".into()]), ["mlx5_1"]);
        for wrong in ["", "mlx5_0,", "mlx5_0,auto"] {
            assert!(wrong.parse::<DeviceSelection>().is_err(), "{wrong}");
        }
    }

    /// Name, kind and nearness of an item.
    type Item = (&'static str, &'static str, bool);

    fn dealt(index: usize, items: &[Item]) -> Vec<&'static str> {
        dealt_by(1, index, items)
    }

    fn dealt_by(each: usize, index: usize, items: &[Item]) -> Vec<&'static str> {
        let seat = Seat { index, cores: Vec::new() };
        let order = seat.deal(items.to_vec(), each, |of| of.0.into(), |of| of.1, |of| of.2);
        order.into_iter().map(|(name, ..)| name).collect()
    }

    #[test]
    fn near_devices_of_the_first_kind_are_dealt_out() {
        let items = [
            ("ib0", "ib", false),
            ("roce", "eth", true),
            ("ib1", "ib", true),
            ("ib2", "ib", true),
            ("ib3", "ib", false),
        ];
        assert_eq!(dealt(0, &items), ["ib1", "ib2", "ib0", "ib3", "roce"]);
        assert_eq!(dealt(1, &items), ["ib2", "ib1", "ib0", "ib3", "roce"]);
        assert_eq!(dealt(2, &items), dealt(0, &items));
        assert!(dealt(3, &[]).is_empty());
    }

    #[test]
    fn ranks_that_take_several_take_others() {
        let items = ["a", "b", "c", "d"].map(|name| (name, "ib", true));
        assert_eq!([0, 1, 2].map(|index| dealt_by(2, index, &items)[..2].join("")), ["ab", "cd", "ab"]);
        assert_eq!(dealt_by(2, 1, &items[..3]), ["c", "a", "b"]);
    }

    #[test]
    fn rails_are_no_device_twice() {
        let selection: DeviceSelection = "a,b,a".parse().unwrap();
        assert_eq!(selection.check(1), Ok(()));
        assert!(selection.check(2).unwrap_err().contains("--device names a twice"));
        assert_eq!(
            (DeviceSelection::Auto.check(2), "a,b".parse::<DeviceSelection>().unwrap().check(3)),
            (Ok(()), Ok(()))
        );
    }

    #[test]
    fn the_addresses_of_a_device_stay_together() {
        let items = [("a", "ib", true), ("a", "ib", true), ("b", "ib", true)];
        assert_eq!(dealt(1, &items), ["b", "a", "a"]);
    }

    #[test]
    fn nearness_is_what_sysfs_says_of_cores() {
        let folder = std::env::temp_dir().join(format!("tailback-near-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("local_cpulist"), "0-3,8\n").unwrap();
        let near = |cores: &[usize]| Seat { index: 0, cores: cores.to_vec() }.is_near(&folder);
        assert!(near(&[8, 9]) && !near(&[4, 5]));
        fs::remove_dir_all(&folder).unwrap();
        assert!(near(&[4, 5]), "nothing is said: as near as any");
    }
}
