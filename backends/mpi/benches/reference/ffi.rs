//! The C loops of the top level's `benches/reference`, linked in by the `reference` feature.

use std::ffi::c_int;

// SAFETY: declared as in `loops.h` (an enum is an int there).
unsafe extern "C" {
    fn reference_open() -> c_int;
    fn reference_run(kernel: c_int, iterations: c_int) -> c_int;
    fn reference_close() -> c_int;
}

/// Makes buffers and a communicator. Collective; MPI must be initialised.
pub fn open() -> c_int {
    // SAFETY: it touches nothing but MPI and statics of its own.
    unsafe { reference_open() }
}

/// Runs a kernel by its number.
pub fn run(kernel: c_int, iterations: c_int) -> c_int {
    // SAFETY: an unknown kernel, or buffers that were never made, give an error code of MPI's.
    unsafe { reference_run(kernel, iterations) }
}

/// Frees what [`open`] made. Collective.
pub fn close() -> c_int {
    // SAFETY: as for `open`; freeing twice gives an error code of MPI's, since the pointers are reset.
    unsafe { reference_close() }
}
