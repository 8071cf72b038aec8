//! The simulator to who asks for it in a binary without it: nothing of it can be made, so nothing is ever asked of what it gives.

use std::convert::Infallible;
use std::sync::Arc;

use tailback_transport::{Bootstrap, Rank, Result as TransportResult};

use crate::backend::{Network, RoleSettings, Settings};
use crate::engine::Body;

use super::simulator::machine::{ABSENT, Machine, missing};
use super::simulator::net::PhaseCounters;

pub fn can_simulate() -> Result<(), String> {
    Err(missing())
}

pub(in crate::backend) fn everyone(size: JobSize, _: &Machine) -> Box<dyn Bootstrap> {
    match size.none {}
}

pub(in crate::backend) fn state() -> String {
    ABSENT.into()
}

pub(in crate::backend) fn check(_: &Settings) -> Result<(), String> {
    Err(format!("--transport sim is {ABSENT}"))
}

#[derive(Clone, Copy, Debug)]
pub struct JobSize {
    pub ranks: usize,
    none: Infallible,
}

impl JobSize {
    pub fn of(machine: &Machine, _: Option<usize>, _: Option<usize>) -> Result<Self, String> {
        match machine.none {}
    }

    pub fn nodes(self) -> usize {
        match self.none {}
    }
}

#[derive(Clone, Debug)]
pub struct Simulated {
    pub machine: Arc<Machine>,
    pub phases: Vec<PhaseCounters>,
    pub elapsed_ps: u64,
    pub hops: u64,
}

#[derive(Clone)]
pub(in crate::backend) struct SimulatedJobs {
    none: Infallible,
}

impl SimulatedJobs {
    pub(in crate::backend) fn new(_: Arc<Machine>, size: JobSize, _: u64) -> Self {
        match size.none {}
    }

    pub(in crate::backend) fn run<O>(
        &mut self,
        _: Network,
        _: &Settings,
        _: &dyn Fn(Rank) -> RoleSettings,
        _: Body<'_, O>,
    ) -> TransportResult<O> {
        match self.none {}
    }

    pub(in crate::backend) fn pass_over(&mut self) {
        match self.none {}
    }

    pub(in crate::backend) fn places(&self) -> std::iter::Empty<(String, String)> {
        match self.none {}
    }

    pub(in crate::backend) fn take(&mut self) -> Simulated {
        match self.none {}
    }
}
