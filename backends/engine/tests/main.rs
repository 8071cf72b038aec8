//! The tests of protocols and collectives, over the loopback, linked once.

mod collective;
mod rendezvous;
