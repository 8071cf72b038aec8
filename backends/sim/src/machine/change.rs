//! A machine with something changed: what if it had fewer links, or other routing?

use tailback_transport::units::shown;
use toml::{Table, Value};

use super::{Machine, MachineError};

impl Machine {
    /// The machine whose file has `value` at `key` (`routing.kind`, `topology.global_links`, `switch.buffer`). Another kind of
    /// routing or control starts from that kind's own defaults. What was changed by hand before is lost.
    ///
    /// # Errors
    /// As [`Machine::parse`]: a key that does not exist, or a machine that makes no sense.
    pub fn changed(&self, key: &str, value: &str) -> Result<Machine, MachineError> {
        let origin = format!("{} with {}={}", self.name, shown(key), shown(value));
        let syntax = |detail: String| MachineError::Syntax { origin: origin.clone(), detail };
        let mut file: Table = self.text.parse().map_err(|error: toml::de::Error| syntax(error.message().to_owned()))?;
        let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut file;
        for part in path.split('.').filter(|part| !part.is_empty()) {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            table = entry.as_table_mut().ok_or_else(|| syntax(format!("{} holds no further keys", shown(part))))?;
        }
        if last == "kind" && matches!(path, "routing" | "control") {
            table.clear();
        }
        table.insert(last.to_owned(), typed(value));
        let about = format!("{}; {} = {}", self.about, shown(key), shown(value));
        file.insert("about".into(), Value::String(about));
        Machine::parse(&file.to_string(), &origin)
    }

    /// Whether another is the same machine, whatever is written about it.
    #[must_use]
    pub fn is_like(&self, other: &Machine) -> bool {
        let plain = |of: &Machine| Machine { about: String::new(), text: String::new(), ..of.clone() };
        format!("{:?}", plain(self)) == format!("{:?}", plain(other))
    }
}

/// A number or a truth value as such, all else as text.
fn typed(value: &str) -> Value {
    let as_toml = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    as_toml.unwrap_or_else(|| Value::String(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::{Control, Routing, Size, Topology};
    use super::*;

    #[test]
    fn one_key_is_changed_and_told() {
        let small = Machine::load("small").unwrap();
        let changed = small.changed("topology.spines", "4").unwrap();
        let Topology::FatTree(tree) = &changed.topology else { panic!("it is a tree") };
        assert_eq!((tree.spines, tree.leaves, changed.nodes.count), (4, 8, 64));
        assert!(changed.about.ends_with("; topology.spines = 4"), "{}", changed.about);
        let again = changed.changed("switch.buffer", "128 KiB").unwrap();
        assert_eq!(again.switch.buffer, Size(128 << 10));
        let Topology::FatTree(tree) = &again.topology else { panic!("it is a tree") };
        assert_eq!(tree.spines, 4, "the first change is still there");
    }

    #[test]
    fn another_kind_has_its_own_defaults() {
        let lab = Machine::load("lab").unwrap();
        assert!(matches!(lab.changed("control.kind", "swift").unwrap().control, Control::Swift(_)));
        let ecmp = Machine::load("small").unwrap().changed("routing.kind", "ecmp").unwrap();
        assert_eq!(ecmp.routing, Routing::Ecmp);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let small = Machine::load("small").unwrap();
        for (key, value, expected) in [
            ("topology.spinnes", "4", "spinnes"),
            ("routing.kind", "luck", "luck"),
            ("routing.kind", "valiant", "dragonfly"),
            ("name.first", "x", "name holds no further keys"),
        ] {
            let said = small.changed(key, value).unwrap_err().to_string();
            assert!(said.contains(expected) && said.contains(key), "{said}");
        }
    }
}
