//! What the runs of a job go over: every transport the user names, with every protocol where the protocol is ours.

use tailback_transport::rendezvous::DEFAULT_THRESHOLD;
use tailback_transport::{Bytes, Collective, Protocol, RawTransport, Rendezvous};

use super::Backend;
use crate::cli::TransportOptions;

/// What one run goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The network under test.
    pub backend: Backend,
    /// How its messages travel; none where the backend decides that itself, as MPI does.
    pub messages: Option<Messages>,
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
        match self.messages {
            Some(messages) => format!("{}, {}", self.backend, messages.protocol),
            None => self.backend.to_string(),
        }
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
pub fn variants(options: &TransportOptions, default: Backend) -> Result<Vec<Variant>, String> {
    twice("--transport", &options.transport)?;
    twice("--protocol", &options.protocol)?;
    let backends = if options.transport.is_empty() { vec![default] } else { options.transport.clone() };
    if !options.protocol.is_empty() && backends.iter().all(|backend| !backend.is_raw()) {
        return Err("--protocol is for raw transports such as tcp: MPI has protocols of its own".into());
    }
    let protocols = if options.protocol.is_empty() { vec![Protocol::default()] } else { options.protocol.clone() };
    if options.eager_threshold.is_some() && protocols.iter().all(|protocol| protocol.moves_by().is_none()) {
        return Err("--eager-threshold is for the put and get protocols: name one with --protocol".into());
    }
    let threshold = options.eager_threshold.map_or(DEFAULT_THRESHOLD, |bytes| Bytes(bytes as u64));
    let with = |backend: Backend| -> Vec<Variant> {
        if !backend.is_raw() {
            return vec![Variant { backend, messages: None }];
        }
        let messages = protocols.iter().map(|&protocol| Some(Messages { protocol, threshold }));
        messages.map(|messages| Variant { backend, messages }).collect()
    };
    Ok(backends.into_iter().flat_map(with).collect())
}

fn twice<N: PartialEq + std::fmt::Display>(option: &str, names: &[N]) -> Result<(), String> {
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(format!("{option} names {name} twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: TransportOptions,
    }

    fn named(line: &str) -> Result<Vec<String>, String> {
        let words = ["tailback"].into_iter().chain(line.split_whitespace());
        let options = Line::try_parse_from(words).map_err(|error| error.to_string())?.options;
        Ok(variants(&options, Backend::Tcp)?.into_iter().map(Variant::label).collect())
    }

    #[test]
    fn protocols_multiply_raw_transports_only() {
        let labels = |line| named(line).unwrap().join(" | ");
        assert_eq!(labels(""), "tcp, eager");
        assert_eq!(labels("--transport mpi"), "mpi");
        assert_eq!(labels("--protocol put"), "tcp, put");
        let all = "mpi | tcp, eager | tcp, put | tcp, get";
        assert_eq!(labels("--transport mpi,tcp --protocol eager,put,get"), all);
        assert_eq!(labels("--transport tcp,mpi --protocol get"), "tcp, get | mpi");
    }

    #[test]
    fn nonsense_is_refused() {
        for (line, expected) in [
            ("--transport tcp,tcp", "--transport names tcp twice"),
            ("--protocol put,get,put", "--protocol names put twice"),
            ("--transport mpi --protocol put", "MPI has protocols of its own"),
            ("--eager-threshold 4KiB", "--eager-threshold is for the put and get protocols"),
            ("--protocol eager --eager-threshold 4KiB", "--eager-threshold is for the put and get protocols"),
            ("--protocol rendezvous", "use eager, put or get"),
        ] {
            let said = named(line).unwrap_err();
            assert!(said.contains(expected), "{line}: {said}");
        }
    }

    #[test]
    fn thresholds_belong_to_put_and_get() {
        let of = |protocol| {
            let messages = Some(Messages { protocol, threshold: Bytes(100) });
            Variant { backend: Backend::Tcp, messages }.eager_threshold()
        };
        assert_eq!(Protocol::ALL.map(of), [None, Some(Bytes(100)), Some(Bytes(100))]);
    }
}
