//! The idle-poll shim: keeps MPI ranks that outnumber the cores from spinning.
//!
//! It is compiled where it is asked for, from the source in this repository, and preloaded into nothing else. A process
//! that runs with it has `TAILBACK_IDLE_SHIM=1` in its environment, so that the result can say so.

use std::path::PathBuf;
use std::process::Command;

use super::cluster::Lab;
use super::error::{Error, Result};
use super::system::complaint;

const SOURCE: &str = include_str!("shim/idle_poll.c");
/// Set to 1 for commands that run with the shim.
pub const SHIM_VARIABLE: &str = "TAILBACK_IDLE_SHIM";

impl Lab {
    /// The shim as a shared object for `LD_PRELOAD`; compiled on first use, removed with the lab.
    ///
    /// # Errors
    /// If there is no C compiler.
    pub fn shim(&self) -> Result<PathBuf> {
        let name = &self.spec().name;
        let object = self.registry.file(name, ".shim.so");
        let _lock = self.registry.lock()?;
        if self.registry.has(name, ".shim.so")? {
            return Ok(object);
        }
        let (source, draft) = (self.registry.file(name, ".shim.c"), self.registry.file(name, ".shim.tmp"));
        self.registry.write(name, ".shim.c", SOURCE.as_bytes(), 0o600)?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let what = format!("compiling the idle-poll shim with {}", compiler.display());
        let output = Command::new(&compiler).args(["-O2", "-shared", "-fPIC", "-o"]).args([&draft, &source]).output();
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(Error::Command { what, detail: complaint(&output) }),
            Err(error) => {
                let detail = format!("{error}: install a C compiler (package gcc), or run without the shim");
                return Err(Error::Command { what, detail });
            }
        }
        self.registry.rename(name, ".shim.tmp", ".shim.so")?;
        Ok(object)
    }
}
