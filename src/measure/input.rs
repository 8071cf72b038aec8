//! Reading files that a user names: whole, and never more than the limit of their kind, whatever the file says of its
//! length. Pipes, devices and files of `/proc` say nothing or 0, so what is read is counted.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// A kind of file, and the most that one of it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    kind: &'static str,
    mib: u64,
}

impl Limit {
    /// Some dozens of settings.
    pub const PLAN: Limit = Limit { kind: "a plan file", mib: 1 };
    /// Up to 4096 messages, and what may be written beside them.
    pub const GRAPH: Limit = Limit { kind: "a graph file", mib: 16 };
    /// A line for every protocol.
    pub const PARAMETERS: Limit = Limit { kind: "a file of parameters", mib: 1 };
    /// A line for every host.
    pub const GROUPS: Limit = Limit { kind: "a groups file", mib: 16 };
    /// What another program printed, with all else that is in a job's log.
    pub const LOG: Limit = Limit { kind: "a log", mib: 64 };
    /// All samples of a sweep, deflated.
    pub const JOURNAL: Limit = Limit { kind: "a journal", mib: 1024 };
    /// Some MiB for the largest jobs, some dozens with the ports of a large simulated machine.
    pub const RESULT: Limit = Limit { kind: "a result file", mib: 256 };

    /// The bytes of a file of this kind.
    pub fn read(self, path: &Path) -> Result<Vec<u8>> {
        let limit = self.mib << 20;
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if facts.is_dir() {
            return Err(Error::other("it is a folder"));
        }
        let mut bytes = Vec::new();
        if facts.len() <= limit {
            file.take(limit + 1).read_to_end(&mut bytes)?;
        }
        if facts.len().max(bytes.len() as u64) > limit {
            return Err(Error::other(format!("it is larger than {} MiB, the limit of {}", self.mib, self.kind)));
        }
        Ok(bytes)
    }

    /// The same for text.
    pub fn read_text(self, path: &Path) -> Result<String> {
        String::from_utf8(self.read(path)?).map_err(|_| Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_at_the_limit_is_read_and_one_above_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        assert_eq!(Limit::PLAN.read(&path).unwrap().len(), 1 << 20);
        file.set_len((1 << 20) + 1).unwrap();
        let said = Limit::PLAN.read_text(&path).unwrap_err().to_string();
        assert_eq!(said, "it is larger than 1 MiB, the limit of a plan file");
    }

    #[test]
    fn what_has_no_length_is_counted() {
        let said = Limit::PLAN.read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(said.starts_with("it is larger than 1 MiB"), "{said}");
        assert!(!Limit::PLAN.read(Path::new("/proc/self/status")).unwrap().is_empty(), "of length 0, it is said");
    }

    #[test]
    fn a_folder_and_what_is_no_text_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Limit::PLAN.read(folder.path()).unwrap_err().to_string(), "it is a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(Limit::PLAN.read_text(&path).unwrap_err().to_string(), "it is no text (UTF-8)");
    }
}
