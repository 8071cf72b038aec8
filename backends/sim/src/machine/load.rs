//! Other jobs on a machine: tables `[[load]]` of its file, messages that are under way whatever the ranks do.

use serde::Deserialize;

use super::quantity::{Ps, Size};

/// Nodes that send to one other, each one message after the other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The nodes that send, from 0.
    pub from: Vec<usize>,
    /// The node that receives.
    pub to: usize,
    /// Length of their messages.
    pub bytes: Size,
    /// From the acknowledgement of a message to the start of the next.
    #[serde(default = "microsecond")]
    pub pause: Ps,
    /// When they begin.
    #[serde(default)]
    pub since: Ps,
    /// When they end; as long as the job lasts, unless given.
    #[serde(default)]
    pub until: Option<Ps>,
}

fn microsecond() -> Ps {
    Ps::ns(1_000)
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::*;

    fn with(load: &str) -> Result<Machine, super::super::MachineError> {
        let text = Machine::load("small").unwrap().text;
        Machine::parse(&format!("{text}\n[[load]]\n{load}\n"), "x")
    }

    #[test]
    fn loads_are_read_and_told() {
        let machine = with("from = [1, 2]\nto = 63\nbytes = \"64 KiB\"\nuntil = \"3 ms\"").unwrap();
        assert_eq!((machine.loads[0].pause, machine.loads[0].until), (Ps::ns(1_000), Some(Ps::ns(3_000_000))));
        let told = machine.describe();
        assert!(told.contains(&("other jobs", "2 nodes send 64 KiB each to node 63".into())), "{told:?}");
    }

    #[test]
    fn mistakes_name_key_value_and_range() {
        for (load, expected) in [
            ("from = [64]\nto = 0\nbytes = \"1 B\"", "invalid load[0].from '64': expected 0 to 63"),
            ("from = []\nto = 0\nbytes = \"1 B\"", "invalid load[0].from '[]': expected at least one node"),
            ("from = [1]\nto = 64\nbytes = \"1 B\"", "invalid load[0].to '64': expected 0 to 63"),
            ("from = [1]\nto = 1\nbytes = \"1 B\"", "expected a node that is not among those that send"),
            ("from = [1]\nto = 2\nbytes = \"0 B\"", "invalid load[0].bytes '0 B': expected 1 B to 1 GiB"),
            (
                "from = [1]\nto = 2\nbytes = \"1 B\"\npause = \"0 s\"",
                "invalid load[0].pause '0 s': expected 1 ns to 1 s",
            ),
            ("from = [1]\nto = 2\nbytes = \"1 B\"\nsince = \"2 s\"\nuntil = \"1 s\"", "expected 2 s to 1000000 s"),
            ("from = [1]\nto = 2\nbytes = \"1 B\"\nevery = 3", "unknown field `every`"),
            ("from = [1]\nto = 2", "missing field `bytes`"),
        ] {
            let error = with(load).map(|machine| machine.describe()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}
