//! One host's counters, all at once.

use super::command::UserCommand;
use super::device::{Device, Roots, all, tcp};
use super::reading::Reading;

/// Reads one host's counters.
#[derive(Clone, Debug)]
pub struct Reader {
    roots: Roots,
    devices: Vec<Device>,
    command: Option<UserCommand>,
}

impl Reader {
    /// A reader of these devices; without any, of all that the host has.
    pub fn new(roots: Roots, devices: &[Device], command: Option<UserCommand>) -> Self {
        let mut devices = if devices.is_empty() { all(&roots) } else { devices.to_vec() };
        let beside: Vec<Device> = devices.iter().flat_map(|device| device.interfaces(&roots)).collect();
        devices.extend(beside);
        devices.sort();
        devices.dedup();
        Reader { roots, devices, command }
    }

    /// What everything shows now.
    ///
    /// # Errors
    /// If the user's command fails, takes too long or prints something else than counters.
    pub fn read(&self) -> Result<Reading, String> {
        let mut reading = self.read_devices();
        if let Some(command) = &self.command {
            for (device, counters) in command.counters()? {
                reading.insert("command", &device, counters);
            }
        }
        Ok(reading)
    }

    /// The same without the user's command.
    pub fn read_devices(&self) -> Reading {
        let mut reading = Reading::now();
        for device in &self.devices {
            reading.insert(device.source(), &device.name(), device.counters(&self.roots));
        }
        reading.insert("tcp", "", tcp(&self.roots.proc));
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the files that a listing names: a path, a space, and what is in it.
    fn tree(listing: &str) -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        for line in listing.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (path, content) = line.split_once(' ').unwrap();
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.replace("\\n", "\n") + "\n").unwrap();
        }
        let roots = Roots { sys: folder.path().join("sys"), proc: folder.path().join("proc") };
        (folder, roots)
    }

    const MLX5: &str = include_str!("../../tests/data/counters/mlx5.tree");
    const CXI: &str = include_str!("../../tests/data/counters/cxi.tree");
    const TCP: &str = include_str!("../../tests/data/counters/tcp.tree");

    fn sources(reading: &Reading) -> Vec<(&str, &str)> {
        reading.counted().iter().map(|of| (of.source.as_str(), of.device.as_str())).collect()
    }

    fn value(reading: &Reading, source: &str, counter: &str) -> Option<f64> {
        reading.counted().iter().find(|of| of.source == source)?.counters.get(counter).copied()
    }

    #[test]
    fn a_port_is_read_with_its_hardware_counters_and_its_interface() {
        let (_folder, roots) = tree(MLX5);
        let port = Device::Infiniband { name: "mlx5_1".into(), port: 1 };
        let reading = Reader::new(roots, &[port], None).read().unwrap();
        assert_eq!(sources(&reading), [("infiniband", "mlx5_1 port 1"), ("net", "ens1f1")]);
        assert_eq!(value(&reading, "infiniband", "port_xmit_wait"), Some(981_122_321.0));
        assert_eq!(value(&reading, "infiniband", "np_cnp_sent"), Some(7412.0));
        assert_eq!(value(&reading, "infiniband", "lifespan"), None, "a setting, not a counter");
        assert_eq!(value(&reading, "infiniband", "port_rcv_constraint_errors"), None, "it shows no number");
        assert_eq!(value(&reading, "net", "rx_dropped"), Some(3.0));
    }

    #[test]
    fn without_a_known_device_all_that_are_up_are_read() {
        let (_folder, roots) = tree(MLX5);
        let reading = Reader::new(roots, &[], None).read().unwrap();
        let expected = [("infiniband", "mlx5_0 port 1"), ("infiniband", "mlx5_1 port 1"), ("net", "ens1f1")];
        assert_eq!(sources(&reading), expected, "mlx5_2 is down, lo is not looked at");
    }

    #[test]
    fn cards_of_slingshot_show_values_with_times() {
        let (_folder, roots) = tree(CXI);
        let reading = Reader::new(roots, &[Device::Cxi("cxi0".into())], None).read().unwrap();
        assert_eq!(sources(&reading), [("cxi", "cxi0"), ("net", "hsn0")]);
        assert_eq!(value(&reading, "cxi", "hni_rx_paused_0"), Some(1_234_567.0));
        assert_eq!(value(&reading, "cxi", "reset_counters"), None);
    }

    #[test]
    fn tcp_is_the_hosts() {
        let (_folder, roots) = tree(TCP);
        let reading = Reader::new(roots, &[Device::Net("eth0".into())], None).read().unwrap();
        assert_eq!(sources(&reading), [("net", "eth0"), ("tcp", "")]);
        assert_eq!(value(&reading, "tcp", "RetransSegs"), Some(71186.0));
        assert_eq!(value(&reading, "tcp", "TCPTimeouts"), Some(12.0));
        assert_eq!(value(&reading, "tcp", "InNoECTPkts"), None, "a table of its own");
        assert_eq!(value(&reading, "tcp", "MaxConn"), None, "a setting");
    }

    #[test]
    fn a_command_is_one_more_source() {
        let (_folder, roots) = tree(TCP);
        let command = UserCommand::new("echo 'leaf1 drops: 5'");
        let reading = Reader::new(roots, &[], Some(command)).read().unwrap();
        assert_eq!(value(&reading, "command", "leaf1 drops"), Some(5.0));
    }
}
