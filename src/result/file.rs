//! Reading and writing result files. A file is written whole or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{ResultFile, SCHEMA_VERSION};

/// Why a result file cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ResultError {
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path} is no Tailback result: {detail}")]
    Malformed { path: String, detail: String },
    #[error(
        "{path} has schema version {found}; this Tailback reads version {SCHEMA_VERSION}: use the version that wrote it, or a newer one"
    )]
    Version { path: String, found: u64 },
}

/// Writes a result file.
pub fn write(path: &Path, result: &ResultFile) -> Result<(), ResultError> {
    write_text(path, &(serde_json::to_string_pretty(result).expect("a result is plain data") + "\n"))
}

/// Writes next to the target, syncs, and renames: a reader sees the old file or the new one, never a part.
pub fn write_text(path: &Path, text: &str) -> Result<(), ResultError> {
    let failed = |source| ResultError::Write { path: path.display().to_string(), source };
    let partial = partial_path(path);
    let written = (|| {
        let mut out = File::create(&partial)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&partial, path)
    })();
    written.map_err(|source| {
        // The rename took it away, or it is ours to remove.
        let _ = std::fs::remove_file(&partial);
        failed(source)
    })
}

/// Fails now if `path` could not be written later: nobody runs for an hour to learn of a missing folder.
pub fn check_writable(path: &Path) -> Result<(), ResultError> {
    let failed = |source| ResultError::Write { path: path.display().to_string(), source };
    if path.is_dir() {
        return Err(failed(std::io::Error::other("it is a folder")));
    }
    let partial = partial_path(path);
    File::create(&partial).map_err(failed)?;
    std::fs::remove_file(&partial).map_err(failed)
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

/// Reads and checks a result file.
pub fn read(path: &Path) -> Result<ResultFile, ResultError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| ResultError::Read { path: name.clone(), source })?;
    parse(&text, &name)
}

fn parse(text: &str, path: &str) -> Result<ResultFile, ResultError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: u64,
    }
    let malformed = |detail: String| ResultError::Malformed { path: path.into(), detail };
    // The version first: another version's fields would only confuse the message.
    let version: Version = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if version.schema_version != u64::from(SCHEMA_VERSION) {
        return Err(ResultError::Version { path: path.into(), found: version.schema_version });
    }
    let result: ResultFile = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    check(&result).map_err(malformed)?;
    Ok(result)
}

/// What the types do not say: histograms decode, figures are numbers a plot can show.
fn check(result: &ResultFile) -> Result<(), String> {
    for test in result.runs.iter().flat_map(|run| &run.tests) {
        let batches = test.batches.iter().map(|batch| &batch.histogram);
        for histogram in test.histogram.iter().chain(batches) {
            histogram.decode().map_err(|detail| format!("{}: {detail}", test.title))?;
        }
    }
    Ok(())
}

/// The JSON schema of a result file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(ResultFile).to_value();
    schema["$id"] = format!("urn:tailback:result:{SCHEMA_VERSION}").into();
    schema
}
