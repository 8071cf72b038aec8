//! `tailback info`: what this machine and this binary can do.

use std::fmt::Write as _;
use std::path::Path;

use crate::backend;
use crate::kernel::{Canary, Congestor};
use crate::result::{Build, HostFacts};

pub(super) fn text(libfabric: Option<&Path>) -> String {
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
