//! Writing result files. A file is written whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{ResultFile, SCHEMA_VERSION};

/// Why a result file cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ResultError {
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    // What the file holds may be quoted, and is any text.
    #[error("{path} is no Tailback result: {}", .detail.replace(char::is_control, " "))]
    Malformed { path: String, detail: String },
    #[error(
        "{path} has schema version {found}; this Tailback reads versions up to {SCHEMA_VERSION}: use the version that wrote it, or a newer one"
    )]
    Version { path: String, found: u64 },
}

/// Writes a result file.
pub fn write(path: &Path, result: &ResultFile) -> Result<(), ResultError> {
    write_text(path, &(serde_json::to_string_pretty(result).expect("a result is plain data") + "\n"))
}

/// Writes a result that a later one replaces; to a file only, since what a pipe or a device was given is not replaced.
pub fn write_draft(path: &Path, result: &ResultFile) -> Result<(), ResultError> {
    if is_replaced(path) { write(path, result) } else { Ok(()) }
}

/// The same for a text.
pub fn write_draft_text(path: &Path, text: &str) -> Result<(), ResultError> {
    if is_replaced(path) { write_text(path, text) } else { Ok(()) }
}

fn is_replaced(path: &Path) -> bool {
    !matches!(Target::of(path), Ok(Target::Stream(_) | Target::Stdout))
}

/// Writes a text whole or not at all: a reader sees the old file or the new one, never a part.
pub fn write_text(path: &Path, text: &str) -> Result<(), ResultError> {
    write_bytes(path, text.as_bytes())
}

/// The same for what is no text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ResultError> {
    Target::of(path)
        .and_then(|target| match target {
            Target::Replace(path) => replace(&path, bytes),
            Target::Stream(path) => OpenOptions::new().write(true).open(path)?.write_all(bytes),
            Target::Stdout => io::stdout().lock().write_all(bytes),
        })
        .map_err(|source| ResultError::Write { path: path.display().to_string(), source })
}

/// Fails now if `path` could not be written later: nobody runs for an hour to learn of a missing folder.
pub fn check_writable(path: &Path) -> Result<(), ResultError> {
    Target::of(path)
        .and_then(|target| match target {
            Target::Replace(path) => {
                let partial = partial_path(&path);
                File::create(&partial)?;
                std::fs::remove_file(&partial)
            }
            // Opening a pipe would wait for its reader.
            Target::Stream(_) | Target::Stdout => Ok(()),
        })
        .map_err(|source| ResultError::Write { path: path.display().to_string(), source })
}

/// Whether this is what is printed, rather than a file.
pub fn is_stdout(path: &Path) -> bool {
    matches!(Target::of(path), Ok(Target::Stdout))
}

/// Whether results for each of these would have a file of its own.
pub fn check_distinct<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), String> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut stdout = false;
    for path in paths {
        if is_stdout(path) && std::mem::replace(&mut stdout, true) {
            return Err("stdout is given twice: one file would follow the other".into());
        }
        if let Ok(Target::Replace(file)) = Target::of(path) {
            let folder = file.parent().map(|of| if of.as_os_str().is_empty() { Path::new(".") } else { of });
            let folder = folder.and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
            let file = folder.join(file.file_name().unwrap_or_default());
            if seen.contains(&file) {
                return Err(format!("{} is given twice: the second file would replace the first", path.display()));
            }
            seen.push(file);
        }
    }
    Ok(())
}

/// What a path stands for.
enum Target {
    /// A file, or nothing yet: a new file takes its place. Links are followed, so that they stay links.
    Replace(PathBuf),
    /// A device or a pipe, which is written to and never replaced.
    Stream(PathBuf),
    /// Where else tables go: `-`.
    Stdout,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        if [Path::new("-"), Path::new("/dev/stdout")].contains(&path) {
            return Ok(Target::Stdout);
        }
        match std::fs::metadata(path) {
            Ok(facts) if facts.is_dir() => Err(io::Error::other("it is a folder")),
            // A new file would take its place whatever it allows; whoever protected it did not mean that.
            Ok(facts) if facts.is_file() && facts.permissions().readonly() => Err(io::Error::other("it is read-only")),
            Ok(facts) if facts.is_file() => Ok(Target::Replace(std::fs::canonicalize(path)?)),
            Ok(_) => Ok(Target::Stream(path.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Target::Replace(path.into())),
            Err(error) => Err(error),
        }
    }
}

/// Writes next to the target, syncs, and renames.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = partial_path(path);
    let written = (|| {
        let mut out = File::create(&partial)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        std::fs::rename(&partial, path)
    })();
    if written.is_err() {
        // The rename did not take it away, so it is ours to remove.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

/// The JSON schema of a result file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(ResultFile).to_value();
    schema["$id"] = format!("urn:tailback:result:{SCHEMA_VERSION}").into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_link_to_it_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_text(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        check_writable(&link).unwrap();
        write_text(&link, "two").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing partial is left");
    }

    #[test]
    fn a_protected_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_text(&file, "one").unwrap();
        let mut permissions = std::fs::metadata(&file).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&file, permissions).unwrap();
        let refused = [check_writable(&file), write_text(&file, "two")].map(|outcome| outcome.unwrap_err().to_string());
        assert!(refused.iter().all(|error| error.ends_with("it is read-only")), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    }

    #[test]
    fn stdout_is_given_once() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert!(check_distinct(&paths(&["-", "a"])).is_ok());
        assert!(check_distinct(&paths(&["-", "/dev/stdout"])).unwrap_err().starts_with("stdout is given twice"));
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt as _;
        // A link to it, so that a failing test replaces the link and not the machine's own device.
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        check_writable(&link).unwrap();
        let error = write_text(&link, "text").unwrap_err().to_string();
        assert!(error.starts_with("cannot write") && error.contains("No space left on device"), "{error}");
        assert!(link.is_symlink() && std::fs::metadata(&link).unwrap().file_type().is_char_device());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing partial is left");
    }
}
