//! The max-rate model: how fast k ranks of a node talk to k ranks of another, and how many should.
//!
//! Four models of the time T of a message of n bytes while k pairs talk (a in seconds, rates in bytes per second):
//! - postal: T = a + n / R_C
//! - max-rate: T = a + k n / min(R_N, k R_C)
//! - hidden latency: T = max(a + n / R_C, k n / R_N), the paper's formula (5)
//! - extended max-rate: T = a + k n / min(R_N, R_Cb + (k - 1) R_Ci)
//!
//! Fitted apart in each protocol regime; [`regimes`] finds the thresholds from the data, and bisection finds them to the byte.
//! [`choose`] says which model the data speak for, [`Halo`] what an exchange with neighbours takes by each, [`HaloSeen`] what it took,
//! and [`Given`] has models of systems that were not measured here. After W. Gropp, L. N. Olson and
//! P. Samfass, "Modeling MPI Communication Performance on SMP Nodes: Is it Time to Retire the Ping Pong Test",
//! EuroMPI 2016.

mod between;
mod halo;
mod measure;
#[cfg(test)]
mod paper;
mod parameters;
mod settings;
mod threshold;

pub use tailback_maxrate::{
    ALIKE, Fit, Line, Method, Model, Observation, Parameter, Values, Weighting, choose, fit, fit_subset, given_regimes,
    medians, regimes,
};

pub use between::{Between, Direction, middle};
pub use halo::{Halo, HaloSeen, Overlap};
pub use measure::{Found, measure};
pub use parameters::{Given, GivenRegime};
pub use settings::{NodePairs, Settings};
pub use threshold::Threshold;
