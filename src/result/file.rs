//! Writing result files, and all others that a user names. A file is written whole or not at all, over nobody's link but
//! the user's own.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

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
    // Piece by piece: the text of a large result would be the most that a rank ever holds.
    write_by(path, |out| {
        let mut out = BufWriter::new(out);
        serde_json::to_writer_pretty(&mut out, result)?;
        out.write_all(b"\n")?;
        out.flush()
    })
}

/// Writes a result that a later one replaces; to a file only, since what a pipe or a device was given is not replaced.
pub fn write_draft(path: &Path, result: &ResultFile) -> Result<(), ResultError> {
    if is_replaced(path) { write(path, result) } else { Ok(()) }
}

/// The same for a text.
pub fn write_draft_text(path: &Path, text: &str) -> Result<(), ResultError> {
    if is_replaced(path) { write_text(path, text) } else { Ok(()) }
}

/// Whether a later file takes the place of one that is written here.
pub(crate) fn is_replaced(path: &Path) -> bool {
    !matches!(Target::of(path), Ok(Target::Stream(_) | Target::Stdout))
}

/// Writes a text whole or not at all: a reader sees the old file or the new one, never a part.
pub fn write_text(path: &Path, text: &str) -> Result<(), ResultError> {
    write_bytes(path, text.as_bytes())
}

/// The same for what is no text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ResultError> {
    write_by(path, |out| out.write_all(bytes))
}

fn write_by(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), ResultError> {
    Target::of(path)
        .and_then(|target| match target {
            Target::Replace(path) => replace(&path, write),
            Target::Stream(path) => {
                // A link that was put there since is not followed.
                let flags = if is_descriptor(&path) { OFlags::empty() } else { OFlags::NOFOLLOW };
                OpenOptions::new()
                    .write(true)
                    .custom_flags(flags.bits() as i32)
                    .open(path)
                    .and_then(|mut out| write(&mut out))
            }
            Target::Stdout => write(&mut io::stdout().lock()),
        })
        .map_err(|source| ResultError::Write { path: path.display().to_string(), source })
}

/// Fails now if `path` could not be written later: nobody runs for an hour to learn of a missing folder.
pub fn check_writable(path: &Path) -> Result<(), ResultError> {
    Target::of(path)
        .and_then(|target| match target {
            Target::Replace(path) => {
                let (partial, _) = create_partial(&path)?;
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

/// The name of one of several files: `r.json` as `r-2.json`.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
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
#[derive(Debug)]
enum Target {
    /// A file, or nothing yet: a new file takes its place. Links are followed, so that they stay links.
    Replace(PathBuf),
    /// A device or a pipe, which is written to and never replaced.
    Stream(PathBuf),
    /// Where else tables go: `-`.
    Stdout,
}

/// Files that were opened for this process by whoever started it, which it reaches by links that nobody can plant.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

fn is_descriptor(path: &Path) -> bool {
    path.parent().is_some_and(|folder| DESCRIPTORS.iter().any(|of| Path::new(of) == folder))
}

/// As the kernel has it.
const MOST_LINKS: usize = 40;

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        Self::seen_by(rustix::process::geteuid().as_raw(), path)
    }

    /// What it stands for to a user.
    fn seen_by(user: u32, path: &Path) -> io::Result<Self> {
        if [Path::new("-"), Path::new("/dev/stdout")].contains(&path) {
            return Ok(Target::Stdout);
        }
        let path = match is_descriptor(path) {
            true => std::fs::canonicalize(path).unwrap_or_else(|_| path.into()),
            false => follow(user, path)?,
        };
        match std::fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => Err(io::Error::other("it is a folder")),
            // A new file would take its place whatever it allows; whoever protected it did not mean that.
            Ok(facts) if facts.is_file() && facts.permissions().readonly() => Err(io::Error::other("it is read-only")),
            Ok(facts) if facts.is_file() => Ok(Target::Replace(path)),
            Ok(_) => Ok(Target::Stream(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Target::Replace(path)),
            Err(error) => Err(error),
        }
    }
}

/// Where links at `path` lead, followed only where they are the user's own or root's: one that somebody else planted in a
/// shared folder would have a file of the user's replaced.
fn follow(user: u32, path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(path),
            Err(error) => return Err(error.into()),
        };
        let facts = file.metadata()?;
        if !facts.is_symlink() {
            return Ok(path);
        }
        if ![user, 0].contains(&facts.uid()) {
            return Err(io::Error::other(format!(
                "{} is a link of another user (uid {}), who may have put it there to have a file of yours replaced: \
                 remove it, or name the file that you mean",
                path.display(),
                facts.uid()
            )));
        }
        // Of the link that was looked at, whatever has its name by now.
        let next = rustix::fs::readlinkat(&file, "", Vec::new())?;
        path = path.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(next.as_bytes()));
    }
    Err(io::Error::other(format!("more than {MOST_LINKS} links lead from one to the next")))
}

/// Writes next to the target under a name that nobody can foresee, syncs, and renames. What a kill leaves ends in
/// `.partial`.
fn replace(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (partial, mut out) = create_partial(path)?;
    let written = (|| {
        write(&mut out)?;
        if let Some(old) = std::fs::symlink_metadata(path).ok().filter(Metadata::is_file) {
            keep_access(&out, &old)?;
        }
        out.sync_all()?;
        std::fs::rename(&partial, path)?;
        sync_folder(path)
    })();
    if written.is_err() {
        // The rename did not take it away, so it is ours to remove.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// A new file beside `path`. Where there is a file or a link of its name, this fails and follows nothing.
fn create_partial(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.partial", rand::random::<u64>()));
    // Nobody reads it before it has the mode of the file that it replaces.
    let mode = if path.exists() { 0o600 } else { 0o666 };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&name)?;
    Ok((name.into(), file))
}

/// Gives a file the mode, owner and group of the one that it replaces. Who cannot give it to that group does not let it be
/// read by another.
fn keep_access(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.permissions().mode() & 0o777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(file, None, Some(old.gid()))).is_err()
    {
        mode &= !0o070;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// After this the new name outlives a crash of the machine. Some filesystems cannot sync folders.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The JSON schema of a result file. Published, and not made of the types when it is printed: that would link a quarter of a
/// megabyte of code into the program. A test holds one to the other.
pub const SCHEMA: &str = include_str!("../../docs/result.schema.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_reference_of_the_types() {
        let mut made = schemars::schema_for!(ResultFile).to_value();
        made["$id"] = format!("urn:tailback:result:{SCHEMA_VERSION}").into();
        let made = format!("{made:#}\n");
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/result.schema.json");
            std::fs::write(path, made).expect("it can be written");
        } else {
            assert!(
                made == SCHEMA,
                "the schema changed: if that is meant, `UPDATE_REFERENCE=1 cargo test -p tailback --lib reference`, and \
                 raise SCHEMA_VERSION when a reader of the old form would misread the new one"
            );
        }
    }

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
    fn every_job_has_a_file_of_its_own() {
        for (path, expected) in [("r.json", "r-2.json"), ("a.b/r", "a.b/r-2"), ("/x/r.v1.json", "/x/r.v1-2.json")] {
            assert_eq!(numbered(Path::new(path), 2), Path::new(expected));
        }
    }

    /// Who has this file or folder, as far as these tests can choose: not the user that looks.
    fn another_user(link: &Path) -> u32 {
        let user = rustix::process::geteuid().as_raw();
        match user {
            // Root's own links are anybody's to follow: it gives this one away.
            0 => std::os::unix::fs::lchown(link, Some(65_534), None).map(|()| user).unwrap(),
            _ => user + 1,
        }
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [precious, planted, own] = ["precious", "planted", "own"].map(|name| folder.path().join(name));
        std::fs::write(&precious, "mine").unwrap();
        for target in [precious.as_path(), &folder.path().join("new"), Path::new("/dev/null")] {
            std::os::unix::fs::symlink(target, &planted).unwrap();
            let user = another_user(&planted);
            std::os::unix::fs::symlink(&planted, &own).unwrap();
            for link in [&planted, &own] {
                // The second link is the user's own, and leads to the other; of who is not root both are another's.
                let said = Target::seen_by(user, link).unwrap_err().to_string();
                assert!(said.contains("is a link of another user (uid "), "{said}");
            }
            if user == 0 {
                for outcome in [check_writable(&planted), write_text(&planted, "theirs")] {
                    let said = outcome.unwrap_err().to_string();
                    assert!(said.contains("planted is a link of another user (uid 65534)"), "{said}");
                }
            }
            [&planted, &own].into_iter().for_each(|link| std::fs::remove_file(link).unwrap());
        }
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing new, nothing partial");
    }

    #[test]
    fn a_name_that_could_be_foreseen_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let [precious, file] = ["precious", "file"].map(|name| folder.path().join(name));
        std::fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, folder.path().join(format!("file.{}.partial", std::process::id())))
            .unwrap();
        check_writable(&file).unwrap();
        write_text(&file, "result").unwrap();
        assert_eq!([&precious, &file].map(|path| std::fs::read_to_string(path).unwrap()), ["mine", "result"]);
        assert!(!file.is_symlink());
        let (first, second) = (create_partial(&file).unwrap().0, create_partial(&file).unwrap().0);
        assert_ne!(first, second);
        assert!(first.to_str().unwrap().ends_with(".partial"), "{}", first.display());
    }

    #[test]
    fn mode_and_owner_of_a_file_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_text(&file, "new").unwrap();
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&file), mode(&plain), "as any new file");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), Some(65_534)).unwrap();
        }
        let owner = |path: &Path| std::fs::metadata(path).map(|facts| (facts.uid(), facts.gid())).unwrap();
        let before = owner(&file);
        for kept in [0o600, 0o640, 0o664, 0o200] {
            std::fs::set_permissions(&file, Permissions::from_mode(kept)).unwrap();
            write_text(&file, "again").unwrap();
            assert_eq!((mode(&file), owner(&file)), (kept, before));
        }
    }

    #[test]
    fn links_that_lead_nowhere_or_in_a_circle() {
        let folder = tempfile::tempdir().unwrap();
        let [link, other] = ["link", "other"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("other", &link).unwrap();
        write_text(&link, "made").unwrap();
        assert!(link.is_symlink() && std::fs::read_to_string(&other).unwrap() == "made");
        std::fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink("link", &other).unwrap();
        let said = write_text(&link, "never").unwrap_err().to_string();
        assert!(said.ends_with("more than 40 links lead from one to the next"), "{said}");
    }

    #[test]
    fn what_the_caller_opened_is_written_to() {
        use std::io::Read as _;
        use std::os::fd::AsRawFd as _;
        let (mut read, write) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", write.as_raw_fd()));
        check_writable(&path).unwrap();
        write_text(&path, "text").unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let file = tempfile::NamedTempFile::new().unwrap();
        write_text(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), "text").unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "text");
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
