//! Names of endpoints that are files under /dev/shm, and removing those that killed processes left.
//!
//! A name has the process's number and its number space (containers may share /dev/shm, but not their processes), so
//! that a later run of the same user knows which files no process can be using.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const FOLDER: &str = "/dev/shm";

/// A name that no other endpoint of this host has.
pub(crate) fn name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{}{}-{}", prefix(), std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Removes what processes of this number space left that are gone. Others' files fail to go, and stay.
pub(crate) fn sweep() {
    sweep_folder(Path::new(FOLDER), &prefix());
}

fn sweep_folder(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = owner(&name.to_string_lossy(), prefix) else { continue };
        if !Path::new(&format!("/proc/{process}")).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that a file is named after.
fn owner(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?;
    rest.split_once('-')?.0.parse().ok()
}

/// `tailback-` and this process's number space.
fn prefix() -> String {
    let space = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    let number: String = space.chars().filter(char::is_ascii_digit).collect();
    format!("tailback-{number}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_dead_processes_of_ours_go() {
        let folder = std::env::temp_dir().join(format!("tailback-sweep-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let own = name();
        // No process has this number: it is above the system's highest.
        let (dead, foreign) = (format!("{}4294967295-0", prefix()), "tailback-1-4294967295-0");
        for file in [own.as_str(), &dead, foreign, "something else"] {
            fs::write(folder.join(file), b"").expect("a file");
        }
        sweep_folder(&folder, &prefix());
        let mut left: Vec<String> = fs::read_dir(&folder)
            .expect("the folder")
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into())
            .collect();
        left.sort();
        let mut expected = vec!["something else".to_owned(), foreign.to_owned(), own];
        expected.sort();
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(left, expected);
    }

    #[test]
    fn names_differ() {
        assert_ne!(name(), name());
    }
}
