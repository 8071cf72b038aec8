//! libfabric for Rust: the headers' types (bindgen), the exported functions (loaded at run time), and the inline ones.
//!
//! - Nothing is linked. [`Library::load`] opens the library and asks for the symbol versions that fit the headers this
//!   was built with, so that a newer library gives structs of the older layout.
//! - libfabric's other functions are inline in its headers: calls through tables that the objects carry. They are part
//!   of the binary interface, since every application has them compiled in; [`calls`] writes them in Rust.
//!
//! Out of scope: safety. Everything here means what the manual pages say; `tailback-libfabric` makes it safe.

pub mod calls;
mod library;

pub use library::{Library, LoadError};

#[allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, unused_qualifications)]
#[allow(clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;

/// Packs a version as the library does.
#[must_use]
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The version of the headers this was built with.
pub const HEADERS: u32 = version(FI_MAJOR_VERSION, FI_MINOR_VERSION);

/// Major and minor of a packed version.
#[must_use]
pub const fn parts(version: u32) -> (u32, u32) {
    (version >> 16, version & 0xffff)
}
