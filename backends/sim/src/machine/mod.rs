//! Machines: what a TOML file says about a network, checked before anything is built from it.
//!
//! A [`Machine`] that came out of [`Machine::parse`] can be built: every limit that the simulator has was checked there,
//! and the error names the key that breaks it.

mod change;
mod check;
mod describe;
mod fault;
mod load;
mod place;
mod quantity;
mod spec;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tailback_transport::units::{shown, shown_up_to};
use toml::{Table, Value};

use check::Complaint;

pub use check::{MOST_RANKS, MOST_RANKS_PER_NODE};
pub use fault::{Direction, Fault};
pub use load::Load;
pub(crate) use place::Place;
pub use quantity::{Ps, Size};
pub use spec::{
    Control, Dcqcn, Dragonfly, Ecn, FatTree, FlowControl, Leaves, Link, Machine, Nic, Nodes, Packet, PairThrottle,
    Routing, Single, Swift, Switch, Switching, Topology, Window,
};
pub use tailback_transport::units::Rate;

/// Bytes of a machine file.
const MOST_TEXT: usize = 1 << 20;

/// Why a machine cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The file cannot be read.
    #[error("cannot read machine {path}: {source}")]
    Unreadable {
        /// As the user named it.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is no such machine and no such file.
    #[error("unknown machine '{name}': choose from {known}, or name a file")]
    Unknown {
        /// As the user named it.
        name: String,
        /// The machines that come with Tailback.
        known: String,
    },
    /// It is no TOML, or has keys or values that do not exist.
    #[error("{origin}: {detail}")]
    Syntax {
        /// The file, or the name of a shipped machine.
        origin: String,
        /// The line and the parser's words.
        detail: String,
    },
    /// It is longer than any machine needs.
    #[error("{origin}: invalid machine file: expected at most {} of text", Size(MOST_TEXT as u64))]
    TooLong {
        /// The file.
        origin: String,
    },
    /// It is well formed and has a value that no machine can have.
    #[error("{origin}: invalid {key} '{value}': expected {expected}")]
    Invalid {
        /// The file, or the name of a shipped machine.
        origin: String,
        /// The key that is wrong, with those of the tables that it is in.
        key: String,
        /// What it has: the file's own words, where it was read from one.
        value: String,
        /// What it may have.
        expected: String,
    },
}

/// The machines that come with Tailback.
const SHIPPED: &[(&str, &str)] = &[
    ("crystal", include_str!("../../../../data/machines/crystal.toml")),
    ("malbec", include_str!("../../../../data/machines/malbec.toml")),
    ("osprey", include_str!("../../../../data/machines/osprey.toml")),
    ("lab", include_str!("../../../../data/machines/lab.toml")),
    ("fat-tree-1024", include_str!("../../../../data/machines/fat-tree-1024.toml")),
    ("small", include_str!("../../../../data/machines/small.toml")),
    ("roce", include_str!("../../../../data/machines/roce.toml")),
];

/// The names of the machines that come with Tailback.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

impl Machine {
    /// The machine in `text`; `origin` names it in errors.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn parse(text: &str, origin: &str) -> Result<Machine, MachineError> {
        if text.len() > MOST_TEXT {
            return Err(MachineError::TooLong { origin: origin.into() });
        }
        let mut machine: Machine = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count());
            let said = |at: usize| shown(text.lines().nth(at).unwrap_or("").trim());
            let place = line.map(|at| format!("line {} ({}): ", at + 1, said(at)));
            let detail = format!("{}{}", place.unwrap_or_default(), shown_up_to(400, error.message()));
            MachineError::Syntax { origin: origin.into(), detail }
        })?;
        text.clone_into(&mut machine.text);
        machine.check().map_err(|Complaint { key, value, expected }| {
            let value = written(text, &key).unwrap_or(value);
            MachineError::Invalid { origin: origin.into(), key, value, expected }
        })?;
        Ok(machine)
    }

    /// A shipped machine by its name, or else the file of this path.
    ///
    /// # Errors
    /// As [`Machine::parse`]; an unknown name lists the known ones.
    pub fn load(name_or_path: &str) -> Result<Machine, MachineError> {
        if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return Machine::parse(text, name);
        }
        let path = Path::new(name_or_path);
        let mut text = Vec::new();
        // A pipe has no length: no more is read than is needed to know that it is too long.
        let read = File::open(path).and_then(|file| file.take(MOST_TEXT as u64 + 1).read_to_end(&mut text));
        read.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                let known: Vec<&str> = shipped().collect();
                MachineError::Unknown { name: name_or_path.into(), known: known.join(", ") }
            }
            _ => MachineError::Unreadable { path: name_or_path.into(), source },
        })?;
        if text.len() > MOST_TEXT {
            return Err(MachineError::TooLong { origin: name_or_path.into() });
        }
        let text = String::from_utf8(text).map_err(|error| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error());
            MachineError::Unreadable { path: name_or_path.into(), source }
        })?;
        Machine::parse(&text, name_or_path)
    }

    /// Checks a machine that was made or changed by hand.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn validate(&self) -> Result<(), MachineError> {
        self.check().map_err(|Complaint { key, value, expected }| MachineError::Invalid {
            origin: shown(&self.name),
            key,
            value,
            expected,
        })
    }
}

/// What the file `text` says for a key.
fn written(text: &str, key: &str) -> Option<String> {
    let file: Table = text.parse().ok()?;
    let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    match parts.try_fold(&file, |table, part| table.get(part)?.as_table())?.get(last)? {
        Value::String(text) => Some(shown(text)),
        Value::Table(_) | Value::Array(_) => None,
        value => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_machine_is_sound_and_has_a_source() {
        for (name, text) in SHIPPED {
            let machine = Machine::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.name, *name);
            assert!(text.starts_with("# ") && text.contains("Source"), "{name} does not say where it comes from");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let text = SHIPPED.iter().find(|(name, _)| *name == "small").expect("it is shipped").1;
        let broken = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Machine::parse(&text.replacen(from, to, 1), "here").unwrap_err().to_string()
        };
        let error = broken("kind = \"fat-tree\"", "kind = \"torus\"");
        assert!(error.contains("torus") && error.contains("dragonfly"), "{error}");
        let error = broken("payload = \"4 KiB\"", "payload = 4096");
        assert!(error.contains("payload") && error.contains("string"), "{error}");
        let error = broken("payload = \"4 KiB\"", "payload = \"4 KiB\"\nfoo = 1");
        assert!(error.contains("foo"), "{error}");
        let error = broken("count = 64", "count = 65");
        assert!(error.contains("nodes.count") && error.contains("64"), "{error}");
        let error = broken("kind = \"adaptive\"", "kind = \"valiant\"");
        assert!(error.contains("routing.kind") && error.contains("dragonfly"), "{error}");
        let error = broken("buffer = \"64 KiB\"", "buffer = \"4 KiB\"");
        assert!(error.contains("switch.buffer"), "{error}");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Machine::load("no-such-machine").unwrap_err().to_string();
        assert!(error.contains("crystal") && error.contains("malbec"), "{error}");
    }
}
