//! The kernel of a whole program: Tailback sends none of its messages. The engine starts it and waits for its end.

use tailback_transport::{Group, Rank, Result};

use super::traits::{Kernel, Sizes};
use crate::layout::Neighbours;

/// No messages and no memory of Tailback's own.
pub struct Application;

impl Kernel for Application {
    fn new(_: Sizes, _: usize, _: Rank) -> Self {
        Application
    }

    fn segment(_: Sizes, _: usize) -> usize {
        0
    }

    fn fill<G: Group>(&self, _: &mut G, _: Sizes) {}

    fn iterate<G: Group>(&self, _: &mut G, _: Neighbours) -> Result<()> {
        Ok(())
    }

    fn check<G: Group>(&self, _: &mut G, _: Neighbours) -> Result<()> {
        Ok(())
    }

    fn payload(&self) -> usize {
        0
    }
}
