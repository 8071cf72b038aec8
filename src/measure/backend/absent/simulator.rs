//! What of the simulator's crate the rest of the program names, in a binary without it: types of which no value can be made.

pub fn begin_phase(_: &str) {}

pub mod machine {
    use std::convert::Infallible;

    use tailback_transport::units::Rate;

    pub const ABSENT: &str = "not in this binary: build with --features sim";

    pub fn missing() -> String {
        format!("the simulator is {ABSENT}")
    }

    #[derive(Clone, Debug)]
    pub struct Machine {
        pub name: String,
        pub about: String,
        pub text: String,
        pub nodes: Nodes,
        pub none: Infallible,
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
            Err(missing())
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
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct PhaseCounters {
        pub name: String,
        pub from_ps: u64,
        pub to_ps: u64,
        pub ports: Vec<PortReport>,
        pub samples: Vec<Sample>,
        pub tree: Option<Tree>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct PortReport {
        pub from: String,
        pub to: String,
        pub counters: Counters,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct Counters {
        pub bytes: u64,
        pub packets: u64,
        pub drops: u64,
        pub marks: u64,
        pub stalled_ps: u64,
        pub longest: u64,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct Sample {
        pub at_ps: u64,
        pub queued: u64,
        pub longest: u64,
        pub stalled: u32,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct Tree {
        pub at_ps: u64,
        pub queued: u64,
        pub crowds: Vec<Crowd>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct Crowd {
        pub port: String,
        pub queued: u64,
        pub blocked: bool,
        pub feeders: Vec<(String, u64)>,
    }
}
