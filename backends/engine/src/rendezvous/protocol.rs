//! The names of the protocols.

use std::fmt;
use std::str::FromStr;

use tailback_transport::{Error, Operation};

/// How a message's bytes travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// At once, as the backend's own message, however long.
    #[default]
    Eager,
    /// Announced; the sender writes them when the receiver says where (RTS, CTS, put, FIN).
    Put,
    /// Announced; the receiver reads them (RTS, get, FIN).
    Get,
}

impl Protocol {
    /// All of them, in the order they are listed to users.
    pub const ALL: [Protocol; 3] = [Protocol::Eager, Protocol::Put, Protocol::Get];

    /// The one-sided operation that moves the bytes of an announced message.
    #[must_use]
    pub fn moves_by(self) -> Option<Operation> {
        match self {
            Protocol::Eager => None,
            Protocol::Put => Some(Operation::Put),
            Protocol::Get => Some(Operation::Get),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Protocol::Eager => "eager",
            Protocol::Put => "put",
            Protocol::Get => "get",
        })
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.to_string() == name)
            .ok_or_else(|| Error::Setup(format!("unknown protocol \"{name}\": use eager, put or get")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse::<Protocol>().expect("a protocol's own name"), protocol);
        }
        let error = "rendezvous".parse::<Protocol>().unwrap_err().to_string();
        assert_eq!(error, "unknown protocol \"rendezvous\": use eager, put or get");
    }
}
