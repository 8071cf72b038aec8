//! For tests: a wire's types without a wire.

use super::kinds::Kinds;

pub(super) struct Bare;

impl Kinds for Bare {
    type Registration = ();
    /// Accesses that are open.
    type Far = usize;
    type Request = ();
}
