//! What the runs of a job go over: every transport the user names, with every protocol where the protocol is ours.

use tailback_transport::rendezvous::DEFAULT_THRESHOLD;
use tailback_transport::{Bytes, Collective, Protocol, RawTransport, Rendezvous};

use super::{Backend, Settings};

/// What one run goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The network under test.
    pub backend: Backend,
    /// How its messages travel; none where the backend decides that itself, as MPI does.
    pub messages: Option<Messages>,
    /// Which of several equal ones, from 0: equals that take turns show what differences are noise.
    pub copy: u8,
}

/// How messages travel over a raw backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// What longer messages do.
    pub protocol: Protocol,
    /// Up to this length every message is eager.
    pub threshold: Bytes,
}

impl Variant {
    /// Its name, which is also its run's.
    pub fn label(self) -> String {
        let copy = self.copy_mark();
        match self.messages {
            Some(messages) => format!("{}, {}{copy}", self.backend, messages.protocol),
            None => format!("{}{copy}", self.backend),
        }
    }

    /// What tells it from its equals.
    pub fn copy_mark(self) -> String {
        if self.copy == 0 { String::new() } else { format!(" (copy {})", self.copy) }
    }

    /// The threshold, where there is one.
    pub fn eager_threshold(self) -> Option<Bytes> {
        self.messages.filter(|messages| messages.protocol != Protocol::Eager).map(|messages| messages.threshold)
    }

    /// Puts protocols and collectives over a raw backend.
    pub(super) fn over<T: RawTransport>(self, raw: T) -> Collective<Rendezvous<T>> {
        Collective::new(match self.messages {
            Some(Messages { protocol, threshold }) => Rendezvous::new(raw, protocol, threshold),
            None => Rendezvous::eager(raw),
        })
    }
}

/// The variants the user named, in that order; over `default` when no transport was named.
pub fn variants(settings: &Settings, default: Backend) -> Result<Vec<Variant>, String> {
    twice("--transport", &settings.transports)?;
    twice("--protocol", &settings.protocols)?;
    let backends = if settings.transports.is_empty() { vec![default] } else { settings.transports.clone() };
    if !settings.protocols.is_empty() && backends.iter().all(|backend| !backend.is_raw()) {
        return Err("--protocol is for raw transports such as tcp: MPI has protocols of its own".into());
    }
    let protocols = if settings.protocols.is_empty() { vec![Protocol::default()] } else { settings.protocols.clone() };
    if settings.eager_threshold.is_some() && protocols.iter().all(|protocol| protocol.moves_by().is_none()) {
        return Err("--eager-threshold is for the put and get protocols: name one with --protocol".into());
    }
    let threshold = settings.eager_threshold.map_or(DEFAULT_THRESHOLD, |bytes| Bytes(bytes as u64));
    let with = |backend: Backend| -> Vec<Variant> {
        if !backend.is_raw() {
            return vec![Variant { backend, messages: None, copy: 0 }];
        }
        let messages = protocols.iter().map(|&protocol| Some(Messages { protocol, threshold }));
        messages.map(|messages| Variant { backend, messages, copy: 0 }).collect()
    };
    let each = backends.into_iter().flat_map(with);
    let copies = settings.copies.max(1);
    Ok(each.flat_map(|variant| (0..copies).map(move |copy| Variant { copy, ..variant })).collect())
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
        Ok(variants(&settings, Backend::Tcp)?.into_iter().map(Variant::label).collect::<Vec<_>>().join(" | "))
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
    fn thresholds_belong_to_put_and_get() {
        let of = |protocol| {
            let messages = Some(Messages { protocol, threshold: Bytes(100) });
            Variant { backend: Backend::Tcp, messages, copy: 0 }.eager_threshold()
        };
        assert_eq!(Protocol::ALL.map(of), [None, Some(Bytes(100)), Some(Bytes(100))]);
    }
}
