//! The simulator to who asks for it in a binary without it: nothing of it can be made, so nothing is ever asked of what it gives.

use std::convert::Infallible;
use std::sync::Arc;

use tailback_transport::{Rank, Result as TransportResult};

use crate::backend::{Network, RoleSettings, Settings, Work};
use crate::engine::Body;

use simulator::machine::Machine;
use simulator::net::PhaseCounters;

const ABSENT: &str = "not in this binary: build with --features sim";

pub fn can_simulate() -> Result<(), String> {
    Err(format!("the simulator is {ABSENT}"))
}

pub fn simulate(_: &Work<'_>, _: JobSize, _: u64) -> Result<u8, String> {
    can_simulate().map(|()| 0)
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

#[derive(Debug)]
pub struct Simulated {
    pub machine: Arc<Machine>,
    pub phases: Vec<PhaseCounters>,
    pub elapsed_ps: u64,
    pub hops: u64,
}

pub(in crate::backend) enum SimulatedJobs {}

impl SimulatedJobs {
    pub(in crate::backend) fn run<O>(
        &mut self,
        _: Network,
        _: &Settings,
        _: &dyn Fn(Rank) -> RoleSettings,
        _: Body<'_, O>,
    ) -> TransportResult<O> {
        match *self {}
    }

    pub(in crate::backend) fn places(&self) -> std::iter::Empty<(String, String)> {
        match *self {}
    }

    pub(in crate::backend) fn take(&mut self) -> Simulated {
        match *self {}
    }
}

/// What of the crate the rest of the program names.
pub mod simulator {
    pub fn begin_phase(_: &str) {}

    pub mod machine {
        use std::convert::Infallible;

        use tailback_transport::units::Rate;

        #[derive(Clone, Debug)]
        pub struct Machine {
            pub name: String,
            pub about: String,
            pub text: String,
            pub nodes: Nodes,
            pub(in crate::backend::absent::sim) none: Infallible,
        }

        #[derive(Clone, Debug)]
        pub struct Nodes {
            pub count: usize,
            pub nics: usize,
            pub ranks_per_node: usize,
        }

        pub struct Link {
            pub rate: Rate,
        }

        impl Machine {
            pub fn load(_: &str) -> Result<Self, String> {
                super::super::can_simulate().map(|()| unreachable!("there is none"))
            }

            pub fn changed(&self, _: &str, _: &str) -> Result<Self, String> {
                match self.none {}
            }

            pub fn is_like(&self, _: &Self) -> bool {
                match self.none {}
            }

            pub fn host_link(&self) -> Link {
                match self.none {}
            }

            pub fn describe(&self) -> Vec<(&'static str, String)> {
                match self.none {}
            }
        }

        pub fn shipped() -> std::iter::Empty<&'static str> {
            std::iter::empty()
        }
    }

    pub mod net {
        #[derive(Debug)]
        pub struct PhaseCounters {
            pub name: String,
            pub from_ps: u64,
            pub to_ps: u64,
            pub ports: Vec<PortReport>,
            pub samples: Vec<Sample>,
            pub tree: Option<Tree>,
        }

        #[derive(Debug)]
        pub struct PortReport {
            pub from: String,
            pub to: String,
            pub counters: Counters,
        }

        #[derive(Debug)]
        pub struct Counters {
            pub bytes: u64,
            pub packets: u64,
            pub drops: u64,
            pub marks: u64,
            pub stalled_ps: u64,
            pub longest: u64,
        }

        #[derive(Debug)]
        pub struct Sample {
            pub at_ps: u64,
            pub queued: u64,
            pub longest: u64,
            pub stalled: u32,
        }

        #[derive(Debug)]
        pub struct Tree {
            pub at_ps: u64,
            pub queued: u64,
            pub crowds: Vec<Crowd>,
        }

        #[derive(Debug)]
        pub struct Crowd {
            pub port: String,
            pub queued: u64,
            pub blocked: bool,
            pub feeders: Vec<(String, u64)>,
        }
    }
}
