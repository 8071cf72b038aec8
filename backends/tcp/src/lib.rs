//! Filled in by its own branch.
