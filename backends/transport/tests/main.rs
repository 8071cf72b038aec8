//! The tests of the traits, over the loopback, linked once.

mod broken;
mod collective;
mod loopback;
mod rendezvous;
