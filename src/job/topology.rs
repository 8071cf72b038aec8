//! Groups of hosts, by their names or from a file: lines `host group`, or the topology as Slurm (topology.conf, `scontrol show topology`)
//! or InfiniBand's `ibnetdiscover` print it. Of a topology a host's group is the switch that it hangs on.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use crate::input::Limit;
use crate::result::GroupsKnownBy;

/// More hosts than any list means.
const MOST_HOSTS: usize = 1 << 20;
/// Before a pattern, which otherwise could be a file's name.
const NAMES: &str = "name:";

/// Where groups come from, as the user says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupsFrom {
    /// A file.
    File(PathBuf),
    /// A pattern of hosts' names, whose only group is theirs.
    Names(String),
}

impl FromStr for GroupsFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(pattern) = text.strip_prefix(NAMES) else { return Ok(GroupsFrom::File(text.into())) };
        let regex = Regex::new(pattern).map_err(|error| format!("invalid regular expression '{pattern}': {error}"))?;
        match regex.captures_len() {
            2 => Ok(GroupsFrom::Names(pattern.to_owned())),
            groups => Err(format!("'{pattern}' has {} groups: one in parentheses is the group of a host", groups - 1)),
        }
    }
}

impl GroupsFrom {
    /// What every rank is told of it.
    pub(crate) fn read(&self) -> Result<Groups, String> {
        match self {
            GroupsFrom::File(path) => read(path).map(Groups::Listed),
            GroupsFrom::Names(pattern) => Ok(Groups::Names(pattern.clone())),
        }
    }
}

fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let name = path.display().to_string();
    let text = Limit::GROUPS.read_text(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    parse(&text, &name)
}

/// Which group each host belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Groups {
    /// Hosts with their groups.
    Listed(Vec<(String, String)>),
    /// What finds the group in a host's name.
    Names(String),
}

impl Groups {
    pub(crate) fn known_by(&self) -> GroupsKnownBy {
        match self {
            Groups::Listed(_) => GroupsKnownBy::File,
            Groups::Names(_) => GroupsKnownBy::Names,
        }
    }

    /// The group of a node, which is all of a host or a part of it.
    pub(super) fn of(&self, node: &str, host: &str) -> Result<String, String> {
        match self {
            Groups::Listed(named) => {
                let of = |wanted: &str| named.iter().find(|(name, _)| name == wanted);
                let found = of(node).or_else(|| of(host)).map(|(_, group)| group.clone());
                found.ok_or_else(|| format!("--groups does not name node {node}: expected a line '{host} GROUP'"))
            }
            Groups::Names(pattern) => {
                let regex = Regex::new(pattern).map_err(|error| format!("--groups: '{pattern}': {error}"))?;
                let found = regex.captures(host).and_then(|found| Some(found.get(1)?.as_str().to_owned()));
                found.ok_or_else(|| format!("--groups: the pattern '{pattern}' finds no group in the name {host}"))
            }
        }
    }
}

/// Hosts with their groups, whichever of the formats it is. `name` is the file's, for errors.
fn parse(text: &str, name: &str) -> Result<Vec<(String, String)>, String> {
    let is_slurm = |line: &str| line.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("SwitchName="));
    let lines = || text.lines().map(str::trim);
    let groups = if lines().any(is_slurm) {
        slurm(text, name)?
    } else if lines().any(|line| line.starts_with("Switch\t") || line.starts_with("Switch ")) && text.contains("\"S-") {
        ibnetdiscover(text)
    } else {
        return plain(text, name);
    };
    if groups.is_empty() {
        return Err(format!("{name}: no switch in it has hosts"));
    }
    Ok(groups)
}

/// `host group` a line; empty lines and those that start with # are passed over.
fn plain(text: &str, name: &str) -> Result<Vec<(String, String)>, String> {
    let mut groups = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => {}
            (Some(word), ..) if word.starts_with('#') => {}
            (Some(host), Some(group), None) => groups.push((host.to_owned(), group.to_owned())),
            _ => return Err(format!("{name}, line {}: write a host and its group", at + 1)),
        }
    }
    Ok(groups)
}

/// The switches that have nodes and no switches below them.
fn slurm(text: &str, name: &str) -> Result<Vec<(String, String)>, String> {
    let mut groups = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let value = |key: &str| {
            let of = line.split_whitespace().filter_map(|word| word.split_once('='));
            let mut of = of.filter(|(known, value)| known.eq_ignore_ascii_case(key) && !["", "(null)"].contains(value));
            of.next().map(|(_, value)| value)
        };
        let (Some(switch), Some(nodes), None) = (value("SwitchName"), value("Nodes"), value("Switches")) else {
            continue;
        };
        if value("Level").is_some_and(|level| level != "0") {
            continue;
        }
        let hosts = hosts(nodes).ok_or_else(|| format!("{name}, line {}: invalid list of hosts '{nodes}'", at + 1))?;
        groups.extend(hosts.into_iter().map(|host| (host, switch.to_owned())));
        if groups.len() > MOST_HOSTS {
            return Err(format!("{name}: more than {MOST_HOSTS} hosts"));
        }
    }
    Ok(groups)
}

/// The hosts of a list such as `n[001-003,7],login`.
fn hosts(list: &str) -> Option<Vec<String>> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for mark in list.chars() {
        match mark {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        match mark {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut()?.push(mark),
        }
    }
    let mut all = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        expand(part, &mut all)?;
    }
    (depth == 0).then_some(all)
}

/// The names that one part of a list stands for.
fn expand(part: &str, all: &mut Vec<String>) -> Option<()> {
    let Some((before, rest)) = part.split_once('[') else {
        all.push(part.to_owned());
        return Some(());
    };
    let (inside, after) = rest.split_once(']')?;
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if to < from || to - from > MOST_HOSTS {
            return None;
        }
        for number in from..=to {
            // Numbers have the width of the first: n[08-11].
            expand(&format!("{before}{number:0width$}{after}", width = first.len()), all)?;
            if all.len() > MOST_HOSTS {
                return None;
            }
        }
    }
    Some(())
}

/// Adapters below each switch, by the first word of what they say of themselves: the host's name.
fn ibnetdiscover(text: &str) -> Vec<(String, String)> {
    let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
    let (mut switch, mut groups): (Option<String>, Vec<(String, String)>) = (None, Vec::new());
    for line in text.lines() {
        if line.starts_with("Switch") {
            switch = quoted(line);
        } else if line.starts_with("Ca") || line.starts_with("Rt") {
            switch = None;
        } else if let (Some(switch), true) = (&switch, line.starts_with('[') && line.contains("\"H-")) {
            let said = line.split_once('#').and_then(|(_, said)| quoted(said));
            let host = said.and_then(|said| said.split_whitespace().next().map(str::to_owned));
            // A host of several ports hangs on the first switch that has one.
            if let Some(host) = host.filter(|host| groups.iter().all(|(known, _)| known != host)) {
                groups.push((host, switch.clone()));
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse(text, "t").unwrap()
    }

    #[test]
    fn names_of_hosts_have_their_groups() {
        let from: GroupsFrom = "name:^r([0-9]+)".parse().unwrap();
        let groups = from.read().unwrap();
        assert_eq!((groups.of("r12n3", "r12n3"), groups.of("r7n01/1", "r7n01")), (Ok("12".into()), Ok("7".into())));
        let said = groups.of("login", "login").unwrap_err();
        assert_eq!(said, "--groups: the pattern '^r([0-9]+)' finds no group in the name login");
        let refusal = |text: &str| text.parse::<GroupsFrom>().unwrap_err();
        assert_eq!(refusal("name:r[0-9]"), "'r[0-9]' has 0 groups: one in parentheses is the group of a host");
        assert!(refusal("name:r(").starts_with("invalid regular expression 'r(': "));
        assert_eq!("names".parse(), Ok(GroupsFrom::File("names".into())));
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(host, group)| ((*host).to_owned(), (*group).to_owned())).collect()
    }

    #[test]
    fn plain_lines_are_hosts_and_groups() {
        assert_eq!(read("# rack\na r1\n\n b r2 \n"), pairs(&[("a", "r1"), ("b", "r2")]));
        assert_eq!(parse("a r1 x", "t").unwrap_err(), "t, line 1: write a host and its group");
    }

    #[test]
    fn slurms_leaves_are_groups() {
        let conf = "# leaves\nSwitchName=s0 Nodes=n[08-10],login\nSwitchName=s1 Nodes=x[1,3]y[0-1] # two\nSwitchName=top Switches=s[0-1]\n";
        let expected = [
            ("n08", "s0"),
            ("n09", "s0"),
            ("n10", "s0"),
            ("login", "s0"),
            ("x1y0", "s1"),
            ("x1y1", "s1"),
            ("x3y0", "s1"),
            ("x3y1", "s1"),
        ];
        assert_eq!(read(conf), pairs(&expected));
        let shown =
            "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=a,b\nSwitchName=s2 Level=1 LinkSpeed=1 Nodes=a,b Switches=s0\n";
        assert_eq!(read(shown), pairs(&[("a", "s0"), ("b", "s0")]));
        for (bad, said) in [
            ("SwitchName=s Nodes=n[3-1]", "invalid list of hosts"),
            ("SwitchName=s Nodes=n[0-99999999]", "invalid list of hosts"),
            ("SwitchName=s Nodes=n[0", "invalid list of hosts"),
            ("SwitchName=s Switches=t", "no switch in it has hosts"),
        ] {
            assert!(parse(bad, "t").unwrap_err().contains(said), "{bad}");
        }
    }

    #[test]
    fn adapters_belong_to_their_switch() {
        let text = "# Topology file\nvendid=0x2c9\nswitchguid=0xa(a)\nSwitch\t36 \"S-000000000000000a\"\t\t# \"leaf one\" base port 0 lid 3\n\
                    [1]\t\"H-0000000000000001\"[1](1) \t\t# \"node01 HCA-1\" lid 4 4xEDR\n\
                    [2]\t\"S-000000000000000b\"[1]\t\t# \"spine\" lid 9 4xEDR\n\n\
                    Switch\t36 \"S-000000000000000b\"\t\t# \"spine\" base port 0 lid 9\n\
                    [3]\t\"H-0000000000000002\"[1](2) \t\t# \"node02 mlx5_0\" lid 5 4xEDR\n\n\
                    Ca\t1 \"H-0000000000000001\"\t\t# \"node01 HCA-1\"\n[1](1) \t\"S-000000000000000a\"[1]\t\t# lid 4\n";
        assert_eq!(read(text), pairs(&[("node01", "S-000000000000000a"), ("node02", "S-000000000000000b")]));
    }
}
