//! A private folder for the files of one run, removed with it.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// A folder that nobody else can enter.
pub(in crate::commands) struct Scratch(PathBuf);

impl Scratch {
    pub(in crate::commands) fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(unique_name());
        // Fails when it exists, so nobody can have prepared it for us.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("cannot make a folder in {}: {error}", std::env::temp_dir().display()))?;
        Ok(Scratch(path))
    }

    pub(in crate::commands) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is lost if it stays: results have been shown by now.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A name no other run has.
pub(super) fn unique_name() -> String {
    format!("tailback-{}-{:08x}", std::process::id(), rand::random::<u32>())
}
