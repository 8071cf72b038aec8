//! A machine's cores, and which of its hardware threads share one. The kernel numbers threads, and calls them CPUs.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use tailback_transport::cpu_list::core_numbers;

/// Which threads there are, and their cores. A core is known by its first thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    core_of: HashMap<usize, usize>,
    /// Every thread that works.
    pub(crate) online: Vec<usize>,
}

impl Topology {
    /// This machine's. In a container `TAILBACK_SYS` may name where its `/sys` is.
    pub(crate) fn this() -> Topology {
        let sys = std::env::var_os("TAILBACK_SYS").map_or_else(|| "/sys".into(), PathBuf::from);
        Topology::read(&sys.join("devices/system/cpu"))
    }

    fn read(folder: &Path) -> Topology {
        let list = |path: PathBuf| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let online: Vec<usize> = core_numbers(&list(folder.join("online"))).collect();
        let core = |thread: &usize| {
            let siblings = list(folder.join(format!("cpu{thread}/topology/thread_siblings_list")));
            Some((*thread, core_numbers(&siblings).min()?))
        };
        Topology { core_of: online.iter().filter_map(core).collect(), online }
    }

    /// The core of a thread; a thread of which nothing is said is a core by itself.
    pub(crate) fn core(&self, thread: usize) -> usize {
        self.core_of.get(&thread).copied().unwrap_or(thread)
    }

    /// The cores of threads, each once.
    pub(crate) fn cores(&self, threads: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        threads.map(|thread| self.core(thread)).collect()
    }
}

#[cfg(test)]
impl Topology {
    /// Cores of one thread each.
    pub(crate) fn of_cores(cores: usize) -> Topology {
        Topology { core_of: HashMap::new(), online: (0..cores).collect() }
    }

    /// Cores of two threads each, numbered as most machines do: the second ones after all the first ones.
    pub(crate) fn of_pairs(cores: usize) -> Topology {
        Topology {
            core_of: (0..2 * cores).map(|thread| (thread, thread % cores)).collect(),
            online: (0..2 * cores).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_one_core() {
        let folder = std::env::temp_dir().join(format!("tailback-cores-{}", std::process::id()));
        let at = |thread: usize| folder.join(format!("cpu{thread}/topology"));
        for (thread, siblings) in [(0, "0,2\n"), (1, "1,3"), (2, "0,2"), (3, "")] {
            fs::create_dir_all(at(thread)).unwrap();
            fs::write(at(thread).join("thread_siblings_list"), siblings).unwrap();
        }
        fs::write(folder.join("online"), "0-4\n").unwrap();
        let topology = Topology::read(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(topology.online, [0, 1, 2, 3, 4]);
        assert_eq!([0, 1, 2, 3, 4].map(|thread| topology.core(thread)), [0, 1, 0, 3, 4], "what says nothing is a core");
        assert_eq!(topology.cores([0, 2].into_iter()).len(), 1);
        assert_eq!(Topology::read(&folder), Topology::default(), "no such system");
    }
}
