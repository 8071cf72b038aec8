//! Turns the installed headers into Rust. Nothing is linked: the library is loaded at run time.
//!
//! Headers are looked for where `LIBFABRIC_INCLUDE` says, else where pkg-config says, else where the compiler looks.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-env-changed=LIBFABRIC_INCLUDE");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let bindings = bindgen::Builder::default()
        .header("wrapper.h")
        .clang_args(include_flags())
        .allowlist_type("fi_.*|fid_.*|fid")
        .allowlist_var("FI_.*")
        // Exported functions are loaded, inline ones are written in `calls.rs`: neither is declared.
        .ignore_functions()
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .wrap_unsafe_ops(true)
        .layout_tests(false)
        .generate_comments(false)
        .generate();
    let bindings = bindings.unwrap_or_else(|error| {
        panic!(
            "libfabric's headers cannot be read ({error}). Install them (Debian: libfabric-dev, Fedora: libfabric-devel) \
             or set LIBFABRIC_INCLUDE to the folder that has rdma/fabric.h; libclang is needed too."
        )
    });
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bindings.rs");
    bindings.write_to_file(out).expect("OUT_DIR can be written");
}

fn include_flags() -> Vec<String> {
    if let Ok(folder) = std::env::var("LIBFABRIC_INCLUDE") {
        return vec![format!("-I{folder}")];
    }
    let output = Command::new("pkg-config").args(["--cflags-only-I", "libfabric"]).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
