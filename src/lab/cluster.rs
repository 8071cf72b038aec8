//! A lab that is up: made, entered, shaped, and taken down.
//!
//! [`Lab::up`] gives a lab that ends with this process, however it ends; [`Lab::stay`] lets it outlive the process.
//! Everything a lab consists of lives in namespaces of its own, so ending its processes removes it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use tailback_bootstrap::launch::{heed_signals, is_interrupted};

use super::degrade::Degradation;
use super::error::{Error, Result};
use super::ground::Ground;
use super::holder::{Holder, Setup};
use super::process::{ID_VARIABLE, ProcessId, end_all};
use super::spec::{LabSpec, default_name, validate_name};
use super::state::{Registry, State};
use super::system::{Mode, Needed, System, check_congestion_control};
use super::topology::{Host, Namespace, Shaping, Topology};

/// Goes to the directory of the caller and says which lab and host this is, then becomes the command. `nsenter` itself
/// would leave it in the root directory.
const ENTER: &str = r#"cd "$1" || exit 126
export TAILBACK_LAB="$2" TAILBACK_LAB_ID="$3" TAILBACK_LAB_HOST="$4" TAILBACK_LAB_DIR="$5" TAILBACK_LAB_SSH="$6"
export TAILBACK_GROUP="${TAILBACK_GROUP:-$7}"
shift 7; exec "$@""#;

/// Set by [`ENTER`] only: whoever has it is on a host of a lab.
const HOST_VARIABLE: &str = "TAILBACK_LAB_HOST";

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    pub(super) state: State,
    pub(super) system: System,
    pub(super) registry: Registry,
    pub(super) topology: Topology,
    /// Holders that end with this process; none in a lab that stays or was opened.
    attached: Vec<Holder>,
    /// Whether dropping this ends the lab.
    owned: bool,
}

impl Lab {
    /// Makes a lab that ends with this process.
    ///
    /// # Errors
    /// If the description makes no sense, the system does not allow it, a lab of this name is up, or a signal comes: from
    /// here on signals do not end this process.
    pub fn up(spec: &LabSpec) -> Result<Self> {
        spec.validate()?;
        heed_signals();
        check_congestion_control(&spec.congestion_control)?;
        let system = System::find(spec.user_namespace.then_some(Mode::UserNamespace))?;
        let degraded = |how: fn(&Degradation) -> bool| spec.degraded.iter().any(how);
        for (is_needed, needed) in [
            (spec.ecn, Needed::Marks),
            (degraded(Degradation::is_delay), Needed::Delay),
            (degraded(Degradation::is_loss), Needed::Loss),
        ] {
            if is_needed {
                system.check(needed)?;
            }
        }
        let registry = Registry::open()?;
        sweep(&registry);
        let state = claim(&registry, spec, system.mode)?;
        let mut lab = Lab { state, system, registry, topology: Topology::new(spec), attached: Vec::new(), owned: true };
        // From here on, dropping `lab` undoes whatever was done.
        lab.make()?;
        Ok(lab)
    }

    /// The lab of this name that is up.
    ///
    /// # Errors
    /// If there is none, or some of its processes are gone.
    pub fn open(name: &str) -> Result<Self> {
        validate_name(name)?;
        let registry = Registry::open()?;
        let state = registry.load(name)?.ok_or_else(|| Error::NotUp { name: name.to_owned() })?;
        if state.holders.is_empty() && state.parent.is_alive() {
            return Err(Error::Damaged { name: name.to_owned(), detail: "it is still being made".to_owned() });
        }
        let gone = state.holders.iter().filter(|holder| !holder.is_alive()).count();
        if gone > 0 || state.holders.is_empty() {
            let detail = format!("{gone} of its {} processes are gone", state.holders.len());
            return Err(Error::Damaged { name: name.to_owned(), detail });
        }
        let (system, topology) = (System::of(state.mode), Topology::new(&state.spec));
        Ok(Lab { state, system, registry, topology, attached: Vec::new(), owned: false })
    }

    /// The lab on whose host this process runs, if it runs on one.
    ///
    /// # Errors
    /// If what is written down about it cannot be read from here, or is about a later lab of the same name.
    #[must_use]
    pub fn around() -> Option<Result<Self>> {
        std::env::var_os(HOST_VARIABLE)?;
        let id = std::env::var(ID_VARIABLE).ok()?;
        Some(Self::open(&default_name()).and_then(|lab| {
            if lab.state.id == id {
                return Ok(lab);
            }
            Err(Error::Usage(format!("lab {} is not the one that this process was started in", lab.spec().name)))
        }))
    }

    /// Lets the lab outlive this process, until [`down`].
    ///
    /// # Errors
    /// If it cannot be written down, or a holder is gone.
    pub fn stay(mut self) -> Result<()> {
        self.state.stays = true;
        self.registry.save(&self.state)?;
        for holder in &mut self.attached {
            holder.tell("stay")?;
        }
        self.attached.clear();
        self.owned = false;
        Ok(())
    }

    /// Ends the lab and removes all of it.
    ///
    /// # Errors
    /// If a process does not end, or a file cannot be removed.
    pub fn down(mut self) -> Result<()> {
        self.end()
    }

    /// The description it was made from.
    #[must_use]
    pub fn spec(&self) -> &LabSpec {
        &self.state.spec
    }

    /// How its namespaces were allowed.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.mode
    }

    /// Its hosts, in order.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        self.topology.hosts()
    }

    /// What this lab lacks on this machine, one line each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.state.notes
    }

    /// Whether its links are shaped now.
    #[must_use]
    pub fn is_shaped(&self) -> bool {
        self.state.shaping != Shaping::Off
    }

    /// What the processes on its hosts depend on.
    #[must_use]
    pub fn ground(&self) -> Ground {
        let hosts = self.hosts().iter().map(|host| format!("host {}", host.name));
        let names = std::iter::once("the switch".to_owned()).chain(hosts);
        Ground::new(&self.state.spec.name, names.zip(self.state.holders.iter().copied()).collect())
    }

    /// The host of this name or address.
    ///
    /// # Errors
    /// If there is none.
    pub fn host(&self, name: &str) -> Result<&Host> {
        let is_it = |host: &&Host| host.name == name || [host.data, host.control].iter().any(|a| a.to_string() == name);
        self.hosts().iter().find(is_it).ok_or_else(|| {
            let known = self.hosts().iter().map(|host| host.name.as_str()).collect::<Vec<_>>();
            let known = match known.as_slice() {
                [first, .., last] => format!("{first} to {last}"),
                other => other.concat(),
            };
            Error::UnknownHost { lab: self.state.spec.name.clone(), host: name.to_owned(), known }
        })
    }

    /// The words that, put before a command, run it on `host` in this process's directory. They become the command, so
    /// its process number, signals and exit status are the command's own.
    #[must_use]
    pub fn command_on(&self, host: &Host) -> Vec<OsString> {
        let index = self.hosts().iter().position(|other| other == host).expect("a host of this lab");
        let mut words = self.system.enter(self.holder(Namespace::Host(index)));
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let name = &self.state.spec.name;
        words.extend(["sh", "-c", ENTER, "tailback-lab"].map(OsString::from));
        words.extend([cwd.into(), name.into(), self.state.id.as_str().into(), host.name.as_str().into()]);
        words.extend([self.registry.path().into(), self.registry.file(name, ".ssh").into(), host.group().into()]);
        words
    }

    /// Changes how links are shaped, without touching anything else.
    ///
    /// # Errors
    /// If `tc` fails, as where the kernel lacks a queue of this kind; the links are unshaped then.
    pub fn set_shaping(&mut self, to: Shaping) -> Result<()> {
        let from = self.state.shaping;
        if from == to {
            return Ok(());
        }
        let changed = self.shape(&["tc", "-batch", "-"], from, to);
        if changed.is_err() {
            // Some ports are as before and some are not: those that have nothing to remove are passed over.
            let _ = self.shape(&["tc", "-force", "-batch", "-"], Shaping::On, Shaping::Off);
        }
        self.state.shaping = if changed.is_ok() { to } else { Shaping::Off };
        self.registry.save(&self.state)?;
        changed
    }

    fn shape(&self, tc: &[&str], from: Shaping, to: Shaping) -> Result<()> {
        let batch = |namespace| (self.holder(namespace), tc, self.topology.shaping_batch(namespace, from, to));
        let jobs: Vec<_> = self.namespaces().into_iter().map(batch).collect();
        self.system.run_in(&jobs).map(|_| ())
    }

    /// The namespaces of the lab: the switches', then each host's.
    pub(super) fn namespaces(&self) -> Vec<Namespace> {
        std::iter::once(Namespace::Switch).chain((0..self.hosts().len()).map(Namespace::Host)).collect()
    }

    pub(super) fn holder(&self, namespace: Namespace) -> ProcessId {
        self.state.holders[match namespace {
            Namespace::Switch => 0,
            Namespace::Host(index) => index + 1,
        }]
    }

    fn make(&mut self) -> Result<()> {
        let name = self.state.spec.name.clone();
        // Whoever a command on a host runs as reads it there, as /etc/hosts.
        self.registry.write(&name, ".hosts", self.topology.hosts_file().as_bytes(), 0o644)?;
        let names: String = self.hosts().iter().map(|host| format!("{}\n", host.name)).collect();
        self.registry.write(&name, ".names", names.as_bytes(), 0o600)?;
        self.write_ssh()?;
        let hosts_file = self.registry.file(&name, ".hosts");
        let hosts_file = hosts_file.to_str().ok_or_else(|| Error::Usage(format!("{hosts_file:?} is no UTF-8 path")))?;
        let switch = Setup { name: "switch", hosts_file: None, ip_batch: "", tc_batch: "" };
        self.hold(None, &switch)?;
        self.attached[0].wait_for("made")?;
        let first = self.attached[0].process;
        for (index, host) in self.hosts().to_vec().iter().enumerate() {
            let ip_batch = self.topology.host_batch(index);
            let tc_batch = self.shaping(Namespace::Host(index));
            let setup =
                Setup { name: &host.name, hosts_file: Some(hosts_file), ip_batch: &ip_batch, tc_batch: &tc_batch };
            self.hold(Some(first), &setup)?;
        }
        for holder in &mut self.attached[1..] {
            holder.wait_for("made")?;
        }
        self.check_wanted()?;
        // Children that were not waited for: their numbers are theirs.
        let holders: Vec<u32> = self.attached[1..].iter().map(|holder| holder.process.pid).collect();
        let batch = self.topology.switch_batch(&holders);
        self.system.run_in(&[(first, &["ip", "-batch", "-"], batch)])?;
        self.system.run_in(&[(first, &["tc", "-batch", "-"], self.shaping(Namespace::Switch))])?;
        self.attached.iter_mut().try_for_each(|holder| holder.tell("go"))?;
        self.attached.iter_mut().try_for_each(|holder| holder.wait_for("ready"))?;
        self.check_wanted()?;
        self.state.holders = self.attached.iter().map(|holder| holder.process).collect();
        self.state.notes = self.attached.get(1).map(|holder| holder.notes.clone()).unwrap_or_default();
        self.registry.save(&self.state)
    }

    fn check_wanted(&self) -> Result<()> {
        if is_interrupted() { Err(Error::Interrupted { name: self.state.spec.name.clone() }) } else { Ok(()) }
    }

    fn hold(&mut self, within: Option<ProcessId>, setup: &Setup<'_>) -> Result<()> {
        self.check_wanted()?;
        let holder = Holder::start(&self.system, &self.state.id, within, setup)?;
        self.attached.push(holder);
        Ok(())
    }

    fn shaping(&self, namespace: Namespace) -> String {
        self.topology.shaping_batch(namespace, Shaping::Off, self.state.shaping)
    }

    /// A program that launchers take for `ssh`: hydra wants one path, without arguments.
    fn write_ssh(&self) -> Result<()> {
        let name = &self.state.spec.name;
        let program = std::env::current_exe().map_err(Error::command("finding this program's path"))?;
        let program = program.to_string_lossy().replace('\'', r"'\''");
        let text = format!("#!/bin/sh\nexec '{program}' lab exec --name {name} --ssh -- \"$@\"\n");
        self.registry.write(name, ".ssh", text.as_bytes(), 0o700)
    }

    fn end(&mut self) -> Result<()> {
        self.owned = false;
        let _lock = self.registry.lock()?;
        let mut holders = self.state.holders.clone();
        holders.extend(self.attached.iter().map(|holder| holder.process));
        let ended = end_all(&self.state.id, &holders);
        self.attached.iter_mut().for_each(Holder::reap);
        self.attached.clear();
        ended?;
        // A lab of the same name may have come since this one was ended by another command.
        match self.registry.load(&self.state.spec.name)? {
            Some(other) if other.id != self.state.id => Ok(()),
            _ => self.registry.remove(&self.state.spec.name),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.owned {
            let _ = self.end();
        }
    }
}

/// Ends the lab of this name and removes all of it, also what a crash left; says whether there was anything.
///
/// # Errors
/// If a process does not end, or a file cannot be removed.
pub fn down(name: &str) -> Result<bool> {
    validate_name(name)?;
    let registry = Registry::open()?;
    let state = match registry.load(name) {
        Ok(Some(state)) => state,
        Ok(None) => return registry.tidy(name).map(|()| false),
        // Written by another version, or damaged: what it names can be ended all the same.
        Err(unreadable) => {
            let _lock = registry.lock()?;
            let (id, holders) = registry.salvage(name).ok_or(unreadable)?;
            end_all(&id, &holders)?;
            return registry.remove(name).map(|()| true);
        }
    };
    if std::env::var(ID_VARIABLE).is_ok_and(|id| id == state.id) {
        return Err(Error::Usage(format!("lab {name} cannot be ended from inside: leave its hosts first")));
    }
    let (system, topology) = (System::of(state.mode), Topology::new(&state.spec));
    Lab { state, system, registry, topology, attached: Vec::new(), owned: false }.end()?;
    Ok(true)
}

/// The labs that are up, or that a crash left.
///
/// # Errors
/// If what is known of labs cannot be read.
pub fn names() -> Result<Vec<String>> {
    Registry::open()?.names()
}

/// Removes what labs left whose processes are gone; gives their names.
///
/// # Errors
/// If what is known of labs cannot be read.
pub fn remove_dead() -> Result<Vec<String>> {
    Ok(sweep(&Registry::open()?))
}

/// Removes what labs left whose processes are gone, except perhaps commands that were run on their hosts; gives their
/// names. A lab whose file cannot be read is left to [`down`].
fn sweep(registry: &Registry) -> Vec<String> {
    let dead = |state: &State| !state.is_alive() && !state.parent.is_alive();
    let of = |name: &String| registry.load(name).ok().flatten();
    let left: Vec<String> = registry.names().unwrap_or_default();
    if !left.iter().any(|name| of(name).is_some_and(|state| dead(&state))) {
        return Vec::new();
    }
    let Ok(_lock) = registry.lock() else { return Vec::new() };
    let gone = |name: &String| {
        // Looked at again: whoever held the lock may have made or ended it.
        of(name)
            .filter(dead)
            .is_some_and(|state| end_all(&state.id, &state.holders).is_ok() && registry.clear(name).is_ok())
    };
    left.into_iter().filter(gone).collect()
}

/// Takes the name of a new lab, or finds that it is taken.
fn claim(registry: &Registry, spec: &LabSpec, mode: Mode) -> Result<State> {
    let _lock = registry.lock()?;
    if let Some(state) = registry.load(&spec.name)? {
        if state.is_alive() {
            let detail = format!("{} hosts, {}", state.spec.hosts, state.mode);
            return Err(Error::AlreadyUp { name: spec.name.clone(), detail });
        }
        // Its processes are gone, except perhaps commands that were run on its hosts.
        end_all(&state.id, &state.holders)?;
        registry.clear(&spec.name)?;
    }
    let parent = ProcessId::of(std::process::id())
        .ok_or_else(|| Error::Usage("/proc is not mounted, or belongs to other processes".to_owned()))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let state = State {
        id: format!("{}.{}.{}", spec.name, parent.pid, now.map_or(0, |since| since.as_nanos())),
        mode,
        spec: spec.clone(),
        shaping: if spec.shaped { Shaping::On } else { Shaping::Off },
        parent,
        stays: false,
        holders: Vec::new(),
        notes: Vec::new(),
    };
    registry.save(&state)?;
    Ok(state)
}
