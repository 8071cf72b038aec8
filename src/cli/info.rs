//! `tailback info`: what this machine and this binary can do.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::backend::{self, LibfabricPath};
use crate::kernel::{Canary, Congestor, Info};
use crate::result::{Build, HostFacts};

/// Options of `tailback info`.
#[derive(Clone, Debug, Args)]
pub struct InfoOptions {
    #[command(flatten)]
    library: LibfabricPath,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl InfoOptions {
    pub(super) fn text(&self) -> String {
        let libfabric = self.library.libfabric_path.as_deref();
        if self.json { json(libfabric) } else { text(libfabric) }
    }
}

fn json(libfabric: Option<&Path>) -> String {
    let state = |(name, state): (String, String)| json!({"name": name, "state": state});
    let kernel = |info: Info| json!({"name": info.key, "bytes": info.bytes, "what": info.what});
    let all = json!({
        "build": Build::this(),
        "host": HostFacts::this(),
        "backends": backend::available(libfabric).into_iter().map(state).collect::<Vec<_>>(),
        "job": backend::job_seen(),
        "canaries": Canary::kernels().map(|of| kernel(of.info())).collect::<Vec<_>>(),
        "congestors": Congestor::ALL.iter().map(|of| kernel(of.info())).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&all).expect("plain data") + "\n"
}

fn text(libfabric: Option<&Path>) -> String {
    let (build, host) = (Build::this(), HostFacts::this());
    let mut out = String::new();
    let git = build.git.map(|hash| format!(", commit {hash}")).unwrap_or_default();
    let _ = writeln!(out, "Tailback {}{git}, {} build, {}", build.version, build.profile, build.rustc);
    let _ = writeln!(
        out,
        "Host     {} ({}), {} cores{}",
        host.name,
        host.kernel,
        host.cores,
        host.cpu.map(|cpu| format!(" of {cpu}")).unwrap_or_default()
    );
    out.push_str("\nBackends\n");
    for (name, state) in backend::available(libfabric) {
        let _ = writeln!(out, "  {name:<10} {}", state.replace('\n', "\n             "));
    }
    let _ = writeln!(out, "\nJob\n  {}", backend::job_seen());
    out.push_str("\nCanaries\n");
    for kernel in Canary::kernels() {
        let info = kernel.info();
        let _ = writeln!(out, "  {:<14} {:>8} B  {}", info.key, info.bytes, info.what);
    }
    out.push_str("\nCongestors\n");
    for kernel in Congestor::ALL {
        let info = kernel.info();
        let _ = writeln!(out, "  {:<14} {:>8} B  {}", info.key, info.bytes, info.what);
    }
    out
}
