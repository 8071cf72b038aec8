//! HPC Challenge's kernels with their checks, generic over the network.
//!
//! Each kernel is a struct that is filled, run and checked in three calls, so that what is timed is the middle one and a
//! test can spoil what lies between the others. Local kernels know no network; global ones work on a [`Group`] whose
//! segment they say the size of. What they leave is a number to hold against HPCC's limit, never a verdict.
//!
//! Computing is done by crates made for it: products of matrices by `matrixmultiply`, or
//! `gemm` in builds for speed, transforms by `rustfft`. Matrices
//! come of a function of their place, so any rank can make any element again: checks need no second copy.
//!
//! After P. Luszczek et al., "Introduction to the HPC Challenge Benchmark Suite", and the suite's own documentation.
//!
//! [`Group`]: tailback_transport::Group

#![deny(unsafe_code)]

mod blocks;
mod dgemm;
mod ffi;
mod fft;
mod global_fft;
mod hpl;
mod ptrans;
mod random;
mod random_access;
mod share;
mod sizes;
mod stream;
#[cfg(test)]
mod testing;
mod threads;
mod updates;

pub use blocks::Cyclic;
pub use dgemm::{Dgemm, product_gflops};
pub use fft::Fft;
pub use global_fft::GlobalFft;
pub use hpl::{Hpl, Problem, Residuals};
pub use ptrans::Ptrans;
pub use random_access::Table;
pub use share::{largest, sum};
pub use sizes::Sizes;
pub use stream::{Stream, StreamRates};
pub use updates::{Outcome, Updates};

/// What computes, for the result file.
pub const LIBRARIES: &str = if cfg!(feature = "avx") {
    "products of matrices by gemm, transforms by rustfft, both with kernels for AVX"
} else {
    "products of matrices by matrixmultiply, transforms by rustfft without kernels for AVX"
};

/// Whether transforms are written for one kind of processor, which HPCC calls an optimised run. Products of matrices may be
/// in a base run too.
pub const OPTIMISED: bool = cfg!(feature = "avx");

/// Scaled residuals above this say that a result is wrong: HPL's and HPCC's limit.
pub const RESIDUAL_LIMIT: f64 = 16.0;

/// Part of RandomAccess' updates that may be lost: HPCC's limit.
pub const ERROR_LIMIT: f64 = 0.01;

/// Updates that a rank of RandomAccess may hold back at a time: HPCC's rule.
pub const LOOK_AHEAD: usize = 1024;

/// The distance of 1 to the next number below it, as HPL takes it.
pub(crate) const EPSILON: f64 = f64::EPSILON / 2.0;
