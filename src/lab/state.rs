//! What is written down about a lab, so that later commands find it: one file per lab in a directory only its user can
//! enter.
//!
//! The file is written before the first process of the lab starts and removed after the last one ended, so a crash at
//! any point leaves a file that `down` can act on. A lock on the directory keeps two commands from claiming one name.
//!
//! What is read here decides whose namespaces a command enters and which processes are ended, with all rights of the user.
//! So nothing is taken from a directory that another user made: every operation opens the directory once, without
//! following a link, checks owner and mode of what it opened, and works through that descriptor alone, whatever comes to
//! stand at the path meanwhile. In a user namespace the check means the same: the user and the owner are mapped alike, and
//! a directory of an owner without a number there, closed to others as it must be, cannot be opened.
//!
//! Other programs are given paths (hosts file, stand-in for ssh, shim). A path leads to the directory that was checked as
//! long as nobody else can rename that: it stands where only its user can write, or in `/tmp`, whose sticky bit lets only
//! the owner rename or remove an entry.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FlockOperation, Mode as FileMode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::process::ProcessId;
use super::spec::LabSpec;
use super::system::Mode;
use super::topology::Shaping;

/// Overrides where labs are written down; set for commands that run inside a lab, where the user's number differs.
pub(super) const DIR_VARIABLE: &str = "TAILBACK_LAB_DIR";
/// The files of a lab, by what follows its name.
const SUFFIXES: [&str; 8] = [".hosts", ".names", ".ssh", ".shim.c", ".shim.tmp", ".shim.so", ".tmp", ".json"];
/// The largest file that is read; one of 250 hosts has 20 KiB.
const MAX_BYTES: u64 = 1 << 20;

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
    /// The state of lab `name`, from its file.
    fn parse(name: &str, text: &[u8]) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(ErrorKind::InvalidData, what);
        let state: State = serde_json::from_slice(text)?;
        state.spec.validate().map_err(|error| invalid(error.to_string()))?;
        if state.spec.name != name {
            return Err(invalid(format!("invalid name '{}': expected {name}", state.spec.name)));
        }
        let (holders, expected) = (state.holders.len(), state.spec.hosts + 1);
        if holders != 0 && holders != expected {
            return Err(invalid(format!("invalid number of holders {holders}: expected {expected}")));
        }
        Ok(state)
    }

    /// Whether any process of the lab, or the one that is making it, runs.
    pub fn is_alive(&self) -> bool {
        let making = self.holders.is_empty() && self.parent.is_alive();
        making || self.holders.iter().any(|holder| holder.is_alive())
    }
}

/// The directory labs are written down in.
#[derive(Clone, Debug)]
pub(super) struct Registry {
    path: PathBuf,
}

impl Registry {
    /// The user's own.
    ///
    /// # Errors
    /// If something else stands in its place.
    pub fn open() -> Result<Self> {
        let given = std::env::var_os(DIR_VARIABLE).map(std::path::absolute);
        Self::at(given.unwrap_or_else(|| Ok(own_place())).map_err(Error::file(Path::new(DIR_VARIABLE)))?)
    }

    fn at(path: PathBuf) -> Result<Self> {
        let registry = Registry { path };
        registry.directory()?;
        Ok(registry)
    }

    /// The directory as it stands now, checked, if there is one.
    fn directory(&self) -> Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(&self.path, flags, FileMode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            // A file, a link, or one that is closed to this user.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Err(self.foreign()),
            directory => directory.map_err(self.failed())?,
        };
        let stat = rustix::fs::fstat(&directory).map_err(self.failed())?;
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0;
        if is_own { Ok(Some(directory)) } else { Err(self.foreign()) }
    }

    fn foreign(&self) -> Error {
        Error::Usage(format!(
            "{} is not a directory that is yours alone: remove it, or name another in {DIR_VARIABLE}",
            self.path.display()
        ))
    }

    fn failed(&self) -> impl FnOnce(Errno) -> Error + '_ {
        |error| Error::file(&self.path)(error.into())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file of lab `name` with this suffix, for other programs.
    pub fn file(&self, name: &str, suffix: &str) -> PathBuf {
        self.path.join(format!("{name}{suffix}"))
    }

    /// Keeps others from claiming or ending a lab until it is dropped. Makes the directory if it is not there.
    pub fn lock(&self) -> Result<OwnedFd> {
        let identity = |of: &OwnedFd| rustix::fs::fstat(of).map(|stat| (stat.st_dev, stat.st_ino));
        for _ in 0..100 {
            match rustix::fs::mkdir(&self.path, FileMode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(self.failed()(error)),
            }
            let Some(locked) = self.directory()? else { continue };
            rustix::fs::flock(&locked, FlockOperation::LockExclusive).map_err(self.failed())?;
            // Whoever held the lock before may have removed the directory: then this lock guards nothing.
            let Some(there) = self.directory()? else { continue };
            if identity(&locked).map_err(self.failed())? == identity(&there).map_err(self.failed())? {
                return Ok(locked);
            }
        }
        Err(Error::Usage(format!("{} keeps vanishing: another command is in a loop there", self.path.display())))
    }

    /// What is written down about lab `name`, if anything.
    pub fn load(&self, name: &str) -> Result<Option<State>> {
        let text = self.read(name)?;
        text.map(|text| State::parse(name, &text)).transpose().map_err(Error::file(&self.file(name, ".json")))
    }

    /// What ends lab `name`, from a file that is not quite what this program writes: its identity and its processes.
    pub fn salvage(&self, name: &str) -> Option<(String, Vec<ProcessId>)> {
        let text = self.read(name).ok()??;
        let Ok(serde_json::Value::Object(known)) = serde_json::from_slice(&text) else {
            // Nothing is known; commands on its hosts carry an identity that begins with its name, and are not ended.
            return Some((String::new(), Vec::new()));
        };
        let id = known.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
        let holders = known.get("holders").and_then(|of| serde_json::from_value(of.clone()).ok()).unwrap_or_default();
        Some((id, holders))
    }

    /// The text of the file of lab `name`, if there is one.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(directory) = self.directory()? else { return Ok(None) };
        match read_own(&directory, &format!("{name}.json")) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some).map_err(Error::file(&self.file(name, ".json"))),
        }
    }

    /// Writes a lab down.
    pub fn save(&self, state: &State) -> Result<()> {
        let name = &state.spec.name;
        let text = serde_json::to_vec_pretty(state).map_err(|error| Error::file(&self.path)(error.into()))?;
        self.write(name, ".json", &text, 0o600)
    }

    /// Writes a file of lab `name` in one step: a reader sees the old or the new, never half.
    pub fn write(&self, name: &str, suffix: &str, text: &[u8], mode: u32) -> Result<()> {
        let draft = format!("{name}.tmp");
        self.within(name, suffix, |directory, file| {
            remove(directory, &draft)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(directory, &draft, flags, FileMode::from_raw_mode(mode))?;
            File::from(opened).write_all(text)?;
            Ok(rustix::fs::renameat(directory, &draft, directory, file)?)
        })
    }

    /// Whether lab `name` has this file.
    pub fn has(&self, name: &str, suffix: &str) -> Result<bool> {
        self.within(name, suffix, |directory, file| {
            match rustix::fs::statat(directory, file, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(false),
                found => Ok(found.map(|_| true)?),
            }
        })
    }

    /// Gives a file of lab `name` that another program wrote its final suffix.
    pub fn rename(&self, name: &str, from: &str, to: &str) -> Result<()> {
        let from = format!("{name}{from}");
        self.within(name, to, |directory, file| Ok(rustix::fs::renameat(directory, &from, directory, file)?))
    }

    /// Does something to a file of lab `name` in the directory, which must be there.
    fn within<T>(&self, name: &str, suffix: &str, act: impl FnOnce(&OwnedFd, &str) -> io::Result<T>) -> Result<T> {
        let done = match self.directory()? {
            Some(directory) => act(&directory, &format!("{name}{suffix}")),
            None => Err(ErrorKind::NotFound.into()),
        };
        done.map_err(Error::file(&self.file(name, suffix)))
    }

    /// Removes all files of lab `name`.
    pub fn clear(&self, name: &str) -> Result<()> {
        let Some(directory) = self.directory()? else { return Ok(()) };
        SUFFIXES.iter().try_for_each(|suffix| {
            remove(&directory, &format!("{name}{suffix}")).map_err(Error::file(&self.file(name, suffix)))
        })
    }

    /// Removes all files of lab `name`, and the directory when it was the last: a lock held on it is void then.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.clear(name)?;
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }

    /// Removes what a maker left that was killed before it had written lab `name` down: a draft, an empty directory.
    pub fn tidy(&self, name: &str) -> Result<()> {
        if self.directory()?.is_none() {
            return Ok(());
        }
        let _lock = self.lock()?;
        // One that was written down by now is another's, and stays.
        if self.load(name)?.is_none() { self.remove(name) } else { Ok(()) }
    }

    /// The labs written down, by name.
    pub fn names(&self) -> Result<Vec<String>> {
        let Some(directory) = self.directory()? else { return Ok(Vec::new()) };
        let entries = Dir::new(directory).map_err(self.failed())?;
        let files = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut names: Vec<String> = files.filter_map(|file| Some(file.strip_suffix(".json")?.to_owned())).collect();
        names.sort();
        Ok(names)
    }
}

/// Where a user's labs are written down: in a directory that nobody else can write to, `/run` for root and
/// `$XDG_RUNTIME_DIR`, or else in `/tmp`.
fn own_place() -> PathBuf {
    let user = rustix::process::geteuid();
    let is_own = |parent: &PathBuf| {
        let protected = |meta: fs::Metadata| meta.is_dir() && meta.uid() == user.as_raw() && meta.mode() & 0o022 == 0;
        fs::symlink_metadata(parent).is_ok_and(protected) && rustix::fs::access(parent, Access::WRITE_OK).is_ok()
    };
    let system = user.is_root().then(|| PathBuf::from("/run"));
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let parent = [system, runtime].into_iter().flatten().find(is_own);
    parent.map_or_else(|| format!("/tmp/tailback-lab-{user}").into(), |parent| parent.join("tailback-lab"))
}

/// The text of a file, which must be regular, the user's own, and of a size that makes sense.
fn read_own(directory: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let invalid = |what: &str| Err(io::Error::new(ErrorKind::InvalidData, what));
    // Whoever opens a pipe for reading would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, FileMode::empty()) {
        Err(Errno::LOOP) => return invalid("invalid file: expected no link"),
        file => File::from(file?),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return invalid("invalid file: expected a regular one of your own");
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return invalid(&format!("invalid size: expected at most {MAX_BYTES} bytes"));
    }
    Ok(text)
}

/// Removes a file, if it is there.
fn remove(directory: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::fs::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    use super::*;

    fn registry(name: &str) -> Registry {
        Registry { path: std::env::temp_dir().join(format!("tailback-registry-{name}-{}", std::process::id())) }
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
        assert!(!registry.path().exists(), "the directory goes with the last lab");
        drop(lock);
    }

    #[test]
    fn what_a_killed_maker_left_is_tidied_and_a_lab_is_not() {
        let registry = registry("tidy");
        registry.tidy("a").expect("has nothing to do");
        assert!(!registry.path().exists());
        drop(registry.lock().expect("locks"));
        fs::write(registry.file("a", ".tmp"), "half").expect("writes");
        registry.tidy("a").expect("tidies");
        assert!(!registry.path().exists(), "a draft and the directory are gone");
        drop(registry.lock().expect("locks"));
        registry.save(&state("a")).expect("saves");
        registry.tidy("a").expect("leaves it");
        assert!(registry.load("a").expect("loads").is_some());
        registry.remove("a").expect("removes");
    }

    #[test]
    fn a_directory_open_to_others_is_refused() {
        for mode in [0o755, 0o750, 0o701, 0o720] {
            let registry = registry("open");
            fs::create_dir(registry.path()).expect("makes");
            fs::set_permissions(registry.path(), fs::Permissions::from_mode(mode)).expect("opens");
            let refused = [registry.lock().err(), registry.load("a").err(), Registry::at(registry.path.clone()).err()];
            fs::remove_dir(registry.path()).expect("removes");
            for error in refused {
                let message = error.expect("refused").to_string();
                assert!(message.contains("yours alone"), "{mode:o}: {message}");
            }
        }
    }

    #[test]
    fn a_link_in_place_of_the_directory_or_of_a_file_is_refused() {
        let (registry, other) = (registry("link"), registry("linked"));
        drop(other.lock().expect("locks"));
        other.save(&state("a")).expect("saves");
        symlink(other.path(), registry.path()).expect("links");
        for error in [registry.lock().err(), registry.load("a").err(), registry.names().err()] {
            let message = error.expect("refused").to_string();
            assert!(message.contains("yours alone"), "{message}");
        }
        fs::remove_file(registry.path()).expect("removes");
        drop(registry.lock().expect("locks"));
        symlink(other.file("a", ".json"), registry.file("a", ".json")).expect("links");
        let message = registry.load("a").expect_err("refused").to_string();
        assert!(message.ends_with("a.json: invalid file: expected no link"), "{message}");
        assert!(registry.salvage("a").is_none(), "nor is anything ended that it names");
        // What is written takes the place of a link, and does not go through it.
        symlink(other.file("a", ".json"), registry.file("a", ".tmp")).expect("links");
        registry.save(&State { id: "y".to_owned(), ..state("a") }).expect("saves");
        let id = |registry: &Registry| registry.load("a").expect("loads").expect("is there").id;
        assert_eq!((id(&registry), id(&other)), ("y".to_owned(), "x".to_owned()));
        registry.remove("a").expect("removes");
        other.remove("a").expect("removes");
    }

    #[test]
    fn a_file_that_is_no_state_is_refused() {
        let registry = registry("garbage");
        drop(registry.lock().expect("locks"));
        let of = |change: fn(&mut State)| {
            let mut state = state("a");
            change(&mut state);
            serde_json::to_string(&state).expect("serialises")
        };
        let huge = " ".repeat(MAX_BYTES as usize + 1);
        for (text, why) in [
            (huge, "invalid size: expected at most 1048576 bytes"),
            ("\u{0}garbage".to_owned(), "expected value at line 1"),
            ("{\"holders\": 3}".to_owned(), "expected a sequence"),
            (of(|state| state.spec.name = "b".to_owned()), "invalid name 'b': expected a"),
            (of(|state| state.spec.hosts = 251), "--hosts 251"),
            (of(|state| state.holders.push(state.parent)), "invalid number of holders 1: expected 17"),
        ] {
            fs::write(registry.file("a", ".json"), text).expect("writes");
            let message = registry.load("a").expect_err("refused").to_string();
            assert!(message.contains(why), "{message}");
        }
        fs::remove_file(registry.file("a", ".json")).expect("removes");
        fs::create_dir(registry.file("a", ".json")).expect("makes");
        let message = registry.load("a").expect_err("refused").to_string();
        fs::remove_dir(registry.file("a", ".json")).expect("removes");
        assert!(message.contains("invalid file: expected a regular one of your own"), "{message}");
        registry.remove("a").expect("removes");
    }

    /// `nobody`, who owns nothing.
    const OTHER: u32 = 65534;

    /// Makes the calling thread, and no other, one of another user without any rights. Only root can.
    fn become_other() {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        set_thread_groups(&[]).expect("leaves its groups");
        set_thread_res_gid(group, group, group).expect("changes its group");
        set_thread_res_uid(user, user, user).expect("changes its user");
        assert!(fs::write("/tailback-test", "").is_err(), "it has no rights left");
    }

    /// A place like `/tmp`, where everyone can write, and a directory in it that another user has prepared: it pretends to
    /// be a registry with a lab `a`.
    fn attacked(name: &str) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::Builder::new().prefix(&format!("tailback-{name}-")).tempdir().expect("makes");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("opens");
        let planted = place.path().join("planted");
        let text = serde_json::to_string(&State { id: "planted".to_owned(), ..state("a") }).expect("serialises");
        let prepare = || {
            become_other();
            DirBuilder::new().mode(0o700).create(&planted).expect("makes");
            fs::write(planted.join("a.json"), text).expect("writes");
        };
        thread::scope(|scope| scope.spawn(prepare).join().expect("prepares"));
        (place, planted)
    }

    #[test]
    fn another_users_directory_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, planted) = attacked("planted");
        let path = place.path().join("labs");
        fs::rename(planted, &path).expect("moves");
        let registry = Registry { path: path.clone() };
        for error in [Registry::at(path).err(), registry.lock().err(), registry.load("a").err(), registry.names().err()]
        {
            let message = error.expect("refused").to_string();
            assert!(message.contains("labs is not a directory that is yours alone"), "{message}");
        }
        assert!(registry.salvage("a").is_none());
        // The same for a user who cannot even open it.
        let own = place.path().join("own");
        drop(Registry { path: own.clone() }.lock().expect("makes"));
        let look = || {
            become_other();
            Registry::at(own).expect_err("refused").to_string()
        };
        let message = thread::scope(|scope| scope.spawn(look).join().expect("looks"));
        assert!(message.contains("own is not a directory that is yours alone"), "{message}");
    }

    /// Another user moves a directory, and a link to it, in and out of the registry's path, as fast as that goes. What it
    /// says is never taken; a registry that is there is never moved; nothing is ever written into the other's.
    #[test]
    fn a_directory_moved_in_and_out_by_another_user_is_never_used() {
        const TRIES: usize = 1000;
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, planted) = attacked("race");
        let path = place.path().join("labs");
        let stop = AtomicBool::new(false);
        let attack = || {
            become_other();
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&planted, &path);
                let _ = fs::rename(&path, &planted);
                let _ = symlink(&planted, &path);
                let _ = fs::remove_file(&path);
            }
        };
        let [mut absent, mut refused, mut made] = [0; 3];
        let mut look = || {
            let start = Instant::now();
            // Each is met many times a second; the time limit is for a machine on which it is not.
            while absent + refused < TRIES || [absent, refused, made].contains(&0) {
                assert!(start.elapsed() < Duration::from_secs(60), "{absent} absent, {refused} refused, {made} made");
                match Registry::at(path.clone()).and_then(|registry| registry.load("a")) {
                    Ok(None) => absent += 1,
                    Err(error) => {
                        refused += 1;
                        assert!(error.to_string().contains("yours alone"), "{error}");
                    }
                    Ok(Some(state)) => panic!("{} was loaded after {absent} + {refused} tries", state.id),
                }
                let registry = Registry { path: path.clone() };
                assert!(registry.salvage("a").is_none());
                assert_eq!(registry.names().unwrap_or_default(), [""; 0]);
                if (absent + refused) % 10 == 0
                    && let Ok(_lock) = registry.lock()
                {
                    made += 1;
                    registry.save(&state("a")).expect("saves");
                    assert_eq!(registry.load("a").expect("loads").expect("is there").id, "x");
                    registry.remove("a").expect("removes");
                }
            }
        };
        thread::scope(|scope| {
            let attacker = scope.spawn(attack);
            let looked = panic::catch_unwind(AssertUnwindSafe(&mut look));
            stop.store(true, Ordering::Relaxed);
            attacker.join().expect("attacks to the end");
            looked.unwrap_or_else(|panic| panic::resume_unwind(panic));
        });
        let left: Vec<_> = fs::read_dir(&planted).expect("lists").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["a.json"]);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_is_chosen_that_others_cannot_write_to() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        assert_eq!(own_place(), Path::new("/run/tailback-lab"));
        let other = || {
            become_other();
            own_place()
        };
        let other = thread::scope(|scope| scope.spawn(other).join().expect("looks"));
        assert_eq!(other, Path::new("/tmp/tailback-lab-65534"), "what is root's is not its own");
    }
}
