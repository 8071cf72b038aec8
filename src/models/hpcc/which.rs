//! The seven tests by name.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of HPCC's tests, in all of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Test {
    Ptrans,
    Hpl,
    Dgemm,
    Stream,
    RandomAccess,
    Fft,
    Beff,
}

impl Test {
    /// All of them, in the order they run.
    pub const ALL: [Test; 7] =
        [Test::Ptrans, Test::Hpl, Test::Dgemm, Test::Stream, Test::RandomAccess, Test::Fft, Test::Beff];

    /// As the user types it.
    pub fn word(self) -> &'static str {
        match self {
            Test::Ptrans => "ptrans",
            Test::Hpl => "hpl",
            Test::Dgemm => "dgemm",
            Test::Stream => "stream",
            Test::RandomAccess => "random-access",
            Test::Fft => "fft",
            Test::Beff => "beff",
        }
    }
}
