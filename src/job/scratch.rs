//! A private folder for the files of one run, removed with it.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// In the folder, locked for as long as the run lives: a process number alone says nothing where hosts share the folder.
const LOCK: &str = "lock";

/// A folder that nobody else can enter.
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self, String> {
        sweep(&std::env::temp_dir());
        let path = std::env::temp_dir().join(unique_name());
        // Fails when it exists, so nobody can have prepared it for us.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("cannot make a folder in {}: {error}", std::env::temp_dir().display()))?;
        let lock = File::create(path.join(LOCK)).and_then(|lock| {
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(lock)
        });
        let lock = lock.map_err(|error| format!("cannot use {}: {error}", path.display()))?;
        Ok(Scratch { path, _lock: lock })
    }

    /// Removes the folder of a file whose maker, this process's parent, did not live to do so.
    pub(crate) fn tidy_after_parent(file: &Path) {
        let Some(folder) = file.parent() else { return };
        let owner = folder.file_name().and_then(|name| name.to_str()).and_then(owner);
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        if owner.is_some_and(|pid| i32::try_from(pid).ok() != parent) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is lost if it stays: results have been shown by now.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes folders of runs that were killed: their names tell whose they were.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let left =
            entry.file_name().to_str().and_then(owner).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let ours = || entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == user);
        let free = || match File::open(entry.path().join(LOCK)) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if left && ours() && free() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made a folder of this name, if it is one of ours.
fn owner(name: &str) -> Option<u32> {
    let (pid, mark) = name.strip_prefix("tailback-")?.split_once('-')?;
    (mark.len() == 8 && mark.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(pid.parse().ok()?)
}

/// A name no other run has.
pub(crate) fn unique_name() -> String {
    format!("tailback-{}-{:08x}", std::process::id(), rand::random::<u32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_runs_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: it is more than the system gives.
        let names =
            ["tailback-4194305-0123abcd", "tailback-4194305", "tailback-lab-0", &*unique_name()].map(str::to_owned);
        names.iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).unwrap());
        // Of a run on another host that shares the folder.
        let elsewhere = folder.path().join("tailback-4194306-0123abcd");
        std::fs::create_dir(&elsewhere).unwrap();
        let lock = File::create(elsewhere.join(LOCK)).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        sweep(folder.path());
        assert!(elsewhere.exists());
        let there: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(there, [false, true, true, true]);
    }

    #[test]
    fn only_the_folder_of_a_parent_that_is_gone_is_tidied() {
        let folder = tempfile::tempdir().unwrap();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
        let names = [format!("tailback-{parent}-0123abcd"), "tailback-4194305-0123abcd".into(), "results".into()];
        for name in &names {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            Scratch::tidy_after_parent(&folder.path().join(name).join("output"));
        }
        let there: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(there, [true, false, true]);
    }
}
