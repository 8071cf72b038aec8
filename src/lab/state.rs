//! What is written down about a lab, so that later commands find it: one file per lab in a directory only its user can
//! enter.
//!
//! The file is written before the first process of the lab starts and removed after the last one ended, so a crash at
//! any point leaves a file that `down` can act on. A lock on the directory keeps two commands from claiming one name.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::process::ProcessId;
use super::spec::LabSpec;
use super::system::Mode;
use super::topology::Shaping;

/// Overrides where labs are written down; set for commands that run inside a lab, where the user's number differs.
pub(super) const DIR_VARIABLE: &str = "TAILBACK_LAB_DIR";
/// The files of a lab, by what follows its name.
const SUFFIXES: [&str; 7] = [".hosts", ".names", ".ssh", ".shim.c", ".shim.so", ".tmp", ".json"];

/// A lab as written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Distinguishes this lab from an earlier one of the same name.
    pub id: String,
    pub mode: Mode,
    pub spec: LabSpec,
    /// How the links are shaped now.
    pub shaping: Shaping,
    /// The process that made the lab. It ends with that process unless `stays`.
    pub parent: ProcessId,
    pub stays: bool,
    /// The holder of the switches, then those of the hosts; empty while the lab is being made.
    pub holders: Vec<ProcessId>,
    /// What this lab lacks on this machine.
    pub notes: Vec<String>,
}

impl State {
    /// Whether any process of the lab, or the one that is making it, runs.
    pub fn is_alive(&self) -> bool {
        let making = self.holders.is_empty() && self.parent.is_alive();
        making || self.holders.iter().any(|holder| holder.is_alive())
    }
}

/// The directory labs are written down in.
#[derive(Clone, Debug)]
pub(super) struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The user's own: in `$XDG_RUNTIME_DIR` where that is the user's, else in `/tmp`.
    pub fn open() -> Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        let owned = |dir: &Path| fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        let dir = match (std::env::var_os(DIR_VARIABLE), std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)) {
            (Some(dir), _) => dir.into(),
            (None, Some(runtime)) if owned(&runtime) => runtime.join("tailback-lab"),
            _ => PathBuf::from(format!("/tmp/tailback-lab-{user}")),
        };
        let registry = Registry { dir };
        registry.check()?;
        Ok(registry)
    }

    /// In a directory that all can write to, someone else may have made ours first.
    fn check(&self) -> Result<()> {
        let meta = match fs::symlink_metadata(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            meta => meta.map_err(Error::file(&self.dir))?,
        };
        let user = rustix::process::geteuid().as_raw();
        if meta.is_dir() && meta.uid() == user && meta.mode() & 0o077 == 0 {
            return Ok(());
        }
        let path = self.dir.display();
        Err(Error::Usage(format!("{path} is not a directory that is yours alone: remove it and try again")))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of lab `name` with this suffix.
    pub fn file(&self, name: &str, suffix: &str) -> PathBuf {
        self.dir.join(format!("{name}{suffix}"))
    }

    /// Keeps others from claiming or ending a lab until it is dropped. Makes the directory if it is not there.
    pub fn lock(&self) -> Result<File> {
        for _ in 0..100 {
            match DirBuilder::new().mode(0o700).create(&self.dir) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::file(&self.dir)(error)),
                _ => self.check()?,
            }
            let Ok(dir) = File::open(&self.dir) else { continue };
            flock(&dir, FlockOperation::LockExclusive).map_err(|error| Error::file(&self.dir)(error.into()))?;
            // Whoever held the lock before may have removed the directory: then this lock guards nothing.
            let (locked, there) = (dir.metadata(), fs::symlink_metadata(&self.dir));
            if matches!((locked, there), (Ok(locked), Ok(there)) if locked.ino() == there.ino()) {
                return Ok(dir);
            }
        }
        Err(Error::Usage(format!("{} keeps vanishing: another command is in a loop there", self.dir.display())))
    }

    /// What is written down about lab `name`, if anything.
    pub fn load(&self, name: &str) -> Result<Option<State>> {
        let path = self.file(name, ".json");
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(Error::file(&path))?,
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| Error::file(&path)(error.into()))
    }

    /// What ends lab `name`, from a file that is not quite what this program writes: its identity and its processes.
    pub fn salvage(&self, name: &str) -> Option<(String, Vec<ProcessId>)> {
        let text = fs::read(self.file(name, ".json")).ok()?;
        let Ok(serde_json::Value::Object(known)) = serde_json::from_slice(&text) else {
            // Nothing is known; commands on its hosts carry an identity that begins with its name, and are not ended.
            return Some((String::new(), Vec::new()));
        };
        let id = known.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
        let holders = known.get("holders").and_then(|of| serde_json::from_value(of.clone()).ok()).unwrap_or_default();
        Some((id, holders))
    }

    /// Writes a lab down, in one step: a reader sees the old or the new, never half.
    pub fn save(&self, state: &State) -> Result<()> {
        let name = &state.spec.name;
        let (draft, path) = (self.file(name, ".tmp"), self.file(name, ".json"));
        let text = serde_json::to_vec_pretty(state).map_err(|error| Error::file(&path)(error.into()))?;
        fs::write(&draft, text).map_err(Error::file(&draft))?;
        fs::rename(&draft, &path).map_err(Error::file(&path))
    }

    /// Removes all files of lab `name`.
    pub fn clear(&self, name: &str) -> Result<()> {
        for suffix in SUFFIXES {
            let path = self.file(name, suffix);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(&path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes all files of lab `name`, and the directory when it was the last: a lock held on it is void then.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.clear(name)?;
        let _ = fs::remove_dir(&self.dir);
        Ok(())
    }

    /// Removes what a maker left that was killed before it had written lab `name` down: a draft, an empty directory.
    pub fn tidy(&self, name: &str) -> Result<()> {
        if !self.dir.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        // One that was written down by now is another's, and stays.
        if self.load(name)?.is_none() { self.remove(name) } else { Ok(()) }
    }

    /// The labs written down, by name.
    pub fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::file(&self.dir))?,
        };
        let files = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = files.filter_map(|file| Some(file.strip_suffix(".json")?.to_owned())).collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn registry(name: &str) -> Registry {
        Registry { dir: std::env::temp_dir().join(format!("tailback-registry-{name}-{}", std::process::id())) }
    }

    fn state(name: &str) -> State {
        let parent = ProcessId::of(std::process::id()).expect("runs");
        let spec = LabSpec { name: name.to_owned(), ..LabSpec::default() };
        let (id, mode, holders, notes) = ("x".to_owned(), Mode::Root, Vec::new(), Vec::new());
        State { id, mode, spec, shaping: Shaping::On, parent, stays: false, holders, notes }
    }

    #[test]
    fn what_is_saved_is_found_and_what_is_removed_is_gone() {
        let registry = registry("roundtrip");
        assert_eq!(registry.names().expect("lists"), [""; 0]);
        let lock = registry.lock().expect("locks");
        for name in ["b", "a"] {
            registry.save(&state(name)).expect("saves");
        }
        assert_eq!(registry.names().expect("lists"), ["a", "b"]);
        assert!(registry.load("a").expect("loads").is_some_and(|state| state.is_alive()));
        registry.remove("a").expect("removes");
        registry.remove("a").expect("removes what is not there");
        assert!(registry.load("a").expect("loads").is_none());
        registry.remove("b").expect("removes");
        assert!(!registry.dir().exists(), "the directory goes with the last lab");
        drop(lock);
    }

    #[test]
    fn what_a_killed_maker_left_is_tidied_and_a_lab_is_not() {
        let registry = registry("tidy");
        registry.tidy("a").expect("has nothing to do");
        assert!(!registry.dir().exists());
        drop(registry.lock().expect("locks"));
        fs::write(registry.file("a", ".tmp"), "half").expect("writes");
        registry.tidy("a").expect("tidies");
        assert!(!registry.dir().exists(), "a draft and the directory are gone");
        drop(registry.lock().expect("locks"));
        registry.save(&state("a")).expect("saves");
        registry.tidy("a").expect("leaves it");
        assert!(registry.load("a").expect("loads").is_some());
        registry.remove("a").expect("removes");
    }

    #[test]
    fn a_directory_open_to_others_is_refused() {
        let registry = registry("open");
        fs::create_dir(registry.dir()).expect("makes");
        fs::set_permissions(registry.dir(), fs::Permissions::from_mode(0o755)).expect("opens");
        let message = registry.lock().expect_err("refused").to_string();
        fs::remove_dir(registry.dir()).expect("removes");
        assert!(message.contains("yours alone"), "{message}");
    }
}
