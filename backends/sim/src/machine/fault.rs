//! What is broken in a machine: tables `[[fault]]` of its file, each for one node or for the links between two places.

use serde::Deserialize;
use tailback_transport::units::shown;

use super::check::{Checked, SECOND, refuse, within};
use super::quantity::Ps;
use super::spec::{Machine, Topology};

/// Of a machine.
const MOST_FAULTS: usize = 1024;
/// Parts of a rate, and of a processor.
const LEAST_SHARE: f64 = 0.01;
/// More lost packets than this and some message takes forever.
const MOST_LOSS: f64 = 0.5;

/// One fault. A share is of what the part does when it is whole: 0.5 is half as fast.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// A node that sends slowly.
    Send {
        /// Which, from 0.
        node: usize,
        /// Share of its links' rate.
        rate: f64,
    },
    /// A node that receives slowly.
    Receive {
        /// Which, from 0.
        node: usize,
        /// Share of its links' rate.
        rate: f64,
    },
    /// A node's cables.
    Cable {
        /// Which node's, from 0.
        node: usize,
        /// To the switch (`out`), from it (`in`), or both.
        #[serde(default)]
        direction: Direction,
        /// Share of the rate.
        #[serde(default = "whole")]
        rate: f64,
        /// Added to the time of flight.
        #[serde(default)]
        delay: Ps,
        /// Part of the packets that are lost on the way.
        #[serde(default)]
        loss: f64,
    },
    /// The links between two switches, or of two groups of a dragonfly.
    Uplink {
        /// The two, as reports call them: `leaf0` and `spine1`, `g0s1` and `g0s2`, or the groups `g0` and `g1`.
        between: [String; 2],
        /// From the first to the second (`out`), back (`in`), or both.
        #[serde(default)]
        direction: Direction,
        /// Share of the rate.
        #[serde(default = "whole")]
        rate: f64,
        /// Added to the time of flight.
        #[serde(default)]
        delay: Ps,
        /// Part of the packets that are lost on the way.
        #[serde(default)]
        loss: f64,
    },
    /// A node that is slow to itself.
    Host {
        /// Which, from 0.
        node: usize,
        /// Share of its processor's speed.
        #[serde(default = "whole")]
        processor: f64,
        /// Share of its memory's, through which its messages go too.
        #[serde(default = "whole")]
        memory: f64,
    },
}

/// Which way a cable is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Each.
    #[default]
    Both,
    /// Away from the node, or from what is named first.
    Out,
    /// The other one.
    In,
}

impl Direction {
    pub(crate) fn is_out(self) -> bool {
        self != Direction::In
    }

    pub(crate) fn is_in(self) -> bool {
        self != Direction::Out
    }
}

/// An end of links between switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Switch(usize),
    /// Of a dragonfly.
    Group(usize),
}

impl Machine {
    /// The share of a node's speed that faults leave its processor, and its memory.
    #[must_use]
    pub fn speed_of(&self, node: usize) -> (f64, f64) {
        let of = |fault: &Fault| match *fault {
            Fault::Host { node: at, processor, memory } if at == node => Some((processor, memory)),
            _ => None,
        };
        self.faults.iter().filter_map(of).fold((1.0, 1.0), |all, one| (all.0 * one.0, all.1 * one.1))
    }

    pub(super) fn check_faults(&self) -> Checked {
        if self.faults.len() > MOST_FAULTS {
            return refuse("fault", self.faults.len(), format!("at most {MOST_FAULTS}"));
        }
        self.faults.iter().enumerate().try_for_each(|(at, fault)| self.check_fault(&format!("fault[{at}]"), fault))
    }

    fn check_fault(&self, key: &str, fault: &Fault) -> Checked {
        let node = |node: usize| within(&format!("{key}.node"), node, 0..=self.nodes.count - 1);
        let share = |name: &str, share: f64| within(&format!("{key}.{name}"), share, LEAST_SHARE..=1.0);
        let cable = |rate: f64, delay: Ps, loss: f64| {
            share("rate", rate)?;
            within(&format!("{key}.delay"), delay, Ps(0)..=SECOND)?;
            within(&format!("{key}.loss"), loss, 0.0..=MOST_LOSS)
        };
        match fault {
            Fault::Send { node: at, rate } | Fault::Receive { node: at, rate } => {
                node(*at)?;
                share("rate", *rate)
            }
            Fault::Cable { node: at, rate, delay, loss, .. } => {
                node(*at)?;
                cable(*rate, *delay, *loss)
            }
            Fault::Uplink { between, rate, delay, loss, .. } => {
                self.check_between(&format!("{key}.between"), between)?;
                cable(*rate, *delay, *loss)
            }
            Fault::Host { node: at, processor, memory } => {
                node(*at)?;
                share("processor", *processor)?;
                share("memory", *memory)
            }
        }
    }

    fn check_between(&self, key: &str, between: &[String; 2]) -> Checked {
        let places = between.each_ref().map(|name| self.topology.place(name));
        let joined = match places {
            [Some(Place::Switch(a)), Some(Place::Switch(b))] => self.topology.joins(a, b) || self.topology.joins(b, a),
            [Some(Place::Group(a)), Some(Place::Group(b))] => a != b,
            _ => false,
        };
        if joined {
            return Ok(());
        }
        let expected = match &self.topology {
            Topology::Single(_) => "another kind: one switch has no links to others",
            Topology::Leaves(spec) if spec.leaves <= 2 => "[\"leaf0\", \"leaf1\"], where there are two leaves",
            Topology::Leaves(_) => "a leaf and the spine, such as [\"leaf0\", \"spine\"]",
            Topology::FatTree(_) => {
                "two switches that are joined: [\"leaf0\", \"spine0\"] of one pod, or a spine and a core of its own"
            }
            Topology::Dragonfly(_) => "two groups ([\"g0\", \"g1\"]), or two switches of a row or a column of a group",
        };
        let [a, b] = between.each_ref().map(|name| shown(name));
        refuse(key, format!("{a}, {b}"), expected)
    }
}

impl Topology {
    /// What a switch is called in reports.
    pub(crate) fn switch_name(&self, switch: usize) -> String {
        match self {
            Topology::Single(_) => "switch".into(),
            Topology::Leaves(spec) if switch == spec.leaves => "spine".into(),
            Topology::Leaves(_) => format!("leaf{switch}"),
            Topology::FatTree(tree) => {
                let (leaves, spines) = (tree.pods * tree.leaves, tree.pods * tree.spines);
                match switch {
                    s if s < leaves => format!("leaf{s}"),
                    s if s < leaves + spines => format!("spine{}", s - leaves),
                    s => format!("core{}", s - leaves - spines),
                }
            }
            Topology::Dragonfly(fly) => {
                let size = fly.rows * fly.columns;
                let (group, at) = (switch / size, switch % size);
                match fly.rows {
                    1 => format!("g{group}s{at}"),
                    _ => format!("g{group}r{}c{}", at / fly.columns, at % fly.columns),
                }
            }
        }
    }

    /// What has this name: the inverse of [`Topology::switch_name`], and groups of a dragonfly.
    pub(crate) fn place(&self, name: &str) -> Option<Place> {
        let number = |prefix: &str, below: usize| {
            name.strip_prefix(prefix)?.parse().ok().filter(|at| *at < below).map(|at: usize| at)
        };
        let switch = match self {
            Topology::Single(_) => None,
            Topology::Leaves(spec) if spec.leaves > 2 && name == "spine" => Some(spec.leaves),
            Topology::Leaves(spec) => number("leaf", spec.leaves),
            Topology::FatTree(tree) => {
                let (leaves, spines) = (tree.pods * tree.leaves, tree.pods * tree.spines);
                let spine = || number("spine", spines).map(|at| leaves + at);
                let core = || number("core", tree.spines * tree.cores_per_spine).map(|at| leaves + spines + at);
                number("leaf", leaves).or_else(spine).or_else(core)
            }
            Topology::Dragonfly(fly) => {
                if let Some(group) = number("g", fly.groups) {
                    return Some(Place::Group(group));
                }
                let (group, rest) = name.strip_prefix('g')?.split_once(['s', 'r'])?;
                let (row, column) = if fly.rows == 1 { ("0", rest) } else { rest.split_once('c')? };
                let [group, row, column] = [group, row, column].map(|part| part.parse::<usize>().ok());
                let (group, row, column) = (group?, row?, column?);
                let exists = group < fly.groups && row < fly.rows && column < fly.columns;
                exists.then_some((group * fly.rows + row) * fly.columns + column)
            }
        };
        // Numbers can be written in several ways, names are in one.
        switch.filter(|at| self.switch_name(*at) == name).map(Place::Switch)
    }

    /// Whether links join one switch to another that has the greater number, in a tree, or to one of its row or column.
    fn joins(&self, a: usize, b: usize) -> bool {
        match self {
            Topology::Single(_) => false,
            Topology::Leaves(spec) if spec.leaves <= 2 => a != b,
            Topology::Leaves(spec) => a < spec.leaves && b == spec.leaves,
            Topology::FatTree(tree) => {
                let (leaves, spines) = (tree.pods * tree.leaves, tree.pods * tree.spines);
                let to_spine = a < leaves && (leaves..leaves + spines).contains(&b);
                let to_core = (leaves..leaves + spines).contains(&a) && b >= leaves + spines;
                to_spine && a / tree.leaves == (b - leaves) / tree.spines
                    || to_core && (a - leaves) % tree.spines == (b - leaves - spines) / tree.cores_per_spine
            }
            Topology::Dragonfly(fly) => {
                let size = fly.rows * fly.columns;
                let seat = |switch: usize| (switch % size / fly.columns, switch % fly.columns);
                let (here, there) = (seat(a), seat(b));
                a / size == b / size && (here.0 == there.0) != (here.1 == there.1)
            }
        }
    }

    /// Whether a switch is at, or in, a place.
    pub(crate) fn is_at(&self, switch: usize, place: Place) -> bool {
        match (place, self) {
            (Place::Switch(at), _) => at == switch,
            (Place::Group(group), Topology::Dragonfly(fly)) => switch / (fly.rows * fly.columns) == group,
            (Place::Group(_), _) => false,
        }
    }
}

fn whole() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, fault: &str) -> Result<Machine, super::super::MachineError> {
        let text = Machine::load(name).unwrap().text;
        Machine::parse(&format!("{text}\n[[fault]]\n{fault}\n"), "x")
    }

    #[test]
    fn every_kind_is_read() {
        for fault in [
            "kind = \"send\"\nnode = 63\nrate = 0.5",
            "kind = \"receive\"\nnode = 0\nrate = 0.01",
            "kind = \"cable\"\nnode = 3\nloss = 0.01",
            "kind = \"cable\"\nnode = 3\ndirection = \"in\"\nrate = 0.5\ndelay = \"2 us\"",
            "kind = \"uplink\"\nbetween = [\"leaf0\", \"spine7\"]\nrate = 0.5",
            "kind = \"uplink\"\nbetween = [\"spine7\", \"leaf0\"]\ndirection = \"out\"\ndelay = \"1 us\"",
            "kind = \"host\"\nnode = 1\nprocessor = 0.5\nmemory = 0.25",
        ] {
            let machine = with("small", fault).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.faults.len(), 1);
            assert!(machine.describe().iter().any(|(part, _)| *part == "faults"));
        }
        assert_eq!(with("small", "kind = \"host\"\nnode = 1\nmemory = 0.25").unwrap().speed_of(1), (1.0, 0.25));
    }

    #[test]
    fn mistakes_name_key_value_and_range() {
        for (name, fault, expected) in [
            ("small", "kind = \"send\"\nnode = 64\nrate = 0.5", "invalid fault[0].node '64': expected 0 to 63"),
            ("small", "kind = \"send\"\nnode = 6\nrate = 0.0", "invalid fault[0].rate '0': expected 0.01 to 1"),
            ("small", "kind = \"send\"\nnode = 6\nrate = nan", "invalid fault[0].rate 'NaN': expected 0.01 to 1"),
            ("small", "kind = \"send\"\nnode = 6\nrate = 2", "invalid fault[0].rate '2': expected 0.01 to 1"),
            (
                "small",
                "kind = \"host\"\nnode = 6\nmemory = 0.001",
                "invalid fault[0].memory '0.001': expected 0.01 to 1",
            ),
            ("small", "kind = \"cable\"\nnode = 6\nloss = 0.6", "invalid fault[0].loss '0.6': expected 0 to 0.5"),
            (
                "small",
                "kind = \"cable\"\nnode = 6\ndelay = \"2 s\"",
                "invalid fault[0].delay '2 s': expected 0 s to 1 s",
            ),
            ("small", "kind = \"cable\"\nnode = 6\ndirection = \"up\"", "unknown variant `up`"),
            ("small", "kind = \"cable\"\nnode = 6\nspeed = 1", "unknown field `speed`"),
            ("small", "kind = \"luck\"\nnode = 6", "unknown variant `luck`"),
            ("small", "kind = \"send\"\nnode = 6", "missing field `rate`"),
            ("small", "kind = \"uplink\"\nbetween = [\"leaf0\", \"leaf1\"]", "invalid fault[0].between 'leaf0, leaf1'"),
            ("small", "kind = \"uplink\"\nbetween = [\"leaf0\", \"spine8\"]", "expected two switches that are joined"),
            ("small", "kind = \"uplink\"\nbetween = [\"leaf00\", \"spine1\"]", "expected two switches that are joined"),
            ("malbec", "kind = \"uplink\"\nbetween = [\"g0\", \"g0\"]", "expected two groups"),
            ("lab", "kind = \"uplink\"\nbetween = [\"leaf0\", \"spine\"]", "[\"leaf0\", \"leaf1\"]"),
        ] {
            let error = with(name, fault).map(|machine| machine.describe()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn places_are_the_names_of_reports() {
        for name in super::super::shipped() {
            let machine = Machine::load(name).unwrap();
            let topology = &machine.topology;
            let network = crate::net::Network::new(&machine, 1).unwrap();
            let switch = network.switch_of(machine.endpoints() - 1);
            if !matches!(topology, Topology::Single(_)) {
                let Some(Place::Switch(at)) = topology.place(&switch) else { panic!("{name}: {switch}") };
                assert_eq!(topology.switch_name(at), switch);
            }
        }
        let tree = Machine::load("fat-tree-1024").unwrap().topology;
        let Topology::FatTree(spec) = &tree else { panic!("it is a tree") };
        for (a, b, joined) in [("leaf0", "spine0", true), ("leaf0", "core0", false), ("spine0", "core0", true)] {
            let at = |name: &str| match tree.place(name) {
                Some(Place::Switch(at)) => Some(at),
                _ => None,
            };
            if spec.pods > 1 || !b.starts_with("core") {
                assert_eq!(tree.joins(at(a).unwrap(), at(b).unwrap()), joined, "{a} {b}");
            }
        }
    }
}
