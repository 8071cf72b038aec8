//! A port and an address of it as other ranks know them, and which others they reach.

use std::net::Ipv6Addr;

use tailback_bootstrap::local_ports::{LocalPort, Reach};

use crate::gid::{gid_text, is_link_local, is_mapped, network};

/// A port and an address, as other ranks need to know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: String,
    pub(crate) port: u8,
    pub(crate) ethernet: bool,
    pub(crate) gid: [u8; 16],
}

impl Place {
    /// Whether the address stands for one of IPv4, or is of one link only.
    fn family(&self) -> (bool, bool) {
        (is_mapped(&self.gid), is_link_local(&self.gid))
    }
}

impl LocalPort for Place {
    fn encode(&self) -> String {
        let layer = if self.ethernet { "RoCE" } else { "InfiniBand" };
        format!("{} port {} {layer} {}", self.device, self.port, gid_text(&self.gid))
    }

    fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [device, "port", port, layer, gid] = words[..] else { return None };
        let gid: Ipv6Addr = gid.parse().ok()?;
        Some(Place { device: device.into(), port: port.parse().ok()?, ethernet: layer == "RoCE", gid: gid.octets() })
    }

    /// RoCE takes addresses of one family and does not tell their networks; InfiniBand has subnets.
    fn reach(&self, other: &Self) -> Reach {
        match (self.ethernet, other.ethernet) {
            (true, true) if self.family() == other.family() => Reach::Near,
            (false, false) if self.gid[..8] == other.gid[..8] => Reach::Near,
            (false, false) => Reach::Routed,
            _ => Reach::Never,
        }
    }

    /// As far as addresses tell.
    fn shares_network(&self, other: &Self) -> bool {
        self.ethernet == other.ethernet && network(&self.gid) == network(&other.gid)
    }

    fn name(&self) -> String {
        format!("{} port {}", self.device, self.port)
    }
}

#[cfg(test)]
mod tests {
    use tailback_bootstrap::local_ports;
    use tailback_testkit::loopback;

    use super::*;

    #[test]
    fn ports_of_one_kind_reach_each_other() {
        let reach = |a: &str, b: &str| {
            let of = |line| Place::decode(line).expect("a port");
            assert_eq!(of(a).encode(), a);
            of(a).reach(&of(b))
        };
        let v4 = "rxe0 port 1 RoCE ::ffff:10.1.0.1";
        assert_eq!(reach(v4, "rxe1 port 1 RoCE ::ffff:10.1.0.2"), Reach::Near);
        assert_eq!(reach(v4, "rxe1 port 1 RoCE fe80::1"), Reach::Never);
        assert_eq!(reach(v4, "mlx5_0 port 1 InfiniBand fe80::1"), Reach::Never);
        let ib = "mlx5_0 port 2 InfiniBand fe80::1";
        assert_eq!(reach(ib, "mlx5_1 port 1 InfiniBand fe80::2"), Reach::Near);
        assert_eq!(reach(ib, "mlx5_1 port 1 InfiniBand fec0::2"), Reach::Routed);
        assert_eq!(Place::decode("rxe0"), None);
    }

    #[test]
    fn rails_keep_to_a_network_where_all_reach_each_other() {
        let of = |line| Place::decode(line).expect("a port");
        let here = of("rxe0 port 1 RoCE ::ffff:10.1.0.1");
        let (beside, other) = (of("rxe1 port 1 RoCE ::ffff:10.1.0.2"), of("rxe0 port 1 RoCE ::ffff:10.2.0.1"));
        assert_eq!([&beside, &other].map(|end| here.reach(end)), [Reach::Near; 2]);
        assert_eq!([&beside, &other].map(|end| here.shares_network(end)), [true, false]);
        assert!(!here.shares_network(&of("mlx5_0 port 1 InfiniBand fe80::1")));
    }

    #[test]
    fn two_ports_of_a_device_are_two_rails_and_two_addresses_of_a_port_are_not() {
        let chosen = loopback::run(2, |mut bootstrap, _| {
            let own = [
                "mlx5_0 port 1 InfiniBand fe80::1",
                "mlx5_0 port 1 InfiniBand fec0::1",
                "mlx5_0 port 2 InfiniBand fe80::2",
            ];
            let own = own.map(|line| Place::decode(line).expect("a port"));
            local_ports::choose_rails(&mut bootstrap, &own, &[], false, 2, "")
        });
        for chosen in chosen.expect("rails") {
            let records: Vec<&str> = chosen.iter().map(|of| of.record.as_str()).collect();
            assert_eq!(records, ["mlx5_0 port 1: ranks 0-1", "mlx5_0 port 2: ranks 0-1"]);
        }
    }
}
