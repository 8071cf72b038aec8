//! A rank's domain, as other ranks need to know it for the choice of local ends. libfabric orders its offers itself and a
//! rank takes one of them, so there is one candidate: what is left to do is to see that all ranks' go together.

use tailback_bootstrap::local_ports::{LocalPort, Reach};

use crate::offer::Offer;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    provider: String,
    fabric: String,
    domain: String,
    /// The host, of providers that reach no other.
    host: Option<String>,
}

impl Domain {
    /// What an offer is to others, on this host.
    pub(crate) fn of(offer: &Offer, host: &str) -> Domain {
        Domain {
            provider: offer.provider.clone(),
            fabric: offer.fabric.clone(),
            domain: offer.domain.clone(),
            host: offer.is_named().then(|| host.to_owned()),
        }
    }
}

impl LocalPort for Domain {
    fn encode(&self) -> String {
        let host = self.host.as_ref().map(|host| format!(" of host {host} only")).unwrap_or_default();
        format!("provider {} on {} of {}{host}", self.provider, self.domain, self.fabric)
    }

    fn decode(line: &str) -> Option<Self> {
        let (provider, rest) = line.strip_prefix("provider ")?.split_once(" on ")?;
        let (domain, rest) = rest.split_once(" of ")?;
        let (fabric, host) = match rest.split_once(" of host ") {
            Some((fabric, host)) => (fabric, Some(host.strip_suffix(" only")?.to_owned())),
            None => (rest, None),
        };
        Some(Domain { provider: provider.into(), fabric: fabric.into(), domain: domain.into(), host })
    }

    /// Everyone has to have the same provider, and one whose endpoints are names reaches one host only.
    fn reach(&self, other: &Self) -> Reach {
        match () {
            () if self.provider != other.provider || self.host != other.host => Reach::Never,
            () if self.fabric == other.fabric => Reach::Near,
            () => Reach::Routed,
        }
    }

    fn name(&self) -> String {
        format!("{} on {}", self.provider, self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_provider_reaches_all_and_shared_memory_one_host() {
        let reach = |a: &str, b: &str| {
            let of = |line| Domain::decode(line).expect("a domain");
            assert_eq!(of(a).encode(), a);
            of(a).reach(&of(b))
        };
        let tcp = "provider tcp;ofi_rxm on eth0 of 10.0.0.0/16";
        assert_eq!(reach(tcp, "provider tcp;ofi_rxm on eth1 of 10.0.0.0/16"), Reach::Near);
        assert_eq!(reach(tcp, "provider tcp;ofi_rxm on eth0 of 10.1.0.0/16"), Reach::Routed);
        assert_eq!(reach(tcp, "provider udp;ofi_rxd on eth0 of 10.0.0.0/16"), Reach::Never);
        let shm = "provider shm on shm of shm of host a only";
        assert_eq!(reach(shm, shm), Reach::Near);
        assert_eq!(reach(shm, "provider shm on shm of shm of host b only"), Reach::Never);
    }
}
