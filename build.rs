//! Puts the commit, the features and the compiler into the binary, for `tailback info` and the result file. It never
//! looks for a native library: backends that need one have build scripts of their own.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=.git/refs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=TAILBACK_GIT={}", commit().unwrap_or_default());
    println!("cargo::rustc-env=TAILBACK_FEATURES={}", features().join(","));
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo::rustc-env=TAILBACK_RUSTC={}", output(&rustc, &["--version"]).unwrap_or_default());
    println!("cargo::rustc-env=TAILBACK_PROFILE={}", std::env::var("PROFILE").unwrap_or_default());
}

fn commit() -> Option<String> {
    let hash = output("git", &["rev-parse", "--short=12", "HEAD"])?;
    let changed = output("git", &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { hash } else { hash + "+" })
}

fn features() -> Vec<String> {
    let mut features: Vec<String> = std::env::vars()
        .filter_map(|(key, _)| Some(key.strip_prefix("CARGO_FEATURE_")?.to_lowercase()))
        .filter(|feature| feature != "default" && feature != "full")
        .collect();
    features.sort();
    features
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
