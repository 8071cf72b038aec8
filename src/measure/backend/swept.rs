//! Networks that are keys of a sweep: the job opens all that its points go over, and each point has its own.

use super::{Backend, CongestorNetworks, Settings};
use crate::plan::{PROTOCOL, Swept, TRANSPORT, protocol_named, values_of};

impl Settings {
    /// Takes the networks that points of a sweep go over.
    pub fn go_over(&mut self, sweep: &[Swept]) -> Result<(), String> {
        let (transports, protocols) = (values_of(sweep, TRANSPORT), values_of(sweep, PROTOCOL));
        if let Some(names) = transports {
            let named = |name: &String| name.parse::<Backend>().map_err(|why| format!("{TRANSPORT}={name}: {why}"));
            self.transports = taken(TRANSPORT, &self.transports, names, named)?;
            // A point is one network: no other is put beside it unless that is said.
            if self.congestors == CongestorNetworks::Crossed {
                self.congestors = CongestorNetworks::Same;
            }
        }
        if let Some(names) = protocols {
            let named = |name: &String| protocol_named(name).map_err(|why| format!("{PROTOCOL}={name}: {why}"));
            self.protocols = taken(PROTOCOL, &self.protocols, names, named)?;
            if let Some(other) = self.transports.iter().find(|transport| !transport.is_raw()) {
                return Err(format!(
                    "a sweep over {PROTOCOL} is of raw transports such as tcp: {other} has protocols of its own"
                ));
            }
        }
        match (transports, protocols) {
            (None, None) => Ok(()),
            (Some(_), None) if self.protocols.len() > 1 => {
                Err(several(TRANSPORT, "--protocol names several: make it a second key, protocol=LIST"))
            }
            (Some(_), _) => self.one_each(TRANSPORT),
            (None, Some(_)) => self.one_each(PROTOCOL),
        }
    }

    /// Points of a curve differ in what is swept and in nothing else.
    fn one_each(&self, key: &str) -> Result<(), String> {
        match &self.congestors {
            CongestorNetworks::Over(all) if all.len() > 1 => {
                Err(several(key, "--congestor-transport names several networks"))
            }
            _ if self.copies > 1 => Err(several(key, "--copies are for networks that are not swept")),
            _ => Ok(()),
        }
    }
}

fn several(key: &str, why: &str) -> String {
    format!("a sweep over {key} goes over each of its values once: {why}")
}

/// What the values of a key name, which no option has named.
fn taken<N>(
    key: &str,
    given: &[N],
    names: &[String],
    named: impl Fn(&String) -> Result<N, String>,
) -> Result<Vec<N>, String> {
    if !given.is_empty() {
        return Err(format!("--{key}: not for a sweep over {key}, whose values say it"));
    }
    names.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use tailback_engine::Protocol;

    use super::*;

    fn over(sweep: &[&str], mut settings: Settings) -> Result<Settings, String> {
        let sweep: Vec<Swept> = sweep.iter().map(|text| text.parse().unwrap()).collect();
        settings.go_over(&sweep).map(|()| settings)
    }

    #[test]
    fn a_job_has_the_networks_of_all_points() {
        let crossed = || Settings { congestors: CongestorNetworks::Crossed, ..Settings::default() };
        let found = over(&["transport=tcp,ofi", "protocol=put,get"], crossed()).unwrap();
        assert_eq!(found.transports, [Backend::Tcp, Backend::Libfabric]);
        assert_eq!(
            (&found.protocols[..], &found.congestors),
            (&[Protocol::Put, Protocol::Get][..], &CongestorNetworks::Same)
        );
        let plain = over(&["lat.bytes=8,64"], crossed()).unwrap();
        assert!(plain.transports.is_empty() && plain.congestors == CongestorNetworks::Crossed);
    }

    #[test]
    fn what_is_said_twice_or_cannot_be_is_refused() {
        let transports = |transports: &[Backend]| Settings { transports: transports.to_vec(), ..Settings::default() };
        let protocols = Settings { protocols: vec![Protocol::Put, Protocol::Get], ..Settings::default() };
        let congestors =
            Settings { congestors: CongestorNetworks::Over(vec![Backend::Tcp, Backend::Mpi]), ..Settings::default() };
        for (sweep, settings, expected) in [
            ("transport=tcp,udp", Settings::default(), "transport=udp: unknown transport 'udp'"),
            (
                "protocol=put,push",
                Settings::default(),
                "protocol=push: unknown protocol 'push': expected eager, put or get",
            ),
            ("transport=tcp,mpi", transports(&[Backend::Tcp]), "--transport: not for a sweep over transport"),
            ("protocol=put,get", protocols.clone(), "--protocol: not for a sweep over protocol"),
            ("protocol=put,get", transports(&[Backend::Tcp, Backend::Mpi]), "mpi has protocols of its own"),
            ("transport=tcp,libfabric", protocols, "--protocol names several: make it a second key, protocol=LIST"),
            ("transport=tcp,libfabric", congestors, "--congestor-transport names several networks"),
            (
                "protocol=put,get",
                Settings { copies: 2, ..Settings::default() },
                "--copies are for networks that are not swept",
            ),
        ] {
            let said = over(&[sweep], settings).unwrap_err();
            assert!(said.contains(expected), "{sweep}: {said}");
        }
    }
}
