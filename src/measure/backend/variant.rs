//! What the runs of a job go over: every transport the user names, with every protocol where the protocol is ours, and
//! with every network that the congestors are to use.

use tailback_engine::rendezvous::DEFAULT_THRESHOLD;
use tailback_engine::{Collective, Engine, Protocol, Rendezvous};
use tailback_host::pages::HugePages;
use tailback_transport::Bytes;

use super::{Backend, CongestorNetworks, Settings};
use crate::engine::{OpenNetwork, Opened};
use crate::plan::Part;

/// What one run goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The network under test: everyone's, or the canaries' where congestors have another.
    pub network: Network,
    /// The congestors' network, where it is another.
    pub congestors: Option<Network>,
    /// Which of several equal ones, from 0: equals that take turns show what differences are noise.
    pub copy: u8,
}

/// A network under test, and how messages travel over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Which one.
    pub backend: Backend,
    /// How its messages travel; none where the backend decides that itself, as MPI does.
    pub messages: Option<MessagePath>,
}

/// How messages travel over a raw backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePath {
    /// What longer messages do.
    pub protocol: Protocol,
    /// Up to this length every message is eager.
    pub threshold: Bytes,
}

impl Variant {
    /// Everyone over one network.
    pub fn of(network: Network) -> Self {
        Variant { network, congestors: None, copy: 0 }
    }

    /// Its name, which is also its run's.
    pub fn label(self) -> String {
        let under = self.congestors.map(|network| format!(" under {}", network.label())).unwrap_or_default();
        format!("{}{}{under}", self.network.label(), self.copy_mark())
    }

    /// Whether a point goes over it that uses this part of the job.
    pub fn fits(self, part: &Part) -> bool {
        let transport = part
            .transport
            .as_ref()
            .is_none_or(|name| name.parse::<Backend>().is_ok_and(|of| of == self.network.backend));
        let protocol = |of: Protocol| {
            self.networks().filter_map(|network| network.messages).all(|messages| messages.protocol == of)
        };
        transport && part.protocol.is_none_or(protocol)
    }

    /// What tells it from its equals.
    pub fn copy_mark(self) -> String {
        if self.copy == 0 { String::new() } else { format!(" (copy {})", self.copy) }
    }

    /// Its networks, the canaries' first.
    pub fn networks(self) -> impl Iterator<Item = Network> {
        std::iter::once(self.network).chain(self.congestors)
    }
}

impl Network {
    /// Backend and, where there is a choice, protocol.
    pub fn label(self) -> String {
        match self.messages {
            Some(messages) => format!("{}, {}", self.backend.network(), messages.protocol),
            None => self.backend.network(),
        }
    }

    /// The threshold, where there is one.
    pub fn eager_threshold(self) -> Option<Bytes> {
        self.messages.filter(|messages| messages.protocol != Protocol::Eager).map(|messages| messages.threshold)
    }

    /// Puts protocols and collectives over a raw backend.
    #[allow(dead_code, reason = "not every build has a raw backend")]
    pub(super) fn over<'a, E: Engine + 'a>(self, engine: E) -> Box<dyn OpenNetwork + 'a> {
        let messages = match self.messages {
            Some(MessagePath { protocol, threshold }) => Rendezvous::new(engine, protocol, threshold),
            None => Rendezvous::eager(engine),
        };
        Box::new(Opened::new(Collective::new(messages)))
    }
}

/// The variants the user named, in that order; over `default` when no transport was named.
pub fn variants(settings: &Settings, default: Backend) -> Result<Vec<Variant>, String> {
    twice("--transport", &settings.transports)?;
    twice("--protocol", &settings.protocols)?;
    let over = match &settings.congestors {
        CongestorNetworks::Over(backends) => &backends[..],
        CongestorNetworks::Same | CongestorNetworks::Crossed => &[],
    };
    twice("--congestor-transport", over)?;
    let backends = if settings.transports.is_empty() { vec![default] } else { settings.transports.clone() };
    if !settings.protocols.is_empty() && backends.iter().chain(over).all(|backend| !backend.is_raw()) {
        return Err("--protocol is for raw transports such as tcp: MPI has protocols of its own".into());
    }
    let protocols = if settings.protocols.is_empty() { vec![Protocol::default()] } else { settings.protocols.clone() };
    if settings.eager_threshold.is_some() && protocols.iter().all(|protocol| protocol.moves_by().is_none()) {
        return Err("--eager-threshold is for the put and get protocols: name one with --protocol".into());
    }
    let own_memory = |backend: &Backend| matches!(backend, Backend::Mpi | Backend::Sim);
    if settings.huge_pages != HugePages::No && backends.iter().chain(over).all(own_memory) {
        return Err(
            "--huge-pages is for tcp, libfabric and verbs: MPI has memory of its own, a simulated network none".into(),
        );
    }
    if settings.copies > 1 && backends.iter().any(|backend| !backend.is_raw()) {
        return Err("--copies is for raw transports: runs over MPI have no protocol to tell them apart by".into());
    }
    let threshold = settings.eager_threshold.map_or(DEFAULT_THRESHOLD, |bytes| Bytes(bytes as u64));
    let with = |backend: Backend| -> Vec<Network> {
        if !backend.is_raw() {
            return vec![Network { backend, messages: None }];
        }
        let messages = protocols.iter().map(|&protocol| Some(MessagePath { protocol, threshold }));
        messages.map(|messages| Network { backend, messages }).collect()
    };
    let networks: Vec<Network> = backends.into_iter().flat_map(with).collect();
    let crossed = settings.congestors == CongestorNetworks::Crossed && settings.copies <= 1;
    let under = |network: Network| -> Vec<Option<Network>> {
        // A backend is opened once: its canaries and its congestors have the same protocol.
        let other = |of: Network| (of.backend != network.backend).then_some(of);
        match (&networks[..], over) {
            ([one, two], []) if crossed && one.backend != two.backend => vec![other(*one), other(*two)],
            (_, []) => vec![None],
            _ => {
                let mut under: Vec<Option<Network>> = Vec::new();
                for of in over.iter().flat_map(|&backend| with(backend)).map(other) {
                    if !under.contains(&of) {
                        under.push(of);
                    }
                }
                under
            }
        }
    };
    let pair = |network: Network| under(network).into_iter().map(move |congestors| (network, congestors));
    let copies = settings.copies.max(1);
    let each = networks.iter().copied().flat_map(pair);
    let copied = |(network, congestors)| (0..copies).map(move |copy| Variant { network, congestors, copy });
    Ok(each.flat_map(copied).collect())
}

fn twice<N: PartialEq + std::fmt::Display>(option: &str, names: &[N]) -> Result<(), String> {
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(format!("{option} names {name} twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(transports: &[Backend], protocols: &[Protocol], threshold: Option<usize>) -> Result<String, String> {
        let (transports, protocols) = (transports.to_vec(), protocols.to_vec());
        let settings = Settings { transports, protocols, eager_threshold: threshold, ..Settings::default() };
        labels(&settings)
    }

    fn labels(settings: &Settings) -> Result<String, String> {
        Ok(variants(settings, Backend::Tcp)?.into_iter().map(Variant::label).collect::<Vec<_>>().join(" | "))
    }

    fn under(congestors: CongestorNetworks, transports: &[Backend], protocols: &[Protocol]) -> Result<String, String> {
        let (transports, protocols) = (transports.to_vec(), protocols.to_vec());
        labels(&Settings { transports, protocols, congestors, ..Settings::default() })
    }

    #[test]
    fn huge_pages_need_memory_of_our_own() {
        let over = |transports: &[Backend]| {
            let (transports, huge_pages) = (transports.to_vec(), HugePages::Try);
            labels(&Settings { transports, huge_pages, ..Settings::default() })
        };
        assert!(over(&[Backend::Mpi]).unwrap_err().contains("MPI has memory of its own"));
        assert!(over(&[Backend::Sim]).is_err() && over(&[Backend::Mpi, Backend::Tcp]).is_ok());
    }

    #[test]
    fn protocols_multiply_raw_transports_only() {
        use Backend::{Mpi, Tcp};
        use Protocol::{Eager, Get, Put};
        let labels = |transports: &[_], protocols: &[_]| named(transports, protocols, None).unwrap();
        assert_eq!(labels(&[], &[]), "tcp, eager");
        assert_eq!(labels(&[Mpi], &[]), "mpi");
        assert_eq!(labels(&[], &[Put]), "tcp, put");
        assert_eq!(labels(&[Mpi, Tcp], &[Eager, Put, Get]), "mpi | tcp, eager | tcp, put | tcp, get");
        assert_eq!(labels(&[Tcp, Mpi], &[Get]), "tcp, get | mpi");
    }

    #[test]
    fn nonsense_is_refused() {
        use Backend::{Mpi, Tcp};
        use Protocol::{Eager, Get, Put};
        for (transports, protocols, threshold, expected) in [
            (&[Tcp, Tcp][..], &[][..], None, "--transport names tcp twice"),
            (&[], &[Put, Get, Put], None, "--protocol names put twice"),
            (&[Mpi], &[Put], None, "MPI has protocols of its own"),
            (&[], &[], Some(4096), "--eager-threshold is for the put and get protocols"),
            (&[], &[Eager], Some(4096), "--eager-threshold is for the put and get protocols"),
        ] {
            let said = named(transports, protocols, threshold).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn two_networks_are_crossed_where_that_is_wanted() {
        use Backend::{Libfabric, Mpi, Tcp};
        use Protocol::{Get, Put};
        let crossed =
            |transports: &[_], protocols: &[_]| under(CongestorNetworks::Crossed, transports, protocols).unwrap();
        let all = "mpi | mpi under tcp, eager | tcp, eager under mpi | tcp, eager";
        assert_eq!(crossed(&[Mpi, Tcp], &[]), all);
        assert_eq!(crossed(&[Tcp], &[]), "tcp, eager");
        assert_eq!(crossed(&[Tcp], &[Put, Get]), "tcp, put | tcp, get", "one network with two protocols");
        assert_eq!(crossed(&[Mpi, Tcp], &[Put, Get]), "mpi | tcp, put | tcp, get");
        assert_eq!(crossed(&[Mpi, Tcp, Libfabric], &[]), "mpi | tcp, eager | libfabric, eager");
        assert_eq!(under(CongestorNetworks::Same, &[Mpi, Tcp], &[]).unwrap(), "mpi | tcp, eager");
    }

    #[test]
    fn congestors_go_over_what_they_are_told_to() {
        use Backend::{Mpi, Tcp};
        use Protocol::{Get, Put};
        let over = |congestors: &[_], transports: &[_], protocols: &[_]| {
            under(CongestorNetworks::Over(congestors.to_vec()), transports, protocols)
        };
        assert_eq!(over(&[Tcp], &[Mpi], &[]).unwrap(), "mpi under tcp, eager");
        assert_eq!(over(&[Tcp], &[Mpi], &[Put, Get]).unwrap(), "mpi under tcp, put | mpi under tcp, get");
        assert_eq!(over(&[Mpi], &[Mpi, Tcp], &[]).unwrap(), "mpi | tcp, eager under mpi");
        // Canaries and congestors of one backend have the same protocol, so these are two runs and not four.
        assert_eq!(over(&[Tcp], &[Tcp], &[Put, Get]).unwrap(), "tcp, put | tcp, get");
        let twice = over(&[Tcp, Tcp], &[Mpi], &[]).unwrap_err();
        assert!(twice.contains("--congestor-transport names tcp twice"), "{twice}");
    }

    #[test]
    fn points_of_a_sweep_go_over_what_they_name() {
        use Backend::{Libfabric, Tcp};
        use Protocol::{Eager, Put};
        let fitting = |congestors: &[Backend], part: Part| {
            let (transports, protocols) = (vec![Tcp, Libfabric], vec![Eager, Put]);
            let congestors = CongestorNetworks::Over(congestors.to_vec());
            let all = variants(&Settings { transports, protocols, congestors, ..Settings::default() }, Tcp).unwrap();
            let fit = all.into_iter().filter(|variant| variant.fits(&part));
            fit.map(Variant::label).collect::<Vec<_>>().join(" | ")
        };
        let over = |transport: Option<&str>, protocol| {
            let transport = transport.map(str::to_owned);
            Part { transport, protocol, ..Part::default() }
        };
        assert_eq!(fitting(&[], over(Some("tcp"), Some(Put))), "tcp, put");
        assert_eq!(fitting(&[], over(Some("ofi"), None)), "libfabric, eager | libfabric, put");
        assert_eq!(fitting(&[], over(None, Some(Eager))), "tcp, eager | libfabric, eager");
        // Canaries and congestors have the protocol both.
        assert_eq!(fitting(&[Tcp], over(Some("libfabric"), Some(Put))), "libfabric, put under tcp, put");
        assert_eq!(fitting(&[], over(Some("no such"), None)), "");
    }

    #[test]
    fn thresholds_belong_to_put_and_get() {
        let of = |protocol| {
            let messages = Some(MessagePath { protocol, threshold: Bytes(100) });
            Network { backend: Backend::Tcp, messages }.eager_threshold()
        };
        assert_eq!(Protocol::ALL.map(of), [None, Some(Bytes(100)), Some(Bytes(100))]);
    }
}
